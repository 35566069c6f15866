"""The same variables on all ranks when training begins."""

from __future__ import annotations

from typing import Any, List, Optional

from ...common.process_sets import global_process_set
from ..elastic import build_optimizer, variables_of_optimizer
from ..objects import allgather_object
from ..variables import broadcast_variables, tensor_of
from .sessions import now


class BroadcastGlobalVariablesCallback:
    """Copies the variables of the root, of its model and its optimizer, to all ranks.

    This happens before the first batch if all ranks have the same number of variables by then. If they do not, for
    example because only the root has loaded a model from a file, or if the first batch adds variables, all variables
    are copied after the first batch. Put this callback before all callbacks that change anything.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Optional[List[Any]] = None) -> None:
        """local_variables: variables that are not copied. `device` is accepted for compatibility and has no effect."""
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.local_variables = list(local_variables or [])
        self.broadcast_done = False
        #: The number of variables that were copied, equal on all ranks.
        self._sent = 0

    def register_local_var(self, variable: Any) -> None:
        """Excludes this variable from the copy."""
        self.local_variables.append(variable)

    def on_train_begin(self, logs: Any = None) -> None:
        if self.broadcast_done:
            return
        model: Any = self.model  # type: ignore[attr-defined]
        build_optimizer(model.optimizer, model)
        listed = self._variables()
        if _on_all_ranks(len(listed), len(listed)):
            self._send(listed)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.broadcast_done:
            return
        listed = self._variables()
        if not _on_all_ranks(len(listed), self._sent):
            self._send(listed)
        self.broadcast_done = True

    def _variables(self) -> List[Any]:
        model: Any = self.model  # type: ignore[attr-defined]
        local = {tensor_of(each).ref() for each in self.local_variables}
        listed = [*_built(model), *variables_of_optimizer(model.optimizer)]
        return [each for each in listed if tensor_of(each).ref() not in local]

    def _send(self, listed: List[Any]) -> None:
        assignment = broadcast_variables(listed, self.root_rank, global_process_set)
        if assignment is not None:  # in a graph of TensorFlow 1
            now(assignment)
        self._sent = len(listed)


def _on_all_ranks(count: int, expected: int) -> bool:
    """Whether every rank has the expected number of variables: so all ranks decide alike."""
    counts = allgather_object(count, name="broadcast_global_variables.count")
    return counts == [expected] * len(counts)


def _built(model: Any) -> List[Any]:
    # A model that takes its shapes from the first batch has no variables before it; Keras 2 refuses to list them.
    return list(model.variables) if model.built else []
