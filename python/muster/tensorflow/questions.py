"""The rank and size of a process as tensors that are evaluated at each run of a graph: after an elastic training has
built a new world, the same graph has the new numbers."""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np
import tensorflow as tf

from ..common import basics, world
from ..common.process_sets import ProcessSet, global_process_set
from .execution import refuse_xla


def ask(question: Callable[[], int], name: Optional[str] = None) -> tf.Tensor:
    """The answer as an int32 scalar, evaluated whenever the tensor is computed."""
    if tf.executing_eagerly():
        return tf.constant(question(), tf.int32)
    refuse_xla(name or "asking for rank or size")
    answer = tf.numpy_function(lambda: np.int32(question()), [], tf.int32)
    answer.set_shape(())
    return tf.identity(answer, name=name)


def process_set_of(process_set_id: int) -> ProcessSet:
    """Errors: ValueError before init(), or if no set has this number."""
    made = world.get()
    if process_set_id == 0:
        return global_process_set
    found = made.process_sets.get(process_set_id)
    if found is None:
        raise ValueError(f"unknown process set number {process_set_id}; there are "
                         f"{', '.join(map(str, [0, *made.process_sets]))}")
    return found  # type: ignore[no-any-return]


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    """The number of ranks in the world, or in a process set."""
    return ask(lambda: len(process_set_of(process_set_id).registered_ranks()), name)


def rank_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.rank, name)


def local_rank_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.local_rank, name)


def local_size_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.local_size, name)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    """1 if this rank is in the process set, otherwise 0."""
    return ask(lambda: int(bool(process_set_of(process_set_id).included())), name)


def size_of(process_set: ProcessSet) -> tf.Tensor:
    return ask(lambda: len(process_set.registered_ranks()))
