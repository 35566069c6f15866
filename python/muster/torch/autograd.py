"""The collectives on tensors as autograd sees them. Each backward pass is a collective itself. Its name is that of the
forward pass with the suffix ".gradient", so that the ranks may run their backward passes in different orders.

As with Horovod, the gradients are derivatives of different sums: for allreduce and alltoall, of the sum of the losses
of all ranks; for allgather and broadcast, of their average; for reducescatter, of the sum times the number of ranks.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..common.handles import synchronize
from ..common.process_sets import ProcessSet
from ..common.reduce_ops import ReduceOp
from . import collectives, submission, tensors
from .submission import name_of, without_prefix

_Gradients = Tuple[Optional[torch.Tensor], ...]


def allreduce(tensor: torch.Tensor, name: Optional[str], op: ReduceOp, prescale: float, postscale: float,
              process_set: ProcessSet) -> torch.Tensor:
    """The reduction as a new tensor."""
    if _needs_gradient([tensor]):
        return Allreduce.apply(tensor, name_of("allreduce", name, process_set), op, prescale, postscale, process_set)
    return collectives.reduce_now(tensor, None, name, op, prescale, postscale, process_set)


def grouped_allreduce(listed: Sequence[torch.Tensor], name: Optional[str], op: ReduceOp, prescale: float,
                      postscale: float, process_set: ProcessSet) -> Sequence[torch.Tensor]:
    """The reductions of several tensors as new tensors."""
    full_name = name_of("allreduce", name, process_set)
    if _needs_gradient(listed):
        return GroupedAllreduce.apply(full_name, op, prescale, postscale, process_set, *listed)
    return collectives.reduce_group_now(listed, full_name, op, prescale, postscale, process_set)


def allgather(tensor: torch.Tensor, name: Optional[str], process_set: ProcessSet) -> torch.Tensor:
    """The tensors of all ranks, concatenated."""
    full_name = name_of("allgather", name, process_set)
    if _needs_gradient([tensor]):
        return Allgather.apply(tensor, full_name, process_set)
    pending, finish = collectives.begin_gather(tensor, full_name, process_set)
    return finish([pending.wait()])[0]


def grouped_allgather(listed: Sequence[torch.Tensor], name: Optional[str],
                      process_set: ProcessSet) -> List[torch.Tensor]:
    """allgather of each of several tensors."""
    full_name = name_of("allgather", name, process_set)
    if _needs_gradient(listed):
        return list(GroupedAllgather.apply(full_name, process_set, *listed))
    parts, finish = collectives.begin_group_gather(listed, full_name, process_set)
    return synchronize(submission.begin_all(  # type: ignore[return-value]
        lambda results: [whole for whole, _ in finish(results)], parts))


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str], process_set: ProcessSet) -> torch.Tensor:
    """The root's tensor as a new tensor."""
    if _needs_gradient([tensor]):
        return Broadcast.apply(tensor, root_rank, name_of("broadcast", name, process_set), process_set)
    tensors.check(tensor)
    return synchronize(collectives.begin_broadcast(  # type: ignore[return-value]
        tensor, torch.empty_like(tensor, requires_grad=False), root_rank, name_of("broadcast", name, process_set),
        process_set))


def alltoall(tensor: torch.Tensor, splits: Optional[collectives.Splits], name: Optional[str],
             process_set: ProcessSet) -> Tuple[torch.Tensor, torch.Tensor]:
    """The rows from all ranks, and the number of rows from each."""
    full_name = name_of("alltoall", name, process_set)
    if _needs_gradient([tensor]):
        return Alltoall.apply(tensor, splits, full_name, process_set)
    parts, finish = collectives.begin_alltoall(tensor, splits, full_name, process_set)
    return synchronize(submission.begin_all(finish, parts))  # type: ignore[return-value]


def reducescatter(listed: Sequence[torch.Tensor], names: Sequence[str], op: ReduceOp, process_set: ProcessSet,
                  prescale: float, postscale: float) -> Sequence[torch.Tensor]:
    """This rank's rows of the reduction of each tensor. `names` are full names, one for each tensor."""
    if _needs_gradient(listed):
        return Reducescatter.apply(names, op, process_set, prescale, postscale, *listed)
    return collectives.scatter_now(listed, names, op, process_set, prescale, postscale)


