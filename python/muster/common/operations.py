"""Handing operations over to a process set's session, and waiting for them.

submit() hands over and returns at once. run() also waits, in one call of the library where the other ranks are not far
away: the fastest way for what is small. prepare() fills an operation in that is handed over many times.

Buffers are addresses. Whoever hands over passes what owns them as `keep`: it lives until the operation is done, also
where nobody waits for it any more.

Thread-safety: everything from any thread. One Pending is waited for by one thread at a time, and one Prepared is handed
over by one thread at a time.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._native import abi
from . import data_types, world
from .process_set import ProcessSet
from .reduce_ops import ReduceOp
from .session import FORKED, Session

#: Address to read from, address to write to, and how much: elements for all_reduce and reduce_scatter, bytes else.
Buffer = Tuple[Optional[int], Optional[int], int]

KINDS: Dict[str, int] = {
    "all_reduce": abi.OPERATION_ALL_REDUCE, "reduce_scatter": abi.OPERATION_REDUCE_SCATTER,
    "all_gather": abi.OPERATION_ALL_GATHER, "broadcast": abi.OPERATION_BROADCAST,
    "all_to_all": abi.OPERATION_ALL_TO_ALL, "barrier": abi.OPERATION_BARRIER, "join": abi.OPERATION_JOIN}

_OPS: Dict[int, int] = {
    ReduceOp.AVERAGE: abi.AVERAGE, ReduceOp.SUM: abi.SUM, ReduceOp.ADASUM: abi.ADASUM, ReduceOp.MIN: abi.MIN,
    ReduceOp.MAX: abi.MAX, ReduceOp.PRODUCT: abi.PRODUCT}

_HAVE_RESULTS = frozenset((abi.OPERATION_ALL_GATHER, abi.OPERATION_ALL_TO_ALL))

#: How long a thread stays in the library at a time. Between two times Ctrl-C gets through, and shutdown().
_SLICE_MS = 100


class Result:
    """What an all_gather or all_to_all brought, packed by rank. Its memory lives as long as this, and as long as each
    buffer() of it."""

    __slots__ = ("address", "bytes_of_rank", "_pointer", "_free")

    def __init__(self, session: Session, pointer: int) -> None:
        loaded = session.native
        self._pointer = pointer
        self._free = loaded.muster_result_free
        self.address: int = loaded.muster_result_data(pointer) or 0
        self.bytes_of_rank: Tuple[int, ...] = tuple(
            loaded.muster_result_bytes(pointer, rank) for rank in range(session.size))

    def buffer(self) -> Any:
        """A ctypes array of bytes over the result's memory, which keeps this alive."""
        size = sum(self.bytes_of_rank)
        if size == 0:
            return (ctypes.c_ubyte * 0)()
        array = (ctypes.c_ubyte * size).from_address(self.address)
        array._result = self  # type: ignore[attr-defined]
        return array

    def parts(self) -> List[bytes]:
        """A copy of what came from each rank."""
        parts, at = [], self.address
        for size in self.bytes_of_rank:
            parts.append(ctypes.string_at(at, size))
            at += size
        return parts

    def __del__(self) -> None:
        self._free(self._pointer)


class Pending:
    """An operation that was handed over."""

    __slots__ = ("_session", "_ticket", "_keep", "name")

    def __init__(self, session: Session, ticket: int, keep: object, name: str) -> None:
        self._session = session
        self._ticket = ticket
        self._keep = keep
        self.name = name

    def done(self) -> bool:
        """Whether wait() would return at once. Errors: RuntimeError in a process that was forked meanwhile."""
        session = self._session
        if session.closed is FORKED:
            session.refuse()
        is_done = (not self._ticket or session.closed is not None
                   or bool(session.is_done(session.pointer, self._ticket)))
        if is_done:
            session.unobserved.clear()
        return is_done

    def wait(self) -> Optional[Result]:
        """Waits for the end, once. Ctrl-C interrupts the wait and not the operation, which can be waited for again.

        Errors: HorovodInternalError where the world failed or was shut down, MismatchError, ValueError.
        """
        if not self._ticket:
            raise ValueError(f"the operation {self.name!r} was waited for already")
        session = self._session
        session.unobserved.clear()
        result = c_void_p()
        reference = byref(result)
        code = abi.PENDING
        while code == abi.PENDING:
            if session.closed is not None:
                session.refuse()
            code = session.wait_for(session.pointer, self._ticket, _SLICE_MS, reference)
        self._ticket = 0
        self._keep = None
        if code != abi.OK:
            raise session.error_of(code)
        return Result(session, result.value) if result.value else None

    def __del__(self) -> None:
        if self._ticket:
            self._session.dropped.append((self._ticket, self._keep))


