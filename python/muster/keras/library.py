"""Determines which Keras programs get by `import keras`: Keras 3 on TensorFlow, or Keras 2 with TF_USE_LEGACY_KERAS."""

from __future__ import annotations

import importlib
import os
from typing import Any


def find() -> Any:
    """Returns the module. Errors: ImportError if Keras 3 uses a backend other than TensorFlow."""
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        return importlib.import_module("tf_keras")
    keras = importlib.import_module("keras")
    backend: Any = getattr(keras, "backend", None)
    name = backend.backend() if hasattr(backend, "backend") else "tensorflow"
    if name != "tensorflow":
        raise ImportError(f"muster.keras works with the TensorFlow backend of Keras, but it runs on {name}: set "
                          "KERAS_BACKEND=tensorflow" + (", or use muster.torch" if name == "torch" else ""))
    return keras


keras = find()
