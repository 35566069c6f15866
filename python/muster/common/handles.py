"""Handles: the numbers by which programs refer to pending operations, and the names of unnamed operations.

Thread-safety: all functions, from any thread. The table is a dict with integer keys: insertions and removals are
atomic, and if two threads synchronize one handle, only the first gets the result.
"""

from __future__ import annotations

import itertools
from typing import Callable, Dict, Optional, Tuple

from . import operations
from .operations import Pending, Result
from .process_sets import ProcessSet, global_process_set

#: Converts the result of an operation to the return value of synchronize().
Finish = Callable[[Optional[Result]], object]

_in_flight: Dict[int, Tuple[Pending, Finish]] = {}
#: The handles. A signal handler may take one in the middle of add(), which therefore has no lock.
_numbers = itertools.count()
#: Handles of earlier worlds are less than this number.
_first = 0


def add(pending: Pending, finish: Finish) -> int:
    """A handle for `pending`."""
    handle = next(_numbers)
    _in_flight[handle] = (pending, finish)
    return handle


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once. Errors: ValueError for a handle that is not pending."""
    found = _in_flight.get(handle)
    if found is None:
        raise _unknown(handle)
    return found[0].done()


def synchronize(handle: int) -> object:
    """Waits for the operation and returns its result, converted by `finish`. As in Horovod, a second call for one
    handle returns None.

    Errors: ValueError for a handle that add() did not return in this world; those of Pending.wait() and of `finish`. If
    Ctrl-C interrupts the wait, the next call waits again.
    """
    found: Optional[Tuple[Pending, Finish]] = None
    try:
        found = _in_flight.pop(handle, None)
        if found is None:
            if isinstance(handle, int) and _first <= handle < next(_numbers):  # skips one number
                return None
            raise _unknown(handle)
        pending, finish = found
        result = pending.wait()
    except KeyboardInterrupt:
        if found is not None:
            _in_flight[handle] = found
        raise
    return finish(result)


def next_name(kind: str, process_set: Optional[ProcessSet] = None) -> str:
    """A name for an unnamed operation on the set (default: all ranks). Errors: as session_of()."""
    return operations.session_of(process_set or global_process_set).next_name(kind)


def forget_all() -> None:
    """For a new world: the operations of an old world have failed, and no thread waits for them."""
    global _first
    _in_flight.clear()
    _first = next(_numbers)


def _unknown(handle: object) -> ValueError:
    return ValueError(f"no operation is pending with the handle {handle!r}; a handle is pending until "
                      f"synchronize() has returned its result")
