"""The properties of a tensor that operations need: whether it can be handed over, where its memory is, and the text by
which ranks compare their tensors.

A tensor in the memory of a device (CUDA and the like) travels through memory of the host (device_copies.py), unless the
library reaches it there. `host_copy()` waits for the device and copies; the completion of the operation copies back.
"""

from __future__ import annotations

import functools
from typing import Dict, List, Optional, Sequence, Tuple

import torch

from . import device_copies

#: The names of muster.common.data_types. The unsigned types exist since PyTorch 2.3.
NAME_OF_TYPE: Dict[torch.dtype, str] = {
    getattr(torch, name): name
    for name in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                 "int64", "uint64", "bool")
    if hasattr(torch, name)}


def check(tensor: torch.Tensor) -> str:
    """The name of the type of its elements.

    Errors: TypeError for anything but a tensor; ValueError for a type, layout or device that cannot be handed over, and
    for a tensor whose elements are not contiguous.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, not {type(tensor).__name__}")
    name = NAME_OF_TYPE.get(tensor.dtype)
    if name is None or tensor.layout is not torch.strided:
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")
    if tensor.is_meta:
        raise ValueError("A tensor on the device 'meta' has no elements that could be handed over.")
    if not tensor.is_contiguous() or tensor.is_neg():
        raise ValueError("Tensor is required to be contiguous.")
    return name


def check_all(tensors: Sequence[torch.Tensor]) -> List[str]:
    """check() of each tensor. Errors: also for an empty list."""
    if isinstance(tensors, torch.Tensor) or not isinstance(tensors, (list, tuple)):
        raise TypeError(f"expected a list of tensors, not {type(tensors).__name__}")
    if not tensors:
        raise ValueError("the list of tensors is empty: a group needs at least one")
    return [check(tensor) for tensor in tensors]


@functools.lru_cache(maxsize=4096)
def shape_text(type_name: str, shape: Tuple[int, ...], any_length: bool = False) -> str:
    """For example "float32[2, 3]"; with `any_length` the first dimension may differ between ranks: "float32[?, 3]"."""
    lengths = [str(length) for length in shape]
    if any_length and lengths:
        lengths[0] = "?"
    return f"{type_name}[{', '.join(lengths)}]"


def is_on_host(tensor: torch.Tensor) -> bool:
    return tensor.is_cpu


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if the library can reach it, otherwise a copy in the host's memory."""
    if is_on_host(tensor):
        return tensor
    host = device_copies.empty_on_host(tuple(tensor.shape), tensor.dtype, tensor.device)
    device_copies.copy_to_host(host, tensor.detach())
    return host


def row_bytes(tensor: torch.Tensor) -> int:
    """Bytes of one element of the first dimension."""
    count = 1
    for length in tensor.shape[1:]:
        count *= length
    return count * tensor.element_size()


def from_bytes(buffer: object, dtype: torch.dtype, shape: Tuple[int, ...],
               device: Optional[torch.device] = None) -> torch.Tensor:
    """A tensor over the memory of `buffer`, which it keeps alive; for another device a copy."""
    if 0 in shape:
        return torch.empty(shape, dtype=dtype, device=device)
    # torch.frombuffer() supports neither bool at odd addresses nor, before 2.0, all types; it always supports bytes.
    flat = torch.frombuffer(buffer, dtype=torch.uint8)  # type: ignore[call-overload]
    tensor = flat.view(dtype).view(shape)
    return tensor if device is None or device.type == "cpu" else tensor.to(device)
