"""Tensors into which the library writes while the program runs.

Two operations that write to one tensor at the same time would give a result that depends on timing, and differs between
the ranks. Therefore the second is refused, until the program has waited for the first with synchronize(), or poll() has
returned True for it. Whether it is refused does not depend on how fast the first one is.

The library writes to memory behind autograd's back: changed() tells it, so that a backward pass that needs the old
values raises an error.

Thread-safety: all functions, from any thread.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from typing import Any, Iterator, List, Sequence, Tuple

import torch

#: Address of the begin and of the end, and the name of the operation; they do not overlap, and are sorted.
_Range = Tuple[int, int, str]
_written: List[_Range] = []
_lock = threading.Lock()

_increment = getattr(getattr(torch.autograd, "graph", None), "increment_version", None)


def changed(tensor: torch.Tensor) -> None:
    """Increments the version of a contiguous tensor, which all of its views share."""
    if _increment is not None:  # PyTorch 2.1 and later
        _increment(tensor)
    else:
        with torch.no_grad():
            tensor.detach().view(-1)[:0].zero_()


def check(tensors: Sequence[torch.Tensor], name: str) -> None:
    """Errors: ValueError if an operation writes to one of the tensors."""
    if _written:
        with _lock:
            _refuse(_ranges_of(tensors, name), name)


class Writing:
    """A pending operation, or several, that writes to tensors; it has the methods of Pending."""

    __slots__ = ("_ranges", "_tensors", "_pending")

    def __init__(self, tensors: Sequence[torch.Tensor], name: str) -> None:
        """Takes the tensors. begin() must follow. Errors: as check()."""
        self._ranges: List[_Range] = []
        self._tensors = tensors
        self._pending: Any = None
        ranges = _ranges_of(tensors, name)
        with _lock:
            _refuse(ranges, name)
            for each in ranges:
                bisect.insort(_written, each)
        self._ranges = ranges

    def begin(self, pending: Any) -> "Writing":
        self._pending = pending
        for tensor in self._tensors:
            changed(tensor)
        return self

    @contextlib.contextmanager
    def released_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._release()
            raise

    def done(self) -> bool:
        is_done: bool = self._pending.done()
        if is_done:
            self._release()
        return is_done

    def wait(self) -> Any:
        try:
            result = self._pending.wait()
        except KeyboardInterrupt:
            raise  # the wait may be repeated
        except BaseException:
            self._release()
            raise
        self._release()
        # What the program has computed with the tensor since begin() may be old or new values.
        for tensor in self._tensors:
            changed(tensor)
        return result

    def _release(self) -> None:
        ranges, self._ranges = self._ranges, []
        with _lock:
            for each in ranges:
                place = bisect.bisect_left(_written, each)
                if place < len(_written) and _written[place] == each:
                    del _written[place]

    def __del__(self) -> None:
        if self._ranges:
            self._release()


def _ranges_of(tensors: Sequence[torch.Tensor], name: str) -> List[_Range]:
    """Overlapping tensors of one operation have one range."""
    ranges: List[_Range] = []
    for begin, length in sorted((tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in tensors):
        if not length:
            continue
        if ranges and begin < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], begin + length), name)
        else:
            ranges.append((begin, begin + length, name))
    return ranges


def _refuse(ranges: Sequence[_Range], name: str) -> None:
    for each in ranges:
        place = bisect.bisect_left(_written, each)
        for other in _written[max(place - 1, 0):place + 1]:
            if other[0] < each[1] and each[0] < other[1]:
                raise ValueError(f"{name!r} would write to a tensor into which {other[2]!r} is being written: call "
                                 f"synchronize() for that operation first")
