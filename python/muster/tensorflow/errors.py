"""Converts the package's exceptions to errors of TensorFlow, and back.

Programs written for Horovod catch errors of TensorFlow: FailedPreconditionError if ranks disagree, InvalidArgumentError
for an invalid argument. In eager mode an exception here is both: an exception of this package, or ValueError, and
TensorFlow's. A failure inside of a graph reaches the caller as TensorFlow's error only, whose message begins with the
name of this package's exception.
"""

from __future__ import annotations

import contextlib
import re
from typing import Iterator, Optional

import tensorflow as tf

from ..common.exceptions import HorovodInternalError, MismatchError

_RAISED = re.compile(r"\b(HorovodInternalError|MismatchError): (.*)$", re.MULTILINE)
_RANK = re.compile(r"rank (\d+)")


class OperationMismatchError(MismatchError, tf.errors.FailedPreconditionError):  # type: ignore[misc]
    """The ranks disagree about an operation."""

    def __init__(self, words: str) -> None:
        MismatchError.__init__(self, words)
        tf.errors.FailedPreconditionError.__init__(self, None, None, words)


class OperationValueError(ValueError, tf.errors.InvalidArgumentError):  # type: ignore[misc]
    """An invalid argument of an operation."""

    def __init__(self, words: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, words)


def code_of(error: BaseException) -> int:
    """TensorFlow's error code for an exception of this package, or of Python."""
    if isinstance(error, tf.errors.OpError):
        code: int = error.error_code
        return code
    for kind, code in ((MismatchError, tf.errors.FAILED_PRECONDITION), (ValueError, tf.errors.INVALID_ARGUMENT),
                       (TypeError, tf.errors.INVALID_ARGUMENT), (NotImplementedError, tf.errors.UNIMPLEMENTED),
                       (KeyboardInterrupt, tf.errors.CANCELLED)):
        if isinstance(error, kind):
            return code
    return int(tf.errors.UNKNOWN)


def text_of(error: BaseException) -> str:
    """The text that as_own() parses."""
    return f"{_name_of(error)}: {error}"


def _name_of(error: BaseException) -> str:
    for kind in (MismatchError, HorovodInternalError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def as_tensorflow(error: Exception) -> Exception:
    """The exception to raise in eager mode: TensorFlow's kind if there is one."""
    if isinstance(error, tf.errors.OpError):
        return error
    if isinstance(error, MismatchError):
        return OperationMismatchError(str(error))
    if isinstance(error, ValueError):
        return OperationValueError(str(error))
    return error


def as_own(error: BaseException) -> Optional[Exception]:
    """The exception of this package behind an error of TensorFlow; None for an error with another origin."""
    if isinstance(error, MismatchError):
        return error
    if not isinstance(error, tf.errors.OpError):
        return None
    found = _RAISED.search(str(error))
    if found is None:
        return None
    if found[1] == "MismatchError":
        return MismatchError(found[2])
    named = _RANK.search(found[2])
    return HorovodInternalError(found[2], rank=int(named[1]) if named else None)


@contextlib.contextmanager
def raised_as_own() -> Iterator[None]:
    """Within the block, errors that TensorFlow has wrapped are raised as their original exceptions."""
    try:
        yield
    except tf.errors.OpError as error:
        own = as_own(error)
        if own is None or own is error:
            raise
        raise own from error
