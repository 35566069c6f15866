"""Averages the metrics of an epoch over the ranks."""

from __future__ import annotations

import numbers
from typing import Any, Dict, Optional

import tensorflow as tf

from ...common.process_sets import ProcessSet, global_process_set
from ...common.reduce_ops import Average
from ..reductions import allreduce
from .sessions import now


class MetricAverageCallback:
    """Replaces each metric of an epoch by its average over the ranks. Put it before callbacks that use metrics
    (ReduceLROnPlateau, EarlyStopping, ModelCheckpoint)."""

    def __init__(self, device: str = "", process_set: ProcessSet = global_process_set) -> None:
        """`device` is accepted for compatibility and has no effect."""
        super().__init__()
        self.device = device
        self.process_set = process_set

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        if not logs or not self.process_set.included():
            return
        # One operation for all, in the order of the names: the ranks may have added them in different orders.
        names = sorted(name for name, value in logs.items() if isinstance(value, numbers.Number))
        if not names:
            return
        averages = allreduce(tf.constant([float(logs[name]) for name in names], tf.float64), op=Average,
                             name=f"metrics of {', '.join(names)}", process_set=self.process_set)
        for name, value in zip(names, now(averages)):
            logs[name] = float(value)
