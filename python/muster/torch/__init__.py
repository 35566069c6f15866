"""Training with PyTorch on several ranks, for programs written for horovod.torch:

    import muster.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

For programs written for torch.distributed, the import also adds the backend "muster":

    torch.distributed.init_process_group("muster")

Tensors may be on any device; tensors on other devices than the host travel through the host's memory. The ranks may
begin their operations in different orders, and from any thread: operations are matched by their names.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch as _torch

from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from . import c10d as _c10d
from .compression import Compression
from .functions import (allgather_object, broadcast_object, broadcast_object_fn, broadcast_optimizer_state,
                        broadcast_parameters)
from .mpi_ops import (Adasum, Average, Max, Min, Product, Sum, allgather, allgather_async, allreduce, allreduce_,
                      allreduce_async, allreduce_async_, alltoall, alltoall_async, barrier, broadcast, broadcast_,
                      broadcast_async, broadcast_async_, ccl_built, cross_rank, cross_size, cuda_built, ddl_built,
                      gloo_built, gloo_enabled, grouped_allgather, grouped_allgather_async, grouped_allreduce,
                      grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter,
                      grouped_reducescatter_async, init, is_homogeneous, is_initialized, join, local_rank, local_size,
                      mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, poll, rank, reducescatter,
                      reducescatter_async, rocm_built, shutdown, size, sparse_allreduce_async, start_timeline,
                      stop_timeline, synchronize)
from .optimizer import DistributedOptimizer
from .sharded_optimizer import ShardedOptimizer
from .sharded_state import load_sharded, save_sharded
from .sync_batch_norm import SyncBatchNorm

_c10d.install()

#: Programs check this for the library; without the library, this module cannot be imported.
_MPI_LIB_AVAILABLE = True


def _check_has_gpu() -> bool:
    return _torch.cuda.is_available()


def __getattr__(name: str) -> Any:
    """Loads `elastic` at its first use."""
    if name == "elastic":
        return importlib.import_module(f"{__name__}.elastic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError", "Max", "Min", "ProcessSet",
    "Product", "ShardedOptimizer", "Sum", "SyncBatchNorm", "add_process_set", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
    "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
    "broadcast_object_fn", "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "cross_rank", "cross_size",
    "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous",
    "is_initialized", "join", "load_sharded", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async",
    "remove_process_set", "rocm_built", "save_sharded", "shutdown", "size", "sparse_allreduce_async", "start_timeline",
    "stop_timeline", "synchronize"]
