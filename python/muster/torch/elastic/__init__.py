"""Elastic training with PyTorch: `run` around the training function, TorchState for what it trains, ElasticSampler for
what of an epoch is still to be seen.

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
                       get_handler_registry, set_handler_registry)
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "HorovodInternalError", "HostsUpdatedInterrupt", "ModelStateHandler", "ObjectState",
           "OptimizerStateHandler", "SamplerStateHandler", "State", "StateHandler", "TorchState",
           "get_handler_registry", "run", "set_handler_registry"]


class ObjectState(_CommonObjectState):
    """Plain Python objects alone, which are its attributes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(broadcast_object, basics.rank, **kwargs)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `func(state, ...)` an elastic training; see muster.common.elastic.run_fn for what it does when. The world
    is joined anew with init()."""
    return run_fn(func, _join_next_world)


def _join_next_world() -> None:
    basics.shutdown()
    basics.init()
