"""Reductions of dense tensors, for the gradients in gathering.py and for allreduce() in reductions.py."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence

import tensorflow as tf

from ..common.process_sets import ProcessSet
from ..common.reduce_ops import Average, ReduceOp
from . import plans, tensors
from .execution import run
from .naming import name_of, name_of_gradient


def reduce_dense(listed: Sequence[tf.Tensor], op: ReduceOp, prescale: float, postscale: float, name: Optional[str],
                 process_set: ProcessSet, groups: Optional[Sequence[Sequence[int]]]) -> List[tf.Tensor]:
    """Reduces tf.Tensors. `groups`: as in reduce_in_groups() of reductions.py."""
    for each in listed:
        tensors.check(each)
    full_name = name_of("allreduce", name, process_set, listed[0])
    kernel = functools.partial(plans.reduce_all, name=full_name, op=op, prescale=prescale, postscale=postscale,
                               process_set=process_set, groups=groups)

    @tf.custom_gradient
    def reduce(*inputs: tf.Tensor) -> Any:
        def gradient(*upstream: Any) -> Any:
            return reduce_dense([tf.convert_to_tensor(each) for each in upstream], op, prescale, postscale,
                                name_of_gradient(full_name), process_set, groups)

        return run(kernel, inputs, [each.dtype for each in inputs], [each.shape for each in inputs],
                   "allreduce"), gradient

    return list(reduce(*listed))


def average(listed: Sequence[Any], name: Optional[str], process_set: ProcessSet) -> List[tf.Tensor]:
    """The averages of values that convert to tensors, for gradients."""
    return reduce_dense([tf.convert_to_tensor(each) for each in listed], Average, 1.0, 1.0, name, process_set, None)
