"""Adds up the gradients of several backward passes before they are reduced and applied (backward_passes_per_step)."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import tensorflow as tf

Apply = Callable[[List[Any]], Any]


class LocalAggregation:
    """Adds up the gradients of `passes` passes in variables of its own, in graphs and eagerly."""

    def __init__(self, passes: int, is_average: bool) -> None:
        self.passes = passes
        self.is_average = is_average
        self._counter: Optional[tf.Variable] = None
        self._sums: List[Optional[tf.Variable]] = []

    @property
    def counter(self) -> Optional[tf.Variable]:
        """Passes since the last step; None before the first pass."""
        return self._counter

    def apply(self, gradients: Sequence[Any], apply: Apply, otherwise: Callable[[], Any]) -> Any:
        """Adds the gradients. In every last pass it calls `apply` with their sums or averages, otherwise `otherwise`.

        In a graph of TensorFlow 1 it returns the operation that does so. tf.IndexedSlices become tensors.
        """
        dense = [None if each is None else tf.convert_to_tensor(each) for each in gradients]
        self._prepare(dense)
        counter, sums = self._counter, self._sums
        assert counter is not None
        added = [total.assign_add(each, read_value=False) for total, each in zip(sums, dense) if total is not None]
        with tf.control_dependencies([each for each in added if each is not None]):
            count = counter.assign_add(1, read_value=True)

        def last_pass() -> tf.Tensor:
            totals = [None if total is None else self._scaled(total.read_value()) for total in sums]
            done = apply(totals)
            with tf.control_dependencies(_operations(done, totals)):
                cleared = [total.assign(tf.zeros_like(total), read_value=False) for total in sums
                           if total is not None]
                cleared.append(counter.assign(0, read_value=False))
            with tf.control_dependencies([each for each in cleared if each is not None]):
                return tf.constant(True)

        def other_pass() -> tf.Tensor:
            with tf.control_dependencies(_operations(otherwise(), [])):
                return tf.constant(False)

        was_applied = tf.cond(tf.equal(tf.convert_to_tensor(count), self.passes), last_pass, other_pass)
        return None if tf.compat.v1.executing_eagerly_outside_functions() else was_applied.op

    def _prepare(self, gradients: Sequence[Any]) -> None:
        if self._counter is not None:
            return
        for each in gradients:
            if each is not None and not each.shape.is_fully_defined():
                raise ValueError(f"backward_passes_per_step requires gradients of a known shape, but "
                                 f"{each.name} has {each.shape}")
        with tf.init_scope():
            self._sums = [None if each is None else
                          tf.Variable(tf.zeros(each.shape, each.dtype), trainable=False, name="aggregated_gradient")
                          for each in gradients]
            self._counter = tf.Variable(0, trainable=False, dtype=tf.int32, name="aggregation_counter")

    def _scaled(self, total: tf.Tensor) -> tf.Tensor:
        return total / tf.cast(self.passes, total.dtype) if self.is_average else total


def _operations(done: Any, totals: Sequence[Any]) -> List[Any]:
    """The operations that must precede the clearing of the sums: applying and reading them."""
    if tf.executing_eagerly():
        return []
    listed = [each for each in totals if each is not None]
    if isinstance(done, (tf.Operation, tf.Tensor)):
        listed.append(done)
    return listed
