"""Compression of tensors while they travel: what the frameworks' own compressors derive from."""

from __future__ import annotations

from typing import Any, Optional, Tuple


class Compressor:
    """What makes a tensor smaller before it is reduced, and whole again after. Derive from it for one of your own.

    `wire_type` is the framework's type that a tensor of floats travels in, where that is all that is done; an
    optimizer may convert many at once then.
    """

    wire_type: Optional[Any] = None

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """What travels, and whatever decompress() needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        raise NotImplementedError


class NoneCompressor(Compressor):
    """All tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor
