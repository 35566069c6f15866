"""All operations, and the rank and size of a process, in one module."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence

import tensorflow as tf

from ..common.basics import (cross_rank, cross_size, init as _init, is_homogeneous, is_initialized, local_rank,
                             local_size, mpi_threads_supported, rank, shutdown, size, start_timeline, stop_timeline)
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Adasum, Average, Max, Min, Product, Sum
from . import interrupts, plans
from .execution import run
from .gathering import allgather, alltoall, broadcast, broadcast_group, grouped_allgather
from .naming import name_of
from .questions import local_rank_op, local_size_op, process_set_included_op, rank_op, size_op
from .reductions import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the ranks of the job; see muster.common.basics.init."""
    _init(comm, process_sets)
    interrupts.prepare()


def broadcast_(variables: Sequence[Any], root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> List[Any]:
    """Assigns the root's values to the variables of every rank, and returns the variables; in a graph of TensorFlow 1,
    the operations that do this."""
    values = broadcast_group([tf.convert_to_tensor(each) for each in variables], root_rank, name, process_set)
    assigned = [each.assign(value) for each, value in zip(variables, values)]
    return list(variables) if tf.compat.v1.executing_eagerly_outside_functions() else assigned


def join() -> tf.Tensor:
    """Call it when this rank has no more data: it takes part in all reductions with zeros until all ranks have joined.
    Returns the last rank that joined."""
    (last,) = run(plans.join, [], [tf.int32], [()], "join")
    return tf.convert_to_tensor(last)


def barrier(process_set: ProcessSet = global_process_set) -> Any:
    """Waits until every rank of the set has called it. In a graph of TensorFlow 1, the operation that waits."""
    kernel = functools.partial(plans.barrier, name=name_of("barrier", None, process_set), process_set=process_set)
    (done,) = run(kernel, [], [tf.int32], [()], "barrier")
    return None if tf.compat.v1.executing_eagerly_outside_functions() else done.op


__all__ = [
    "Adasum", "Average", "Max", "Min", "Product", "Sum", "allgather", "allreduce", "alltoall", "barrier", "broadcast",
    "broadcast_", "cross_rank", "cross_size", "grouped_allgather", "grouped_allreduce", "grouped_reducescatter",
    "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_rank_op", "local_size", "local_size_op",
    "mpi_threads_supported", "process_set_included_op", "rank", "rank_op", "reducescatter", "shutdown", "size",
    "size_op", "start_timeline", "stop_timeline"]
