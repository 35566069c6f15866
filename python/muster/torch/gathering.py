"""allgather, alltoall and broadcast: tensors that move between the ranks as they are.

The tensors of allgather and alltoall may differ between ranks in their first dimension. What comes is as long as it
comes: the lengths travel with the data.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import torch

from ..common import operations
from ..common.handles import synchronize
from ..common.operations import Result
from ..common.process_sets import ProcessSet, global_process_set
from . import submission, tensors
from .submission import name_of

#: What makes a value of what came, and what was handed over for it.
Begun = Tuple[Any, Callable[[Any], Any]]


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to put the tensors of all ranks behind each other along the first dimension, in the order of the ranks;
    synchronize(handle) gives the whole. A tensor without dimensions counts as one of one element.

    Errors: as allreduce_async(); MismatchError where types or the other dimensions differ.
    """
    pending, finish = begin_gather(tensor, name_of("allgather", name, process_set), process_set)
    return submission.begin_all(lambda results: finish(results)[0], [pending])


def allgather(tensor: torch.Tensor, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The tensors of all ranks behind each other. Differentiable: each rank gets its part of the gradients' average."""
    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
        from .autograd import Allgather
        return Allgather.apply(tensor, name_of("allgather", name, process_set), process_set)
    pending, finish = begin_gather(tensor, name_of("allgather", name, process_set), process_set)
    return finish([pending.wait()])[0]


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """Begins allgather of each of several tensors; synchronize(handle) gives the list."""
    parts, finish = begin_group_gather(tensors, name_of("allgather", name, process_set), process_set)
    return submission.begin_all(lambda results: [whole for whole, _ in finish(results)], parts)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """allgather of each of several tensors. Differentiable."""
    if torch.is_grad_enabled() and any(getattr(tensor, "requires_grad", False) for tensor in tensors):
        from .autograd import GroupedAllgather
        return list(GroupedAllgather.apply(name_of("allgather", name, process_set), process_set, *tensors))
    return synchronize(grouped_allgather_async(tensors, name, process_set))  # type: ignore[return-value]


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to copy the root's tensor; synchronize(handle) gives it as a new tensor on every rank.

    root_rank: a rank of the world, also within a process set. Errors: as allreduce_async(); MismatchError where
    roots, types or shapes differ.
    """
    tensors.check(tensor)
    return _begin_broadcast(tensor, torch.empty_like(tensor, requires_grad=False), root_rank,
                            name_of("broadcast", name, process_set), process_set)


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """As broadcast_async(), into the tensor itself."""
    return _begin_broadcast(tensor, tensor, root_rank, name_of("broadcast", name, process_set), process_set)


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The root's tensor. Differentiable: the root gets the average of the gradients, the others zeros."""
    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
        from .autograd import Broadcast
        return Broadcast.apply(tensor, root_rank, name_of("broadcast", name, process_set), process_set)
    return synchronize(broadcast_async(tensor, root_rank, name, process_set))  # type: ignore[return-value]


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Copies the root's tensor into this one and returns it. Not seen by autograd."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))  # type: ignore[return-value]


Splits = Union[torch.Tensor, Sequence[int]]


def alltoall_async(tensor: torch.Tensor, splits: Optional[Splits] = None, name: Optional[str] = None,
                   process_set: ProcessSet = global_process_set) -> int:
    """Begins to send a part of the first dimension to each rank; synchronize(handle) gives what came, in the order
    of the ranks, and how many rows came from each (int32).

    splits: rows for each rank, a list or a tensor of whole numbers; equal parts where there are none.

    Errors: ValueError where the splits are not one for each rank, are negative, or are more or less than the rows;
    else as allreduce_async().
    """
    parts, finish = begin_alltoall(tensor, splits, name_of("alltoall", name, process_set), process_set)
    return submission.begin_all(finish, parts)


def alltoall(tensor: torch.Tensor, splits: Optional[Splits] = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """What came from all ranks; with `splits` a tuple of it and the rows that came from each. Differentiable: the
    gradient goes back where the rows came from."""
    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
        from .autograd import Alltoall
        output, received = Alltoall.apply(tensor, splits, name_of("alltoall", name, process_set), process_set)
    else:
        output, received = synchronize(alltoall_async(tensor, splits, name, process_set))  # type: ignore[misc]
    return output if splits is None else (output, received)


def begin_gather(tensor: torch.Tensor, full_name: str, process_set: ProcessSet) -> Begun:
    """What was handed over, and what makes of [its result]: the whole, and the rows of every rank."""
    type_name = tensors.check(tensor)
    part = tensor.reshape(1) if tensor.dim() == 0 else tensor
    row = tensors.row_bytes(part)
    # Rows without bytes leave no trace in the lengths of what came: their number travels in their place.
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
    """As begin_gather() for each of them."""
    tensors.check_all(listed)
    begun = [begin_gather(tensor, f"{full_name}_{index + 1}of{len(listed)}", process_set)
             for index, tensor in enumerate(listed)]
    return ([pending for pending, _ in begun],
            lambda results: [finish([result]) for (_, finish), result in zip(begun, results)])


def begin_alltoall(tensor: torch.Tensor, splits: Optional[Splits], full_name: str, process_set: ProcessSet) -> Begun:
    """What was handed over, and what makes of its results: what came, and the rows from every rank."""
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


def _rows_of(result: Result, row: int) -> List[int]:
    if row:
        return [length // row for length in result.bytes_of_rank]
    return tensors.from_bytes(result.buffer(), torch.int64, (len(result.bytes_of_rank),)).tolist()


def _rows_to_each(tensor: torch.Tensor, splits: Optional[Splits], size: int) -> List[int]:
    if tensor.dim() == 0:
        raise ValueError("alltoall needs a tensor with a first dimension to split, not a single number")
    if splits is None:
        if tensor.shape[0] % size != 0:
            raise ValueError(f"alltoall without splits: the {tensor.shape[0]} rows of the tensor do not divide by the "
                             f"{size} ranks; say with splits how many each is to get")
        return [tensor.shape[0] // size] * size
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.dtype.is_floating_point or splits.dtype.is_complex:
            raise ValueError(f"splits has to be a list of whole numbers, not {splits.dtype} of shape "
                             f"{tuple(splits.shape)}")
        splits = splits.tolist()
    rows = [int(number) for number in splits]
    if len(rows) != size or any(number < 0 for number in rows) or sum(rows) != tensor.shape[0]:
        raise ValueError(f"splits is {rows}: it has to be {size} numbers, one for each rank, none of them negative, "
                         f"that add up to the {tensor.shape[0]} rows of the tensor")
    return rows


def _begin_broadcast(tensor: torch.Tensor, output: torch.Tensor, root_rank: int, full_name: str,
                     process_set: ProcessSet) -> int:
    type_name = tensors.check(tensor)
    # One buffer is both what is sent and what is received.
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
        finish, "broadcast", full_name, process_set=process_set,
        buffers=[(None, buffer.data_ptr(), buffer.numel() * buffer.element_size())], root=root_rank,
        shape=tensors.shape_text(type_name, tensor.shape), keep=buffer)
