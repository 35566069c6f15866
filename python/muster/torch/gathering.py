"""allgather, alltoall and broadcast: tensors that move between the ranks unchanged.

The tensors of allgather and alltoall may differ between ranks in their first dimension: the lengths travel with the
data.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from . import autograd, collectives, submission, tensors
from .submission import name_of


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to concatenate the tensors of all ranks along the first dimension, in the order of the ranks;
    synchronize(handle) returns the result. A scalar counts as a tensor of one element.

    Errors: as allreduce_async(); MismatchError if types or the other dimensions differ.
    """
    pending, finish = collectives.begin_gather(tensor, name_of("allgather", name, process_set), process_set)
    return submission.begin_all(lambda results: finish(results)[0], [pending])


def allgather(tensor: torch.Tensor, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The concatenated tensors of all ranks. Differentiable: each rank gets its part of the gradients' average."""
    return autograd.allgather(tensor, name, process_set)


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """Begins allgather of each of several tensors; synchronize(handle) returns the list."""
    parts, finish = collectives.begin_group_gather(tensors, name_of("allgather", name, process_set), process_set)
    return submission.begin_all(lambda results: [whole for whole, _ in finish(results)], parts)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """allgather of each of several tensors. Differentiable."""
    return autograd.grouped_allgather(tensors, name, process_set)


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to copy the root's tensor; synchronize(handle) returns it as a new tensor on every rank.

    root_rank: a rank of the world, also within a process set. Errors: as allreduce_async(); MismatchError if roots,
    types or shapes differ.
    """
    tensors.check(tensor)
    return collectives.begin_broadcast(tensor, torch.empty_like(tensor, requires_grad=False), root_rank,
                                       name_of("broadcast", name, process_set), process_set)


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """The same as broadcast_async(), into the tensor itself."""
    return collectives.begin_broadcast(tensor, tensor, root_rank, name_of("broadcast", name, process_set), process_set)


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The root's tensor. Differentiable: the root gets the average of the gradients, the other ranks get zeros."""
    return autograd.broadcast(tensor, root_rank, name, process_set)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Copies the root's tensor into this one and returns it. Autograd ignores it."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))  # type: ignore[return-value]


def alltoall_async(tensor: torch.Tensor, splits: Optional[collectives.Splits] = None, name: Optional[str] = None,
                   process_set: ProcessSet = global_process_set) -> int:
    """Begins to send a part of the first dimension to each rank; synchronize(handle) returns the received rows, in the
    order of the ranks, and the number of rows from each rank (int32).

    splits: the number of rows for each rank, a list or a tensor of whole numbers; by default equal parts.
    Errors: ValueError if the splits are not one number for each rank, are negative, or do not add up to the number of
    rows; otherwise as allreduce_async().
    """
    parts, finish = collectives.begin_alltoall(tensor, splits, name_of("alltoall", name, process_set), process_set)
    return submission.begin_all(finish, parts)


def alltoall(tensor: torch.Tensor, splits: Optional[collectives.Splits] = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """The rows from all ranks; with `splits` a tuple of them and their number from each rank. Differentiable: the
    gradient goes back to the ranks from which the rows came."""
    output, received = autograd.alltoall(tensor, splits, name, process_set)
    return output if splits is None else (output, received)
