"""allreduce and reducescatter: every rank gets the sum, average, smallest, largest, product or Adasum of the tensors of
all ranks, or its rows of that.

Averages and scales are computed within the reduction, in double precision for integers and in single precision for
16-bit floats. All ranks get the same bits. Both functions work in eager mode and in graphs, and have gradients.
"""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Union

import tensorflow as tf

from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Adasum, Average, ReduceOp, Sum, choose
from . import plans, questions, tensors
from .compression import Compression
from .dense import reduce_dense
from .execution import run
from .gathering import gather_group
from .naming import name_of, name_of_gradient

Tensor = Union[tf.Tensor, tf.IndexedSlices]


def allreduce(tensor: Tensor, average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False) -> Tensor:
    """The reduction of the tensors of all ranks. tf.IndexedSlices are concatenated, and divided for an average.

    op: Average by default. prescale_factor, postscale_factor: factors before and after the reduction. name: the ranks
    match the operation by it (naming.py). device_dense, device_sparse, ignore_name_scope: accepted for compatibility;
    the work is done on the host.

    Errors: ValueError for a type that cannot be reduced; NotImplementedError for tf.IndexedSlices with factors, or
    with another op than Sum and Average; MismatchError if ranks differ in type, shape, op or factors;
    HorovodInternalError if a rank is lost (for graphs see execution.py).
    """
    del device_dense, device_sparse, ignore_name_scope
    _refuse_scaled_slices([tensor], prescale_factor, postscale_factor)
    return _reduce([tensor], choose(op, average), compression, prescale_factor, postscale_factor, name, process_set,
                   None)[0]


def grouped_allreduce(tensors: Sequence[Tensor], average: Optional[bool] = None, device_dense: str = "",
                      device_sparse: str = "", compression: Any = Compression.none, op: Optional[int] = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
                      name: Optional[str] = None) -> List[Tensor]:
    """allreduce of several tensors, which travel together. Errors: as allreduce()."""
    del device_dense, device_sparse, ignore_name_scope
    _refuse_scaled_slices(tensors, prescale_factor, postscale_factor)
    return _reduce(tensors, choose(op, average), compression, prescale_factor, postscale_factor, name, process_set,
                   None)


def reduce_in_groups(listed: Sequence[Tensor], op: ReduceOp, compression: Any, prescale: float, postscale: float,
                     name: str, process_set: ProcessSet,
                     groups: Optional[Sequence[Sequence[int]]]) -> List[Tensor]:
    """grouped_allreduce() in which the tensors of each group, given by their positions in the list, travel together."""
    return _reduce(listed, op, compression, prescale, postscale, name, process_set, groups)


