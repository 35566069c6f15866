"""Sums and averages of sparse tensors: the values of all ranks and their positions are gathered. Values of several
ranks at the same position are added when the result is coalesced or made dense."""

from __future__ import annotations

from typing import Any, Callable, List

import torch

from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp, choose
from .gathering import allgather_async


def sparse_allreduce_async(tensor: torch.Tensor, name: str, op: int,
                           process_set: ProcessSet = global_process_set) -> Callable[[], torch.Tensor]:
    """Begins to add the ranks' sparse tensors, which may have different numbers of values. The returned function waits
    for the sum or average, a sparse tensor.

    Errors: ValueError for a tensor that is not sparse (torch.sparse_coo), or an op other than Sum and Average;
    otherwise as allgather_async().
    """
    reduction = choose(op)
    if reduction not in (ReduceOp.SUM, ReduceOp.AVERAGE):
        raise ValueError(f"sparse tensors can be summed and averaged; op is {reduction.name.capitalize()}")
    if tensor.layout is not torch.sparse_coo:
        raise ValueError(f"expected a sparse tensor (torch.sparse_coo), not {tensor.type()}")
    # Each rank adds its own duplicates before the exchange: fewer bytes travel.
    own = tensor.detach().coalesce()
    # One row per value.
    places = allgather_async(own.indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(own.values().contiguous(), f"{name}.values", process_set)

    received: List[Any] = []

    def wait() -> torch.Tensor:
        # Ctrl-C may interrupt the second wait; the caller then calls this function again.
        for handle in (places, values)[len(received):]:
            received.append(synchronize(handle))
        all_places, all_values = received
        if reduction == ReduceOp.AVERAGE:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_places.t(), all_values, own.shape, dtype=own.dtype, device=own.device)

    return wait
