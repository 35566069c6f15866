"""Handing operations over to a process set's session, and waiting for them.

submit() hands over and returns at once; run() also waits, in one call of the library, which is the fastest way for
something small. prepare() fills an operation in that is handed over many times.

Buffers are addresses. Whoever hands over passes what owns them as `keep`: it lives until the operation is done, also
where nobody waits for it.

Thread-safety: everything from any thread, but one Pending is waited for by one thread at a time.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._native import abi
from . import data_types, world
from .exceptions import NOT_INITIALIZED, HorovodInternalError
from .process_sets import ProcessSet
from .reduce_ops import ReduceOp

Buffer = Tuple[Optional[int], Optional[int], int]

KINDS: Dict[str, int] = {
    "all_reduce": abi.OPERATION_ALL_REDUCE, "reduce_scatter": abi.OPERATION_REDUCE_SCATTER,
    "all_gather": abi.OPERATION_ALL_GATHER, "broadcast": abi.OPERATION_BROADCAST,
    "all_to_all": abi.OPERATION_ALL_TO_ALL, "barrier": abi.OPERATION_BARRIER, "join": abi.OPERATION_JOIN}

_OPS: Dict[int, int] = {
    ReduceOp.AVERAGE: abi.AVERAGE, ReduceOp.SUM: abi.SUM, ReduceOp.ADASUM: abi.ADASUM, ReduceOp.MIN: abi.MIN,
    ReduceOp.MAX: abi.MAX, ReduceOp.PRODUCT: abi.PRODUCT}

#: How long a thread stays in the library at the most before it looks whether Ctrl-C was pressed.
_SLICE_MS = 100


class Result:
    """What an all_gather or all_to_all brought, packed by rank. Its memory lives as long as this or a buffer() of
    it."""

    __slots__ = ("address", "bytes_of_rank", "_pointer", "_free", "__weakref__")

    def __init__(self, session: world.Session, pointer: int) -> None:
        loaded = session.library
        self._pointer = pointer
        self._free = loaded.muster_result_free
        self.address: int = loaded.muster_result_data(pointer) or 0
        self.bytes_of_rank: Tuple[int, ...] = tuple(
            loaded.muster_result_bytes(pointer, rank) for rank in range(session.size))

    def buffer(self) -> Any:
        """An array of bytes over the result's memory, which keeps this alive."""
        size = sum(self.bytes_of_rank)
        if not size:
            return (ctypes.c_ubyte * 0)()
        array = (ctypes.c_ubyte * size).from_address(self.address)
        array._result = self  # type: ignore[attr-defined]
        return array

    def __del__(self) -> None:
        self._free(self._pointer)


class Pending:
    """An operation that was handed over."""

    __slots__ = ("_session", "_ticket", "_keep", "name")

    def __init__(self, session: world.Session, ticket: int, keep: object, name: str) -> None:
        self._session = session
        self._ticket = ticket
        self._keep = keep
        self.name = name

    def done(self) -> bool:
        """Whether wait() would return at once."""
        session = self._session
        if not self._ticket or session.closed is not None:
            return True
        session.enter()
        try:
            return bool(session.library.muster_session_done(session.pointer, self._ticket))
        finally:
            session.leave()

    def wait(self) -> Optional[Result]:
        """Waits for the end, once. Ctrl-C interrupts the wait, not the operation.

        Errors: HorovodInternalError where the world failed or was shut down, MismatchError, ValueError.
        """
        if not self._ticket:
            raise ValueError(f"the operation {self.name!r} was waited for already")
        session = self._session
        result = c_void_p()
        code = abi.PENDING
        while code == abi.PENDING:
            session.enter()
            try:
                code = session.library.muster_session_wait_for(session.pointer, self._ticket, _SLICE_MS,
                                                               byref(result))
                if code not in (abi.OK, abi.PENDING):
                    error = world.error_of(session.library, code)
            finally:
                session.leave()
        self._ticket = 0
        self._keep = None
        if code != abi.OK:
            raise error
        return Result(session, result.value) if result.value else None

    def __del__(self) -> None:
        if self._ticket and self._session.closed is None:
            self._session.drop(self._ticket, self._keep)