class _Filled:
    """The structures of one operation, with what the library writes. The library reads them during the call alone, so
    they are used again for the next operation."""

    __slots__ = ("operation", "reference", "tensor", "tensors", "counts", "ticket", "ticket_reference", "result",
                 "result_reference", "wanted_result")

    def __init__(self) -> None:
        self.operation = abi.operation()
        self.reference = byref(self.operation)
        self.tensor = abi.Tensor()
        self.tensors: Any = ctypes.pointer(self.tensor)
        self.counts: Any = None
        self.operation.tensors = self.tensors
        self.ticket = c_uint64()
        self.ticket_reference = byref(self.ticket)
        self.result = c_void_p()
        self.result_reference = byref(self.result)
        self.wanted_result: Any = None

    def set_buffers(self, buffers: Sequence[Buffer]) -> None:
        operation = self.operation
        if len(buffers) == 1:
            tensor = self.tensor
            tensor.in_, tensor.out, tensor.count = buffers[0]
            operation.tensors = self.tensors
        else:
            operation.tensors = (abi.Tensor * len(buffers))(*buffers)  # type: ignore[misc]
        operation.tensor_count = len(buffers)

    def fill(self, session: Session, kind: str, name: str, buffers: Sequence[Buffer], type: Optional[str],
             op: Optional[int], prescale: float, postscale: float, root: int, counts: Optional[Sequence[int]],
             shape: str) -> None:
        operation = self.operation
        number = KINDS.get(kind)
        if number is None:
            raise ValueError(f"unknown operation {kind!r}; valid operations are {', '.join(KINDS)}")
        operation.kind = number
        operation.type = 0 if type is None else data_types.NUMBERS.get(type) or data_types.number_of(type)
        operation.op = 0 if op is None else _OPS[op]
        operation.root = _root_within(session, root) if kind == "broadcast" else 0
        operation.prescale = prescale
        operation.postscale = postscale
        if "\0" in name:
            raise ValueError(f"{name!r}: the name of an operation holds no NUL, where names in C end")
        operation.name = name.encode()
        operation.shape = shape.encode() if shape else None
        self.set_buffers(buffers)
        if counts is None:
            operation.counts = None
        elif len(counts) != session.size:
            raise ValueError(f"{name!r} has {len(counts)} counts for {session.size} ranks: one is needed for each")
        else:
            operation.counts = (c_uint64 * len(counts))(*counts)
        self.wanted_result = self.result_reference if number in _HAVE_RESULTS else None

    def begin(self, session: Session, keep: object, name: str) -> Pending:
        ticket = self.ticket
        ticket.value = 0
        if session.closed is not None:
            session.refuse()
        try:
            if session.dropped:
                session.reap()
            code = session.begin(session.pointer, self.reference, self.ticket_reference)
            if code != abi.OK:
                raise session.error_of(code)
            return Pending(session, ticket.value, keep, name)
        except BaseException:
            self._drop(session, keep)
            raise

    def run(self, session: Session, keep: object, name: str) -> Optional[Result]:
        ticket = self.ticket
        ticket.value = 0
        if session.closed is not None:
            session.refuse()
        if session.unobserved:
            _refuse_unobserved(session, name)
            session.unobserved.clear()
        try:
            if session.dropped:
                session.reap()
            code = session.run(session.pointer, self.reference, _SLICE_MS, self.ticket_reference, self.wanted_result)
            if code == abi.OK:
                return None if self.wanted_result is None else self._take_result(session)
            if code != abi.PENDING:
                raise session.error_of(code)
            pending = Pending(session, ticket.value, keep, name)
        except BaseException:
            self._drop(session, keep)
            raise
        return pending.wait()

    def _drop(self, session: Session, keep: object) -> None:
        # Ctrl-C may come after the library has taken the buffers, and before anybody holds the ticket.
        if self.ticket.value:
            session.dropped.append((self.ticket.value, keep))

    def _take_result(self, session: Session) -> Optional[Result]:
        pointer, self.result.value = self.result.value, None
        return Result(session, pointer) if pointer else None


