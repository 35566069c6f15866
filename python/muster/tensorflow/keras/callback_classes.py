"""The callbacks, for Keras 2 and 3: each module keras has its own base class of callbacks."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from . import best_model, broadcasting, learning_rate, metrics


@functools.lru_cache(maxsize=None)
def classes_for(keras: Any) -> SimpleNamespace:
    """The callbacks that derive from `keras.callbacks.Callback`."""

    def derived(behaviour: Any, base: Any) -> Any:
        return type(behaviour.__name__, (behaviour, base),
                    {"__doc__": behaviour.__doc__, "__module__": f"{__package__}.callbacks"})

    base = keras.callbacks.Callback
    return SimpleNamespace(
        BroadcastGlobalVariablesCallback=derived(broadcasting.BroadcastGlobalVariablesCallback, base),
        MetricAverageCallback=derived(metrics.MetricAverageCallback, base),
        LearningRateScheduleCallback=derived(learning_rate.LearningRateScheduleCallback, base),
        LearningRateWarmupCallback=derived(learning_rate.LearningRateWarmupCallback, base),
        BestModelCheckpoint=derived(best_model.BestModelCheckpoint, keras.callbacks.ModelCheckpoint))
