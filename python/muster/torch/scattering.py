"""reducescatter: each rank gets a part of the reduction of all ranks' tensors.

The first dimension is divided among the ranks in their order; where it does not divide evenly, the first ranks get
one row more.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common.handles import synchronize
from ..common.operations import Pending
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Average, ReduceOp, choose
from . import submission, tensors
from .compression import Compression
from .submission import Route, name_of


def reducescatter_async(tensor: torch.Tensor, name: Optional[str] = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """Begins to reduce `tensor` over the ranks; synchronize(handle) gives this rank's rows as a new tensor.

    Errors: as allreduce_async(); ValueError for a tensor without dimensions; NotImplementedError for Adasum, which is
    defined on whole tensors.
    """
    pending, route = _begin(tensor, name_of("reducescatter", name, process_set), choose(op), process_set,
                            prescale_factor, postscale_factor)
    return submission.begin_all(lambda _: route.bring_back(), [pending])


def reducescatter(tensor: torch.Tensor, name: Optional[str] = None, compression: Any = Compression.none,
                  op: int = Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """This rank's rows of the reduction. Differentiable: all ranks' gradients are gathered, scaled as the forward
    pass was, and by the number of ranks where it summed."""
    compressed, context = compression.compress(tensor)
    output = _now([compressed], [name_of("reducescatter", name, process_set)], choose(op), process_set,
                  prescale_factor, postscale_factor)[0]
    return compression.decompress(output, context)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """Begins reducescatter of each of several tensors; synchronize(handle) gives the list."""
    begun = [_begin(tensor, full_name, choose(op), process_set, prescale_factor, postscale_factor)
             for tensor, full_name in zip(tensors, _names(tensors, name, process_set))]
    return submission.begin_all(lambda _: [route.bring_back() for _, route in begun],
                                [pending for pending, _ in begun])


def grouped_reducescatter(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                          compression: Any = Compression.none, op: int = Average,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[torch.Tensor]:
    """reducescatter of each of several tensors. Differentiable."""
    names = _names(tensors, name, process_set)
    pairs = [compression.compress(tensor) for tensor in tensors]
    outputs = _now([tensor for tensor, _ in pairs], names, choose(op), process_set, prescale_factor,
                   postscale_factor)
    return [compression.decompress(output, context) for output, (_, context) in zip(outputs, pairs)]


def reduce_now(listed: Sequence[torch.Tensor], names: Sequence[str], op: ReduceOp, process_set: ProcessSet,
               prescale: float, postscale: float) -> List[torch.Tensor]:
    """Reduces each of them under its name, and waits."""
    begun = [_begin(tensor, full_name, op, process_set, prescale, postscale)
             for tensor, full_name in zip(listed, names)]
    return synchronize(submission.begin_all(  # type: ignore[return-value]
        lambda _: [route.bring_back() for _, route in begun], [pending for pending, _ in begun]))


def _now(listed: Sequence[torch.Tensor], names: Sequence[str], op: ReduceOp, process_set: ProcessSet, prescale: float,
         postscale: float) -> Sequence[torch.Tensor]:
    if torch.is_grad_enabled() and any(getattr(tensor, "requires_grad", False) for tensor in listed):
        from .autograd import Reducescatter
        return Reducescatter.apply(names, op, process_set, prescale, postscale, *listed)
    return reduce_now(listed, names, op, process_set, prescale, postscale)


def _names(listed: Sequence[torch.Tensor], name: Optional[str], process_set: ProcessSet) -> List[str]:
    tensors.check_all(listed)
    base = name_of("reducescatter", name, process_set)
    return [f"{base}_{index + 1}of{len(listed)}" for index in range(len(listed))]


def _begin(tensor: torch.Tensor, full_name: str, op: ReduceOp, process_set: ProcessSet, prescale: float,
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
