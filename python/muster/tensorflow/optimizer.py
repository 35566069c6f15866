"""Optimizers that average the gradients over the ranks before they apply them.

An optimizer keeps the name of its class, its configuration and its state: only its class is replaced, by a subclass
that reduces first. The module supports the optimizers of Keras 3 (`apply`), those of Keras 2 and its legacy optimizers
(`apply_gradients`), and those of TensorFlow 1 (`compute_gradients`).

op=Adasum combines the gradients, whatever the kind of the optimizer.
"""

from __future__ import annotations

import itertools
from typing import Any, List, Optional

import tensorflow as tf

from ..common.basics import is_initialized, size
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Average
from .aggregation import LocalAggregation
from .compression import Compression
from .gradients import GradientReducer, Groups, register_layers
from .variables import tensor_of

_numbers = itertools.count()


def DistributedOptimizer(optimizer: Any, name: Optional[str] = None, use_locking: bool = False, device_dense: str = "",
                         device_sparse: str = "", compression: Any = Compression.none, sparse_as_dense: bool = False,
                         backward_passes_per_step: int = 1, op: int = Average, gradient_predivide_factor: float = 1.0,
                         average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Groups = None,
                         process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True) -> Any:
    """`optimizer`, which from now on reduces the gradients over the ranks before it applies them.

    optimizer: of Keras 3, Keras 2 (tf_keras) or tf.compat.v1.train. name: the ranks match their gradients by it; by
    default each optimizer has its own, in the order of construction. use_locking: of TensorFlow 1.
    backward_passes_per_step: the gradients of this number of passes are added up before they are reduced and applied;
    average_aggregated_gradients divides by that number. See DistributedGradientTape() for the other arguments.

    Errors: ValueError for anything but an optimizer, and for arguments that exclude each other.
    """
    del device_dense, device_sparse
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}; it must be at least 1")
    reducer = GradientReducer(
        name or f"DistributedOptimizer.{next(_numbers)}", compression=compression, sparse_as_dense=sparse_as_dense,
        op=op, gradient_predivide_factor=gradient_predivide_factor, num_groups=num_groups, groups=groups,
        process_set=process_set, scale_local_gradients=scale_local_gradients)
    aggregation = None
    if backward_passes_per_step > 1:
        aggregation = LocalAggregation(backward_passes_per_step, average_aggregated_gradients)
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        from .v1_optimizer import DistributedV1Optimizer
        return DistributedV1Optimizer(optimizer, name, use_locking, reducer, aggregation)
    if not hasattr(optimizer, "apply_gradients"):
        raise ValueError("DistributedOptimizer takes an optimizer of Keras or of tf.compat.v1.train, not "
                         f"{optimizer!r}")
    return _distributed(optimizer, reducer, aggregation)


def PartialDistributedOptimizer(optimizer: Any, name: Optional[str] = None, device_dense: str = "",
                                device_sparse: str = "", compression: Any = Compression.none,
                                sparse_as_dense: bool = False, gradient_predivide_factor: float = 1.0,
                                op: int = Average, backward_passes_per_step: int = 1,
                                average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Groups = None,
                                process_set: ProcessSet = global_process_set, local_layers: Any = None,
                                scale_local_gradients: bool = True) -> Any:
    """DistributedOptimizer() that does not reduce the gradients of `local_layers`."""
    distributed = DistributedOptimizer(
        optimizer, name, False, device_dense, device_sparse, compression, sparse_as_dense, backward_passes_per_step,
        op, gradient_predivide_factor, average_aggregated_gradients, num_groups, groups, process_set,
        scale_local_gradients)
    register_layers(distributed._muster_reducer, local_layers)
    return distributed


def _distributed(optimizer: Any, reducer: GradientReducer, aggregation: Optional[LocalAggregation]) -> Any:
    kind = type(optimizer)
    if issubclass(kind, _Reducing):
        raise ValueError(f"{kind.__name__} is a DistributedOptimizer already")
    # The class keeps the name and the module of the original class: a saved model names a class that can be found.
    namespace = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    base = _ReducingKeras3 if hasattr(kind, "apply") else _ReducingKeras2
    distributed: Any = object.__new__(type(kind.__name__, (base, kind), namespace))
    # Bypasses __setattr__, in which Keras would treat the attributes as parts of the model to save.
    object.__setattr__(distributed, "__dict__", optimizer.__dict__)
    distributed.__dict__["_muster_reducer"] = reducer
    distributed.__dict__["_muster_aggregation"] = aggregation
    return distributed


class _Reducing:
    _muster_reducer: GradientReducer
    _muster_aggregation: Optional[LocalAggregation]

    def register_local_var(self, variable: Any) -> None:
        """Keeps the gradient of this variable on this rank: it is not reduced."""
        self._muster_reducer.register_local(variable)

    @property
    def _agg_helper(self) -> Optional[LocalAggregation]:
        """The sum of the gradients of several passes; its `counter` counts the passes."""
        return self._muster_aggregation

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None) -> Any:
        """Pairs of gradient and variable, reduced over the ranks: the next apply_gradients() for these variables does
        not reduce. If several passes are added up, the gradients of this rank only; apply_gradients() adds them.

        loss: a tensor that `tape` has recorded, or a function that computes it.
        """
        pairs = self._muster_compute(loss, var_list, grad_loss, tape)
        if self._muster_aggregation is not None:
            return pairs
        variables = [variable for _, variable in pairs]
        reduced = self._muster_reducer.reduce([gradient for gradient, _ in pairs], variables)
        self.__dict__["_muster_reduced"] = _keys(variables)
        return list(zip(reduced, variables))

    def _muster_compute(self, loss: Any, var_list: Any, grad_loss: Any, tape: Any) -> List[Any]:
        tape = tf.GradientTape() if tape is None else tape
        if callable(loss):
            with tape:
                loss = loss()
        variables = list(var_list)
        own = tape.gradient(loss, [tensor_of(each) for each in variables], grad_loss)
        return list(zip(own, variables))

    def _muster_apply(self, gradients: List[Any], variables: List[Any], apply: Any) -> Any:
        if self.__dict__.pop("_muster_reduced", None) == _keys(variables):
            return apply(gradients, variables)
        if self._muster_aggregation is None:
            return apply(self._muster_reducer.reduce(gradients, variables), variables)
        with tf.init_scope():
            _build(self, variables)
        return self._muster_aggregation.apply(
            gradients, variables, lambda sums, summed: apply(self._muster_reducer.reduce(sums, summed), summed),
            # Schedules of the learning rate count batches.
            lambda: self.iterations.assign_add(1))  # type: ignore[attr-defined]


class _ReducingKeras3(_Reducing):
    def __setattr__(self, name: str, value: Any) -> None:
        # Keras' LossScaleOptimizer sets it to None in its inner optimizer. It skips a batch whose gradients overflow
        # before the inner optimizer sees them: on one rank, while the others reduce theirs.
        if name == "loss_scale_factor" and value is None and is_initialized() and size() > 1:
            raise ValueError(
                "a distributed optimizer in a LossScaleOptimizer (as compile() makes it under mixed_float16) would let the "
                "ranks skip different batches, and their weights drift apart; wrap the other way round: "
                "DistributedOptimizer(keras.optimizers.LossScaleOptimizer(optimizer))")
        super().__setattr__(name, value)

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        variables = list(self._trainable_variables  # type: ignore[attr-defined]
                         if trainable_variables is None else trainable_variables)
        return self._muster_apply(
            list(grads), variables,
            lambda reduced, summed: super(_ReducingKeras3, self).apply(reduced, summed))  # type: ignore[misc]


class _ReducingKeras2(_Reducing):
    def _muster_compute(self, loss: Any, var_list: Any, grad_loss: Any, tape: Any) -> List[Any]:
        base: Any = super()
        if hasattr(base, "compute_gradients"):
            return list(base.compute_gradients(loss, var_list, tape=tape))
        # Keras' legacy optimizers, and those before Keras 2.11.
        return list(super(_Reducing, self)._compute_gradients(  # type: ignore[misc]
            loss, var_list, grad_loss=grad_loss, tape=tf.GradientTape() if tape is None else tape))

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        return self._muster_apply(
            [gradient for gradient, _ in pairs], variables,
            lambda reduced, summed: super(_ReducingKeras2, self).apply_gradients(  # type: ignore[misc]
                zip(reduced, summed), *args, **kwargs))


def _keys(variables: List[Any]) -> List[Any]:
    return [tensor_of(each).ref() for each in variables]


def _build(optimizer: Any, variables: List[Any]) -> None:
    """Creates the optimizer's variables, which it cannot do within a branch of a graph."""
    if hasattr(optimizer, "_create_all_weights"):
        optimizer._create_all_weights(variables)
    elif not getattr(optimizer, "built", False) and not getattr(optimizer, "_built", False):
        optimizer.build(variables)


def is_distributed(optimizer: Any) -> bool:
    """Whether DistributedOptimizer() made it."""
    return isinstance(optimizer, _Reducing)
