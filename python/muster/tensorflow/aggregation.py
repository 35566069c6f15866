"""Adds up the gradients of several backward passes before they are reduced and applied (backward_passes_per_step)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

import tensorflow as tf

from ..common import world
from .variables import tensor_of

#: Takes gradients and their variables.
Apply = Callable[[List[Any], List[Any]], Any]


class LocalAggregation:
    """Adds up the gradients of `passes` passes in variables of its own, in graphs and eagerly.

    Eagerly, any pass may lack the gradients of some variables. A graph has the same operations in every pass, so it has
    gradients of the same variables.
    """

    def __init__(self, passes: int, is_average: bool) -> None:
        self.passes = passes
        self.is_average = is_average
        self._counter: Optional[tf.Variable] = None
        #: The sum of the gradients of each variable, by its key.
        self._sums: Dict[Any, tf.Variable] = {}
        #: Eagerly: the variables in the passes since the last step, by key, and those of them that had a gradient.
        self._variables: Dict[Any, Any] = {}
        self._summed: Set[Any] = set()
        self._is_eager = False
        world.before_end(self._leave_world)

    @property
    def counter(self) -> Optional[tf.Variable]:
        """Passes since the last step; None before the first pass."""
        return self._counter

    def apply(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Apply,
              otherwise: Callable[[], Any]) -> Any:
        """Adds the gradients, of which some may be None. In every last pass it calls `apply` with their sums or
        averages, otherwise `otherwise`. A variable that had no gradient in any pass has None as its sum.

        In a graph of TensorFlow 1 it returns the operation that does so. tf.IndexedSlices become tensors.

        Errors: ValueError in a graph, if this pass has gradients of other variables than an earlier one.
        """
        given: Dict[Any, Any] = {}
        dense: Dict[Any, Any] = {}
        for variable, gradient in zip(variables, gradients):
            key = tensor_of(variable).ref()
            given[key] = variable
            if gradient is not None:
                tensor = tf.convert_to_tensor(gradient)
                dense[key] = dense[key] + tensor if key in dense else tensor
        self._prepare(given, dense)
        summed = set(dense)
        if tf.executing_eagerly():
            self._variables.update(given)
            self._summed.update(dense)
            given, summed = dict(self._variables), set(self._summed)
        counter, sums = self._counter, self._sums
        assert counter is not None
        added = [sums[key].assign_add(each, read_value=False) for key, each in dense.items()]
        with tf.control_dependencies([each for each in added if each is not None]):
            count = counter.assign_add(1, read_value=True)

        def last_pass() -> tf.Tensor:
            totals = [self._scaled(sums[key].read_value()) if key in summed else None for key in given]
            done = apply(totals, list(given.values()))
            with tf.control_dependencies(_operations(done, totals)):
                cleared = [total.assign(tf.zeros_like(total), read_value=False) for key, total in sums.items()
                           if key in summed]
                cleared.append(counter.assign(0, read_value=False))
            self._variables.clear()
            self._summed.clear()
            with tf.control_dependencies([each for each in cleared if each is not None]):
                return tf.constant(True)

        def other_pass() -> tf.Tensor:
            with tf.control_dependencies(_operations(otherwise(), [])):
                return tf.constant(False)

        # More passes than that have been counted after an error in the last one.
        is_last = tf.greater_equal(tf.convert_to_tensor(count), self.passes)
        was_applied = tf.cond(is_last, last_pass, other_pass)
        return None if tf.compat.v1.executing_eagerly_outside_functions() else was_applied.op

    def _prepare(self, given: Mapping[Any, Any], gradients: Mapping[Any, Any]) -> None:
        """Creates the counter, and the sums of variables that have a gradient for the first time."""
        if self._counter is not None and not tf.executing_eagerly() and set(gradients) != set(self._sums):
            names = ", ".join(sorted(_name_of(key, given) for key in set(gradients) ^ set(self._sums)))
            raise ValueError(f"backward_passes_per_step in a graph requires gradients of the same variables in every "
                             f"pass, but some passes have no gradient of {names}: replace None by zeros "
                             f"(tape.gradient(..., unconnected_gradients=tf.UnconnectedGradients.ZERO)), or apply the "
                             f"gradients eagerly")
        new = {key: each for key, each in gradients.items() if key not in self._sums}
        for each in new.values():
            if not each.shape.is_fully_defined():
                raise ValueError(f"backward_passes_per_step requires gradients of a known shape, but "
                                 f"{each.name} has {each.shape}")
        with tf.init_scope():
            for key, each in new.items():
                self._sums[key] = tf.Variable(tf.zeros(each.shape, each.dtype), trainable=False,
                                              name="aggregated_gradient")
            if self._counter is None:
                self._counter = tf.Variable(0, trainable=False, dtype=tf.int32, name="aggregation_counter")
                self._is_eager = tf.executing_eagerly()

    def _leave_world(self) -> None:
        """Drops the sums: in the next world, ranks that are new and those of this world begin a step together. A graph
        of TensorFlow 1 keeps them: the state of elastic training contains them there."""
        counter = self._counter
        if counter is not None and self._is_eager and tf.executing_eagerly():
            for each in (counter, *self._sums.values()):
                each.assign(tf.zeros_like(each))
            self._variables.clear()
            self._summed.clear()

    def _scaled(self, total: tf.Tensor) -> tf.Tensor:
        return total / tf.cast(self.passes, total.dtype) if self.is_average else total


def _name_of(key: Any, variables: Mapping[Any, Any]) -> str:
    variable = variables.get(key)
    return str(getattr(variable, "path", None) or key.deref().name)


def _operations(done: Any, totals: Sequence[Any]) -> List[Any]:
    """The operations that must precede the clearing of the sums: applying and reading them."""
    if tf.executing_eagerly():
        return []
    listed = [each for each in totals if each is not None]
    if isinstance(done, (tf.Operation, tf.Tensor)):
        listed.append(done)
    return listed
