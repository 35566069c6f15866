"""Hands operations over to the session of a process set, and waits for them.

submit() hands over and returns at once. run() also waits; if the other ranks are nearly ready, this takes a single call
of the library and is the fastest way for small operations. prepare() fills in an operation that is handed over many
times.

Buffers are addresses. The caller passes their owner as `keep`, which lives until the operation is done, even if no
thread waits for it any more.

Thread-safety: all functions, from any thread. Only one thread at a time may wait for a Pending, and only one may hand
over a Prepared.
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

#: The address to read from, the address to write to, and the length: elements for all_reduce and reduce_scatter, else
#: bytes.
Buffer = Tuple[Optional[int], Optional[int], int]

KINDS: Dict[str, int] = {
    "all_reduce": abi.OPERATION_ALL_REDUCE, "reduce_scatter": abi.OPERATION_REDUCE_SCATTER,
    "all_gather": abi.OPERATION_ALL_GATHER, "broadcast": abi.OPERATION_BROADCAST,
    "all_to_all": abi.OPERATION_ALL_TO_ALL, "barrier": abi.OPERATION_BARRIER, "join": abi.OPERATION_JOIN}

_OPS: Dict[int, int] = {
    ReduceOp.AVERAGE: abi.AVERAGE, ReduceOp.SUM: abi.SUM, ReduceOp.ADASUM: abi.ADASUM, ReduceOp.MIN: abi.MIN,
    ReduceOp.MAX: abi.MAX, ReduceOp.PRODUCT: abi.PRODUCT}

_HAVE_RESULTS = frozenset((abi.OPERATION_ALL_GATHER, abi.OPERATION_ALL_TO_ALL))

#: How long a thread stays in the library at a time. In between, Ctrl-C and shutdown() take effect.
_SLICE_MS = 100


class Result:
    """The result of an all_gather or all_to_all, packed by rank. Its memory lives as long as this object and as each of
    its buffers."""

    __slots__ = ("address", "bytes_of_rank", "_pointer", "_free")

    def __init__(self, session: Session, pointer: int) -> None:
        loaded = session.native
        self._pointer = pointer
        self._free = loaded.muster_result_free
        self.address: int = loaded.muster_result_data(pointer) or 0
        self.bytes_of_rank: Tuple[int, ...] = tuple(
            loaded.muster_result_bytes(pointer, rank) for rank in range(session.size))

    def buffer(self) -> Any:
        """A ctypes array of bytes over the memory of the result, which keeps this object alive."""
        size = sum(self.bytes_of_rank)
        if size == 0:
            return (ctypes.c_ubyte * 0)()
        array = (ctypes.c_ubyte * size).from_address(self.address)
        array._result = self  # type: ignore[attr-defined]
        return array

    def parts(self) -> List[bytes]:
        """Copies of the parts from each rank."""
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
        """Waits for the end, once. Ctrl-C interrupts the wait, not the operation, and the wait may be repeated.

        Errors: HorovodInternalError if the world failed or was shut down, MismatchError, ValueError.
        """
        if not self._ticket:
            raise ValueError(f"the operation {self.name!r} was already waited for")
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

    def was_waited_for(self) -> bool:
        """Whether wait() has come to an end."""
        return not self._ticket

    def wait_at_most(self, milliseconds: int) -> bool:
        """wait() for a limited time, for operations without a result. False if the operation is not done by then; the
        wait may be repeated. Errors: as wait()."""
        session = self._session
        if session.closed is not None:
            session.refuse()
        code = session.wait_for(session.pointer, self._ticket, milliseconds, None)
        if code == abi.PENDING:
            return False
        self._ticket = 0
        self._keep = None
        if code != abi.OK:
            raise session.error_of(code)
        return True

    def __del__(self) -> None:
        if self._ticket:
            self._session.dropped.append((self._ticket, self._keep))


class _Filled:
    """The structures of one operation, including output arguments. The library uses them during the call only, so they
    are reused for later operations."""

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
            raise ValueError(f"{name!r}: the name of an operation must not contain a NUL")
        operation.name = name.encode()
        operation.shape = shape.encode() if shape else None
        self.set_buffers(buffers)
        if counts is None:
            operation.counts = None
        elif len(counts) != session.size:
            raise ValueError(f"{name!r} has {len(counts)} counts for {session.size} ranks: expected one for each rank")
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
        # Ctrl-C may come after the library has taken the buffers and before an object has the ticket.
        if self.ticket.value:
            session.dropped.append((self.ticket.value, keep))

    def _take_result(self, session: Session) -> Optional[Result]:
        pointer, self.result.value = self.result.value, None
        return Result(session, pointer) if pointer else None


# Unused structures. Single operations on a list are atomic, so a thread, or a signal handler in the middle of another
# operation, never gets a structure that is still being filled in.
_unused: List[_Filled] = []


def _take() -> _Filled:
    try:
        return _unused.pop()
    except IndexError:
        return _Filled()


class Prepared:
    """A filled-in operation, which can be handed over repeatedly, one after the other."""

    __slots__ = ("name", "_session", "_filled", "_keep", "_count")

    def __init__(self, session: Session, name: str, filled: _Filled, keep: object, count: int) -> None:
        self.name = name
        self._session = session
        self._filled = filled
        self._keep = keep
        self._count = count

    def set_buffers(self, buffers: Sequence[Buffer], keep: object = None) -> None:
        """Sets the buffers of the next operation; their number must not change. Errors: ValueError."""
        if len(buffers) != self._count:
            raise ValueError(f"{self.name!r} was prepared with {self._count} buffers, not {len(buffers)}")
        self._filled.set_buffers(buffers)
        self._keep = keep

    def submit(self) -> Pending:
        """As submit()."""
        return self._filled.begin(self._session, self._keep, self.name)

    def was_submitted(self) -> bool:
        """Whether submit() has handed it over, even if Ctrl-C has come before submit() returned."""
        return bool(self._filled.ticket.value)

    def run(self, keep: object = None) -> Optional[Result]:
        """As run(). `keep`: the owner of the buffers, if it was not given before."""
        return self._filled.run(self._session, self._keep if keep is None else keep, self.name)


def prepare(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
            op: Optional[int] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
            counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Prepared:
    """Fills in an operation, with the arguments of submit(). It is valid until shutdown().

    Errors: ValueError before init(), and for an invalid argument.
    """
    session = process_set._session or session_of(process_set)
    filled = _Filled()
    filled.fill(session, kind, name, buffers, type, op, prescale, postscale, root, counts, shape)
    return Prepared(session, name, filled, keep, len(buffers))


def submit(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
           op: Optional[int] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
           counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Pending:
    """Hands an operation over under a name that no other pending operation of the process set has.

    An operation counts as pending until this rank has waited for it or for any other operation. Operations may be done
    earlier or later, and whether a name is rejected must not depend on that.

    kind: one of KINDS.
    process_set: the ranks that take part, including this rank.
    buffers: one; all_reduce takes any number, barrier and join none. broadcast uses the address to write to.
    type, op, prescale, postscale: for all_reduce and reduce_scatter: a name of data_types, a ReduceOp, and factors.
    root: for broadcast, a rank of the world.
    counts: for every rank of the set, the elements of its part (reduce_scatter) or the bytes sent to it (all_to_all).
    shape: a text that must be equal on all ranks; if it differs, the error contains both texts.
    keep: the owner of the buffers.

    Errors: ValueError (no init(), an invalid argument, a pending name), HorovodInternalError.
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
    """submit() and Pending.wait() in one call. Errors: those of both."""
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
    """The session of a set. Errors: ValueError before init(), for a set that is not registered, and for a set without
    this rank; RuntimeError in a process that was forked from a rank."""
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
