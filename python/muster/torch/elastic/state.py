"""The state of a PyTorch training: models, optimizers, samplers, and objects."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from ...common import basics
from ...common.elastic import ObjectState
from ..functions import broadcast_object
from .handlers import StateHandler, handler_for


class TorchState(ObjectState):
    """Saves, restores and synchronizes what it is given, each under its name as an attribute:

        state = TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)

    A model, an optimizer and a sampler are saved by what is in them and stay the same objects; everything else is an
    object that is copied whole. Of a state dictionary of their own any number may be given, by any names. Whoever sets
    such an attribute to another model means that one from then on.
    """

    def __init__(self, model: Optional[torch.nn.Module] = None, optimizer: Optional[torch.optim.Optimizer] = None,
                 **kwargs: Any) -> None:
        given = dict(kwargs)
        for name, value in (("model", model), ("optimizer", optimizer)):
            if value is not None:
                given[name] = value
        handlers = {name: handler_for(value) for name, value in given.items()}
        self._handlers: Dict[str, StateHandler] = {name: each for name, each in handlers.items() if each is not None}
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)
        super().__init__(broadcast_object, basics.rank,
                         **{name: value for name, value in given.items() if name not in self._handlers})

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def on_sync_skipped(self) -> None:
        for handler in self._handlers.values():
            handler.on_sync_skipped()
        super().on_sync_skipped()

    def __setattr__(self, name: str, value: Any) -> None:
        handlers = self.__dict__.get("_handlers", {})
        if name in handlers:
            handlers[name].set_value(value)
        super().__setattr__(name, value)
