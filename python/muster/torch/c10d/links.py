"""The session of one process group on this rank: how its ranks meet through the group's store, and its end.

Each group is a world of its own. Rank 0 opens a port, and puts its address and a fresh key into the store. The store is
not authenticated: a program that can write to it can read the key.

Thread-safety: all functions, from any thread.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import itertools
import os
import resource
import secrets
import socket
import struct
import time
import weakref
from ctypes import byref, c_uint64, c_void_p
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..._native import abi, library
from ...common.session import FORKED
from .errors import GroupError, raise_last

ENDED = "the process group was destroyed"

#: The key of the store under which rank 0 publishes the place where the ranks meet.
_MEETING = "muster/meeting"

#: Names of operations: the same number on every rank means the same operation. They are used again in turn.
NAMES: Tuple[bytes, ...] = tuple(f"operation {number}".encode() for number in range(4096))
MASK = len(NAMES) - 1

#: How long a rank waits before it looks again for the place where the ranks meet.
_PROBE_SECONDS = 0.05
_ANSWER_SECONDS = 5

#: How long a thread stays in the library at a time; in between, Ctrl-C and the end of the group take effect.
SLICE_MS = 100

#: A world needs about this many descriptors beside one for each other rank.
_DESCRIPTORS = 6

_SIOCGIFADDR = 0x8915


class Slot:
    """The structures of one call of the library, which are used again."""

    __slots__ = ("operation", "reference", "tensor", "ticket", "ticket_reference", "arrays")

    def __init__(self) -> None:
        self.operation = abi.operation()
        self.reference = byref(self.operation)
        self.tensor = abi.Tensor()
        self.one_tensor()
        self.ticket = c_uint64()
        self.ticket_reference = byref(self.ticket)
        #: The arrays to which the operation points, kept alive.
        self.arrays: Any = None

    def one_tensor(self) -> None:
        """Again for operations of one tensor."""
        self.operation.tensors = ctypes.pointer(self.tensor)
        self.operation.tensor_count = 1


class Link:
    """A session, and what is in flight in it."""

    __slots__ = ("native", "pointer", "rank", "size", "timeout_ms", "longest_ms", "closed", "sequence", "turns",
                 "pending", "slots", "begin", "run", "wait_for", "is_done", "process", "__weakref__")

    def __init__(self, native: Any, pointer: Any, rank: int, size: int, timeout_ms: int) -> None:
        self.native = native
        self.pointer = pointer
        self.rank = rank
        self.size = size
        #: The group's limit of an operation.
        self.timeout_ms = timeout_ms
        #: The library's own limit, which does not change.
        self.longest_ms = timeout_ms
        #: Why the library must not be called any more, or None.
        self.closed: Optional[str] = None
        self.sequence = itertools.count()
        #: By name, for names in their turn: the operation in flight with this name.
        self.turns: List[Any] = [None] * len(NAMES)
        #: The operations in flight, by identity.
        self.pending: Dict[int, Any] = {}
        self.slots: List[Slot] = []
        self.begin = native.muster_session_begin
        self.run = native.muster_session_run
        self.wait_for = native.muster_session_wait_for
        self.is_done = native.muster_session_done
        self.process = os.getpid()
        _links.add(self)

    def refuse(self) -> None:
        raise GroupError(self.closed or ENDED)

    def raise_last(self, code: int, what: str) -> None:
        """Raises the exception for the last failure of the library on this thread. `what`: the call."""
        if self.closed is not None:
            self.refuse()
        raise_last(self.native, code, what)

    def take_slot(self) -> Slot:
        try:
            return self.slots.pop()
        except IndexError:
            return Slot()

    def end(self) -> None:
        """Fails the operations in flight, and leaves. A second call does nothing."""
        if self.closed is None:
            self.closed = ENDED
            self.native.muster_session_end(self.pointer)
            self.pending.clear()
            self.turns = [None] * len(NAMES)

    def __del__(self) -> None:
        if self.closed is None and self.process == os.getpid():
            self.end()


_links: "weakref.WeakSet[Link]" = weakref.WeakSet()


def milliseconds_of(timeout: timedelta) -> int:
    """A timeout of a group as the library takes it."""
    return max(1, min(int(timeout.total_seconds() * 1000), 2**31 - 1))


def join(store: Any, rank: int, size: int, timeout: timedelta) -> Link:
    """Joins the ranks of a group. Called by all of them; waits for them, at most for `timeout`.

    Errors: GroupError, naming the missing ranks.
    """
    native = library.load()
    limit = milliseconds_of(timeout)
    options = abi.options()
    options.rank, options.size, options.timeout_ms = rank, size, limit
    options.arena_bytes = 0  # no tensor of a group lies in it
    _make_room_for_descriptors(size)
    if size > 1:
        _meet(store, rank, options, time.monotonic() + timeout.total_seconds())
    comm = c_void_p()
    code = native.muster_connect(byref(options), byref(comm))
    if code != abi.OK:
        raise_last(native, code)
    session_options = abi.session_options()
    session_options.stall_limit_ms = limit
    session_options.stall_warning_ms = 0
    pointer = c_void_p()
    code = native.muster_session_start(comm, byref(session_options), byref(pointer))
    if code != abi.OK:
        raise_last(native, code)
    return Link(native, pointer, rank, size, limit)


def _meet(store: Any, rank: int, options: abi.Options, deadline: float) -> None:
    if rank == 0:
        try:
            listener = socket.create_server((_address(), 0), backlog=1024)
        except OSError as error:
            raise GroupError(f"rank 0 cannot open a port for the other ranks: {error}; name an interface in "
                             f"GLOO_SOCKET_IFNAME") from error
        host, port = listener.getsockname()[:2]
        meeting = f"{host}:{port} {secrets.token_hex(32)}"
        store.set(_MEETING, meeting)
        options.listener = listener.detach()
    else:
        meeting = _present_meeting(store, deadline)
    endpoint, key = meeting.split()
    options.rendezvous, options.key = endpoint.encode(), key.encode()


def _present_meeting(store: Any, deadline: float) -> str:
    """What rank 0 has published. The store may be that of an earlier attempt of the same job, as torchrun keeps it when
    it starts the ranks again: then it has the place where those ranks met until rank 0 has opened a new one."""
    while True:
        meeting = str(store.get(_MEETING).decode())
        host, _, port = meeting.split()[0].rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
            return meeting
        except OSError:
            if time.monotonic() > deadline:
                return meeting  # the library reports what is wrong
            time.sleep(_PROBE_SECONDS)


def _address() -> str:
    """The address of this host that the other ranks reach: that of the interface in GLOO_SOCKET_IFNAME, otherwise the
    one that reaches MASTER_ADDR, otherwise that of the host's name."""
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if interface:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        return socket.inet_ntoa(answer[20:24])
    target = os.environ.get("MASTER_ADDR") or socket.gethostname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((target, 9))  # sends nothing
            return str(asking.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _make_room_for_descriptors(size: int) -> None:
    """Raises the soft limit of open files where many groups need it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 256 + (len(_links) + 1) * (_DESCRIPTORS + size)
    if needed > soft and (hard == resource.RLIM_INFINITY or soft < hard):
        limit = 2 * needed if hard == resource.RLIM_INFINITY else min(2 * needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _close_in_child() -> None:
    for link in list(_links):
        link.closed = FORKED


#: Called when the interpreter ends, after all links have ended.
after_links: List[Callable[[], None]] = []


def _end_all() -> None:
    for link in list(_links):
        link.end()
    for settle in after_links:
        settle()


os.register_at_fork(after_in_child=_close_in_child)
atexit.register(_end_all)
