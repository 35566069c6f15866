"""Elastic training of models of tf.keras: the state, and callbacks that keep it up to date during model.fit()."""

from __future__ import annotations

import tensorflow as tf

from ..elastic import HorovodInternalError, HostsUpdatedInterrupt, ObjectState, State, TensorFlowKerasState, run
from .elastic_callbacks import elastic_classes_for

_classes = elastic_classes_for(tf.keras)

KerasState = TensorFlowKerasState
CommitStateCallback = _classes.CommitStateCallback
UpdateBatchStateCallback = _classes.UpdateBatchStateCallback
UpdateEpochStateCallback = _classes.UpdateEpochStateCallback

__all__ = ["CommitStateCallback", "HorovodInternalError", "HostsUpdatedInterrupt", "KerasState", "ObjectState", "State",
           "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
