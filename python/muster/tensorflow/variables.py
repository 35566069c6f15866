"""Makes variables equal on all ranks."""

from __future__ import annotations

from typing import Any, List, Sequence

import tensorflow as tf

from ..common.process_sets import ProcessSet, global_process_set
from .mpi_ops import broadcast_


def tensor_of(variable: Any) -> Any:
    """The variable of TensorFlow inside a variable of Keras 3; any other value unchanged."""
    inner = getattr(variable, "value", None)
    return variable if inner is None or callable(inner) else inner


def broadcast_variables(variables: Sequence[Any], root_rank: int, process_set: ProcessSet = global_process_set,
                        inplace: bool = False) -> Any:
    """Assigns the root's values to the variables of every rank. All ranks list the same variables in the same order. In
    a graph of TensorFlow 1, the operation that does this. `inplace` has no effect: the variables are always assigned.

    Errors: as broadcast(); MismatchError if the variables differ.
    """
    del inplace
    listed: List[Any] = [tensor_of(each) for each in variables]
    if not listed:
        return None if tf.executing_eagerly() else tf.no_op()
    assigned = broadcast_(listed, root_rank, process_set=process_set)
    return None if tf.compat.v1.executing_eagerly_outside_functions() else tf.group(*assigned)


def broadcast_global_variables(root_rank: int) -> Any:
    """broadcast_variables() of all global variables of a graph of TensorFlow 1.

    Errors: RuntimeError in eager mode, in which TensorFlow keeps no list of all variables.
    """
    if tf.executing_eagerly():
        raise RuntimeError("hvd.broadcast_global_variables() does not support eager execution, in which TensorFlow "
                           "keeps no list of all variables: use hvd.broadcast_variables(<model/optimizer variables>)")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """For tf.compat.v1.train.MonitoredSession and estimators: copies the root's variables to all ranks once a session
    has been created."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op: Any = None

    def begin(self) -> None:
        if self.bcast_op is None or self.bcast_op.graph is not tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self.bcast_op)
