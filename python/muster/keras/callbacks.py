"""Callbacks for model.fit(), which muster.tensorflow.keras.callback_classes documents."""

from __future__ import annotations

from typing import Any, Optional

from ..tensorflow.keras.callback_classes import classes_for
from .library import keras

_classes = classes_for(keras)

BroadcastGlobalVariablesCallback = _classes.BroadcastGlobalVariablesCallback
MetricAverageCallback = _classes.MetricAverageCallback
LearningRateScheduleCallback = _classes.LearningRateScheduleCallback
LearningRateWarmupCallback = _classes.LearningRateWarmupCallback


class BestModelCheckpoint(_classes.BestModelCheckpoint):  # type: ignore[misc,name-defined]
    __doc__ = _classes.BestModelCheckpoint.__doc__

    def __init__(self, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto", save_freq: Any = "epoch", *,
                 filepath: Optional[str] = None) -> None:
        """filepath: the file to write; it may be set as an attribute before training begins. The arguments are those of
        horovod.keras, which differ from those of horovod.tensorflow.keras."""
        super().__init__(monitor, verbose, False, mode, save_freq, filepath=filepath)


__all__ = ["BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback",
           "LearningRateWarmupCallback", "MetricAverageCallback"]
