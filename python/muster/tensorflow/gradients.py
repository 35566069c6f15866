"""The reduction of the gradients of a step over the ranks, for tapes and optimizers: all gradients as one operation.

One operation serves them all for two reasons: each operation costs a round between the ranks, and the order in which a
graph computes gradients differs from run to run and from rank to rank.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Iterable, List, Optional, Sequence, Set, Union

import tensorflow as tf

from ..common import basics
from ..common.process_sets import ProcessSet
from ..common.reduce_ops import Average, choose
from . import questions
from .reductions import reduce_in_groups
from .variables import tensor_of

Groups = Union[None, int, Sequence[Sequence[Any]]]


class GradientReducer:
    """Reduces the gradients of one tape or optimizer.

    Errors of the constructor: ValueError for arguments that exclude each other.
    """

    def __init__(self, name: str, *, compression: Any, sparse_as_dense: bool, op: int,
                 gradient_predivide_factor: float, num_groups: int, groups: Groups, process_set: ProcessSet,
                 scale_local_gradients: bool) -> None:
        self.op = choose(op)
        if gradient_predivide_factor != 1.0 and self.op != Average:
            raise ValueError(f"gradient_predivide_factor is {gradient_predivide_factor}, which needs op=Average: it "
                             f"is the part of the average that is taken before the sum")
        if num_groups:
            warnings.warn("Parameter `num_groups` has been replaced by `groups` and will be removed.",
                          DeprecationWarning, stacklevel=4)
            groups = num_groups if groups is None else groups
        _check_groups(groups)
        self.name = name
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.prescale = 1.0 / gradient_predivide_factor
        self.postscale = gradient_predivide_factor
        self.groups = groups
        self.process_set = process_set
        self.scale_local_gradients = scale_local_gradients
        self._local: Set[Any] = set()

    def register_local(self, variable: Any) -> None:
        """Keeps the gradient of this variable on this rank: it is not reduced."""
        self._local.add(tensor_of(variable).ref())

    def is_local(self, variable: Any) -> bool:
        """Whether register_local() was called for this variable."""
        return tensor_of(variable).ref() in self._local

    def reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """The reduced gradients, in the order of `variables`. None stays None.

        The gradients of local variables are divided by the number of ranks (scale_local_gradients). Then they have the
        same scale as the reduced gradients, which belong to the average of the losses of all ranks.
        """
        if not _is_distributed():
            return list(gradients)
        result = list(gradients)
        keys = [tensor_of(each).ref() for each in variables]
        chosen = [i for i, gradient in enumerate(result) if gradient is not None and keys[i] not in self._local]
        if self.scale_local_gradients and self._local:
            for i, gradient in enumerate(result):
                if gradient is not None and keys[i] in self._local:
                    result[i] = _divided(gradient, questions.size_of(self.process_set))
        if chosen:
            given = [self._dense(result[i]) for i in chosen]
            reduced = reduce_in_groups(given, self.op, self.compression, self.prescale, self.postscale, self.name,
                                       self.process_set, self._groups_of([keys[i] for i in chosen]))
            for i, gradient in zip(chosen, reduced):
                result[i] = gradient
        return result

    def _dense(self, gradient: Any) -> Any:
        return tf.convert_to_tensor(gradient) if self.sparse_as_dense else gradient

    def _groups_of(self, keys: Sequence[Any]) -> Optional[List[List[int]]]:
        """Positions of the gradients by group. A variable in no group is a group of its own."""
        if self.groups is None:
            return None
        if isinstance(self.groups, int):
            count = max(1, min(self.groups, len(keys))) if self.groups else len(keys)
            return [list(range(len(keys) * i // count, len(keys) * (i + 1) // count)) for i in range(count)]
        place_of = {key: place for place, key in enumerate(keys)}
        listed = [[place_of.pop(key) for key in (tensor_of(each).ref() for each in group) if key in place_of]
                  for group in self.groups]
        return [group for group in listed if group] + [[place] for place in place_of.values()]


def register_layers(reducer: GradientReducer, layers: Any) -> None:
    """Makes the weights of these layers, one layer or several, local. Errors: ValueError for anything but layers."""
    if layers is None:
        return
    listed: Iterable[Any] = layers if isinstance(layers, (list, tuple, set)) else [layers]
    for layer in listed:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError(f"local_layers has {layer!r} in it, which is not a Keras layer")
        for weight in layer.trainable_weights:
            reducer.register_local(weight)


def _is_distributed() -> bool:
    # An elastic training of one rank may have several ranks in the next world, with the same graph.
    return basics.size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1"


def _divided(gradient: Any, divisor: tf.Tensor) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / tf.cast(divisor, gradient.values.dtype), gradient.indices,
                                dense_shape=gradient.dense_shape)
    return gradient / tf.cast(divisor, gradient.dtype)


def _check_groups(groups: Groups) -> None:
    if groups is None or (isinstance(groups, int) and groups >= 0):
        return
    if isinstance(groups, (list, tuple)) and all(isinstance(group, (list, tuple)) for group in groups):
        return
    raise ValueError(f"groups is {groups!r}: it must be a number of groups, at least 0, or a list of lists of "
                     "variables")
