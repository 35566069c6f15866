"""Elastic training of Keras models: the state, and callbacks that keep it up to date during model.fit()."""

from __future__ import annotations

from ..tensorflow.elastic import (HorovodInternalError, HostsUpdatedInterrupt, ObjectState, State,
                                  TensorFlowKerasState, run)
from ..tensorflow.keras.elastic_callbacks import elastic_classes_for
from .library import keras

_classes = elastic_classes_for(keras)

KerasState = TensorFlowKerasState
CommitStateCallback = _classes.CommitStateCallback
UpdateBatchStateCallback = _classes.UpdateBatchStateCallback
UpdateEpochStateCallback = _classes.UpdateEpochStateCallback

__all__ = ["CommitStateCallback", "HorovodInternalError", "HostsUpdatedInterrupt", "KerasState", "ObjectState", "State",
           "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
