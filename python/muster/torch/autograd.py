"""The operations as autograd sees them. Each backward pass is an operation itself, under the name of the forward pass
with ".gradient" behind it, so that ranks whose backward passes run in different order find each other.

What a gradient is of differs, as programs expect it: for allreduce and alltoall of the sum of all ranks' losses; for
allgather and broadcast of their average; for reducescatter of the sum times the number of ranks.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch

from ..common.process_sets import ProcessSet
from ..common.reduce_ops import ReduceOp
from . import gathering, reducing, scattering
from .submission import without_prefix

_Gradients = Tuple[Optional[torch.Tensor], ...]


class Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str, op: ReduceOp, prescale: float, postscale: float,
                process_set: ProcessSet) -> torch.Tensor:
        ctx.arguments = (op, prescale, postscale, process_set)
        ctx.name = name
        return reducing.reduce_now(tensor, None, without_prefix("allreduce", name), op, prescale, postscale,
                                   process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> _Gradients:  # type: ignore[override]
        op, prescale, postscale, process_set = ctx.arguments
        reduced = reducing.allreduce(gradient.contiguous(), name=f"{ctx.name}.gradient", op=op,
                                     prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)
        return reduced, None, None, None, None, None


class GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, op: ReduceOp, prescale: float, postscale: float, process_set: ProcessSet,
                *listed: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.arguments = (op, prescale, postscale, process_set)
        ctx.name = name
        return tuple(reducing.reduce_group_now(listed, name, op, prescale, postscale, process_set))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        op, prescale, postscale, process_set = ctx.arguments
        reduced = reducing.grouped_allreduce(
            [gradient.contiguous() for gradient in gradients], name=f"{ctx.name}.gradient", op=op,
            prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)
        return (None, None, None, None, None, *reduced)


class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str, process_set: ProcessSet) -> torch.Tensor:
        pending, finish = gathering.begin_gather(tensor.detach(), name, process_set)
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
        parts, finish = gathering.begin_group_gather([tensor.detach() for tensor in listed], name, process_set)
        wholes = finish([part.wait() for part in parts])
        ctx.name, ctx.process_set = name, process_set
        ctx.shapes = [tensor.shape for tensor in listed]
        ctx.places = [_place_of(rows, process_set) for _, rows in wholes]
        return tuple(whole for whole, _ in wholes)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        reduced = reducing.grouped_allreduce([gradient.contiguous() for gradient in gradients],
                                             name=f"{ctx.name}.gradient", op=ReduceOp.AVERAGE,
                                             process_set=ctx.process_set)
        parts = [whole.narrow(0, *place).reshape(shape)
                 for whole, place, shape in zip(reduced, ctx.places, ctx.shapes)]
        return (None, None, *parts)


class Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: str, process_set: ProcessSet) -> torch.Tensor:
        ctx.name, ctx.process_set, ctx.root_rank = name, process_set, root_rank
        return gathering.broadcast(tensor.detach(), root_rank, without_prefix("broadcast", name), process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> _Gradients:  # type: ignore[override]
        reduced = reducing.allreduce(gradient.contiguous(), name=f"{ctx.name}.gradient", op=ReduceOp.AVERAGE,
                                     process_set=ctx.process_set)
        ranks = ctx.process_set.ranks
        is_root = ranks[ctx.process_set.rank()] == ctx.root_rank
        return (reduced if is_root else torch.zeros_like(reduced)), None, None, None


class Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Optional[gathering.Splits], name: str,
                process_set: ProcessSet) -> Tuple[torch.Tensor, torch.Tensor]:
        parts, finish = gathering.begin_alltoall(tensor.detach(), splits, name, process_set)
        output, received = finish([part.wait() for part in parts])
        ctx.name, ctx.process_set, ctx.received = name, process_set, received.tolist()
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: Any) -> _Gradients:  # type: ignore[override]
        returned, _ = gathering.alltoall(gradient.contiguous(), ctx.received, f"{ctx.name}.gradient",
                                         ctx.process_set)
        return returned, None, None, None


class Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, names: Sequence[str], op: ReduceOp, process_set: ProcessSet, prescale: float,
                postscale: float, *listed: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.names, ctx.process_set = names, process_set
        ctx.factor = prescale * postscale * (len(process_set.registered_ranks()) if op == ReduceOp.SUM else 1)
        return tuple(scattering.reduce_now([tensor.detach() for tensor in listed], names, op, process_set, prescale,
                                              postscale))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> _Gradients:  # type: ignore[override]
        gathered = gathering.grouped_allgather([(gradient * ctx.factor).contiguous() for gradient in gradients],
                                               f"{ctx.names[0]}.gradient", ctx.process_set)
        return (None, None, None, None, None, *gathered)


def _place_of(rows: Sequence[int], process_set: ProcessSet) -> Tuple[int, int]:
    rank = process_set.registered_rank()
    return sum(rows[:rank]), rows[rank]


def _own_part(name: str, gradient: torch.Tensor, place: Tuple[int, int], shape: torch.Size,
              process_set: ProcessSet) -> torch.Tensor:
    reduced = reducing.allreduce(gradient.contiguous(), name=f"{name}.gradient", op=ReduceOp.AVERAGE,
                                 process_set=process_set)
    return reduced.narrow(0, *place).reshape(shape)
