"""All operations on tensors, and the rank and size of a process, in one module."""

from __future__ import annotations

from ..common import basics as _basics
from ..common.basics import (barrier, ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built,
                             gloo_enabled, init, is_homogeneous, is_initialized, local_rank, local_size, mpi_built,
                             mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, shutdown, size,
                             start_timeline, stop_timeline)
from ..common.exceptions import HorovodInternalError
from ..common.handles import poll, synchronize
from ..common.process_sets import global_process_set
from ..common.reduce_ops import Adasum, Average, Max, Min, Product, Sum
from .reducing import (allreduce, allreduce_, allreduce_async, allreduce_async_, grouped_allreduce,
                       grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter,
                       grouped_reducescatter_async, reducescatter, reducescatter_async)
from .gathering import (allgather, allgather_async, alltoall, alltoall_async, broadcast, broadcast_, broadcast_async,
                        broadcast_async_, grouped_allgather, grouped_allgather_async)
from .sparse import sparse_allreduce_async


def join(device: int = -1) -> int:
    """Call it when this rank has no more data: until all ranks have joined, it takes part in the allreduces of the
    other ranks with zeros. Their other operations fail meanwhile. Waits for all ranks, and returns the rank that joined
    last.

    device: ignored; a joined rank contributes zeros, wherever the tensors of the others are.
    """
    return _basics.join()


__all__ = [
    "Adasum", "Average", "HorovodInternalError", "Max", "Min", "Product", "Sum", "allgather", "allgather_async",
    "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async", "barrier",
    "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "ccl_built", "cross_rank", "cross_size",
    "cuda_built", "ddl_built", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async", "rocm_built", "shutdown", "size",
    "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize"]
