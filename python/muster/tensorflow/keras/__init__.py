"""Training with Keras on several ranks, for programs written for horovod.tensorflow.keras:

    import muster.tensorflow.keras as hvd

    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])

For tf.keras, which is Keras 3, or Keras 2 with TF_USE_LEGACY_KERAS=1. muster.keras is the same for programs that import
keras.
"""

from __future__ import annotations

import importlib
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from ...common.basics import (ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built, mpi_enabled,
                              nccl_built, rocm_built)
from ...common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from ...common.reduce_ops import Average
from .. import gathering, mpi_ops, reductions
from ..compression import Compression
from ..gradients import Groups
from ..mpi_ops import (Adasum, Max, Min, Product, Sum, cross_rank, cross_size, init, is_homogeneous, is_initialized,
                       local_rank, local_size, mpi_threads_supported, rank, shutdown, size, start_timeline,
                       stop_timeline)
from ..objects import allgather_object, broadcast_object, broadcast_object_fn
from ..optimizer import DistributedOptimizer as _AnyDistributedOptimizer
from ..optimizer import PartialDistributedOptimizer
from ..variables import broadcast_global_variables, broadcast_variables
from .loading import load_with
from .sessions import now

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "Max", "Min", "PartialDistributedOptimizer",
    "ProcessSet", "Product", "Sum", "add_process_set", "allgather", "allgather_object", "allreduce", "broadcast",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables", "callbacks",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built",
    "gloo_enabled", "init", "is_homogeneous", "is_initialized", "load_model", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank", "reducescatter", "remove_process_set", "rocm_built",
    "shutdown", "size", "start_timeline", "stop_timeline"]


def DistributedOptimizer(optimizer: Any, name: Optional[str] = None, device_dense: str = "", device_sparse: str = "",
                         compression: Any = Compression.none, sparse_as_dense: bool = False,
                         gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
                         average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Groups = None,
                         process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True) -> Any:
    """The same as muster.tensorflow.DistributedOptimizer, with the arguments in the order of Keras programs."""
    return _AnyDistributedOptimizer(
        optimizer, name, False, device_dense, device_sparse, compression, sparse_as_dense, backward_passes_per_step,
        op, gradient_predivide_factor, average_aggregated_gradients, num_groups, groups, process_set,
        scale_local_gradients)


def allreduce(value: Any, name: Optional[str] = None, average: Optional[bool] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, op: Optional[int] = None,
              process_set: ProcessSet = global_process_set, compression: Any = Compression.none) -> np.ndarray:
    """The reduction of a number, a list or an array over the ranks, as an array."""
    return now(reductions.allreduce(tf.convert_to_tensor(value), average, "", "", compression, op, prescale_factor,
                                    postscale_factor, name, process_set))


def allgather(value: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> np.ndarray:
    """The arrays of all ranks, concatenated."""
    return now(gathering.allgather(tf.convert_to_tensor(value), name, process_set=process_set))


def broadcast(value: Any, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> np.ndarray:
    """The root's array."""
    return now(mpi_ops.broadcast(tf.convert_to_tensor(value), root_rank, name, process_set=process_set))


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> np.ndarray:
    """This rank's rows of the reduction."""
    return now(reductions.reducescatter(tf.convert_to_tensor(value), "", Compression.none, op, name, process_set,
                                        prescale_factor=prescale_factor, postscale_factor=postscale_factor))


def load_model(filepath: Any, custom_optimizers: Any = None, custom_objects: Any = None,
               compression: Any = Compression.none, legacy_opts: bool = False) -> Any:
    """Loads a model as Keras does. Its optimizer becomes a DistributedOptimizer() with the saved state.

    custom_optimizers: classes of optimizers. custom_objects: other objects that Keras cannot find by itself.
    `legacy_opts` is accepted for compatibility and has no effect: the optimizer is the saved one.
    """
    del legacy_opts
    return load_with(tf.keras, filepath, custom_optimizers, custom_objects, compression)


def __getattr__(name: str) -> Any:
    if name in ("callbacks", "elastic"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
