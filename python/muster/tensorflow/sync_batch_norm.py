"""Batch normalization over the batches of all ranks."""

from __future__ import annotations

import functools
from typing import Any, Optional, Tuple

import tensorflow as tf

from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Sum
from .reductions import grouped_allreduce


def moments(inputs: tf.Tensor, axes: Any, mask: Optional[tf.Tensor], keep_dims: bool,
            process_set: ProcessSet) -> Tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance of the elements of all ranks, each element with the same weight; ranks may have batches of
    different lengths. `mask` has one dimension less than `inputs` and marks the elements that count.

    The variance is computed from the distances to the common mean, in a second round: the mean of squares minus the
    square of the mean loses the digits that both have in common.
    """
    weights = tf.ones_like(inputs) if mask is None else \
        tf.broadcast_to(tf.cast(mask, inputs.dtype)[..., tf.newaxis], tf.shape(inputs))
    total, count = grouped_allreduce([tf.reduce_sum(inputs * weights, axes, keepdims=True),
                                      tf.reduce_sum(weights, axes, keepdims=True)],
                                     op=Sum, name="SyncBatchNormalization.mean", process_set=process_set)
    count = tf.maximum(tf.stop_gradient(count), tf.ones_like(count))
    mean = total / count
    (distance,) = grouped_allreduce([tf.reduce_sum(weights * tf.square(inputs - mean), axes, keepdims=True)],
                                    op=Sum, name="SyncBatchNormalization.variance", process_set=process_set)
    variance = distance / count
    if keep_dims:
        return mean, variance
    return tf.squeeze(mean, axes), tf.squeeze(variance, axes)


def layer_for(keras: Any) -> Any:
    """SyncBatchNormalization for a module keras, of Keras 2 or 3."""
    # The object tf.keras is replaced at its first use; its classes stay the same.
    return _layer_over(keras.layers.BatchNormalization)


@functools.lru_cache(maxsize=None)
def _layer_over(base: Any) -> Any:
    """SyncBatchNormalization as a subclass of BatchNormalization of one Keras."""

    class SyncBatchNormalization(base):  # type: ignore[misc]
        """BatchNormalization of Keras whose statistics, while training, are those of the batches of all ranks together.

        Every rank must call it the same number of times. `process_set`: the ranks that take part. The other arguments
        are those of BatchNormalization, without `fused` and `synchronized`.
        """

        def __init__(self, *args: Any, process_set: ProcessSet = global_process_set, **kwargs: Any) -> None:
            refused = [name for name in ("fused", "synchronized") if kwargs.get(name)]
            if refused:
                raise ValueError(f"SyncBatchNormalization does not support {' and '.join(refused)}: it computes the "
                                 "statistics of all ranks itself")
            if hasattr(base, "_no_sync_calculate_mean_and_var"):
                kwargs["fused"] = False
            super().__init__(*args, **kwargs)
            self._muster_process_set = process_set

        # Keras 3 calls this method with (inputs, mask), Keras 2 the next one.
        def _moments(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if hasattr(base, "_no_sync_calculate_mean_and_var"):
                return super()._moments(inputs, *args, **kwargs)
            mask = args[0] if args else kwargs.get("mask")
            return moments(inputs, self._reduction_axes, mask, False, self._muster_process_set)

        def _calculate_mean_and_var(self, inputs: Any, reduction_axes: Any, keep_dims: bool, mask: Any = None) -> Any:
            return moments(inputs, reduction_axes, mask, keep_dims, self._muster_process_set)

    return SyncBatchNormalization


def __getattr__(name: str) -> Any:
    """SyncBatchNormalization for tf.keras, under the name by which programs import it from Horovod."""
    if name == "SyncBatchNormalization":
        return layer_for(tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
