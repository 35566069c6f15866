"""Compression: tensors are sent with fewer bits than they are computed with."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import tensorflow as tf

from ..common.compression import Compressor, NoneCompressor


class _CastCompressor(Compressor):
    """Sends floats with 16 bits, and other types unchanged. They are still added in single precision."""

    @classmethod
    def compress(cls, tensor: tf.Tensor) -> Tuple[tf.Tensor, Optional[tf.DType]]:  # type: ignore[override]
        if not tensor.dtype.is_floating:
            return tensor, None
        return tf.cast(tensor, cls.wire_type), tensor.dtype

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(_CastCompressor):
    """Half precision: 11 significant bits, values up to 65504."""

    wire_type = tf.float16


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 significant bits, the range of single precision."""

    wire_type = tf.bfloat16


class Compression:
    """The values of `compression=`."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
