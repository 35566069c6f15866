"""The exceptions for the library's error codes."""

from __future__ import annotations

from typing import Any

from .._native import abi
from .exceptions import ConfigurationError, HorovodInternalError, MismatchError


def error_of(loaded: Any, code: int) -> Exception:
    """The exception for the last failure of the library on this thread."""
    words = loaded.muster_last_error().decode(errors="replace")
    if code == abi.BAD_ARGUMENT:
        return ValueError(words)
    if code == abi.MISMATCH:
        return MismatchError(words)
    if code in (abi.CONFIGURATION, abi.AUTHENTICATION):
        return ConfigurationError(words)
    rank = loaded.muster_last_error_rank()
    host = loaded.muster_last_error_host().decode(errors="replace")
    return HorovodInternalError(words, rank=rank if rank >= 0 else None, host=host)


def check(loaded: Any, code: int) -> None:
    if code != abi.OK:
        raise error_of(loaded, code)
