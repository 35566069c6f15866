"""What a rank is, as tensors that are asked for whenever a graph runs: after an elastic training has made the world
anew, the same graph sees other numbers."""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np
import tensorflow as tf

from ..common import basics, world
from ..common.process_sets import ProcessSet, global_process_set
from .execution import refuse_xla


def ask(question: Callable[[], int], name: Optional[str] = None) -> tf.Tensor:
    """The answer as an int32 without dimensions, taken when the tensor is computed."""
    if tf.executing_eagerly():
        return tf.constant(question(), tf.int32)
    refuse_xla(name or "asking for rank or size")
    answer = tf.numpy_function(lambda: np.int32(question()), [], tf.int32)
    answer.set_shape(())
    return tf.identity(answer, name=name)


def process_set_of(process_set_id: int) -> ProcessSet:
    """Errors: ValueError before init(), or where no set has this number."""
    made = world.get()
    if process_set_id == 0:
        return global_process_set
    found = made.process_sets.get(process_set_id)
    if found is None:
        raise ValueError(f"unknown process set number {process_set_id}; there are "
                         f"{', '.join(map(str, [0, *made.process_sets]))}")
    return found  # type: ignore[no-any-return]


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    """How many ranks there are, or a process set has."""
    return ask(lambda: len(process_set_of(process_set_id).registered_ranks()), name)


def rank_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.rank, name)


def local_rank_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.local_rank, name)


def local_size_op(name: Optional[str] = None) -> tf.Tensor:
    return ask(basics.local_size, name)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    """1 where this rank is in the process set, otherwise 0."""
    return ask(lambda: int(bool(process_set_of(process_set_id).included())), name)


def size_of(process_set: ProcessSet) -> tf.Tensor:
    return ask(lambda: len(process_set.registered_ranks()))
