"""Compression of tensors in transit: the base class of the frameworks' compressors."""

from __future__ import annotations

from typing import Any, Optional, Tuple


class Compressor:
    """Makes a tensor smaller before it is reduced, and restores it afterwards. Derive from it for a compressor of your
    own.

    `wire_type` is the framework's type in which float tensors are sent, if the conversion is all that is done; an
    optimizer may convert many tensors at once then.
    """

    wire_type: Optional[Any] = None

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """Returns the compressed tensor, and the context for decompress()."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends all tensors unchanged."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor
