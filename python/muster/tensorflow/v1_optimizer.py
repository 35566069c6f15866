"""Optimizers of TensorFlow 1, which compute gradients and apply them."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from .aggregation import LocalAggregation
from .gradients import GradientReducer


class DistributedV1Optimizer(tf.compat.v1.train.Optimizer):
    """Reduces in compute_gradients(); if several passes are added up, in apply_gradients()."""

    def __init__(self, optimizer: Any, name: Optional[str], use_locking: bool, reducer: GradientReducer,
                 aggregation: Optional[LocalAggregation]) -> None:
        super().__init__(name=name or f"Distributed{type(optimizer).__name__}", use_locking=use_locking)
        self._optimizer = optimizer
        self._muster_reducer = reducer
        self._muster_aggregation = aggregation

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if self._muster_aggregation is not None:
            return pairs
        variables = [variable for _, variable in pairs]
        return list(zip(self._muster_reducer.reduce([gradient for gradient, _ in pairs], variables), variables))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        if self._muster_aggregation is None:
            return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        with tf.init_scope():
            self._optimizer._create_slots(variables)
        return self._muster_aggregation.apply(
            [gradient for gradient, _ in pairs], variables,
            lambda sums, summed: self._optimizer.apply_gradients(
                list(zip(self._muster_reducer.reduce(sums, summed), summed)), global_step=global_step),
            tf.no_op if global_step is None else lambda: tf.compat.v1.assign_add(global_step, 1))

    def register_local_var(self, variable: Any) -> None:
        """Keeps the gradient of this variable on this rank: it is not reduced."""
        self._muster_reducer.register_local(variable)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.variables(*args, **kwargs)
