"""The names by which the ranks find each other's operations."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from ..common import handles
from ..common.process_sets import ProcessSet
from .execution import unique_name


def name_of(operation: str, name: Optional[str], process_set: ProcessSet, tensor: Any = None) -> str:
    """The identity of an operation.

    Eagerly, one without a name is counted: the ranks of a set have to run their unnamed ones in the same order. In a
    graph it is called after its first input, which is the same on ranks that build the same graph, in whatever order
    it runs and however often it is traced.
    """
    if tf.executing_eagerly():
        return handles.next_name(operation, process_set) if name is None else f"{operation}.{name}"
    return unique_name(f"{operation}.{name if name is not None else getattr(tensor, 'name', 'noname')}")


def name_of_gradient(full_name: str) -> Optional[str]:
    """What the gradient of an operation is called. Eagerly it may be computed more than once: it is counted."""
    return None if tf.executing_eagerly() else f"{full_name}.gradient"
