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


#: What the library advises after a timeout -> the advice for a process group.
_ADVICE = {f"raise {limit}": "pass a longer timeout= to init_process_group() or new_group()"
           for limit in ("the stall limit", "MUSTER_COLLECTIVE_TIMEOUT")}


def last_error(native: Any, code: int, what: str = "") -> Exception:
    """The exception for the last failure of the library on this thread. `what`: the call that failed."""
    words = native.muster_last_error().decode(errors="replace")
    if code == abi.BAD_ARGUMENT:
        return ValueError(words)
    if code == abi.TIMEOUT:
        for advice, for_group in _ADVICE.items():
            words = words.replace(advice, for_group)
        words = f"{what}{': ' if what else ''}the timeout of the group is over: {words}"
    rank = native.muster_last_error_rank()
    return GroupError(words, rank=rank if rank >= 0 else None,
                      host=native.muster_last_error_host().decode(errors="replace"))


def raise_last(native: Any, code: int, what: str = "") -> None:
    raise last_error(native, code, what)
