"""Compression: tensors travel with fewer bits than the program computes with."""

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


class Compression:
    """The values for `compression=`."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
