"""The world of this process: its ranks, joined, and a session for each process set that this rank belongs to.

The communicator that joined the ranks is kept, so that groups can be made from it at any time. Each process set,
including the set of all ranks, runs on an independent group.

Thread-safety: worlds and process sets are made and ended under `lock`. A world does not change otherwise.
"""

from __future__ import annotations

import os
import threading
import weakref
from ctypes import byref, c_int, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .exceptions import NOT_INITIALIZED
from .failures import check
from .knobs import Knobs
from .place import Place
from .session import FORKED, Session


class World:
    """The ranks of a job, from the view of this rank."""

    def __init__(self, comm: int, place: Place, knobs: Knobs, loaded: Any) -> None:
        self.comm = comm
        self.native = loaded
        self.knobs = knobs
        self.process = os.getpid()
        self.rank: int = loaded.muster_rank(comm)
        self.size: int = loaded.muster_size(comm)
        self.host: str = loaded.muster_host(comm).decode(errors="replace")

        def told(value: Optional[int], found: Any) -> int:
            # The launcher's values take precedence over measured ones: it may count slots, not machines.
            return int(found(comm)) if value is None else value

        self.local_rank = told(place.local_rank, loaded.muster_local_rank)
        self.local_size = told(place.local_size, loaded.muster_local_size)
        self.cross_rank = told(place.cross_rank, loaded.muster_cross_rank)
        self.cross_size = told(place.cross_size, loaded.muster_cross_size)
        #: Whether all hosts have the same number of ranks.
        self.is_homogeneous = True
        #: By number: the sessions of sets with this rank, and all registered sets (process_sets.py).
        self.sessions: Dict[int, Session] = {}
        self.process_sets: Dict[int, Any] = {}
        self.next_process_set = 1

    def is_foreign(self) -> bool:
        """Whether this process inherited the world by a fork."""
        return self.process != os.getpid()

    def start_session(self, number: int, ranks: Sequence[int]) -> Session:
        """Starts the session of process set `number` with `ranks`, which include this one. Called by all of them; waits
        for them.

        Errors: HorovodInternalError.
        """
        group = c_void_p()
        listed = (c_int * len(ranks))(*ranks)
        check(self.native, self.native.muster_group(self.comm, listed, len(ranks), byref(group)))
        own = tuple(ranks).index(self.rank)
        options = self.knobs.session_options(number, own)
        pointer = c_void_p()
        check(self.native, self.native.muster_session_start(group, byref(options), byref(pointer)))
        session = Session(pointer, tuple(ranks), own, self.native)
        if self.knobs.marks_cycles:
            session.call("muster_session_mark_cycles", 1)
        self.sessions[number] = session
        return session

    def end(self) -> None:
        """Leaves the world: ends the sessions, the newest first."""
        depart()
        for number in sorted(self.sessions, reverse=True):
            self.sessions.pop(number).end()
        comm, self.comm = self.comm, 0
        self.native.muster_disconnect(comm or None)


lock = threading.RLock()
current: Optional[World] = None

#: The methods of objects that have data in a session's memory, and the process set of each.
_departures: "List[Tuple[weakref.WeakMethod[Callable[[], None]], Any]]" = []


def before_end(leave: Callable[[], None], process_set: Any = None) -> None:
    """Calls the method `leave` each time before the session of `process_set` or the world ends, as long as its object
    lives: for objects with data in the memory of sessions. None: only before the world ends."""
    _departures[:] = [each for each in _departures if each[0]() is not None]
    _departures.append((weakref.WeakMethod(leave), process_set))


def depart(process_set: Any = None) -> None:
    """Called before the session of `process_set` ends, or all sessions (None): calls the registered methods.

    Objects of other process sets must not notice the end of a set: only some of their ranks are in it."""
    for reference, of in list(_departures):
        leave = reference()
        if leave is not None and (process_set is None or of is process_set):
            leave()


def get() -> World:
    """The world of this process. Errors: ValueError before init() and after shutdown(), RuntimeError in a process
    that was forked from a rank."""
    made = current
    if made is None:
        raise ValueError(NOT_INITIALIZED)
    if made.is_foreign():
        raise RuntimeError(FORKED)
    return made


def _close_in_child() -> None:
    global lock
    lock = threading.RLock()  # another thread of the parent may have held it
    if current is not None:
        for session in current.sessions.values():
            session.closed = FORKED


os.register_at_fork(after_in_child=_close_in_child)
