"""Batch normalization over the batches of all ranks, as if they were one batch."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ..common.basics import size
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Sum
from .reducing import allreduce
from .gathering import allgather


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of [N, C, ...] whose mean and variance are those of the batches of all ranks together. The
    batches may have different sizes, and may be empty on some ranks.

    The gradients of weight and bias are those of this rank's batch: the optimizer averages them with all others. In
    evaluation, and with one rank, it is torch.nn.BatchNorm. The input may be on any device.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: Optional[float] = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_set: ProcessSet = global_process_set) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:  # noqa: A002  (the name is the base class's)
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm expects at least 2 dimensions, [N, C, ...], but got {input.dim()}")
        if input.size(1) != self.num_features:
            raise ValueError(f"SyncBatchNorm was made for {self.num_features} channels, but got {input.size(1)}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        self._check_input_dim(input)
        uses_batch = self.training or not self.track_running_stats
        if not uses_batch or size() == 1:
            return super().forward(input)
        output, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps, self.process_set)
        if self.training and self.track_running_stats:
            self._follow(mean, variance, int(count))
        return output

    def _follow(self, mean: torch.Tensor, variance: torch.Tensor, count: int) -> None:
        """Updates the running statistics; the running variance is the unbiased one."""
        self.num_batches_tracked.add_(1)  # type: ignore[union-attr,operator]
        share = self.momentum
        if share is None:
            share = 1.0 / float(self.num_batches_tracked)  # type: ignore[arg-type]
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)  # type: ignore[union-attr]
            unbiased = variance * (count / max(count - 1, 1))
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)  # type: ignore[union-attr]


class _Normalise(torch.autograd.Function):
    """Forward: one allgather of each rank's mean, squared deviation and count. Backward: one allreduce."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: Optional[torch.Tensor],  # noqa: A002
                bias: Optional[torch.Tensor], eps: float, process_set: ProcessSet) -> Tuple[torch.Tensor, ...]:
        wide = _wide(input)
        mean, variance, count = _statistics(wide, process_set)
        scale = torch.rsqrt(variance + eps)
        normal = (wide - _across(mean, wide)) * _across(scale, wide)
        output = normal
        if weight is not None:
            output = output * _across(weight.to(wide.dtype), wide)
        if bias is not None:
            output = output + _across(bias.to(wide.dtype), wide)
        ctx.save_for_backward(normal, weight, scale)
        ctx.count, ctx.process_set = count, process_set
        ctx.types = input.dtype, weight.dtype if weight is not None else None
        statistics = mean, variance, torch.tensor(count)
        ctx.mark_non_differentiable(*statistics)
        return (output.to(input.dtype), *statistics)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor,  # type: ignore[override]
                 *_: Any) -> Tuple[Optional[torch.Tensor], ...]:
        normal, weight, scale = ctx.saved_tensors
        gradient = gradient.to(normal.dtype)
        sums = torch.cat([_sum(gradient), _sum(gradient * normal)])
        # Before any scaling by the weight: the sums that all ranks exchange, and the rank's own gradients.
        total = allreduce(sums, op=Sum, process_set=ctx.process_set) / ctx.count
        own_bias, own_weight = sums.chunk(2)
        mean_gradient, mean_product = total.chunk(2)
        factor = scale if weight is None else scale * weight.to(scale.dtype)
        back = (gradient - _across(mean_gradient, gradient) - normal * _across(mean_product, gradient))
        back = back * _across(factor, gradient)
        input_type, weight_type = ctx.types
        return (back.to(input_type) if ctx.needs_input_grad[0] else None,
                own_weight.to(weight_type) if ctx.needs_input_grad[1] else None,
                own_bias.to(weight_type) if ctx.needs_input_grad[2] else None, None, None)


def _statistics(wide: torch.Tensor, process_set: ProcessSet) -> Tuple[torch.Tensor, torch.Tensor, int]:
    """Mean, variance and number of values of each channel, over all ranks.

    Each rank computes its mean and its squared deviations from it; they are combined without the cancellation of sums
    of squares (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979).
    """
    channels = wide.shape[1]
    count = wide.numel() // max(channels, 1)
    mean = _sum(wide) / max(count, 1)
    deviation = _sum((wide - _across(mean, wide)) ** 2)
    # In double precision: single precision counts exactly only up to 2^24.
    own = torch.cat([mean, deviation, mean.new_tensor([0.0])]).double()
    own[-1] = count
    ranks = allgather(own.unsqueeze(0), process_set=process_set)
    means, deviations, counts = ranks[:, :channels], ranks[:, channels:-1], ranks[:, -1:]
    total = counts.sum()
    joint = (means * counts).sum(0) / total
    deviation = (deviations + counts * (means - joint) ** 2).sum(0)
    return joint.to(wide.dtype), (deviation / total).to(wide.dtype), int(total)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """16-bit floats are converted to single precision for computations."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of each channel."""
    return tensor.sum([dimension for dimension in range(tensor.dim()) if dimension != 1])


def _across(channels: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """One value per channel, broadcast over [N, C, ...]."""
    return channels.view(1, -1, *[1] * (like.dim() - 2))
