"""How the parts of a TorchState are saved, restored and given to all ranks, by their types."""

from __future__ import annotations

import copy
from typing import Any, Callable, List, Optional, Tuple, Type

import torch

from ..functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


class StateHandler:
    """Of one part of a state, which stays the same object. A subclass says how, for its type."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keeps what the value holds now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Brings back what the last save() kept."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives rank 0's to all ranks, and saves it. Called by all."""
        raise NotImplementedError

    def on_sync_skipped(self) -> None:
        """The world was made anew with ranks that were all in the last one, and rank 0's is everybody's already."""

    def set_value(self, value: Any) -> None:
        """Another object is meant from now on."""
        self.value = value
        self.save()


class _DictionaryHandler(StateHandler):
    """What has a state dictionary."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        # A copy: an optimizer may go on to work in the tensors that it is given.
        self.value.load_state_dict(copy.deepcopy(self._saved))


class ModelStateHandler(_DictionaryHandler):
    """A torch.nn.Module."""

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(_DictionaryHandler):
    """A torch.optim.Optimizer, distributed or not."""

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(_DictionaryHandler):
    """An ElasticSampler: what ranks have seen of the epoch counts as seen."""

    def sync(self) -> None:
        # Rank 0's model counts. A worker that has just begun, or that committed a batch that rank 0 did not, has seen
        # something else than that model: only who stands at the same batch of the same epoch adds what it has seen.
        leading = broadcast_object(self.value.state_dict(), root_rank=0, name="elastic.sampler")
        states = allgather_object(self.value.state_dict(), name="elastic.samplers")
        leading["processed_indices"] = set().union(*(each["processed_indices"] for each in states
                                                     if _stands_at(each) == _stands_at(leading)))
        self.value.load_state_dict(leading)
        self.save()

    def on_sync_skipped(self) -> None:
        # Other ranks, or fewer, share out the rest.
        self.sync()


def _stands_at(sampler_state: "dict[str, Any]") -> Tuple[int, int]:
    return sampler_state["epoch"], sampler_state["recorded_batches"]


Registry = List[Tuple[Type[Any], Callable[[Any], StateHandler]]]

_registry: Registry = [(torch.nn.Module, ModelStateHandler), (torch.optim.Optimizer, OptimizerStateHandler),
                       (ElasticSampler, SamplerStateHandler)]


def get_handler_registry() -> Registry:
    """Types and their handlers; the first type that fits counts. A copy: see set_handler_registry()."""
    return list(_registry)


def set_handler_registry(registry: Registry) -> None:
    """For states that are made from now on."""
    _registry[:] = registry


def handler_for(value: Any) -> Optional[StateHandler]:
    """None for what is saved as an object."""
    for kind, make in _registry:
        if isinstance(value, kind):
            return make(value)
    return None
