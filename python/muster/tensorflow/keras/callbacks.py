"""Callbacks for model.fit() of tf.keras; callback_classes.py names the modules that describe them."""

from __future__ import annotations

import tensorflow as tf

from .callback_classes import classes_for

_classes = classes_for(tf.keras)

BroadcastGlobalVariablesCallback = _classes.BroadcastGlobalVariablesCallback
MetricAverageCallback = _classes.MetricAverageCallback
LearningRateScheduleCallback = _classes.LearningRateScheduleCallback
LearningRateWarmupCallback = _classes.LearningRateWarmupCallback
BestModelCheckpoint = _classes.BestModelCheckpoint

__all__ = ["BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback",
           "LearningRateWarmupCallback", "MetricAverageCallback"]
