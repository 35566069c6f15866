"""Elastic training with PyTorch: `run` around the training function, TorchState for the state of the training,
ElasticSampler for the rest of an epoch.

    state = hvd.elastic.TorchState(model, optimizer, epoch=0, batch=0)

    @hvd.elastic.run
    def train(state):
        for state.epoch in range(state.epoch, epochs):
            ...
            state.commit()

    train(state)
"""

from __future__ import annotations

from typing import Any, Callable

from ...common import basics
from ...common.elastic import ObjectState as _CommonObjectState
from ...common.elastic import State, run_fn
from ...common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from ..functions import broadcast_object
from .handlers import (ModelStateHandler, OptimizerStateHandler, SamplerStateHandler, StateHandler,
                       StatefulObjectHandler, get_handler_registry, set_handler_registry)
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "HorovodInternalError", "HostsUpdatedInterrupt", "ModelStateHandler", "ObjectState",
           "OptimizerStateHandler", "SamplerStateHandler", "State", "StateHandler", "StatefulObjectHandler",
           "TorchState", "get_handler_registry", "run", "set_handler_registry"]


class ObjectState(_CommonObjectState):
    """A state of plain Python objects, which are its attributes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(broadcast_object, basics.rank, **kwargs)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `func(state, ...)` an elastic training; see muster.common.elastic.run_fn for the course of a run. It joins
    each new world with init()."""
    return run_fn(func, _join_next_world)


def _join_next_world() -> None:
    basics.shutdown()
    basics.init()
