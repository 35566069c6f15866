"""The world of this process: who is in it, and a session for each process set.

A world is connected once (a base communicator, which is kept for making groups), and each process set that this rank
belongs to gets a group of it with a session of its own. shutdown() ends them all; init() can make the next world, any
number of times.

Thread-safety: making and ending worlds and sessions is done under one lock. Operations take none: `Session.enter()`
counts those who are inside of the library, and end() waits for them, so that no thread finds its session gone.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref, c_int, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .._native import abi, library
from .environment import Place
from .exceptions import NOT_INITIALIZED, ConfigurationError, HorovodInternalError, MismatchError

FORKED = ("this process was forked from a rank after init(): the world belongs to its parent, and none of its threads "
          "are here; start ranks with the launcher or with multiprocessing's 'spawn', or call init() after the fork")


class Session:
    """The session of one process set, as this rank has it."""

    __slots__ = ("pointer", "ranks", "rank", "size", "closed", "inside", "left", "dropped", "library")

    def __init__(self, pointer: int, ranks: Tuple[int, ...], rank: int, loaded: Any) -> None:
        self.pointer = pointer
        #: Of the world, by rank of the set.
        self.ranks = ranks
        self.rank = rank
        self.size = len(ranks)
        self.library = loaded
        #: Why nothing can be handed over any more; None while it can.
        self.closed: Optional[str] = None
        #: One entry for each thread that is inside of the library: append() and pop() are atomic.
        self.inside: List[None] = []
        self.left = threading.Event()
        #: Operations that nobody will wait for, with what has to live until they are done.
        self.dropped: List[Tuple[int, object]] = []

    def enter(self) -> None:
        """Before each call of the library. Errors: as check()."""
        self.inside.append(None)
        if self.closed is not None:
            self.leave()
            self.check()

    def leave(self) -> None:
        self.inside.pop()
        if self.closed is not None:
            self.left.set()

    def check(self) -> None:
        if self.closed is not None:
            raise (RuntimeError if self.closed is FORKED else HorovodInternalError)(self.closed)

    def drop(self, ticket: int, keep: object) -> None:
        """Nobody will wait for this operation; `keep` lives until it is done."""
        self.dropped.append((ticket, keep))

    def reap(self) -> None:
        """Lets go of what was dropped and is done by now. With enter()."""
        pending = []
        while self.dropped:
            ticket, keep = self.dropped.pop()
            if self.library.muster_session_wait_for(self.pointer, ticket, 0, None) == abi.PENDING:
                pending.append((ticket, keep))
        self.dropped.extend(pending)

    def end(self) -> None:
        """Fails what is pending and leaves. Returns when no thread is inside any more."""
        self.closed = "the world was shut down"
        while self.inside:
            self.left.wait(1.0)
            self.left.clear()
        self.library.muster_session_end(self.pointer)
        self.dropped.clear()


class World:
    """The ranks of a job, joined."""

    def __init__(self, comm: int, place: Place, loaded: Any) -> None:
        self.comm = comm
        self.library = loaded
        self.process = os.getpid()
        self.rank: int = loaded.muster_rank(comm)
        self.size: int = loaded.muster_size(comm)
        self.host: str = loaded.muster_host(comm).decode(errors="replace")
        told = place.local_rank is not None
        self.local_rank: int = place.local_rank if told else loaded.muster_local_rank(comm)  # type: ignore[assignment]
        self.local_size: int = place.local_size if told else loaded.muster_local_size(comm)  # type: ignore[assignment]
        self.cross_rank: int = place.cross_rank if told else loaded.muster_cross_rank(comm)  # type: ignore[assignment]
        self.cross_size: int = place.cross_size if told else loaded.muster_cross_size(comm)  # type: ignore[assignment]
        #: Of the process sets that this rank belongs to, by their numbers.
        self.sessions: Dict[int, Session] = {}
        #: All that are registered (process_sets.py).
        self.process_sets: Dict[int, Any] = {}
        self.next_process_set = 1

    def agree(self, name: str, text: str) -> None:
        """Returns once all ranks have come here with the same text. Errors: MismatchError with the texts."""
        session = self.sessions[0]
        operation = abi.operation()
        operation.kind = abi.OPERATION_BARRIER
        operation.name = name.encode()
        operation.shape = text.encode()
        ticket = ctypes.c_uint64()
        _check(self.library, self.library.muster_session_begin(session.pointer, byref(operation), byref(ticket)))
        code = abi.PENDING
        while code == abi.PENDING:
            code = self.library.muster_session_wait_for(session.pointer, ticket.value, 100, None)
        _check(self.library, code)

    def start_session(self, ranks: Sequence[int], options: abi.SessionOptions) -> Session:
        """A session for `ranks`, of which this is one; called by all of them."""
        group = c_void_p()
        listed = (c_int * len(ranks))(*ranks)
        _check(self.library, self.library.muster_group(self.comm, listed, len(ranks), byref(group)))
        pointer = c_void_p()
        _check(self.library, self.library.muster_session_start(group, byref(options), byref(pointer)))
        return Session(pointer.value or 0, tuple(ranks), tuple(ranks).index(self.rank), self.library)

    def is_foreign(self) -> bool:
        """Whether it came here with a fork."""
        return self.process != os.getpid()

    def end(self) -> None:
        for identity in sorted(self.sessions, reverse=True):
            self.sessions.pop(identity).end()
        self.library.muster_disconnect(self.comm)


def error_of(loaded: Any, code: int) -> Exception:
    """The exception for the last failure of the library on this thread."""
    words = loaded.muster_last_error().decode(errors="replace")
    if code == abi.BAD_ARGUMENT:
        return ValueError(words)
    if code == abi.MISMATCH:
        return MismatchError(words)
    if code in (abi.CONFIGURATION, abi.AUTHENTICATION):
        return ConfigurationError(words)
    rank = loaded.muster_last_error_rank()
    host = loaded.muster_last_error_host().decode(errors="replace")
    return HorovodInternalError(words, rank=rank if rank >= 0 else None, host=host)


def _check(loaded: Any, code: int) -> None:
    if code != abi.OK:
        raise error_of(loaded, code)


def connect(place: Place, timeout_ms: int = -1) -> World:
    """Joins the ranks. Errors: ConfigurationError, MismatchError, HorovodInternalError naming who did not come."""
    loaded = library.load()
    options = abi.options()
    for field in ("rendezvous", "key", "rendezvous_file", "host", "host_id"):
        value = getattr(place, field)
        if value is not None:
            setattr(options, field, value.encode())
    options.rank = -1 if place.rank is None else place.rank
    options.size = -1 if place.size is None else place.size
    options.listener = place.listener
    options.cancel = place.cancel
    options.timeout_ms = timeout_ms
    comm = c_void_p()
    _interruptible(lambda: _check(loaded, loaded.muster_connect(byref(options), byref(comm))))
    return World(comm.value or 0, place, loaded)


def _interruptible(call: Callable[[], None]) -> None:
    """Calls on a thread of its own, so that Ctrl-C gets through to this one."""
    failed: List[BaseException] = []
    done = threading.Event()

    def carry_out() -> None:
        try:
            call()
        except BaseException as error:  # noqa: B902  (it is raised where it belongs)
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=carry_out, name="muster connect", daemon=True).start()
    done.wait()
    if failed:
        raise failed[0]


lock = threading.RLock()
current: Optional[World] = None


def get() -> World:
    """The world of this process. Errors: ValueError before init() and after shutdown()."""
    if current is None:
        raise ValueError(NOT_INITIALIZED)
    if current.is_foreign():
        raise RuntimeError(FORKED)
    return current


def _forked() -> None:
    if current is not None:
        for session in current.sessions.values():
            session.closed = FORKED


os.register_at_fork(after_in_child=_forked)
