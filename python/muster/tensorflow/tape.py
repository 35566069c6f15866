"""tf.GradientTape whose gradients are the average over the ranks."""

from __future__ import annotations

from typing import Any, List, Tuple

import tensorflow as tf

from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import Average
from .compression import Compression
from .gradients import GradientReducer, Groups, register_layers

Pairs = List[Tuple[Any, Any]]


class _Distributed:
    """Placed before the class of a tape in the order of its bases."""

    _muster_reducer: GradientReducer

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None,
                 unconnected_gradients: Any = tf.UnconnectedGradients.NONE) -> Any:
        """The gradients as the tape computes them, reduced over the ranks."""
        own = super().gradient(target, sources, output_gradients, unconnected_gradients)  # type: ignore[misc]
        reduced = self._muster_reducer.reduce(tf.nest.flatten(own), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(sources, reduced)

    def get_local_and_global_gradients(self, target: Any, sources: Any, output_gradients: Any = None,
                                       use_generic_names: bool = False) -> Tuple[Pairs, Pairs]:
        """Two lists of pairs of variable and gradient, as gradient() computes them: first the variables whose gradients
        are not reduced, then the others. `use_generic_names` is accepted: one name serves all gradients."""
        del use_generic_names
        pairs = list(zip(sources, self.gradient(target, sources, output_gradients)))
        local = [pair for pair in pairs if self._muster_reducer.is_local(pair[0])]
        return local, [pair for pair in pairs if not self._muster_reducer.is_local(pair[0])]

    def register_local_source(self, source: Any) -> None:
        """Keeps the gradient of this variable on this rank: it is not reduced."""
        self._muster_reducer.register_local(source)


def DistributedGradientTape(gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
                            compression: Any = Compression.none, sparse_as_dense: bool = False, op: int = Average,
                            gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Groups = None,
                            process_set: ProcessSet = global_process_set,
                            scale_local_gradients: bool = True) -> Any:
    """A tape with the recording of `gradtape`, which reduces the gradients over the ranks.

    compression: the type in which gradients travel. sparse_as_dense: tf.IndexedSlices travel as tensors. op: Average,
    Sum or Adasum. gradient_predivide_factor: divides before the sum, and multiplies after it. groups: a number, or
    lists of variables whose gradients travel together; by default all do. scale_local_gradients: see
    GradientReducer.reduce().

    Errors: ValueError for arguments that exclude each other; gradient() raises the errors of grouped_allreduce().
    """
    del device_dense, device_sparse
    reducer = GradientReducer(
        "DistributedGradientTape", compression=compression, sparse_as_dense=sparse_as_dense, op=op,
        gradient_predivide_factor=gradient_predivide_factor, num_groups=num_groups, groups=groups,
        process_set=process_set, scale_local_gradients=scale_local_gradients)
    kind = type(gradtape)
    distributed: Any = object.__new__(type(kind.__name__, (_Distributed, kind), {}))
    # The same tape under another class: past and future recordings are shared.
    distributed.__dict__ = gradtape.__dict__
    distributed._muster_reducer = reducer
    return distributed


def PartialDistributedGradientTape(gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
                                   compression: Any = Compression.none, sparse_as_dense: bool = False,
                                   op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
                                   groups: Groups = None, process_set: ProcessSet = global_process_set,
                                   local_layers: Any = None, scale_local_gradients: bool = True) -> Any:
    """DistributedGradientTape() that does not reduce the gradients of `local_layers`."""
    distributed = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, num_groups,
        groups, process_set, scale_local_gradients)
    register_layers(distributed._muster_reducer, local_layers)
    return distributed
