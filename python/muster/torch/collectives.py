"""The collectives on tensors, without autograd: each function checks its tensors and submits the operation.

autograd.py makes them differentiable; reducing.py and gathering.py have the functions for programs.
"""

from __future__ import annotations

from typing import Any, Callable, FrozenSet, List, Optional, Sequence, Tuple, Union

import torch

from ..common import operations
from ..common.handles import synchronize
from ..common.operations import Pending, Result
from ..common.process_sets import ProcessSet
from ..common.reduce_ops import ReduceOp
from . import in_place, submission, tensors
from .submission import Route, name_of

#: The submitted operation or operations, and the function that makes a value of their results.
Begun = Tuple[Any, Callable[[Any], Any]]

#: Rows for each rank.
Splits = Union[torch.Tensor, Sequence[int]]


def reduce_now(tensor: torch.Tensor, output: Optional[torch.Tensor], name: Optional[str], op: ReduceOp,
               prescale: float, postscale: float, process_set: ProcessSet) -> torch.Tensor:
    """Reduces into `output`, or into a new tensor if it is None, and waits."""
    if name is None:
        return _reduce_nameless(tensor, output, op, prescale, postscale, process_set)
    try:
        if output is None:
            output = torch.empty_like(tensor, requires_grad=False)
        key = (process_set._session, name, int(op), prescale, postscale, tensor.dtype, tensor.shape,
               tensor.data_ptr(), output.data_ptr())
        prepared = submission.find(key) if tensor.is_contiguous() else None
    except (RuntimeError, TypeError, AttributeError, NotImplementedError):
        tensors.check(tensor)
        raise
    if prepared is None:
        type_name = tensors.check(tensor)
        full_name = f"allreduce.{name}"
        if not tensor.is_cpu:
            return synchronize(begin_reduce(  # type: ignore[return-value]
                tensor, output, full_name, op, prescale, postscale, process_set))
        prepared = operations.prepare(
            "all_reduce", full_name, process_set=process_set, buffers=[_buffer(tensor, output)], type=type_name, op=op,
            prescale=prescale, postscale=postscale, shape=tensors.shape_text(type_name, tensor.shape))
        submission.remember(key, prepared)
    if output is tensor:
        in_place.check((tensor,), prepared.name)
    # If Ctrl-C ends the wait, the ranks still write here: the operation holds the tensors, as no other object may.
    prepared.run((tensor, output))
    if output is tensor:
        in_place.changed(tensor)
    return output


def _reduce_nameless(tensor: torch.Tensor, output: Optional[torch.Tensor], op: ReduceOp, prescale: float,
                     postscale: float, process_set: ProcessSet) -> torch.Tensor:
    """The same as reduce_now(), under a name that is used only once."""
    type_name = tensors.check(tensor)
    if output is None:
        output = torch.empty_like(tensor, requires_grad=False)
    full_name = name_of("allreduce", None, process_set)
    if not tensor.is_cpu:
        return synchronize(begin_reduce(  # type: ignore[return-value]
            tensor, output, full_name, op, prescale, postscale, process_set))
    if output is tensor:
        in_place.check((tensor,), full_name)
    operations.run("all_reduce", full_name, process_set=process_set, buffers=(_buffer(tensor, output),), type=type_name,
                   op=op, prescale=prescale, postscale=postscale, shape=tensors.shape_text(type_name, tensor.shape),
                   keep=(tensor, output))
    if output is tensor:
        in_place.changed(tensor)
    return output


def reduce_group_now(listed: Sequence[torch.Tensor], full_name: str, op: ReduceOp, prescale: float, postscale: float,
                     process_set: ProcessSet) -> List[torch.Tensor]:
    """Reduces several tensors into new tensors, and waits."""
    return synchronize(begin_group_reduce(  # type: ignore[return-value]
        listed, None, full_name, op, prescale, postscale, process_set))


def begin_reduce(tensor: torch.Tensor, output: torch.Tensor, full_name: str, op: ReduceOp, prescale: float,
                 postscale: float, process_set: ProcessSet) -> int:
    type_name = tensors.check(tensor)
    writing = [output] if output is tensor else []
    if tensor.is_cpu:
        return submission.begin(
            lambda _: output, "all_reduce", full_name, writing, process_set=process_set,
            buffers=(_buffer(tensor, output),), type=type_name, op=op, prescale=prescale, postscale=postscale,
            shape=tensors.shape_text(type_name, tensor.shape), keep=(tensor, output))
    route = Route(tensor, output, is_plain_sum=_is_plain_sum(op, prescale, postscale))
    return submission.begin(
        lambda _: route.bring_back(), "all_reduce", full_name, writing, process_set=process_set,
        buffers=[_buffer(route.source, route.target)], type=type_name, op=op, prescale=prescale, postscale=postscale,
        shape=tensors.shape_text(type_name, tensor.shape), keep=route)