def reducescatter(tensor: tf.Tensor, device_dense: str = "", compression: Any = Compression.none, op: int = Average,
                  name: Optional[str] = None, process_set: ProcessSet = global_process_set,
                  ignore_name_scope: bool = False, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> tf.Tensor:
    """This rank's rows of the reduction; if the rows do not divide evenly, the first ranks have one row more.

    Errors: as allreduce(); ValueError for a tensor without dimensions; NotImplementedError for Adasum.
    """
    del ignore_name_scope
    return grouped_reducescatter([tensor], device_dense, compression, op, process_set, prescale_factor,
                                 postscale_factor, name)[0]


def grouped_reducescatter(tensors: Sequence[tf.Tensor], device_dense: str = "", compression: Any = Compression.none,
                          op: int = Average, process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                          name: Optional[str] = None) -> List[tf.Tensor]:
    """reducescatter of several tensors. Errors: as reducescatter()."""
    del device_dense
    reduction = choose(op)
    if reduction == Adasum:
        raise NotImplementedError("reducescatter cannot be used with Adasum, which needs whole tensors: use allreduce")
    if not tensors:
        return []
    pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    reduced = _scatter([tensor for tensor, _ in pairs], reduction, prescale_factor, postscale_factor, name,
                       process_set)
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def _reduce(listed: Sequence[Tensor], op: ReduceOp, compression: Any, prescale: float, postscale: float,
            name: Optional[str], process_set: ProcessSet,
            groups: Optional[Sequence[Sequence[int]]]) -> List[Tensor]:
    values: List[Any] = [each if isinstance(each, tf.IndexedSlices) else tf.convert_to_tensor(each)
                         for each in listed]
    dense = [index for index, each in enumerate(values) if not isinstance(each, tf.IndexedSlices)]
    sparse = [index for index, each in enumerate(values) if isinstance(each, tf.IndexedSlices)]
    if sparse and op not in (Average, Sum):
        # Before the dense tensors are submitted: other ranks would wait for them.
        raise NotImplementedError(f"tf.IndexedSlices can be added and averaged over the ranks; for {op.name.lower()} "
                                  "convert them to tensors first (tf.convert_to_tensor, sparse_as_dense=True)")
    if dense:
        place_of = {index: place for place, index in enumerate(dense)}
        dense_groups = groups and [[place_of[i] for i in group if i in place_of] for group in groups]
        pairs = [compression.compress(values[index]) for index in dense]
        reduced = reduce_dense([tensor for tensor, _ in pairs], op, prescale, postscale, name, process_set,
                                dense_groups)
        for index, tensor, (_, context) in zip(dense, reduced, pairs):
            values[index] = compression.decompress(tensor, context)
    if sparse:
        for index, slices in zip(sparse, _reduce_sparse([values[i] for i in sparse], op, prescale, postscale, name,
                                                        process_set)):
            values[index] = slices
    return values


def _refuse_scaled_slices(listed: Sequence[Tensor], prescale: float, postscale: float) -> None:
    if (prescale, postscale) != (1.0, 1.0) and any(isinstance(each, tf.IndexedSlices) for each in listed):
        raise NotImplementedError("prescale_factor and postscale_factor cannot be used with tf.IndexedSlices: multiply "
                                  "their values, or convert them to tensors first (tf.convert_to_tensor)")


def _reduce_sparse(listed: Sequence[tf.IndexedSlices], op: ReduceOp, prescale: float, postscale: float,
                   name: Optional[str], process_set: ProcessSet) -> List[tf.IndexedSlices]:
    gathered = gather_group([*[each.values for each in listed], *[each.indices for each in listed]],
                            None if name is None else f"{name}.slices", process_set)
    reduced = []
    for each, values, indices in zip(listed, gathered, gathered[len(listed):]):
        if prescale * postscale != 1.0:
            values = values * tf.cast(prescale * postscale, values.dtype)
        if op == Average:
            values = values / tf.cast(questions.size_of(process_set), values.dtype)
        reduced.append(tf.IndexedSlices(values, indices, dense_shape=each.dense_shape))
    return reduced


def _scatter(listed: Sequence[tf.Tensor], op: ReduceOp, prescale: float, postscale: float, name: Optional[str],
             process_set: ProcessSet) -> List[tf.Tensor]:
    for each in listed:
        tensors.check(each)
    full_name = name_of("reducescatter", name, process_set, listed[0])
    kernel = functools.partial(plans.reduce_scatter, name=full_name, op=op, prescale=prescale, postscale=postscale,
                               process_set=process_set)

    @tf.custom_gradient
    def scatter(*inputs: tf.Tensor) -> Any:
        def gradient(*upstream: Any) -> Any:
            factor = tf.constant(prescale * postscale, tf.float64)
            if op == Sum:
                factor *= tf.cast(questions.size_of(process_set), tf.float64)
            scaled = [each * tf.cast(factor, each.dtype) for each in upstream]
            return gather_group(scaled, name_of_gradient(full_name), process_set)

        return run(kernel, inputs, [each.dtype for each in inputs],
                   [_any_length(each.shape) for each in inputs], "reducescatter"), gradient

    return list(scatter(*listed))


def _any_length(shape: tf.TensorShape) -> tf.TensorShape:
    return shape if shape.rank in (None, 0) else tf.TensorShape([None, *shape[1:]])
