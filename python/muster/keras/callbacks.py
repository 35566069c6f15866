"""Callbacks for model.fit(), which muster.tensorflow.keras.callback_classes documents."""

from __future__ import annotations

from ..tensorflow.keras.callback_classes import classes_for
from .library import keras

_classes = classes_for(keras)

BroadcastGlobalVariablesCallback = _classes.BroadcastGlobalVariablesCallback
MetricAverageCallback = _classes.MetricAverageCallback
LearningRateScheduleCallback = _classes.LearningRateScheduleCallback
LearningRateWarmupCallback = _classes.LearningRateWarmupCallback
BestModelCheckpoint = _classes.BestModelCheckpoint

__all__ = ["BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback",
           "LearningRateWarmupCallback", "MetricAverageCallback"]
