"""Operations on arrays: the arguments of the library for each operation, and the values that its results give.

A plan is begun in one place and finished in another. So the same plan serves eager mode, which waits in between, and
graphs, which run other nodes in between (`execution`).

If a plan has several operations, the first one has the name of the plan on every rank, and its shape includes the
number of operations. The others are begun once it has succeeded. So if the ranks' numbers differ, the first operation
fails on all ranks, and no rank waits for an operation that another rank does not have.

A graph may begin a join while the others of such a plan are not begun yet. Operations cannot follow a join, so the join
is then begun after them.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import numpy as np

from ..common import operations
from ..common.operations import Pending, Prepared, Result
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp
from . import tensors
from .tensors import MakeOutput

#: Guards the two sets, and is notified when a plan leaves them.
_changed = threading.Condition()
#: Plans of all ranks that have begun, and have operations that are not submitted yet.
_unsubmitted: "Set[Plan]" = set()
#: Joins that have begun, and are submitted once `_unsubmitted` is empty.
_waiting_joins: "Set[Plan]" = set()


@dataclass(eq=False)
class Plan:
    #: The arguments of operations.submit() for each operation.
    parts: List[Dict[str, Any]]
    #: Makes the values from the results of the parts.
    finish: Callable[[Sequence[Optional[Result]]], List[Any]]
    #: The operations that were begun, in order, and those that follow.
    pending: List[Pending] = field(default_factory=list)
    later: List[Prepared] = field(default_factory=list)
    #: Those that follow, once they are submitted.
    others: List[Pending] = field(default_factory=list)
    results: List[Optional[Result]] = field(default_factory=list)

    def begin(self) -> None:
        """Submits the first operation, and checks the arguments of the others."""
        self._refuse_after_join()
        # Prepared now, so that they belong to the current session even if a new one has begun when they are submitted.
        self.later = [operations.prepare(**part) for part in self.parts[1:]]
        self.pending = [operations.submit(**part) for part in self.parts[:1]]
        if self.later and self._is_of_all_ranks():
            with _changed:
                _unsubmitted.add(self)

    def wait(self) -> List[Any]:
        """Waits for the first operation, submits the others, and waits for them, even if one fails; then raises the
        first failure. If an operation is refused, the operations before it go on, and their results are dropped.
        Ctrl-C interrupts the wait, not the operations."""
        try:
            self._submit_others()
        except KeyboardInterrupt:
            # The other ranks need all operations.
            threading.Thread(target=self._go_on, name="muster submits operations", daemon=True).start()
            raise
        failure: Optional[Exception] = None
        for each in self.others:
            try:
                self.results.append(each.wait())
            except Exception as error:  # noqa: B902  (raised below)
                failure = failure or error
        if failure is not None:
            raise failure
        return self.finish(self.results)

    def run(self) -> List[Any]:
        """begin() and wait(); in one call of the library if there is one operation."""
        if len(self.parts) == 1:
            self._refuse_after_join()
            return self.finish([operations.run(**self.parts[0])])
        self.begin()
        return self.wait()

    def _submit_others(self) -> None:
        """Waits for the first operation and submits the others. After KeyboardInterrupt, it may be called again."""
        is_interrupted = False
        try:
            self._wait_for_turn()
            for each in self.later:
                if not each.was_submitted():
                    self.others.append(each.submit())
        except KeyboardInterrupt:
            is_interrupted = True
            raise
        finally:
            if not is_interrupted:
                with _changed:
                    _unsubmitted.discard(self)
                    _waiting_joins.discard(self)
                    _changed.notify_all()

    def _go_on(self) -> None:
        with contextlib.suppress(Exception):  # no thread waits for the results
            self._submit_others()

    def _wait_for_turn(self) -> None:
        for each in self.pending:
            if not each.was_waited_for():
                self.results.append(each.wait())

    def _is_of_all_ranks(self) -> bool:
        return self.parts[0]["process_set"] is global_process_set

    def _refuse_after_join(self) -> None:
        """Errors: ValueError while a join that has begun is not submitted. After that, the library refuses."""
        if _waiting_joins and self._is_of_all_ranks():
            raise ValueError(f"'{self.parts[0]['name']}': this rank has joined and cannot hand over operations")


class _Join(Plan):
    """A join, which is submitted after the operations of all plans that have begun before it."""

    def begin(self) -> None:
        self._refuse_after_join()
        with _changed:
            if _unsubmitted:
                self.later = [operations.prepare(**part) for part in self.parts]
                _waiting_joins.add(self)
            else:
                self.pending = [operations.submit(**part) for part in self.parts]

    def run(self) -> List[Any]:
        self.begin()
        return self.wait()

    def _wait_for_turn(self) -> None:
        super()._wait_for_turn()
        if self.later:
            with _changed:
                _changed.wait_for(lambda: not _unsubmitted)


def reduce_all(arrays: Sequence[np.ndarray], make: MakeOutput, *, name: str, op: ReduceOp, prescale: float,
               postscale: float, process_set: ProcessSet, groups: Optional[Sequence[Sequence[int]]] = None) -> Plan:
    """Each array reduced over the ranks. Arrays of one type within a group travel together; by default all arrays are
    one group."""
    outputs = [make(array.shape, array.dtype) for array in arrays]
    parts: List[Dict[str, Any]] = []
    for group in groups if groups is not None else [range(len(arrays))]:
        members_of: Dict[str, List[int]] = {}
        for index in group:
            members_of.setdefault(arrays[index].dtype.name, []).append(index)
        for type_name, members in members_of.items():
            parts.append(dict(
                kind="all_reduce", process_set=process_set, type=type_name, op=op, prescale=prescale,
                postscale=postscale,
                buffers=[(tensors.address_of(arrays[i]), tensors.address_of(outputs[i][1]), arrays[i].size)
                         for i in members],
                shape=", ".join(tensors.shape_text(arrays[i]) for i in members),
                keep=[(arrays[i], outputs[i]) for i in members]))
    return Plan(_numbered(parts, name), lambda _: [value for value, _ in outputs])


def reduce_scatter(arrays: Sequence[np.ndarray], make: MakeOutput, *, name: str, op: ReduceOp, prescale: float,
                   postscale: float, process_set: ProcessSet) -> Plan:
    """This rank's rows of each reduction; if the rows do not divide evenly, the first ranks have one row more."""
    size, rank = len(process_set.registered_ranks()), process_set.registered_rank()
    parts: List[Dict[str, Any]] = []
    outputs = []
    for array in arrays:
        if array.ndim == 0:
            raise ValueError("reducescatter needs a tensor with a first dimension to divide, not a single number")
        rows = [array.shape[0] // size + (1 if other < array.shape[0] % size else 0) for other in range(size)]
        output = make((rows[rank], *array.shape[1:]), array.dtype)
        row = tensors.row_bytes(array) // array.dtype.itemsize
        outputs.append(output)
        parts.append(dict(
            kind="reduce_scatter", process_set=process_set, type=array.dtype.name, op=op, prescale=prescale,
            postscale=postscale,
            buffers=[(tensors.address_of(array), tensors.address_of(output[1]), array.size)],
            counts=[row * number for number in rows], shape=tensors.shape_text(array), keep=(array, output)))
    return Plan(_numbered(parts, name), lambda _: [value for value, _ in outputs])


def gather(arrays: Sequence[np.ndarray], make: MakeOutput, *, name: str, process_set: ProcessSet) -> Plan:
    """The concatenated arrays of all ranks. The list has the concatenation of each array, and then for each array the
    start and the number of this rank's rows in it (int32[2])."""
    sources = [array.reshape(1) if array.ndim == 0 else array for array in arrays]
    parts: List[Dict[str, Any]] = []
    for source in sources:
        # Rows without bytes leave no trace in the received lengths: their number is sent instead.
        sent = source if tensors.row_bytes(source) else np.array([source.shape[0]], np.int64)
        parts.append(dict(
            kind="all_gather", process_set=process_set, buffers=[(tensors.address_of(sent), None, sent.nbytes)],
            shape=tensors.shape_text(source, any_length=True), keep=sent))

    def finish(results: Sequence[Optional[Result]]) -> List[Any]:
        pairs = [_received(result, source, make) for result, source in zip(results, sources)]
        rank = process_set.rank()
        own = [np.array([rows[:rank].sum(), rows[rank]], np.int32) for _, rows in pairs]
        return [whole for whole, _ in pairs] + own

    return Plan(_numbered(parts, name), finish)


def broadcast(arrays: Sequence[np.ndarray], make: MakeOutput, *, name: str, root: int,
              process_set: ProcessSet) -> Plan:
    """The arrays of the root."""
    is_root = process_set.registered_ranks()[process_set.registered_rank()] == root
    parts: List[Dict[str, Any]] = []
    outputs = []
    for array in arrays:
        output = make(array.shape, array.dtype)
        if is_root:
            np.copyto(output[1], array)
        outputs.append(output)
        parts.append(dict(
            kind="broadcast", process_set=process_set, root=root,
            buffers=[(None, tensors.address_of(output[1]), array.nbytes)], shape=tensors.shape_text(array),
            keep=output))
    return Plan(_numbered(parts, name), lambda _: [value for value, _ in outputs])


def exchange(arrays: Sequence[np.ndarray], make: MakeOutput, *, name: str, process_set: ProcessSet) -> Plan:
    """Sends rows of the first array to each rank, in the numbers of the second array, or in equal parts if there is no
    second array. Returns the received rows, and their number from each rank (int32)."""
    array = arrays[0]
    rows = _rows_to_each(array, arrays[1] if len(arrays) > 1 else None,
                         len(process_set.registered_ranks()))
    row = tensors.row_bytes(array)
    # As in gather().
    sent = array if row else np.array(rows, np.int64)
    part = dict(
        kind="all_to_all", name=name, process_set=process_set, buffers=[(tensors.address_of(sent), None, sent.nbytes)],
        counts=[row * number for number in rows] if row else [8] * len(rows),
        shape=tensors.shape_text(array, any_length=True), keep=sent)
    return Plan([part], lambda results: list(_received(results[0], array, make)))


def barrier(_: Sequence[np.ndarray], make: MakeOutput, *, name: str, process_set: ProcessSet) -> Plan:
    """Waits until every rank has called it."""
    return Plan([dict(kind="barrier", name=name, process_set=process_set, buffers=())],
                lambda _: [np.int32(0)])


def join(_: Sequence[np.ndarray], make: MakeOutput) -> Plan:
    """Waits until every rank has joined, and returns the last rank that did."""
    session = operations.session_of(global_process_set)

    def finish(_: Sequence[Optional[Result]]) -> List[Any]:
        session.number_names_anew()
        return [np.int32(session.last_joined())]

    return _Join([dict(kind="join", name="join", process_set=global_process_set, buffers=())], finish)


def _numbered(parts: List[Dict[str, Any]], name: str) -> List[Dict[str, Any]]:
    """The parts with their names; see above."""
    for index, part in enumerate(parts):
        part["name"] = f"{name}#{index + 1}" if index else name
    if len(parts) > 1:
        parts[0]["shape"] += f" (1 of {len(parts)})"
    return parts


def _rows_to_each(array: np.ndarray, splits: Optional[np.ndarray], size: int) -> List[int]:
    if array.ndim == 0:
        raise ValueError("alltoall needs a tensor with a first dimension to divide, not a single number")
    length = array.shape[0]
    if splits is None:
        if length % size:
            raise ValueError(f"alltoall without splits divides the {length} rows of the tensor among {size} ranks, "
                             f"which leaves a remainder of {length % size}: pass splits")
        return [length // size] * size
    rows = [int(number) for number in np.ravel(splits)]
    faults = []
    if len(rows) != size:
        faults.append(f"has {len(rows)} entries for {size} ranks")
    if any(number < 0 for number in rows):
        faults.append(f"has negative entries: {rows}")
    if sum(rows) != length:
        faults.append(f"adds up to {sum(rows)} of the tensor's {length} rows")
    if faults:
        raise ValueError("splits " + ", and ".join(faults))
    return rows


def _received(result: Optional[Result], like: np.ndarray, make: MakeOutput) -> "tuple[Any, np.ndarray]":
    """The received rows, with the type and the other dimensions of `like`, and the number of rows from each rank."""
    assert result is not None
    row = tensors.row_bytes(like)
    if row:
        rows = [size // row for size in result.bytes_of_rank]
        packed = np.frombuffer(result.buffer(), np.uint8)
    else:
        rows = [int(number) for number in np.frombuffer(result.buffer(), np.int64)]
        packed = np.empty(0, np.uint8)
    value, array = make((sum(rows), *like.shape[1:]), like.dtype)
    if packed.size:
        np.copyto(array.reshape(-1).view(np.uint8), packed)
    return value, np.array(rows, np.int32)
