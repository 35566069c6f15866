"""Flat tensors in memory that the ranks of a host share, or in ordinary memory if they cannot share any."""

from __future__ import annotations

from typing import Tuple

import torch

from ..common import shared_memory
from ..common.process_sets import ProcessSet


def shared_zeros(count: int, dtype: torch.dtype, process_set: ProcessSet) -> Tuple[torch.Tensor, int]:
    """`count` zeros, in shared memory if possible, and their address for operations of the set, which may differ from
    the tensor's own address. The tensor and every view of it remain valid while they are held, also after
    shutdown()."""
    size = count * torch.empty(0, dtype=dtype).element_size()
    shared = shared_memory.allocate(process_set, size) if size else None
    if shared is None:
        flat = torch.zeros(count, dtype=dtype)
        return flat, flat.data_ptr()
    flat = torch.frombuffer(shared.array, dtype=torch.uint8).view(dtype)
    return flat.zero_(), shared.address
