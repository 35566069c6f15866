"""Flat tensors in memory that the ranks of a host share, or in ordinary memory where there is none."""

from __future__ import annotations

import torch

from ..common import shared_memory
from ..common.process_sets import ProcessSet


def shared_zeros(count: int, dtype: torch.dtype, process_set: ProcessSet) -> torch.Tensor:
    """`count` zeros, in shared memory if possible."""
    size = count * torch.empty(0, dtype=dtype).element_size()
    array = shared_memory.allocate(process_set, size) if size else None
    if array is None:
        return torch.zeros(count, dtype=dtype)
    flat = torch.frombuffer(array, dtype=torch.uint8).view(dtype)
    return flat.zero_()
