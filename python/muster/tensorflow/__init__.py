"""Training with TensorFlow 2 on several ranks, for programs written for horovod.tensorflow:

    import muster.tensorflow as hvd

    hvd.init()
    with tf.GradientTape() as tape:
        loss = ...
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    ...
    hvd.broadcast_variables(model.variables, root_rank=0)       # after the first step, or before it

Operations run eagerly, in tf.function and in sessions of TensorFlow 1, with gradients. Nothing is compiled against
TensorFlow (see `execution`). For model.fit() see muster.tensorflow.keras.
"""

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as _tf

from ..common.basics import (ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built, mpi_enabled,
                             nccl_built, rocm_built)
from ..common.exceptions import HorovodInternalError, HostsUpdatedInterrupt, MismatchError
from ..common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from . import util
from .compression import Compression
from .mpi_ops import (Adasum, Average, Max, Min, Product, Sum, allgather, allreduce, alltoall, barrier, broadcast,
                      broadcast_, cross_rank, cross_size, grouped_allgather, grouped_allreduce, grouped_reducescatter,
                      init, is_homogeneous, is_initialized, join, local_rank, local_rank_op, local_size, local_size_op,
                      mpi_threads_supported, process_set_included_op, rank, rank_op, reducescatter, shutdown, size,
                      size_op, start_timeline, stop_timeline)
from .objects import allgather_object, broadcast_object, broadcast_object_fn
from .optimizer import DistributedOptimizer
from .tape import DistributedGradientTape, PartialDistributedGradientTape
from .util import _executing_eagerly
from .variables import BroadcastGlobalVariablesHook, broadcast_global_variables, broadcast_variables

#: Programs check whether the library was found; without it this module could not be imported.
_MPI_LIB_AVAILABLE = True


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """Whether `num_rank` is 1, 2, 4 and so on. Programs check this before they use Adasum, which here supports any
    number."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def gpu_available(*_: Any) -> bool:
    return bool(_tf.config.list_physical_devices("GPU"))


def __getattr__(name: str) -> Any:
    """Loads names that need Keras, or are rarely used, at their first use."""
    if name in ("elastic", "keras"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "data":
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:  # hasattr() expects another type
            raise AttributeError(str(error)) from None
    if name == "SyncBatchNormalization":
        from .sync_batch_norm import layer_for
        return layer_for(_tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Adasum", "Average", "BroadcastGlobalVariablesHook", "Compression", "DistributedGradientTape",
    "DistributedOptimizer", "HorovodInternalError", "HostsUpdatedInterrupt", "Max", "Min", "MismatchError",
    "PartialDistributedGradientTape", "ProcessSet", "Product", "Sum", "SyncBatchNormalization", "add_process_set",
    "allgather", "allgather_object", "allreduce", "alltoall", "barrier", "broadcast", "broadcast_",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables", "ccl_built",
    "check_num_rank_power_of_2", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic",
    "global_process_set", "gloo_built", "gloo_enabled", "gpu_available", "grouped_allgather", "grouped_allreduce",
    "grouped_reducescatter", "init", "is_homogeneous", "is_initialized", "join", "keras", "local_rank",
    "local_rank_op", "local_size", "local_size_op", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "process_set_included_op", "rank", "rank_op", "reducescatter", "remove_process_set", "rocm_built", "shutdown",
    "size", "size_op", "start_timeline", "stop_timeline"]
