"""Handing operations on tensors over: prepared operations that are filled in once, handles for several operations at
once, and the way of a device's memory through the host's.

Programs repeat themselves: the same gradients have the same names and, mostly, the same addresses in every step.
Filling an operation in costs more than carrying out a small one, so what was filled in is kept.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ..common import handles, operations
from ..common.operations import Pending, Prepared, Result
from ..common.process_sets import ProcessSet
from . import tensors

#: By everything that is filled in. Dropped altogether when it is full: who hands over ever new names gains nothing
#: from it, and the others fill it again within a step.
_prepared: Dict[Tuple[Any, ...], Prepared] = {}
_MOST_PREPARED = 4096


class Several:
    """Operations that are done together, waited for as if they were one. Its result is the list of theirs."""

    __slots__ = ("_parts", "_results")

    def __init__(self, parts: Sequence[Pending]) -> None:
        self._parts = list(parts)
        self._results: List[Optional[Result]] = []

    def done(self) -> bool:
        return all(part.done() for part in self._parts)

    def wait(self) -> List[Optional[Result]]:
        """Waits for all, also where one fails; the first failure is raised then. Ctrl-C leaves the rest to wait for."""
        failure: Optional[Exception] = None
        while self._parts:
            try:
                result = self._parts[0].wait()
            except Exception as error:  # noqa: B902  (raised below)
                failure = failure or error
                result = None
            self._parts.pop(0)
            self._results.append(result)
        if failure is not None:
            raise failure
        return self._results


class Route:
    """Where the library reads and writes for one tensor: the tensors themselves on the host, copies of them for a
    device. `bring_back()` completes the way. `apart`: a copy in any case, as others write into the tensor, too."""

    __slots__ = ("source", "target", "output")

    def __init__(self, tensor: torch.Tensor, output: torch.Tensor, apart: bool = False) -> None:
        self.output = output
        if apart:
            self.source = self.target = tensors.host_copy(tensor).detach().clone()
            return
        self.source = tensors.host_copy(tensor)
        self.target = output if tensors.is_on_host(output) else torch.empty(output.shape, dtype=output.dtype)

    def bring_back(self) -> torch.Tensor:
        if self.target is not self.output:
            with torch.no_grad():
                self.output.copy_(self.target)
        return self.output


def find(key: Tuple[Any, ...]) -> Optional[Prepared]:
    return _prepared.get(key)


def remember(key: Tuple[Any, ...], prepared: Prepared) -> Prepared:
    if len(_prepared) >= _MOST_PREPARED:
        _prepared.clear()
    _prepared[key] = prepared
    return prepared


def begin(finish: Callable[[Any], object], kind: str, name: str, **arguments: Any) -> int:
    """Hands an operation over; `finish` makes what synchronize() of the handle gives back."""
    return handles.add(operations.submit(kind, name, **arguments), finish)


def begin_all(finish: Callable[[Any], object], parts: Sequence[Any]) -> int:
    """A handle for several that were handed over; `finish` gets the list of their results."""
    return handles.add(Several(parts), finish)  # type: ignore[arg-type]


def name_of(operation: str, name: Optional[str], process_set: ProcessSet) -> str:
    """The identity of an operation, by which the ranks find each other."""
    if name is not None:
        return f"{operation}.{name}"
    return (process_set._session or operations.session_of(process_set)).next_name(operation)


def without_prefix(operation: str, full_name: str) -> str:
    """What name_of() made the name of."""
    return full_name[len(operation) + 1:]
