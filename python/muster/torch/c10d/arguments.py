"""The arguments of the operations of a process group: checks of tensors, the options of PyTorch, and copies of tensors.

Thread-safety: all functions are pure, or change only their arguments.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import torch
import torch.distributed as dist

from ..._native import abi
from ...common import data_types
from ..tensors import NAME_OF_TYPE

ReduceOp: Any = dist.ReduceOp

#: An operation of PyTorch -> the operation of the library. PyTorch 1.13 has no average.
_OPS: Dict[Any, int] = {
    getattr(ReduceOp, name): number
    for name, number in (("SUM", abi.SUM), ("PRODUCT", abi.PRODUCT), ("MIN", abi.MIN), ("MAX", abi.MAX),
                         ("BAND", abi.BIT_AND), ("BOR", abi.BIT_OR), ("BXOR", abi.BIT_XOR), ("AVG", abi.AVERAGE))
    if hasattr(ReduceOp, name)}

#: A type of PyTorch -> the type of the library.
TYPES: Dict[torch.dtype, int] = {dtype: data_types.NUMBERS[name] for dtype, name in NAME_OF_TYPE.items()}

if hasattr(torch.autograd.graph, "increment_version"):
    increment_version: Any = torch.autograd.graph.increment_version
else:
    def increment_version(tensor: torch.Tensor) -> None:
        """Increments the version of a tensor by a write to a view of no elements, which shares the version."""
        with torch.no_grad():
            tensor.detach().view(-1)[:0].zero_()


def mark_written(tensor: torch.Tensor) -> None:
    """Increments the version by which autograd detects that the values of a tensor have changed."""
    if not tensor.is_inference() and tensor.is_contiguous():
        increment_version(tensor)


def op_of(options: Any) -> int:
    """The operation of a ReduceOp, or of options that contain one.

    Errors: ValueError if the library has no such operation.
    """
    given = getattr(options, "reduceOp", options)
    # In options, the operation is wrapped in an object that is slow to hash.
    number = _OPS.get(getattr(given, "op", given))
    if number is None:
        number = _OPS.get(given)
        if number is None:
            name = str(getattr(given, "op", given)).rsplit(".", 1)[-1]
            raise ValueError(f"Cannot use ReduceOp.{name} with muster")
    return number


def is_sync(options: Any) -> bool:
    """Whether the caller waits for the operation at once, which only PyTorch 2.8 and later report."""
    return not getattr(options, "asyncOp", True)


def check_tensor(tensor: torch.Tensor, what: str) -> None:
    """Raises TypeError or ValueError unless this is a dense tensor in the memory of the host."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what} requires tensors, not {type(tensor).__name__}")
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} requires dense tensors, not {tensor.layout}")
    if not tensor.is_cpu:
        raise ValueError(f"No backend type associated with device type {tensor.device.type}: {what} of muster takes "
                         f"tensors in the memory of the host")
    if tensor.is_quantized:
        raise ValueError(f"Invalid scalar type: {what} does not take quantized tensors")


def only_tensor(tensors: Any, what: str) -> torch.Tensor:
    """The only tensor of a list, or the tensor itself."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"{what} takes 1 tensor for each rank, not {len(tensors)}")
    return tensors[0]  # type: ignore[no-any-return]


def number_type(tensor: torch.Tensor, what: str) -> int:
    """The type of a tensor's elements. Raises ValueError if the library does not support it."""
    number = TYPES.get(tensor.dtype)
    if number is None:
        raise ValueError(f"Invalid scalar type: {what} does not take {tensor.dtype}")
    return number


def bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def rank_of(options: Any, name: str = "rootRank") -> int:
    """The rank in options, or the rank that is given in place of options."""
    return int(getattr(options, name, options))


class Memory:
    """A contiguous tensor (`flat`) with the values of the given tensor: the same tensor if that is contiguous, else a
    copy. bring_back() copies the values of a copy to the given tensor."""

    __slots__ = ("given", "flat")

    def __init__(self, given: torch.Tensor, is_read: bool) -> None:
        self.given = given
        if given.is_contiguous():
            self.flat = given
        elif is_read:
            self.flat = given.detach().contiguous()
        else:
            self.flat = torch.empty(given.shape, dtype=given.dtype)

    def bring_back(self) -> None:
        if self.flat is not self.given:
            with torch.no_grad():
                self.given.copy_(self.flat)

    @property
    def is_copy(self) -> bool:
        return self.flat is not self.given


def as_bytes(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The bytes of tensors, one after the other."""
    parts = [tensor.detach().contiguous().view(-1).view(torch.uint8) for tensor in tensors if tensor.numel() > 0]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)


def fill_from(flat: torch.Tensor, outputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> Callable[[], None]:
    """A function that copies the bytes of `flat` into the outputs, one after the other. `sizes`: the bytes of each
    output."""
    def fill() -> None:
        with torch.no_grad():
            for output, part in zip(outputs, flat.split(list(sizes))):
                if part.numel() > 0:
                    output.copy_(part.view(output.dtype).view(output.shape))

    return fill


class AsyncOptions:
    """The options of one of several operations for which the caller waits together."""

    def __init__(self, opts: Any) -> None:
        self.reduceOp = getattr(opts, "reduceOp", opts)
        self.asyncOp = True
