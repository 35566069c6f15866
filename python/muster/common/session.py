"""The session of one process set on this rank.

The library allows ending a session while threads are in a call with it, and rejects later calls. Therefore this class
neither counts nor locks; `closed` has the reason why a call is rejected.

Thread-safety: all methods, from any thread. Single operations on lists and dicts are atomic.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .._native import abi
from .exceptions import HorovodInternalError
from .failures import error_of

FORKED = ("this process was forked from a rank after init(): the world belongs to its parent, and the threads of the "
          "world do not exist here; fork before init(), use the start method 'spawn', or call init() in the child if a "
          "launcher has given it a place of its own")
SHUT_DOWN = "the world was shut down"


class Session:
    __slots__ = ("pointer", "ranks", "rank", "size", "native", "begin", "run", "wait_for", "is_done", "closed",
                 "dropped", "unobserved", "_names")

    def __init__(self, pointer: Any, ranks: Tuple[int, ...], rank: int, loaded: Any) -> None:
        self.pointer = pointer
        #: The ranks of the set as numbers of the world, by their number in the set.
        self.ranks = ranks
        self.rank = rank
        self.size = len(ranks)
        self.native = loaded
        self.begin = loaded.muster_session_begin
        self.run = loaded.muster_session_run
        self.wait_for = loaded.muster_session_wait_for
        self.is_done = loaded.muster_session_done
        #: The reason why operations cannot be handed over any more, or None. To be checked before each call, since the
        #: library must not be called in a forked process.
        self.closed: Optional[str] = None
        #: Operations for which no thread will wait, with the objects that must live until they are done: the library
        #: still uses their buffers.
        self.dropped: List[Tuple[int, object]] = []
        #: Names that were handed over since this rank last waited for an operation.
        self.unobserved: Set[str] = set()
        self._names: Dict[str, Iterator[int]] = {}

    def refuse(self) -> None:
        """Raises the exception for `closed`: RuntimeError in a forked process, otherwise HorovodInternalError."""
        if self.closed is FORKED:
            raise RuntimeError(FORKED)
        raise HorovodInternalError(self.closed)

    def error_of(self, code: int) -> Exception:
        """The exception for the last failure of the library on this thread."""
        error = error_of(self.native, code)
        if self.closed is not None and isinstance(error, ValueError):
            return HorovodInternalError(self.closed)  # the call failed because it came too late
        return error

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the library whose first argument is the session and which returns a code. Errors: those
        of the code, and those of refuse()."""
        if self.closed is not None:
            self.refuse()
        code = getattr(self.native, name)(self.pointer, *arguments)
        if code != abi.OK:
            raise self.error_of(code)

    def last_joined(self) -> int:
        """The rank of the set that joined last; -1 if no rank has joined."""
        if self.closed is not None:
            self.refuse()
        return int(self.native.muster_session_last_joined(self.pointer))

    def next_name(self, kind: str) -> str:
        """A name for an unnamed operation, with a counter for each kind. The names agree if the ranks of the set hand
        over the unnamed operations of a kind in one order, whatever they do in other sets."""
        count = self._names.get(kind)
        if count is None:
            count = self._names.setdefault(kind, itertools.count())
        return f"{kind}.noname.{next(count)}"

    def number_names_anew(self) -> None:
        """Restarts the names of unnamed operations at 0, on all ranks at the same point: a rank that had joined has
        missed some of the names that other ranks counted."""
        self._names.clear()

    def reap(self) -> None:
        """Releases dropped operations that are done."""
        for _ in range(len(self.dropped)):
            try:
                ticket, keep = self.dropped.pop(0)
            except IndexError:
                return  # another thread is reaping already
            if self.wait_for(self.pointer, ticket, 0, None) == abi.PENDING:
                self.dropped.append((ticket, keep))

    def end(self) -> None:
        """Fails pending operations, so that all waits return, and leaves. Called once."""
        if self.closed is None:
            self.closed = SHUT_DOWN
            self.native.muster_session_end(self.pointer)
            # The library writes to these buffers until here.
            self.dropped.clear()
