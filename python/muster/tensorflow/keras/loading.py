"""Loads saved models, with optimizers that work on several ranks."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Optional

from ..optimizer import DistributedOptimizer, is_distributed


def load_with(keras: Any, filepath: Any, custom_optimizers: Optional[Iterable[Any]],
              custom_objects: Optional[Dict[str, Any]], compression: Any) -> Any:
    """load_model() for a module keras, of Keras 2 or 3. Errors: those of Keras' load_model()."""
    known = {each.__name__: each for each in custom_optimizers or ()}
    known.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=known)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not is_distributed(optimizer):
        model.optimizer = DistributedOptimizer(optimizer, compression=compression)
    return model
