"""Which Keras `import keras` programs mean: Keras 3 on TensorFlow, or Keras 2 where TF_USE_LEGACY_KERAS says so."""

from __future__ import annotations

import importlib
import os
from typing import Any


def find() -> Any:
    """The module. Errors: ImportError where Keras 3 runs on another backend than TensorFlow."""
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        return importlib.import_module("tf_keras")
    keras = importlib.import_module("keras")
    backend: Any = getattr(keras, "backend", None)
    name = backend.backend() if hasattr(backend, "backend") else "tensorflow"
    if name != "tensorflow":
        raise ImportError(f"muster.keras works with the TensorFlow backend of Keras, and this one runs on {name}: set "
                          "KERAS_BACKEND=tensorflow" + (", or use muster.torch" if name == "torch" else ""))
    return keras


keras = find()
