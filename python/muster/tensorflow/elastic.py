"""Elastic training with TensorFlow: `run` around the training function, and states for the trained objects.

    state = hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0, batch=0)

    @hvd.elastic.run
    def train(state):
        for state.epoch in range(state.epoch, epochs):
            ...
            state.commit()

    train(state)
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from ..common import basics
from ..common.elastic import ObjectState as _CommonObjectState
from ..common.elastic import State, run_fn
from ..common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from .errors import raised_as_own
from .mpi_ops import init
from .objects import broadcast_object
from .variables import broadcast_variables

__all__ = ["HorovodInternalError", "HostsUpdatedInterrupt", "ObjectState", "State", "TensorFlowKerasState",
           "TensorFlowState", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `func(state, ...)` an elastic training; see muster.common.elastic.run_fn for its behaviour.

    Recognises exceptions that TensorFlow wraps in a tf.function or in model.fit().
    """

    @functools.wraps(func)
    def train(*args: Any, **kwargs: Any) -> Any:
        with raised_as_own():
            return func(*args, **kwargs)

    return run_fn(train, _join_next_world)


def _join_next_world() -> None:
    basics.shutdown()
    init()


class ObjectState(_CommonObjectState):
    """Plain Python objects only, as attributes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(broadcast_object, basics.rank, **kwargs)


class TensorFlowState(ObjectState):
    """Variables, and Python objects as attributes."""

    def __init__(self, variables: Optional[Sequence[Any]] = None, session: Any = None, **kwargs: Any) -> None:
        """variables: default: all global variables of a graph of TensorFlow 1, with the session in which they
        live."""
        if variables is None:
            variables = tf.compat.v1.global_variables()
        self._session = session
        self._graph_ops: Any = None
        self._variables = list(variables)
        super().__init__(**kwargs)
        self._save_variables()

    def save(self) -> None:
        self._save_variables()
        super().save()

    def restore(self) -> None:
        for part, values in zip(self._parts(), self._saved_values):
            _assign(part, values, self._session)
        super().restore()

    def sync(self) -> None:
        if self._session is None:
            broadcast_variables(self._listed(), 0)
        else:
            # Operations in the graph would have to be found again in each new world; values need not be.
            given = broadcast_object(_values_of(self._listed(), self._session))
            _assign(self._listed(), given, self._session)
        self._save_variables()
        super().sync()

    def _parts(self) -> List[List[Any]]:
        """The variables. Only at the end of a part are variables added while the training goes on."""
        return [self._variables]

    def _listed(self) -> List[Any]:
        return [each for part in self._parts() for each in part]

    def _save_variables(self) -> None:
        self._saved_values = [_values_of(part, self._session) for part in self._parts()]


class TensorFlowKerasState(TensorFlowState):
    """A Keras model with its optimizer, and Python objects as attributes."""

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        """optimizer: default: the model's own. `backend` is accepted for compatibility. Errors: ValueError if the model
        is not built."""
        del backend
        if not getattr(model, "built", True):
            raise ValueError(f"the model {getattr(model, 'name', '')!r} is not built, so it has no variables that "
                             "could be saved or sent: call model.build(input_shape), or call the model on a batch, "
                             "before you create the state")
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__([], None, **kwargs)

    def sync(self) -> None:
        # A worker that has just started has no variables of the optimizer yet, and would broadcast fewer of them.
        build_optimizer(self.optimizer, self.model)
        super().sync()

    def _parts(self) -> List[List[Any]]:
        # Computed each time, since an optimizer creates its variables when it is first applied.
        return [list(self.model.variables), variables_of_optimizer(self.optimizer)]


def variables_of_optimizer(optimizer: Any) -> List[Any]:
    """The variables of an optimizer of Keras 3, of Keras 2, and of its legacy optimizers, where they are a method."""
    listed = getattr(optimizer, "variables", None)
    if listed is None:
        return []
    return list(listed() if callable(listed) else listed)


def build_optimizer(optimizer: Any, model: Any) -> None:
    # A model that waits for its first batch has nothing to optimize yet, and Keras 2 cannot list its variables.
    if optimizer is None or not model.built or not model.trainable_variables:
        return
    if hasattr(optimizer, "_create_all_weights"):
        optimizer._create_all_weights(model.trainable_variables)
    elif not (getattr(optimizer, "built", False) or getattr(optimizer, "_built", False)):
        optimizer.build(model.trainable_variables)


def _values_of(variables: Sequence[Any], session: Any) -> List[np.ndarray]:
    if session is not None:
        return list(session.run(list(variables)))
    return [np.array(tf.convert_to_tensor(each).numpy()) for each in variables]


def _assign(variables: Sequence[Any], values: Sequence[np.ndarray], session: Any) -> None:
    # Variables created after the last save() stay unchanged; they belong to work that is repeated.
    for variable, value in zip(variables, values):
        if session is not None:
            variable.load(value, session)
        else:
            variable.assign(value)