# What is not in use. Single operations on a list cannot be seen half done, so that a thread, or a signal handler in the
# middle of another operation, never gets what somebody else is filling in.
_unused: List[_Filled] = []


def _take() -> _Filled:
    try:
        return _unused.pop()
    except IndexError:
        return _Filled()


class Prepared:
    """An operation that is filled in, and can be handed over again and again, one after the other."""

    __slots__ = ("name", "_session", "_filled", "_keep", "_count")

    def __init__(self, session: Session, name: str, filled: _Filled, keep: object, count: int) -> None:
        self.name = name
        self._session = session
        self._filled = filled
        self._keep = keep
        self._count = count

    def set_buffers(self, buffers: Sequence[Buffer], keep: object = None) -> None:
        """Other memory for the next time; as many buffers as before. Errors: ValueError."""
        if len(buffers) != self._count:
            raise ValueError(f"{self.name!r} was prepared with {self._count} buffers, not {len(buffers)}")
        self._filled.set_buffers(buffers)
        self._keep = keep

    def submit(self) -> Pending:
        """As submit()."""
        return self._filled.begin(self._session, self._keep, self.name)

    def run(self, keep: object = None) -> Optional[Result]:
        """As run(). `keep`: what owns the buffers, where nothing was said of it before."""
        return self._filled.run(self._session, self._keep if keep is None else keep, self.name)


def prepare(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
            op: Optional[int] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
            counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Prepared:
    """Fills an operation in, with the arguments of submit(). It is good until shutdown().

    Errors: ValueError before init(), and where an argument cannot be right.
    """
    session = process_set._session or session_of(process_set)
    filled = _Filled()
    filled.fill(session, kind, name, buffers, type, op, prescale, postscale, root, counts, shape)
    return Prepared(session, name, filled, keep, len(buffers))


def submit(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
           op: Optional[int] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
           counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Pending:
    """Hands an operation over by its name, which no other one in flight in the process set may have.

    An operation counts as in flight until this rank has waited for it, or for any other: an operation may be done at
    once or later, and whether a name is refused must not depend on that.

    kind: one of KINDS.
    process_set: the ranks that take part; this one has to belong to it.
    buffers: one, except for all_reduce, which takes any number, barrier and join. broadcast uses what is written to.
    type, op, prescale, postscale: of all_reduce and reduce_scatter: a name of data_types, a ReduceOp, and factors.
    root: of broadcast, a rank of the world.
    counts: for every rank of the set, the elements of its part (reduce_scatter) or the bytes to it (all_to_all).
    shape: a text that has to be the same on all ranks; both are shown where it is not.
    keep: what owns the buffers.

    Errors: ValueError (no init(), an argument that cannot be right, a name in flight), HorovodInternalError.
    """
    session = process_set._session or session_of(process_set)
    _refuse_unobserved(session, name)
    filled = _take()
    filled.fill(session, kind, name, buffers, type, op, prescale, postscale, root, counts, shape)
    pending = filled.begin(session, keep, name)
    session.unobserved.add(name)
    _unused.append(filled)
    return pending


def run(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
        op: Optional[int] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
        counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Optional[Result]:
    """submit() and Pending.wait() in one. Errors: those of both."""
    session = process_set._session or session_of(process_set)
    filled = _take()
    filled.fill(session, kind, name, buffers, type, op, prescale, postscale, root, counts, shape)
    result = filled.run(session, keep, name)
    _unused.append(filled)
    return result


def _refuse_unobserved(session: Session, name: str) -> None:
    if name in session.unobserved:
        raise ValueError(f"'{name}': an operation of this name is in flight; wait for it, or use another name")


def session_of(process_set: ProcessSet) -> Session:
    """Errors: ValueError before init(), for a set that is not registered, and for one that this rank is not in;
    RuntimeError in a process that was forked from a rank."""
    made = world.get()
    ranks = process_set.registered_ranks()
    if process_set._session is None:
        raise ValueError(f"rank {made.rank} is not in the process set of ranks {', '.join(map(str, ranks))}")
    return process_set._session


def _root_within(session: Session, root: int) -> int:
    try:
        return session.ranks.index(root)
    except ValueError:
        raise ValueError(f"the root is rank {root}, which is not in the process set of ranks "
                         f"{', '.join(map(str, session.ranks))}") from None
