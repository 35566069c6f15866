"""Copies between the memory of a GPU and pinned memory of the host, on a stream of their own.

Order: a copy to the host begins after all work that the program's current stream has been given, and the caller waits
for the copy, not for the device: other streams continue. A copy to the device begins after that work, too, since it may
still use the tensor, and later work of the current stream waits for the copy. Copies in both directions use one stream
for each device, so that host memory is not read and written at the same time.

With a GPU for every rank, MUSTER_COLLECTIVE_TRANSPORT=nccl reduces tensors in the memory of the GPU, without copies.

Thread-safety: all functions, from any thread; a thread's current stream counts.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, Tuple

import torch

_streams: Dict[torch.device, Any] = {}
_lock = threading.Lock()

#: Types that the plug-in for NCCL reduces in the memory of a GPU.
_IN_PLACE = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def stays_on_device(tensor: torch.Tensor, is_plain_sum: bool) -> bool:
    """Whether the library reduces this tensor in the GPU's memory. is_plain_sum: a sum or an average without scales.
    If so, the caller waits with wait_for_device() before it hands the tensor over."""
    return (is_plain_sum and tensor.is_cuda and tensor.dtype in _IN_PLACE
            and os.environ.get("MUSTER_COLLECTIVE_TRANSPORT", "") == "nccl")


def wait_for_device(tensor: torch.Tensor) -> None:
    """Waits until the current stream has written the tensor."""
    torch.cuda.current_stream(tensor.device).synchronize()


def empty_on_host(shape: Tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory of the host for copies from and to the device."""
    return torch.empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


def copy_to_host(host: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copies, and waits."""
    if not tensor.is_cuda:
        host.copy_(tensor)
        return
    stream, current = _stream_of(tensor.device), torch.cuda.current_stream(tensor.device)
    stream.wait_stream(current)
    with torch.no_grad(), torch.cuda.stream(stream):
        host.copy_(tensor, non_blocking=True)
        # The allocator must not give this memory to another tensor of the current stream before.
        tensor.record_stream(stream)
        copied = stream.record_event()
    copied.synchronize()


def copy_to_device(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Begins to copy; later work of the current stream finds the values."""
    if not tensor.is_cuda:
        tensor.copy_(host)
        return
    stream, current = _stream_of(tensor.device), torch.cuda.current_stream(tensor.device)
    stream.wait_stream(current)
    with torch.no_grad(), torch.cuda.stream(stream):
        tensor.copy_(host, non_blocking=True)
        tensor.record_stream(stream)
    current.wait_stream(stream)


def _stream_of(device: torch.device) -> Any:
    stream = _streams.get(device)
    if stream is None:
        with _lock:
            stream = _streams.setdefault(device, torch.cuda.Stream(device))
    return stream
