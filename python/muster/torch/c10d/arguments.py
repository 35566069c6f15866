"""The arguments of the operations of a process group: checks of tensors, the options of PyTorch, and copies of tensors.

Thread-safety: all functions are pure, or change only their arguments.
"""

from __future__ import annotations

from math import gcd
from typing import Any, Callable, Dict, Sequence, Tuple

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


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor has its values in their order. A view with a lazy negation or conjugation has
    other values than its memory."""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


#: The first address, the address after the last one, whether the operation writes there, and the memory as pieces of
#: `width` bytes whose distances are multiples of `step`. A step of 0 means one piece.
Span = Tuple[int, int, bool, int, int]

#: do_conflict() compares up to this number of pairs without sorting them.
_FEW_PAIRS = 64


def span_of(tensor: torch.Tensor, is_written: bool) -> Span:
    """The memory of a tensor. Views of different columns of a matrix use different memory."""
    size = tensor.element_size()
    if tensor.numel() == 0:
        return 0, 0, is_written, 0, 0
    steps, width, step = 0, size, 0
    for stride, length in sorted(zip(tensor.stride(), tensor.shape)):
        if length == 1 or stride == 0:
            continue
        steps += (length - 1) * stride
        if step == 0 and stride * size == width:
            width *= length
        else:
            step = gcd(step, stride * size)
    start = tensor.data_ptr()
    return start, start + (steps + 1) * size, is_written, step, width


def do_conflict(some: Sequence[Span], others: Sequence[Span]) -> bool:
    """Whether one of two operations writes memory that the other one uses."""
    if len(some) * len(others) > _FEW_PAIRS and not _may_conflict(some, others):
        return False
    for one in some:
        for other in others:
            if one[0] < other[1] and other[0] < one[1] and (one[2] or other[2]) and not _lie_in_gaps(one, other):
                return True
    return False


def _lie_in_gaps(one: Span, other: Span) -> bool:
    """Whether the pieces of each of two spans lie between those of the other one."""
    step = gcd(one[3], other[3])
    return step > 0 and one[4] <= (other[0] - one[0]) % step <= step - other[4]


def _may_conflict(some: Sequence[Span], others: Sequence[Span]) -> bool:
    """do_conflict() in one pass over the sorted spans, with gaps as memory in use."""
    #: Of `some` and of `others`: the highest end of all spans so far, and the highest end of the written ones.
    far = ([0, 0], [0, 0])
    for begin, end, is_written, side in sorted([(*s[:3], 0) for s in some] + [(*s[:3], 1) for s in others]):
        if begin < end and begin < far[1 - side][0 if is_written else 1]:
            return True
        mine = far[side]
        mine[0] = max(mine[0], end)
        if is_written:
            mine[1] = max(mine[1], end)
    return False


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
    """A plain tensor (`flat`) with the values of the given tensor: the same tensor if that is plain, else a copy.
    bring_back() copies the values of a copy to the given tensor."""

    __slots__ = ("given", "flat")

    def __init__(self, given: torch.Tensor, is_read: bool) -> None:
        self.given = given
        if is_plain(given):
            self.flat = given
        elif is_read:
            self.flat = _resolved(given).contiguous()
        else:
            self.flat = torch.empty(given.shape, dtype=given.dtype)

    def bring_back(self) -> None:
        if self.flat is not self.given:
            with torch.no_grad():
                self.given.copy_(self.flat)

    @property
    def is_copy(self) -> bool:
        return self.flat is not self.given


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_neg().resolve_conj()


def as_bytes(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A copy of the bytes of tensors, one after the other."""
    parts = [_resolved(tensor).contiguous().view(-1).view(torch.uint8) for tensor in tensors if tensor.numel() > 0]
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