class Prepared:
    """An operation that is filled in and can be handed over again and again, one at a time."""

    __slots__ = ("_session", "_operation", "_reference", "_tensors", "_counts", "_keep", "name")

    def __init__(self, session: world.Session, name: str, operation: abi.Operation, tensors: Any, counts: Any,
                 keep: object) -> None:
        self._session = session
        self.name = name
        self._operation = operation
        self._reference = byref(operation)
        self._tensors = tensors
        self._counts = counts
        self._keep = keep

    def set_buffers(self, buffers: Sequence[Buffer], keep: object = None) -> None:
        """Other memory for the next time. As many buffers as before."""
        if len(buffers) != len(self._tensors):
            raise ValueError(f"{self.name!r} was prepared with {len(self._tensors)} buffers, not {len(buffers)}")
        for tensor, (into, out, count) in zip(self._tensors, buffers):
            tensor.in_, tensor.out, tensor.count = into, out, count
        self._keep = keep

    def submit(self) -> Pending:
        session = self._session
        ticket = c_uint64()
        session.enter()
        try:
            if session.dropped:
                session.reap()
            code = session.library.muster_session_begin(session.pointer, self._reference, byref(ticket))
            if code != abi.OK:
                raise world.error_of(session.library, code)
            return Pending(session, ticket.value, self._keep, self.name)
        finally:
            session.leave()

    def run(self) -> Optional[Result]:
        session = self._session
        ticket = c_uint64()
        result = c_void_p()
        session.enter()
        try:
            if session.dropped:
                session.reap()
            code = session.library.muster_session_run(session.pointer, self._reference, _SLICE_MS, byref(ticket),
                                                      byref(result))
            if code == abi.OK:
                return Result(session, result.value) if result.value else None
            if code != abi.PENDING:
                raise world.error_of(session.library, code)
        finally:
            session.leave()
        return Pending(session, ticket.value, self._keep, self.name).wait()


def prepare(kind: str, name: str, *, process_set: ProcessSet, buffers: Sequence[Buffer], type: Optional[str] = None,
            op: Optional[ReduceOp] = None, prescale: float = 1.0, postscale: float = 1.0, root: int = 0,
            counts: Optional[Sequence[int]] = None, shape: str = "", keep: object = None) -> Prepared:
    """Fills an operation in. For the arguments see submit().

    Errors: ValueError before init(), and where an argument cannot be right.
    """
    session = session_of(process_set)
    number = KINDS.get(kind)
    if number is None:
        raise ValueError(f"there is no operation {kind!r}; there are {', '.join(KINDS)}")
    operation = abi.operation()
    operation.kind = number
    if type is not None:
        operation.type = data_types.number_of(type)
    if op is not None:
        operation.op = _OPS[op]
    operation.prescale = prescale
    operation.postscale = postscale
    operation.name = name.encode()
    if shape:
        operation.shape = shape.encode()
    if kind == "broadcast":
        operation.root = _root_within(session, root)
    tensors = (abi.Tensor * len(buffers))(*buffers)
    operation.tensors = tensors
    operation.tensor_count = len(buffers)
    listed = None
    if counts is not None:
        if len(counts) != session.size:
            raise ValueError(f"{name!r} has {len(counts)} counts for {session.size} ranks: one is needed for each")
        listed = (c_uint64 * len(counts))(*counts)
        operation.counts = listed
    return Prepared(session, name, operation, tensors, listed, keep)


def submit(kind: str, name: str, **arguments: Any) -> Pending:
    """Hands an operation over by its name, which no other one in flight in the process set may have.

    process_set: the ranks that take part; this one has to belong to it.
    buffers: (address in, address out, count): elements for all_reduce, which takes several, and reduce_scatter;
      bytes for all_gather, broadcast (out alone) and all_to_all.
    type, op, prescale, postscale: of all_reduce and reduce_scatter.
    root: of broadcast, a rank of the world.
    counts: for every rank of the set, the elements of its part (reduce_scatter) or the bytes to it (all_to_all).
    shape: a text that has to be the same on all ranks; both are shown where it is not.
    keep: what owns the buffers.

    Errors: ValueError (an argument that cannot be right, a name in flight, no init()), HorovodInternalError.
    """
    return prepare(kind, name, **arguments).submit()


def run(kind: str, name: str, **arguments: Any) -> Optional[Result]:
    """submit() and wait() in one. Errors: those of both."""
    return prepare(kind, name, **arguments).run()


def session_of(process_set: ProcessSet) -> world.Session:
    """Errors: ValueError before init(), for a set that is not registered, or that this rank is not in."""
    session = process_set._session
    if session is not None:
        return session
    own = world.get().rank
    ranks = process_set._registered()
    raise ValueError(f"rank {own} is not in the process set of ranks {', '.join(map(str, ranks))}")


def _root_within(session: world.Session, root: int) -> int:
    try:
        return session.ranks.index(root)
    except ValueError:
        raise ValueError(f"root_rank is {root}, which is not in the process set of ranks "
                         f"{', '.join(map(str, session.ranks))}") from None
