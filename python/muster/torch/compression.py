"""Compression: tensors travel with fewer bits than the program computes with.

`none`, `fp16` and `bf16` convert each tensor and work in every operation. `int8` and `powersgd` have a memory, in which
they keep what a step did not send; the next step sends it (error feedback). They work in DistributedOptimizer only.

    Karimireddy et al.: Error Feedback Fixes SignSGD and other Gradient Compression Schemes. ICML 2019.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from ..common.compression import Compressor, NoneCompressor


class _CastCompressor(Compressor):
    """Floats travel with 16 bits, other types unchanged. Sums are computed in single precision all the same."""

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:  # type: ignore[override]
        if not tensor.dtype.is_floating_point:
            return tensor, None
        return tensor.to(cls.wire_type), tensor.dtype  # type: ignore[arg-type]

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    """Half precision: 11 bits of precision, nothing above 65504."""

    wire_type = torch.float16


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 bits of precision, the range of single precision."""

    wire_type = torch.bfloat16


class WithFeedback(Compressor):
    """A compression of whole buckets of gradients, which keeps its errors (compressed_buckets.py)."""

    #: Its name in messages, which is equal on all ranks.
    text: str

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:  # type: ignore[override]
        raise ValueError(f"{cls.__name__} keeps the error of each gradient from step to step: pass it to "
                         f"DistributedOptimizer; single operations can use Compression.fp16 or bf16")

    @classmethod
    def decompress(cls, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:  # type: ignore[override]
        raise ValueError(f"{cls.__name__} works in DistributedOptimizer only")


class Int8Compressor(WithFeedback):
    """8 bits for each element and a scale for every 512, both before the sum and after it: a quarter of the bytes of
    single precision. Ranks add in single precision, each rank a part of every bucket.

        Tang et al.: 1-bit Adam: Communication Efficient Large-Scale Training with Adam's Convergence Speed. ICML 2021,
        section 3 (the compressed all-reduce with errors on both sides).
    """

    text = "int8"


class PowerSGDCompressor(WithFeedback):
    """Sends a gradient of a x b as two factors of a x rank and b x rank. Gradients of fewer than two dimensions, and
    those that would not become smaller, are sent unchanged.

        T. Vogels, S. P. Karimireddy, M. Jaggi: PowerSGD: Practical Low-Rank Gradient Compression for Distributed
        Optimization. NeurIPS 2019.
    """

    def __init__(self, rank: int = 4) -> None:
        """Errors: ValueError."""
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
            raise ValueError(f"the rank of PowerSGD is {rank!r}: it must be a whole number above 0")
        self.rank = rank
        self.text = f"PowerSGD of rank {rank}"


class Compression:
    """The values for `compression=`. `powersgd` is called: Compression.powersgd(rank=4)."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    int8 = Int8Compressor
    powersgd = PowerSGDCompressor


def has_feedback(compression: Any) -> bool:
    return isinstance(compression, WithFeedback) or (isinstance(compression, type)
                                                     and issubclass(compression, WithFeedback))
