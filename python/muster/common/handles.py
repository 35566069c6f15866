"""The numbers that programs hold in place of operations in flight, and the names of operations that have none.

Thread-safety: everything from any thread. The table is a dict with whole numbers as keys, whose single insertions and
removals cannot be seen half done; a handle is taken out by whoever comes first.
"""

from __future__ import annotations

import itertools
from typing import Callable, Dict, Optional, Tuple, TypeVar

from .operations import Pending, Result

Finish = Callable[[Optional[Result]], object]

_numbers = itertools.count()
_names = itertools.count()
_pending: Dict[int, Tuple[Pending, Finish]] = {}


def add(pending: Pending, finish: Finish) -> int:
    """A handle for `pending`. `finish` makes what synchronize() gives back."""
    handle = next(_numbers)
    _pending[handle] = (pending, finish)
    return handle


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once. Errors: ValueError for a handle that is not in flight."""
    return _find(handle)[0].done()


def synchronize(handle: int) -> object:
    """Waits for the operation and gives its value back. Good once.

    Errors: ValueError for a handle that is not in flight; those of Pending.wait(). A wait that Ctrl-C interrupts
    leaves the handle good.
    """
    pending, finish = _find(handle)
    try:
        result = pending.wait()
    except KeyboardInterrupt:
        raise
    except BaseException:
        _pending.pop(handle, None)
        raise
    _pending.pop(handle, None)
    return finish(result)


def next_name(kind: str) -> str:
    """A name for an operation that was given none. Equal on all ranks that hand over the same ones in one order."""
    return f"{kind}.noname.{next(_names)}"


def forget_all() -> None:
    """For a new world: all handles are void, and names are counted anew, so that ranks of different age agree."""
    global _names
    _pending.clear()
    _names = itertools.count()


def _find(handle: int) -> Tuple[Pending, Finish]:
    found = _pending.get(handle)
    if found is None:
        raise ValueError(f"there is no operation in flight with the handle {handle!r}; a handle is good for one "
                         f"synchronize(), until shutdown()")
    return found
