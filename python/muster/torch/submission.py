"""Submits operations on tensors: prepared operations that are filled in once, handles for several operations together,
and the copies between a device's memory and the host's.

Programs repeat themselves: in every step the same gradients have the same names and, mostly, the same addresses.
Filling in an operation costs more than a small operation itself, so filled-in operations are kept.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ..common import handles, operations
from ..common.operations import Pending, Prepared, Result
from ..common.process_sets import ProcessSet
from . import device_copies, tensors
from .in_place import Writing

#: The key is the complete set of arguments. The cache is emptied when it is full: a program with ever new names gains
#: nothing from it, and any other program fills it again within a step.
_prepared: Dict[Tuple[Any, ...], Prepared] = {}
_MOST_PREPARED = 4096


class Several:
    """Operations that are waited for together. The result is the list of their results."""

    __slots__ = ("_parts", "_results")

    def __init__(self, parts: Sequence[Pending]) -> None:
        self._parts = list(parts)
        self._results: List[Optional[Result]] = []

    def done(self) -> bool:
        return all(part.done() for part in self._parts)

    def wait(self) -> List[Optional[Result]]:
        """Waits for all, even if one fails; then raises the first failure. After Ctrl-C, the rest can be waited for."""
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
    """The tensors that the library reads and writes for one operation: the given tensors if they are on the host,
    copies for tensors on a device. `bring_back()` copies to the device. `apart`: always copies, as others write into
    the tensor. `is_plain_sum`: a sum or an average without scales, which the library may compute on the device."""

    __slots__ = ("source", "target", "output")

    def __init__(self, tensor: torch.Tensor, output: torch.Tensor, apart: bool = False,
                 is_plain_sum: bool = False) -> None:
        self.output = output
        if not apart and device_copies.stays_on_device(tensor, is_plain_sum) and output.is_cuda:
            device_copies.wait_for_device(tensor)
            self.source, self.target = tensor, output
            return
        if apart:
            self.source = self.target = tensors.host_copy(tensor).detach().clone()
            return
        self.source = tensors.host_copy(tensor)
        self.target = output
        if not tensors.is_on_host(output):
            self.target = device_copies.empty_on_host(tuple(output.shape), output.dtype, output.device)

    def bring_back(self) -> torch.Tensor:
        if self.target is not self.output:
            with torch.no_grad():
                if tensors.is_on_host(self.target) and not tensors.is_on_host(self.output):
                    device_copies.copy_to_device(self.output, self.target)
                else:
                    self.output.copy_(self.target)
        return self.output


def find(key: Tuple[Any, ...]) -> Optional[Prepared]:
    return _prepared.get(key)


def remember(key: Tuple[Any, ...], prepared: Prepared) -> Prepared:
    if len(_prepared) >= _MOST_PREPARED:
        _prepared.clear()
    _prepared[key] = prepared
    return prepared


def begin(finish: Callable[[Any], object], kind: str, name: str, written: Sequence[torch.Tensor] = (),
          **arguments: Any) -> int:
    """Submits an operation; synchronize() of the handle returns the result of `finish`. `written`: the program's
    tensors into which it writes."""
    if not written:
        return handles.add(operations.submit(kind, name, **arguments), finish)
    writing: Any = Writing(written, name)
    with writing.released_on_failure():
        return handles.add(writing.begin(operations.submit(kind, name, **arguments)), finish)


def begin_all(finish: Callable[[Any], object], parts: Sequence[Any], writing: Optional[Writing] = None) -> int:
    """A handle for several submitted operations; `finish` gets the list of their results."""
    several = Several(parts)
    pending: Any = several if writing is None else writing.begin(several)
    return handles.add(pending, finish)


def name_of(operation: str, name: Optional[str], process_set: ProcessSet) -> str:
    """The identity of an operation, by which the ranks match it."""
    if name is not None:
        return f"{operation}.{name}"
    return (process_set._session or operations.session_of(process_set)).next_name(operation)


def without_prefix(operation: str, full_name: str) -> str:
    """The inverse of name_of()."""
    return full_name[len(operation) + 1:]
