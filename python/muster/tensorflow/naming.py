"""The names by which the ranks match their operations."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from ..common import handles
from ..common.process_sets import ProcessSet
from .execution import unique_name


def name_of(operation: str, name: Optional[str], process_set: ProcessSet, tensor: Any = None) -> str:
    """The identity of an operation.

    In eager mode, operations without a name are numbered: the ranks of a set must run them in the same order. In a
    graph, an operation is named after its first input. That name is the same on ranks that build the same graph,
    whatever the order of execution and however often the graph is traced.
    """
    if tf.executing_eagerly():
        return handles.next_name(operation, process_set) if name is None else f"{operation}.{name}"
    return unique_name(f"{operation}.{name if name is not None else getattr(tensor, 'name', 'noname')}")


def name_of_gradient(full_name: str) -> Optional[str]:
    """The name of an operation's gradient. In eager mode it may be computed more than once: then it is numbered."""
    return None if tf.executing_eagerly() else f"{full_name}.gradient"