def begin_group_reduce(listed: Sequence[torch.Tensor], outputs: Optional[Sequence[torch.Tensor]], full_name: str,
                       op: ReduceOp, prescale: float, postscale: float, process_set: ProcessSet) -> int:
    types = tensors.check_all(listed)
    if outputs is not None:
        writing = in_place.Writing(outputs, full_name)
        with writing.released_on_failure():
            return _begin_group(listed, outputs, types, _sharing_memory(listed), full_name, op, prescale, postscale,
                                process_set, writing)
    outputs = [torch.empty_like(tensor, requires_grad=False) for tensor in listed]
    return _begin_group(listed, outputs, types, frozenset(), full_name, op, prescale, postscale, process_set, None)


def _begin_group(listed: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], types: Sequence[str],
                 apart: FrozenSet[int], full_name: str, op: ReduceOp, prescale: float, postscale: float,
                 process_set: ProcessSet, writing: Optional[in_place.Writing]) -> int:
    is_plain_sum = _is_plain_sum(op, prescale, postscale)
    routes = [Route(tensor, output, index in apart, is_plain_sum)
              for index, (tensor, output) in enumerate(zip(listed, outputs))]
    parts = []
    together = _by_type(types)
    for type_name, members in together:
        shape = ", ".join(tensors.shape_text(type_name, listed[i].shape) for i in members)
        parts.append(operations.submit(
            "all_reduce", full_name if len(together) == 1 else f"{full_name}.{type_name}", process_set=process_set,
            buffers=[_buffer(routes[i].source, routes[i].target) for i in members], type=type_name, op=op,
            prescale=prescale, postscale=postscale, shape=shape, keep=routes))
    return submission.begin_all(lambda _: [route.bring_back() for route in routes], parts, writing)


def _is_plain_sum(op: ReduceOp, prescale: float, postscale: float) -> bool:
    return op in (ReduceOp.SUM, ReduceOp.AVERAGE) and prescale == 1.0 and postscale == 1.0


def _sharing_memory(listed: Sequence[torch.Tensor]) -> FrozenSet[int]:
    """The positions of tensors that overlap others in memory: a weight that is tied to another is twice in the list of
    gradients. A reduction in place would reduce such a tensor more than once, or in part."""
    found, end = set(), 0
    for index in sorted(range(len(listed)), key=lambda each: listed[each].data_ptr()):
        begin, length = listed[index].data_ptr(), listed[index].numel() * listed[index].element_size()
        if length and begin < end:
            found.add(index)
        end = max(end, begin + length)
    return frozenset(found)


def _by_type(types: Sequence[str]) -> List[Tuple[str, List[int]]]:
    """The positions of the tensors of each type: tensors that are reduced together must have the same type."""
    members: "dict[str, List[int]]" = {}
    for index, type_name in enumerate(types):
        members.setdefault(type_name, []).append(index)
    return list(members.items())


def _buffer(source: torch.Tensor, target: torch.Tensor) -> Tuple[int, int, int]:
    return source.data_ptr(), target.data_ptr(), source.numel()


def scatter_now(listed: Sequence[torch.Tensor], names: Sequence[str], op: ReduceOp, process_set: ProcessSet,
                prescale: float, postscale: float) -> List[torch.Tensor]:
    """Reduces each tensor under its name, and waits."""
    begun = [begin_scatter(tensor, full_name, op, process_set, prescale, postscale)
             for tensor, full_name in zip(listed, names)]
    return synchronize(submission.begin_all(  # type: ignore[return-value]
        lambda _: [route.bring_back() for _, route in begun], [pending for pending, _ in begun]))


