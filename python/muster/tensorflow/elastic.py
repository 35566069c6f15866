"""Elastic training with TensorFlow: `run` around the training function, and states for what it trains.

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
    """Makes `func(state, ...)` an elastic training; see muster.common.elastic.run_fn for what it does when.

    Also what comes out of a tf.function or of model.fit(), where TensorFlow wraps it, is recognised.
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
    """Plain Python objects alone, which are its attributes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(broadcast_object, basics.rank, **kwargs)


class TensorFlowState(ObjectState):
    """Variables, and Python objects as attributes."""

    def __init__(self, variables: Optional[Sequence[Any]] = None, session: Any = None, **kwargs: Any) -> None:
        """variables: all global ones of a graph of TensorFlow 1 where there are none given, with the session that
        they live in."""
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
        _assign(self._listed(), self._saved_values, self._session)
        super().restore()

    def sync(self) -> None:
        if self._session is None:
            broadcast_variables(self._listed(), 0)
        else:
            # A graph that grows with each world would have to be found again; values do not.
            given = broadcast_object(_values_of(self._listed(), self._session))
            _assign(self._listed(), given, self._session)
        self._save_variables()
        super().sync()

    def _listed(self) -> List[Any]:
        return self._variables

    def _save_variables(self) -> None:
        self._saved_values = _values_of(self._listed(), self._session)


class TensorFlowKerasState(TensorFlowState):
    """A model of Keras with its optimizer, and Python objects as attributes."""

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        """optimizer: the model's own where there is none given. `backend` is taken from programs that give it."""
        del backend
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__([], None, **kwargs)

    def sync(self) -> None:
        # A worker that has just started has no variables of the optimizer yet, and would broadcast fewer.
        build_optimizer(self.optimizer, self.model)
        super().sync()

    def _listed(self) -> List[Any]:
        # Asked each time: an optimizer makes its variables when it is first applied.
        return [*self.model.variables, *variables_of_optimizer(self.optimizer)]


def variables_of_optimizer(optimizer: Any) -> List[Any]:
    """Of Keras 3, of Keras 2, and of its legacy ones, where it is a method."""
    listed = getattr(optimizer, "variables", None)
    if listed is None:
        return []
    return list(listed() if callable(listed) else listed)


def build_optimizer(optimizer: Any, model: Any) -> None:
    # A model that waits for its first batch has nothing to optimize yet; Keras 2 refuses to list its variables.
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
    # Variables that came after the last save() are left as they are; they belong to what is done again.
    for variable, value in zip(variables, values):
        if session is not None:
            variable.load(value, session)
        else:
            variable.assign(value)
