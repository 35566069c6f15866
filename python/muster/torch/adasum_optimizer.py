"""The optimizer for Adasum: each rank takes its own step with its own gradients, and what the steps have changed is
combined by Adasum, tensor by tensor (Maleki et al.: Scaling distributed training with adaptive summation, MLSys 2021).
So it also works for optimizers that scale what they are given, such as Adam.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional

import torch

from ..common.reduce_ops import Adasum
from .reducing import grouped_allreduce
from .optimizer import _Distributed


class _DistributedAdasumOptimizer(_Distributed):
    """Gradients stay as they are; step() is where the ranks meet."""

    def _watch(self) -> None:
        """Counts backward passes alone."""
        self._reducer.watch(reduces=False)

    def synchronize(self) -> None:
        """Nothing: gradients are not reduced."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("a step without synchronization is not possible with Adasum, whose step() is what "
                             "synchronizes")
        yield

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        super(_Distributed, self).zero_grad(*args, **kwargs)  # type: ignore[misc]

    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: Any) -> Any:
        """The optimizer's own step, and then the combination of all ranks' changes."""
        parameters = [slot.parameter for slot in self._reducer.slots]
        with torch.no_grad():
            before = [parameter.detach().clone() for parameter in parameters]
        self._tell_schedulers()
        loss = super().step(closure, **kwargs)  # type: ignore[misc]
        with torch.no_grad():
            changes = [(parameter - start).contiguous() for parameter, start in zip(parameters, before)]
            combined: List[torch.Tensor] = grouped_allreduce(
                changes, name=f"adasum.{self._reducer.digest()}", compression=self._settings["compression"], op=Adasum,
                process_set=self._process_set)
            for parameter, start, change in zip(parameters, before, combined):
                parameter.copy_(start.add_(change))
        self._reducer.set_passes(self._reducer.passes)
        return loss

    step.hooked = True  # type: ignore[attr-defined]