def begin_scatter(tensor: torch.Tensor, full_name: str, op: ReduceOp, process_set: ProcessSet, prescale: float,
           postscale: float) -> Tuple[Pending, Route]:
    type_name = tensors.check(tensor)
    if op == ReduceOp.ADASUM:
        raise NotImplementedError("reducescatter cannot be used with Adasum, which needs whole tensors: use allreduce")
    if tensor.dim() == 0:
        raise ValueError("reducescatter needs a tensor with a first dimension to divide, not a single number")
    size, rank = len(process_set.registered_ranks()), process_set.registered_rank()
    rows = [tensor.shape[0] // size + (1 if other < tensor.shape[0] % size else 0) for other in range(size)]
    output = torch.empty((rows[rank], *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
    route = Route(tensor, output)
    row = tensors.row_bytes(tensor) // tensor.element_size()
    pending = operations.submit(
        "reduce_scatter", full_name, process_set=process_set,
        buffers=[(route.source.data_ptr(), route.target.data_ptr(), route.source.numel())], type=type_name, op=op,
        prescale=prescale, postscale=postscale, counts=[row * number for number in rows],
        shape=tensors.shape_text(type_name, tensor.shape), keep=route)
    return pending, route


def begin_gather(tensor: torch.Tensor, full_name: str, process_set: ProcessSet) -> Begun:
    """The submitted operation, and a function that makes of [its result] the whole, and the rows of every rank."""
    type_name = tensors.check(tensor)
    part = tensor.reshape(1) if tensor.dim() == 0 else tensor
    row = tensors.row_bytes(part)
    # Rows without bytes leave no trace in the received lengths: their number is sent instead.
    source = tensors.host_copy(part) if row else torch.tensor([part.shape[0]], dtype=torch.int64)
    pending = operations.submit(
        "all_gather", full_name, process_set=process_set,
        buffers=[(source.data_ptr(), None, source.numel() * source.element_size())],
        shape=tensors.shape_text(type_name, part.shape, any_length=True), keep=source)

    def finish(results: Sequence[Result]) -> Tuple[torch.Tensor, List[int]]:
        result = results[0]
        rows = _rows_of(result, row)
        return tensors.from_bytes(result.buffer() if row else None, part.dtype, (sum(rows), *part.shape[1:]),
                                  part.device), rows

    return pending, finish


def begin_group_gather(listed: Sequence[torch.Tensor], full_name: str, process_set: ProcessSet) -> Begun:
    """begin_gather() for each of several tensors."""
    tensors.check_all(listed)
    begun = [begin_gather(tensor, f"{full_name}_{index + 1}of{len(listed)}", process_set)
             for index, tensor in enumerate(listed)]
    return ([pending for pending, _ in begun],
            lambda results: [finish([result]) for (_, finish), result in zip(begun, results)])


def begin_alltoall(tensor: torch.Tensor, splits: Optional[Splits], full_name: str, process_set: ProcessSet) -> Begun:
    """The submitted operation, and a function that makes of its results the received rows, and their number per
    rank."""
    type_name = tensors.check(tensor)
    rows = _rows_to_each(tensor, splits, len(process_set.registered_ranks()))
    row = tensors.row_bytes(tensor)
    # As in begin_gather().
    source = tensors.host_copy(tensor) if row else torch.tensor(rows, dtype=torch.int64)
    counts = [row * number for number in rows] if row else [8] * len(rows)
    pending = operations.submit(
        "all_to_all", full_name, process_set=process_set, buffers=[(source.data_ptr(), None, sum(counts))],
        counts=counts, shape=tensors.shape_text(type_name, tensor.shape, any_length=True), keep=source)
    place = splits.device if isinstance(splits, torch.Tensor) else None

    def finish(results: Sequence[Result]) -> Tuple[torch.Tensor, torch.Tensor]:
        received = _rows_of(results[0], row)
        output = tensors.from_bytes(results[0].buffer() if row else None, tensor.dtype,
                                    (sum(received), *tensor.shape[1:]), tensor.device)
        return output, torch.tensor(received, dtype=torch.int32, device=place)

    return [pending], finish


def begin_broadcast(tensor: torch.Tensor, output: torch.Tensor, root_rank: int, full_name: str,
                     process_set: ProcessSet) -> int:
    type_name = tensors.check(tensor)
    # One buffer serves for sending and for receiving.
    buffer = output if tensors.is_on_host(output) else tensors.host_copy(tensor)
    if buffer is not tensor and tensors.is_on_host(tensor):
        with torch.no_grad():
            buffer.copy_(tensor)

    def finish(_: Any) -> torch.Tensor:
        if buffer is not output:
            with torch.no_grad():
                output.copy_(buffer)
        return output

    return submission.begin(
        finish, "broadcast", full_name, [output] if output is tensor else [], process_set=process_set,
        buffers=[(None, buffer.data_ptr(), buffer.numel() * buffer.element_size())], root=root_rank,
        shape=tensors.shape_text(type_name, tensor.shape), keep=buffer)


def _rows_of(result: Result, row: int) -> List[int]:
    if row:
        return [length // row for length in result.bytes_of_rank]
    return tensors.from_bytes(result.buffer(), torch.int64, (len(result.bytes_of_rank),)).tolist()


def _rows_to_each(tensor: torch.Tensor, splits: Optional[Splits], size: int) -> List[int]:
    if tensor.dim() == 0:
        raise ValueError("alltoall needs a tensor with a first dimension to split, not a single number")
    if splits is None:
        if tensor.shape[0] % size != 0:
            raise ValueError(f"alltoall without splits: the {tensor.shape[0]} rows of the tensor cannot be divided "
                             f"evenly among the {size} ranks; pass splits")
        return [tensor.shape[0] // size] * size
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.dtype.is_floating_point or splits.dtype.is_complex:
            raise ValueError(f"splits must be a list of whole numbers, not {splits.dtype} of shape "
                             f"{tuple(splits.shape)}")
        splits = splits.tolist()
    rows = [int(number) for number in splits]
    if len(rows) != size or any(number < 0 for number in rows) or sum(rows) != tensor.shape[0]:
        raise ValueError(f"splits is {rows}: it must be {size} numbers, one for each rank and not negative, "
                         f"that add up to the {tensor.shape[0]} rows of the tensor")
    return rows