def _needs_gradient(listed: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(getattr(tensor, "requires_grad", False) for tensor in listed)


class Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str, op: ReduceOp, prescale: float, postscale: float,
                process_set: ProcessSet) -> torch.Tensor:
        ctx.arguments = (op, prescale, postscale, process_set)
        ctx.name = name
        return collectives.reduce_now(tensor, None, without_prefix("allreduce", name), op, prescale, postscale,
                                      process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> _Gradients:  # type: ignore[override]
        op, prescale, postscale, process_set = ctx.arguments
        reduced = allreduce(gradient.contiguous(), f"{ctx.name}.gradient", op, prescale, postscale, process_set)
        return reduced, None, None, None, None, None


class GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, op: ReduceOp, prescale: float, postscale: float, process_set: ProcessSet,
                *listed: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.arguments = (op, prescale, postscale, process_set)
        ctx.name = name
        return tuple(collectives.reduce_group_now(listed, name, op, prescale, postscale, process_set))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        op, prescale, postscale, process_set = ctx.arguments
        reduced = grouped_allreduce([gradient.contiguous() for gradient in gradients], f"{ctx.name}.gradient", op,
                                    prescale, postscale, process_set)
        return (None, None, None, None, None, *reduced)


class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str, process_set: ProcessSet) -> torch.Tensor:
        pending, finish = collectives.begin_gather(tensor.detach(), name, process_set)
        whole, rows = finish([pending.wait()])
        ctx.name, ctx.process_set, ctx.shape = name, process_set, tensor.shape
        ctx.place = _place_of(rows, process_set)
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> _Gradients:  # type: ignore[override]
        return _own_part(ctx.name, gradient, ctx.place, ctx.shape, ctx.process_set), None, None


class GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, process_set: ProcessSet, *listed: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        parts, finish = collectives.begin_group_gather([tensor.detach() for tensor in listed], name, process_set)
        wholes = finish([part.wait() for part in parts])
        ctx.name, ctx.process_set = name, process_set
        ctx.shapes = [tensor.shape for tensor in listed]
        ctx.places = [_place_of(rows, process_set) for _, rows in wholes]
        return tuple(whole for whole, _ in wholes)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        reduced = grouped_allreduce([gradient.contiguous() for gradient in gradients], f"{ctx.name}.gradient",
                                    ReduceOp.AVERAGE, 1.0, 1.0, ctx.process_set)
        parts = [whole.narrow(0, *place).reshape(shape)
                 for whole, place, shape in zip(reduced, ctx.places, ctx.shapes)]
        return (None, None, *parts)


class Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: str, process_set: ProcessSet) -> torch.Tensor:
        ctx.name, ctx.process_set, ctx.root_rank = name, process_set, root_rank
        return broadcast(tensor.detach(), root_rank, without_prefix("broadcast", name), process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> _Gradients:  # type: ignore[override]
        reduced = allreduce(gradient.contiguous(), f"{ctx.name}.gradient", ReduceOp.AVERAGE, 1.0, 1.0,
                            ctx.process_set)
        ranks = ctx.process_set.ranks
        is_root = ranks[ctx.process_set.rank()] == ctx.root_rank
        return (reduced if is_root else torch.zeros_like(reduced)), None, None, None


class Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Optional[collectives.Splits], name: str,
                process_set: ProcessSet) -> Tuple[torch.Tensor, torch.Tensor]:
        parts, finish = collectives.begin_alltoall(tensor.detach(), splits, name, process_set)
        output, received = finish([part.wait() for part in parts])
        ctx.name, ctx.process_set, ctx.received = name, process_set, received.tolist()
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: Any) -> _Gradients:  # type: ignore[override]
        returned, _ = alltoall(gradient.contiguous(), ctx.received, f"{ctx.name}.gradient", ctx.process_set)
        return returned, None, None, None


class Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, names: Sequence[str], op: ReduceOp, process_set: ProcessSet, prescale: float,
                postscale: float, *listed: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.names, ctx.process_set = names, process_set
        ctx.factor = prescale * postscale * (len(process_set.registered_ranks()) if op == ReduceOp.SUM else 1)
        return tuple(collectives.scatter_now([tensor.detach() for tensor in listed], names, op, process_set, prescale,
                                             postscale))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        gathered = grouped_allgather([(gradient * ctx.factor).contiguous() for gradient in gradients],
                                     f"{ctx.names[0]}.gradient", ctx.process_set)
        return (None, None, None, None, None, *gathered)


def _place_of(rows: Sequence[int], process_set: ProcessSet) -> Tuple[int, int]:
    rank = process_set.registered_rank()
    return sum(rows[:rank]), rows[rank]


def _own_part(name: str, gradient: torch.Tensor, place: Tuple[int, int], shape: torch.Size,
              process_set: ProcessSet) -> torch.Tensor:
    reduced = allreduce(gradient.contiguous(), f"{name}.gradient", ReduceOp.AVERAGE, 1.0, 1.0, process_set)
    return reduced.narrow(0, *place).reshape(shape)
