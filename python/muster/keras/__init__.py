"""Training with Keras on several ranks, for programs that import keras and were written for horovod.keras. The same as
muster.tensorflow.keras, for Keras 3 on the TensorFlow backend, or Keras 2 (tf_keras) with TF_USE_LEGACY_KERAS=1."""

from __future__ import annotations

import importlib
from typing import Any

from ..tensorflow.compression import Compression
from ..tensorflow.keras import (Adasum, Average, DistributedOptimizer, Max, Min, PartialDistributedOptimizer,
                                ProcessSet, Product, Sum, add_process_set, allgather, allgather_object, allreduce,
                                broadcast, broadcast_global_variables, broadcast_object, broadcast_object_fn,
                                broadcast_variables, ccl_built, cross_rank, cross_size, cuda_built, ddl_built,
                                global_process_set, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
                                local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built,
                                rank, reducescatter, remove_process_set, rocm_built, shutdown, size, start_timeline,
                                stop_timeline)
from ..tensorflow.keras import __all__ as _names
from ..tensorflow.keras.loading import load_with
from .library import keras as _keras

__all__ = _names


def load_model(filepath: Any, custom_optimizers: Any = None, custom_objects: Any = None,
               compression: Any = Compression.none, legacy_opts: bool = False) -> Any:
    """As muster.tensorflow.keras.load_model, for the Keras of this module."""
    del legacy_opts
    return load_with(_keras, filepath, custom_optimizers, custom_objects, compression)


def __getattr__(name: str) -> Any:
    if name in ("callbacks", "elastic"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
