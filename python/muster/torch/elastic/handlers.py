"""Saves, restores and synchronizes the parts of a TorchState, by their types."""

from __future__ import annotations

import copy
from typing import Any, Callable, List, Optional, Tuple, Type

import torch

from ..functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ..sharded_optimizer import ShardedOptimizer
from .sampler import ElasticSampler


class StateHandler:
    """The handler of one part of a state, which stays the same object. Each type of part has a subclass."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keeps a copy of the present value."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restores the value of the last save()."""
        raise NotImplementedError

    def sync(self) -> None:
        """Copies rank 0's value to all ranks, and saves it. All ranks call it."""
        raise NotImplementedError

    def on_sync_skipped(self) -> None:
        """Called instead of sync() if all ranks of the new world were in the last one: their values are equal."""

    def set_value(self, value: Any) -> None:
        """Replaces the object."""
        self.value = value
        self.save()


class _DictionaryHandler(StateHandler):
    """The handler of an object with a state dictionary."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        # A copy: an optimizer may change the tensors that it is given.
        self.value.load_state_dict(copy.deepcopy(self._saved))


class ModelStateHandler(_DictionaryHandler):
    """A torch.nn.Module."""

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(_DictionaryHandler):
    """A torch.optim.Optimizer, distributed or not, but not one whose state is divided among the ranks."""

    def __init__(self, value: Any) -> None:
        _refuse_sharded(value)
        super().__init__(value)

    def set_value(self, value: Any) -> None:
        _refuse_sharded(value)
        super().set_value(value)

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


def _refuse_sharded(value: Any) -> None:
    if isinstance(value, ShardedOptimizer):
        raise ValueError("a ShardedOptimizer cannot be a part of TorchState: with a lost worker, its part of the "
                         "optimizer's state is lost, and no other rank has it. Use a DistributedOptimizer, or write "
                         "checkpoints with save_sharded(), from which a job that is started again with any number of "
                         "ranks continues (load_sharded())")


class StatefulObjectHandler(_DictionaryHandler):
    """Any other object with state_dict() and load_state_dict(): a scheduler of learning rates, a GradScaler. A copy of
    a scheduler would drive a copy of its optimizer, so the object itself stays, and only its dictionary is sent."""

    def sync(self) -> None:
        """Saves the value. TorchState sends the dictionaries of all such objects in one broadcast and loads them before
        this call."""
        self.save()


class SamplerStateHandler(_DictionaryHandler):
    """An ElasticSampler: all samples that any rank has seen in this epoch count as seen."""

    def sync(self) -> None:
        # Rank 0's model counts. The samples of a worker that has just begun, or that committed a batch that rank 0 did
        # not commit, do not belong to that model: only ranks at the same batch of the same epoch add their samples.
        leading = broadcast_object(self.value.state_dict(), root_rank=0, name="elastic.sampler")
        states = allgather_object(self.value.state_dict(), name="elastic.samplers")
        leading["processed_indices"] = set().union(*(each["processed_indices"] for each in states
                                                     if _stands_at(each) == _stands_at(leading)))
        self.value.load_state_dict(leading)
        self.save()

    def on_sync_skipped(self) -> None:
        # The ranks of the new world share the rest.
        self.sync()


def _stands_at(sampler_state: "dict[str, Any]") -> Tuple[int, int]:
    return sampler_state["epoch"], sampler_state["recorded_batches"]


Registry = List[Tuple[Type[Any], Callable[[Any], StateHandler]]]

_registry: Registry = [(torch.nn.Module, ModelStateHandler), (torch.optim.Optimizer, OptimizerStateHandler),
                       (ElasticSampler, SamplerStateHandler)]


def get_handler_registry() -> Registry:
    """Types and their handlers; the first type that matches applies. An object of no such type that has state_dict()
    and load_state_dict() gets a StatefulObjectHandler. A copy: see set_handler_registry()."""
    return list(_registry)


def set_handler_registry(registry: Registry) -> None:
    """Applies to states that are made from now on."""
    _registry[:] = registry


def handler_for(value: Any) -> Optional[StateHandler]:
    """None for a value that is saved as an object."""
    for kind, make in _registry:
        if isinstance(value, kind):
            return make(value)
    return StatefulObjectHandler(value) if _has_state_dictionary(value) else None


def _has_state_dictionary(value: Any) -> bool:
    # A class has these functions, too, but no state.
    return not isinstance(value, type) and all(callable(getattr(value, name, None))
                                               for name in ("state_dict", "load_state_dict"))
