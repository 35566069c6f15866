"""allgather, alltoall and broadcast, which move tensors between ranks unchanged.

The tensors of allgather and alltoall may differ between ranks in their first dimension.
"""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence

import tensorflow as tf

from ..common.process_sets import ProcessSet, global_process_set
from . import plans, questions, tensors
from .dense import average
from .execution import run
from .naming import name_of, name_of_gradient


def allgather(tensor: tf.Tensor, name: Optional[str] = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The tensors of all ranks, concatenated along the first dimension in the order of the ranks. A tensor without
    dimensions counts as one element. The gradient is each rank's rows of the average of the gradients.

    Errors: as allreduce(); MismatchError if types or other dimensions differ.
    """
    del ignore_name_scope
    return gather_group([tensor], name, process_set)[0]


def grouped_allgather(tensors: Sequence[tf.Tensor], name: Optional[str] = None, ignore_name_scope: bool = False,
                      process_set: ProcessSet = global_process_set) -> List[tf.Tensor]:
    """allgather of several tensors."""
    del ignore_name_scope
    return gather_group(tensors, name, process_set)


def broadcast(tensor: tf.Tensor, root_rank: int, name: Optional[str] = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The root's tensor. The gradient is the average of all ranks' gradients at the root, and zeros elsewhere.

    root_rank: a rank of the world, also within a process set. Errors: as allreduce(); MismatchError if roots, types or
    shapes differ.
    """
    del ignore_name_scope
    return broadcast_group([tensor], root_rank, name, process_set)[0]


def alltoall(tensor: tf.Tensor, splits: Optional[Any] = None, name: Optional[str] = None,
             ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> Any:
    """Sends a part of the first dimension to each rank. Returns the received rows in the order of the ranks; with
    `splits` a pair of them and the numbers of rows from each rank (int32). The gradient is sent back to the rows'
    origin.

    splits: the rows for each rank; default: equal parts. Errors: as allreduce(); ValueError if the splits are not one
    for each rank, are negative, or do not add up to the number of rows.
    """
    del ignore_name_scope
    output, received = _exchange(tf.convert_to_tensor(tensor), splits, name, process_set)
    return output if splits is None else (output, received)


def gather_group(listed: Sequence[tf.Tensor], name: Optional[str], process_set: ProcessSet) -> List[tf.Tensor]:
    """The kernel of grouped_allgather()."""
    if not listed:
        return []
    given = [tf.convert_to_tensor(each) for each in listed]
    for each in given:
        tensors.check(each)
    full_name = name_of("allgather", name, process_set, given[0])
    kernel = functools.partial(plans.gather, name=full_name, process_set=process_set)

    @tf.custom_gradient
    def gather(*inputs: tf.Tensor) -> Any:
        values = run(kernel, inputs, [each.dtype for each in inputs] + [tf.int32] * len(inputs),
                     [_rows_unknown(each.shape) for each in inputs] + [(2,)] * len(inputs), "allgather")
        wholes, own = values[:len(inputs)], values[len(inputs):]

        def gradient(*upstream: Any) -> Any:
            averaged = average(upstream, name_of_gradient(full_name), process_set)
            return [tf.reshape(each[rows[0]:rows[0] + rows[1]], tf.shape(given_one))
                    for each, rows, given_one in zip(averaged, own, inputs)]

        return wholes, gradient

    return list(gather(*given))


def broadcast_group(listed: Sequence[tf.Tensor], root_rank: int, name: Optional[str],
                    process_set: ProcessSet) -> List[tf.Tensor]:
    """broadcast() of several tensors."""
    if not listed:
        return []
    given = [tf.convert_to_tensor(each) for each in listed]
    for each in given:
        tensors.check(each)
    full_name = name_of("broadcast", name, process_set, given[0])
    kernel = functools.partial(plans.broadcast, name=full_name, root=root_rank, process_set=process_set)

    @tf.custom_gradient
    def send(*inputs: tf.Tensor) -> Any:
        def gradient(*upstream: Any) -> Any:
            averaged = average(upstream, name_of_gradient(full_name), process_set)
            is_root = tf.equal(questions.rank_op(), root_rank)
            return [tf.where(is_root, each, tf.zeros_like(each)) for each in averaged]

        return run(kernel, inputs, [each.dtype for each in inputs], [each.shape for each in inputs],
                   "broadcast"), gradient

    return list(send(*given))


def _exchange(tensor: tf.Tensor, splits: Optional[Any], name: Optional[str], process_set: ProcessSet) -> List[Any]:
    tensors.check(tensor)
    full_name = name_of("alltoall", name, process_set, tensor)
    kernel = functools.partial(plans.exchange, name=full_name, process_set=process_set)
    rows = [] if splits is None else [tf.cast(splits, tf.int32)]

    @tf.custom_gradient
    def exchange(given: tf.Tensor) -> Any:
        output, received = run(kernel, [given, *rows], [given.dtype, tf.int32],
                               [_rows_unknown(given.shape), (None,)], "alltoall")

        def gradient(upstream: Any, _: Any = None) -> Any:
            return _exchange(tf.convert_to_tensor(upstream), received, name_of_gradient(full_name), process_set)[0]

        return [output, received], gradient

    return list(exchange(tensor))


def _rows_unknown(shape: tf.TensorShape) -> tf.TensorShape:
    if shape.rank is None:
        return shape
    return tf.TensorShape([None, *shape[1:]])
