"""TensorFlow's errors turned back into the ones that Python raised inside of a graph.

What a callback raises reaches the caller of a tf.function, or of model.fit(), as an error of TensorFlow with the
exception's name and sentence in its text.
"""

from __future__ import annotations

import contextlib
import re
from typing import Iterator, Optional

import tensorflow as tf

from ..common.exceptions import HorovodInternalError, MismatchError

_RAISED = re.compile(r"\b(HorovodInternalError|MismatchError): (.*)$", re.MULTILINE)
_RANK = re.compile(r"rank (\d+)")


def as_own(error: BaseException) -> Optional[Exception]:
    """The exception of this package that lies behind an error of TensorFlow; None where it is another's."""
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
    """Within the block, errors that TensorFlow has wrapped come out as they were raised."""
    try:
        yield
    except tf.errors.OpError as error:
        own = as_own(error)
        if own is None:
            raise
        raise own from error
