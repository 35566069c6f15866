"""The values of tensors in eager mode, and in the session of Keras in a program for TensorFlow 1."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def now(value: Any) -> Any:
    """The value of a tensor as an array, in eager mode and in a session of TensorFlow 1, which also runs operations;
    unchanged in a graph that is being built.

    Errors: RuntimeError if Keras has no session.
    """
    if tf.executing_eagerly():
        return value.numpy()
    if tf.compat.v1.executing_eagerly_outside_functions():
        return value
    return _session().run(value)


def number(value: Any) -> float:
    """The value of a number or a variable of Keras now. Adds nothing to a graph of TensorFlow 1."""
    if not tf.is_tensor(value) and not hasattr(value, "assign"):
        return float(value)
    if tf.executing_eagerly():
        return float(tf.convert_to_tensor(value).numpy())
    return float(_session().run(value))


def _session() -> Any:
    try:
        return tf.compat.v1.keras.backend.get_session()
    except (AttributeError, ImportError) as error:
        raise RuntimeError("this program has switched eager execution off, which Keras 3 does not support: set "
                           "TF_USE_LEGACY_KERAS=1 for Keras 2, or remove disable_eager_execution()") from error
