"""The state of a PyTorch training: models, optimizers, schedulers, samplers and other objects."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from ...common import basics
from ...common.elastic import ObjectState
from ..functions import allgather_object, broadcast_object
from .handlers import StatefulObjectHandler, StateHandler, handler_for

#: The objects of one rank that have a handler, by name: the types of handler and object.
_Objects = Dict[str, Tuple[str, str]]


class TorchState(ObjectState):
    """Saves, restores and synchronizes its arguments, each under its name as an attribute:

        state = TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)

    A model, an optimizer, a sampler, and any other object with state_dict() and load_state_dict(), such as a scheduler
    of learning rates, stay the same objects: their state dictionaries are saved, restored and sent. All other objects
    are copied whole. There may be several of each kind, under any names. A program may replace an object by setting its
    attribute.

    All ranks pass the objects that stay the same: sync() raises ValueError on all ranks if only some of them have such
    an object under a name.
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
        _refuse_differences(allgather_object(self._objects(), name="elastic.objects"))
        stateful = {name: each for name, each in self._handlers.items() if isinstance(each, StatefulObjectHandler)}
        # All ranks make this broadcast: the plain attributes of a rank may differ from those of rank 0.
        attributes, dictionaries = self._bcast_object(
            (self._attributes(), {name: each.value.state_dict() for name, each in stateful.items()}))
        if self._rank() != 0:
            for name, dictionary in dictionaries.items():
                stateful[name].value.load_state_dict(dictionary)
        for handler in self._handlers.values():
            handler.sync()
        self._take(attributes)

    def on_sync_skipped(self) -> None:
        for handler in self._handlers.values():
            handler.on_sync_skipped()
        super().on_sync_skipped()
        # The sampler has saved the samples up to now. A restored model must be as old as the sampler's record, or
        # those samples were lost.
        self.save()

    def __setattr__(self, name: str, value: Any) -> None:
        handlers = self.__dict__.get("_handlers", {})
        if name in handlers:
            handlers[name].set_value(value)
        super().__setattr__(name, value)

    def _objects(self) -> _Objects:
        return {name: (type(each).__name__, type(each.value).__name__) for name, each in self._handlers.items()}


def _refuse_differences(of_ranks: List[_Objects]) -> None:
    """Handlers broadcast their objects. If only some ranks took part, they would wait for the others without end."""
    names = sorted({name for objects in of_ranks for name in objects})
    differences = [each for each in (_difference(name, of_ranks) for name in names) if each is not None]
    if differences:
        raise ValueError(f"the ranks have different objects in TorchState: {'; '.join(differences)}. Pass each model, "
                         f"optimizer, sampler and other object with state_dict() and load_state_dict() under the same "
                         f"name on all ranks: the state of rank 0 is copied to the others")


def _difference(name: str, of_ranks: List[_Objects]) -> Optional[str]:
    """The first rank whose object differs from that of rank 0, in words; None if all ranks agree."""
    handlers, types = zip(*(each.get(name, (None, None)) for each in of_ranks))
    for rank, handler in enumerate(handlers):
        if handler != handlers[0]:
            first, other = ("absent" if each is None else f"of type {each}" for each in (types[0], types[rank]))
            return f"{name!r} is {first} on rank 0 and {other} on rank {rank}"
    return None
