"""Compression: tensors that travel with fewer bits than they are computed with."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import tensorflow as tf


class Compressor:
    """What makes a tensor smaller before it is reduced, and whole again after. Derive from it for one of your own."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> Tuple[tf.Tensor, Any]:
        """What travels, and whatever decompress() needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        raise NotImplementedError


class NoneCompressor(Compressor):
    """All tensors as they are."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> Tuple[tf.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        return tensor


class _CastCompressor(Compressor):
    """Floats with 16 bits; other types as they are. They are added in single precision all the same."""

    wire_type: tf.DType = tf.float16

    @classmethod
    def compress(cls, tensor: tf.Tensor) -> Tuple[tf.Tensor, Optional[tf.DType]]:  # type: ignore[override]
        if not tensor.dtype.is_floating:
            return tensor, None
        return tf.cast(tensor, cls.wire_type), tensor.dtype

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(_CastCompressor):
    """Half precision: 11 bits of precision, nothing above 65504."""


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 bits of precision, the range of single precision."""

    wire_type = tf.bfloat16


class Compression:
    """What `compression=` takes."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
