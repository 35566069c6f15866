"""allreduce and reducescatter: each rank gets the sum, average, minimum, maximum, product or Adasum of the tensors of
all ranks, or its rows of that.

Averages and scales are computed within the reduction, in double precision for integers and in single precision for
16-bit floats. All ranks get the same bits. reducescatter divides the first dimension among the ranks in their order; if
the division leaves a remainder, the first ranks get one row more each.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Average, choose
from . import autograd, collectives, submission, tensors
from .compression import Compression
from .submission import name_of


def allreduce_async(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                    op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to reduce `tensor` over the ranks; synchronize(handle) returns a new tensor.

    op: Average by default. prescale_factor, postscale_factor: factors before and after the reduction. name: the ranks
    match the operation by it; they must begin operations without a name in the same order.

    Errors: ValueError and TypeError for a tensor that cannot be reduced, or a name that is pending. synchronize()
    raises MismatchError if ranks differ in type, shape, op or factors, and HorovodInternalError if a rank is lost.
    """
    reduction = choose(op, average)
    tensors.check(tensor)
    return collectives.begin_reduce(
        tensor, torch.empty_like(tensor, requires_grad=False), name_of("allreduce", name, process_set), reduction,
        prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                     op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """As allreduce_async(), into the tensor itself, which the program must not use until synchronize()."""
    reduction = choose(op, average)
    return collectives.begin_reduce(tensor, tensor, name_of("allreduce", name, process_set), reduction,
                                    prescale_factor, postscale_factor, process_set)


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The reduction of the tensors of all ranks as a new tensor. Differentiable: the gradient is reduced likewise."""
    reduction = choose(op, average)
    compressed, context = compression.compress(tensor)
    reduced = autograd.allreduce(compressed, name, reduction, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, context)


def allreduce_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
               op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Reduces into the tensor itself and returns it. Autograd ignores it."""
    return collectives.reduce_now(tensor, tensor, name, choose(op, average), prescale_factor, postscale_factor,
                                  process_set)


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                            name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                            postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """Begins to reduce several tensors. The reduction starts once every rank has all of them. synchronize(handle)
    returns a list of new tensors."""
    reduction = choose(op, average)
    return collectives.begin_group_reduce(tensors, None, name_of("allreduce", name, process_set), reduction,
                                          prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                             name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                             postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """As grouped_allreduce_async(), into the tensors themselves."""
    reduction = choose(op, average)
    return collectives.begin_group_reduce(tensors, tensors, name_of("allreduce", name, process_set), reduction,
                                          prescale_factor, postscale_factor, process_set)


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                      compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """The reductions of several tensors, carried out together, as new tensors. Differentiable."""
    reduction = choose(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduced = autograd.grouped_allreduce([tensor for tensor, _ in pairs], name, reduction, prescale_factor,
                                         postscale_factor, process_set)
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                       op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """Reduces several tensors in place and returns them. Autograd ignores it."""
    reduction = choose(op, average)
    handle = collectives.begin_group_reduce(tensors, tensors, name_of("allreduce", name, process_set), reduction,
                                            prescale_factor, postscale_factor, process_set)
    return synchronize(handle)  # type: ignore[return-value]


def reducescatter_async(tensor: torch.Tensor, name: Optional[str] = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """Begins to reduce `tensor` over the ranks; synchronize(handle) returns this rank's rows as a new tensor.

    Errors: as allreduce_async(); ValueError for a tensor without dimensions; NotImplementedError for Adasum, which is
    defined on whole tensors.
    """
    pending, route = collectives.begin_scatter(tensor, name_of("reducescatter", name, process_set), choose(op),
                                               process_set, prescale_factor, postscale_factor)
    return submission.begin_all(lambda _: route.bring_back(), [pending])


def reducescatter(tensor: torch.Tensor, name: Optional[str] = None, compression: Any = Compression.none,
                  op: int = Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """This rank's rows of the reduction. Differentiable: the gradients of all ranks are gathered, scaled like the
    forward pass, and multiplied by the number of ranks for a sum."""
    compressed, context = compression.compress(tensor)
    output = autograd.reducescatter([compressed], [name_of("reducescatter", name, process_set)], choose(op),
                                    process_set, prescale_factor, postscale_factor)[0]
    return compression.decompress(output, context)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """Begins reducescatter of each of several tensors; synchronize(handle) returns the list."""
    begun = [collectives.begin_scatter(tensor, full_name, choose(op), process_set, prescale_factor, postscale_factor)
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
    outputs = autograd.reducescatter([tensor for tensor, _ in pairs], names, choose(op), process_set, prescale_factor,
                                     postscale_factor)
    return [compression.decompress(output, context) for output, (_, context) in zip(outputs, pairs)]


def _names(listed: Sequence[torch.Tensor], name: Optional[str], process_set: ProcessSet) -> List[str]:
    tensors.check_all(listed)
    base = name_of("reducescatter", name, process_set)
    return [f"{base}_{index + 1}of{len(listed)}" for index in range(len(listed))]
