"""The state of a PyTorch training: models, optimizers, samplers and other objects."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from ...common import basics
from ...common.elastic import ObjectState
from ..functions import broadcast_object
from .handlers import StateHandler, handler_for


class TorchState(ObjectState):
    """Saves, restores and synchronizes its arguments, each under its name as an attribute:

        state = TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)

    The state dictionaries of a model, an optimizer and a sampler are saved, and the objects stay the same; any other
    object is copied whole. There may be several models, optimizers and samplers, under any names. A program may replace
    one by setting its attribute.
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
