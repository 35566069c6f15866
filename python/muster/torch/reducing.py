"""allreduce: every rank gets the sum, average, smallest, largest, product or Adasum of all ranks' tensors.

Averages and scales are applied within the reduction, in double for integers and in single precision for 16-bit
floats. All ranks get the same bits.
"""

from __future__ import annotations

from typing import Any, FrozenSet, List, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp, choose
from . import submission, tensors
from .compression import Compression
from .submission import Route, name_of


def allreduce_async(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                    op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> int:
    """Begins to reduce `tensor` over the ranks; synchronize(handle) gives a new tensor.

    op: Average where nothing is said. prescale_factor, postscale_factor: multiply before and after. name: by which
    the ranks find each other; without one they have to begin their unnamed operations in the same order.

    Errors: ValueError and TypeError for a tensor that cannot be reduced, or a name in flight. synchronize() raises
    MismatchError where ranks differ in type, shape, op or factors, and HorovodInternalError where a rank is lost.
    """
    reduction = choose(op, average)
    tensors.check(tensor)
    return _begin(tensor, torch.empty_like(tensor, requires_grad=False), name_of("allreduce", name, process_set),
                  reduction, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                     op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """As allreduce_async(), into the tensor itself, which is left alone until synchronize()."""
    reduction = choose(op, average)
    return _begin(tensor, tensor, name_of("allreduce", name, process_set), reduction, prescale_factor, postscale_factor,
                  process_set)


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The reduction of all ranks' tensors as a new tensor. Differentiable: the gradient is reduced alike."""
    reduction = choose(op, average)
    compressed, context = compression.compress(tensor)
    if _needs_gradient(compressed):
        from .autograd import Allreduce
        reduced = Allreduce.apply(compressed, name_of("allreduce", name, process_set), reduction, prescale_factor,
                                  postscale_factor, process_set)
    else:
        reduced = reduce_now(compressed, None, name, reduction, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, context)


def allreduce_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
               op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Reduces into the tensor itself and returns it. Not seen by autograd."""
    return reduce_now(tensor, tensor, name, choose(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                            name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                            postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """Begins to reduce several tensors, which start once all of them are there on every rank. synchronize(handle)
    gives a list of new tensors."""
    reduction = choose(op, average)
    return _begin_group(tensors, None, name_of("allreduce", name, process_set), reduction, prescale_factor,
                        postscale_factor, process_set)


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                             name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                             postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """As grouped_allreduce_async(), into the tensors themselves."""
    reduction = choose(op, average)
    return _begin_group(tensors, tensors, name_of("allreduce", name, process_set), reduction, prescale_factor,
                        postscale_factor, process_set)


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                      compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """The reductions of several tensors as new tensors, which are carried out together. Differentiable."""
    reduction = choose(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [tensor for tensor, _ in pairs]
    if any(map(_needs_gradient, compressed)):
        from .autograd import GroupedAllreduce
        reduced: Sequence[torch.Tensor] = GroupedAllreduce.apply(
            name_of("allreduce", name, process_set), reduction, prescale_factor, postscale_factor, process_set,
            *compressed)
    else:
        reduced = reduce_group_now(compressed, name_of("allreduce", name, process_set), reduction, prescale_factor,
                                   postscale_factor, process_set)
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                       op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """Reduces several tensors into themselves and returns them. Not seen by autograd."""
    reduction = choose(op, average)
    handle = _begin_group(tensors, tensors, name_of("allreduce", name, process_set), reduction, prescale_factor,
                          postscale_factor, process_set)
    return synchronize(handle)  # type: ignore[return-value]


def reduce_now(tensor: torch.Tensor, output: Optional[torch.Tensor], name: Optional[str], op: ReduceOp,
               prescale: float, postscale: float, process_set: ProcessSet) -> torch.Tensor:
    """Reduces into `output`, a new tensor where it is None, and waits."""
    if name is None:
        return _reduce_nameless(tensor, output, op, prescale, postscale, process_set)
    try:
        if output is None:
            output = torch.empty_like(tensor, requires_grad=False)
        key = (process_set._session, name, int(op), prescale, postscale, tensor.dtype, tensor.shape,
               tensor.data_ptr(), output.data_ptr())
        prepared = submission.find(key) if tensor.is_contiguous() else None
    except (RuntimeError, TypeError, AttributeError, NotImplementedError):
        tensors.check(tensor)
        raise
    if prepared is None:
        type_name = tensors.check(tensor)
        full_name = f"allreduce.{name}"
        if not tensor.is_cpu:
            return synchronize(_begin(  # type: ignore[return-value]
                tensor, output, full_name, op, prescale, postscale, process_set))
        prepared = operations.prepare(
            "all_reduce", full_name, process_set=process_set, buffers=[_buffer(tensor, output)], type=type_name, op=op,
            prescale=prescale, postscale=postscale, shape=tensors.shape_text(type_name, tensor.shape))
        submission.remember(key, prepared)
    # Where Ctrl-C ends the wait the ranks still write here, and nobody else may hold the tensors any more.
    prepared.run((tensor, output))
    return output


def _reduce_nameless(tensor: torch.Tensor, output: Optional[torch.Tensor], op: ReduceOp, prescale: float,
                     postscale: float, process_set: ProcessSet) -> torch.Tensor:
    """As reduce_now(), under a name that will not come again."""
    type_name = tensors.check(tensor)
    if output is None:
        output = torch.empty_like(tensor, requires_grad=False)
    full_name = name_of("allreduce", None, process_set)
    if not tensor.is_cpu:
        return synchronize(_begin(  # type: ignore[return-value]
            tensor, output, full_name, op, prescale, postscale, process_set))
    operations.run("all_reduce", full_name, process_set=process_set, buffers=(_buffer(tensor, output),), type=type_name,
                   op=op, prescale=prescale, postscale=postscale, shape=tensors.shape_text(type_name, tensor.shape),
                   keep=(tensor, output))
    return output


def reduce_group_now(listed: Sequence[torch.Tensor], full_name: str, op: ReduceOp, prescale: float, postscale: float,
                     process_set: ProcessSet) -> List[torch.Tensor]:
    """Reduces several into new tensors, and waits."""
    return synchronize(_begin_group(  # type: ignore[return-value]
        listed, None, full_name, op, prescale, postscale, process_set))


def _begin(tensor: torch.Tensor, output: torch.Tensor, full_name: str, op: ReduceOp, prescale: float,
                 postscale: float, process_set: ProcessSet) -> int:
    type_name = tensors.check(tensor)
    if tensor.is_cpu:
        return submission.begin(
            lambda _: output, "all_reduce", full_name, process_set=process_set, buffers=(_buffer(tensor, output),),
            type=type_name, op=op, prescale=prescale, postscale=postscale,
            shape=tensors.shape_text(type_name, tensor.shape), keep=(tensor, output))
    route = Route(tensor, output)
    return submission.begin(
        lambda _: route.bring_back(), "all_reduce", full_name, process_set=process_set,
        buffers=[_buffer(route.source, route.target)], type=type_name, op=op, prescale=prescale, postscale=postscale,
        shape=tensors.shape_text(type_name, tensor.shape), keep=route)


def _begin_group(listed: Sequence[torch.Tensor], outputs: Optional[Sequence[torch.Tensor]], full_name: str,
                       op: ReduceOp, prescale: float, postscale: float, process_set: ProcessSet) -> int:
    types = tensors.check_all(listed)
    apart: FrozenSet[int] = frozenset() if outputs is None else _sharing_memory(listed)
    if outputs is None:
        outputs = [torch.empty_like(tensor, requires_grad=False) for tensor in listed]
    routes = [Route(tensor, output, index in apart) for index, (tensor, output) in enumerate(zip(listed, outputs))]
    parts = []
    together = _by_type(types)
    for type_name, members in together:
        shape = ", ".join(tensors.shape_text(type_name, listed[i].shape) for i in members)
        parts.append(operations.submit(
            "all_reduce", full_name if len(together) == 1 else f"{full_name}.{type_name}", process_set=process_set,
            buffers=[_buffer(routes[i].source, routes[i].target) for i in members], type=type_name, op=op,
            prescale=prescale, postscale=postscale, shape=shape, keep=routes))
    return submission.begin_all(lambda _: [route.bring_back() for route in routes], parts)


def _sharing_memory(listed: Sequence[torch.Tensor]) -> FrozenSet[int]:
    """Which of them lie, in part or altogether, where others do: a weight that is tied to another is twice in the list
    of gradients. Reduced where they are, such would be reduced more than once, or in part."""
    found, end = set(), 0
    for index in sorted(range(len(listed)), key=lambda each: listed[each].data_ptr()):
        begin, length = listed[index].data_ptr(), listed[index].numel() * listed[index].element_size()
        if length and begin < end:
            found.add(index)
        end = max(end, begin + length)
    return frozenset(found)


def _by_type(types: Sequence[str]) -> List[Tuple[str, List[int]]]:
    """Which of them have the same type: what is reduced together has to."""
    members: "dict[str, List[int]]" = {}
    for index, type_name in enumerate(types):
        members.setdefault(type_name, []).append(index)
    return list(members.items())


def _buffer(source: torch.Tensor, target: torch.Tensor) -> Tuple[int, int, int]:
    return source.data_ptr(), target.data_ptr(), source.numel()


def _needs_gradient(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled()
