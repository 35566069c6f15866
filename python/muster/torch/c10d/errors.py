"""The exceptions of a process group."""

from __future__ import annotations

from typing import Any, Optional

import torch.distributed as dist

from ..._native import abi

#: PyTorch 2 has a type for failures of backends; before, they are RuntimeErrors.
_Base: Any = getattr(dist, "DistBackendError", RuntimeError)


class GroupError(_Base):  # type: ignore[misc]
    """An operation of a group failed: a rank died, left, does not take part, or called another operation.

    `rank` and `host` are those of the rank at fault if it is known; otherwise None and "". The rank is that of the
    group.
    """

    def __init__(self, *arguments: object, rank: Optional[int] = None, host: str = "") -> None:
        super().__init__(*arguments)
        self.rank = rank
        self.host = host


def last_error(native: Any, code: int) -> Exception:
    """The exception for the last failure of the library on this thread."""
    words = native.muster_last_error().decode(errors="replace")
    if code == abi.BAD_ARGUMENT:
        return ValueError(words)
    if code == abi.TIMEOUT:
        words = f"the timeout of the group is over: {words}"
    rank = native.muster_last_error_rank()
    return GroupError(words, rank=rank if rank >= 0 else None,
                      host=native.muster_last_error_host().decode(errors="replace"))


def raise_last(native: Any, code: int) -> None:
    raise last_error(native, code)
