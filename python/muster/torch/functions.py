"""Copies parameters, optimizer state and any Python object from one rank to all."""

from __future__ import annotations

import bisect
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import torch

from ..common import objects
from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from .gathering import allgather, broadcast_, broadcast_async_

Parameters = Union[Mapping[str, Any], Iterable[Any]]


def broadcast_parameters(params: Parameters, root_rank: int) -> None:
    """Copies the root's parameters into every rank's: model.state_dict(), model.named_parameters(), or a list of
    tensors. Entries that are None are skipped.

    Errors: ValueError for any other type, with the name of the entry; MismatchError if a shape or type differs.
    """
    handles = []
    begun = _Memory()
    for name, tensor in _named(params):
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"broadcast_parameters() copies tensors; {name!r} has type {type(tensor).__name__}: use "
                             f"broadcast_object() for it")
        handles.append((tensor, *_begin_into(tensor, root_rank, f"parameters.{name}", begun)))
    for tensor, contiguous, handle in handles:
        synchronize(handle)
        _bring_back(tensor, contiguous)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: Optional[torch.nn.Module] = None) -> None:
    """Copies the root's optimizer state and settings (learning rates and so on) to every rank, even if this rank's
    optimizer is new and has no state yet, or has another state. In a new optimizer, gradients that are None are zeros
    afterwards.

    model: gives the parameters with sparse gradients; for SparseAdam it is not needed.
    """
    _fill_gradients(optimizer, model)
    tensors: List[torch.Tensor] = []
    state: Any = None
    from ..common.basics import rank
    is_root = rank() == root_rank
    if is_root:
        state = _without_tensors(optimizer.state_dict(), tensors)
    state = broadcast_object(state, root_rank, name="optimizer_state")
    if not is_root:
        tensors = _empty_tensors(state)
    begun = _Memory()
    handles = [(tensor, *_begin_into(tensor, root_rank, f"optimizer_state.{index}", begun))
               for index, tensor in enumerate(tensors)]
    for tensor, contiguous, handle in handles:
        synchronize(handle)
        _bring_back(tensor, contiguous)
    if not is_root:
        optimizer.load_state_dict(_with_tensors(state, tensors))


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, pickled, and unpickled on the other ranks; their own arguments are ignored.

    Errors: as broadcast(); an object that cannot be pickled raises on the root only, before anything is sent.
    """
    from ..common.basics import rank
    is_root = rank() == root_rank
    data = torch.frombuffer(bytearray(objects.dumps(obj)), dtype=torch.uint8) if is_root else None
    length = torch.tensor([data.numel() if data is not None else 0], dtype=torch.int64)
    name = name or "object"
    broadcast_(length, root_rank, f"{name}.length", process_set)
    if data is None:
        data = torch.empty(int(length), dtype=torch.uint8)
    broadcast_(data, root_rank, f"{name}.data", process_set)
    return obj if is_root else objects.loads(data.numpy())


def broadcast_object_fn(root_rank: int = 0, name: Optional[str] = None,
                        process_set: ProcessSet = global_process_set) -> Callable[[Any], Any]:
    """broadcast_object() as a function of the object alone."""
    return lambda obj: broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks, in the order of the ranks."""
    name = name or "object"
    data = torch.frombuffer(bytearray(objects.dumps(obj)), dtype=torch.uint8)
    lengths = allgather(torch.tensor([data.numel()], dtype=torch.int64), f"{name}.length", process_set).tolist()
    parts = allgather(data, f"{name}.data", process_set).split(lengths)
    return [objects.loads(part.numpy()) for part in parts]


def _fill_gradients(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
    if optimizer.state:
        return
    sparse = {id(module.weight) for module in (model.modules() if model is not None else ())
              if isinstance(module, torch.nn.Embedding) and module.sparse}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if not parameter.requires_grad or parameter.grad is not None:
                continue
            zeros = torch.zeros_like(parameter, requires_grad=False)
            is_sparse = id(parameter) in sparse or isinstance(optimizer, torch.optim.SparseAdam)
            parameter.grad = zeros.to_sparse(1) if is_sparse else zeros


class _Placeholder:
    """Stands for a tensor in the pickled object: its position in the list, its shape and its type."""

    def __init__(self, index: int, tensor: torch.Tensor) -> None:
        self.index = index
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype


def _named(params: Parameters) -> List[Tuple[Optional[str], Any]]:
    if isinstance(params, torch.Tensor) or isinstance(params, (str, bytes)):
        raise ValueError(f"broadcast_parameters() takes a dict or a list of tensors, not {type(params).__name__}")
    if isinstance(params, Mapping):
        return sorted(params.items())
    try:
        listed = list(params)
    except TypeError:
        raise ValueError(f"broadcast_parameters() takes a dict or a list of tensors, not "
                         f"{type(params).__name__}") from None
    return [each if isinstance(each, tuple) else (str(index), each) for index, each in enumerate(listed)]


class _Memory:
    """The memory of broadcasts in flight: addresses of begins and ends. The ranges do not overlap, and are sorted."""

    def __init__(self) -> None:
        self._ranges: List[Tuple[int, int]] = []

    def add(self, tensor: torch.Tensor) -> bool:
        """Adds the memory of a contiguous tensor. False, and nothing is added, if a part of it is included already."""
        begin = tensor.data_ptr()
        end = begin + tensor.numel() * tensor.element_size()
        place = bisect.bisect_left(self._ranges, (begin, end))
        if any(other[0] < end and begin < other[1] for other in self._ranges[max(place - 1, 0):place + 1]):
            return False
        if begin < end:
            self._ranges.insert(place, (begin, end))
        return True


def _begin_into(tensor: torch.Tensor, root_rank: int, name: str, begun: _Memory) -> Tuple[torch.Tensor, int]:
    """Begins a broadcast of a tensor with any strides (for example channels_last). A tensor that has several names,
    such as the tied weights of an embedding, is received several times; so is a part of a tensor that is registered on
    its own."""
    contiguous = tensor.detach().contiguous()
    if not begun.add(contiguous):
        contiguous = contiguous.clone()
        begun.add(contiguous)
    return contiguous, broadcast_async_(contiguous, root_rank, name)


def _bring_back(tensor: torch.Tensor, contiguous: torch.Tensor) -> None:
    if contiguous.data_ptr() != tensor.data_ptr():
        with torch.no_grad():
            tensor.copy_(contiguous)


def _without_tensors(value: Any, found: List[torch.Tensor]) -> Any:
    """`value` with a placeholder for every tensor; the tensors are appended to `found`."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        found.append(value)
        return _Placeholder(len(found) - 1, value)
    return _mapped(value, lambda each: _without_tensors(each, found))


def _with_tensors(value: Any, tensors: List[torch.Tensor]) -> Any:
    if isinstance(value, _Placeholder):
        return tensors[value.index]
    return _mapped(value, lambda each: _with_tensors(each, tensors))


def _empty_tensors(value: Any) -> List[torch.Tensor]:
    """Empty tensors on the host for the placeholders; load_state_dict() moves them to the parameters' device."""
    shapes: Dict[int, torch.Tensor] = {}

    def visit(each: Any) -> Any:
        if isinstance(each, _Placeholder):
            shapes[each.index] = torch.empty(each.shape, dtype=each.dtype)
            return each
        return _mapped(each, visit)

    visit(value)
    return [shapes[index] for index in sorted(shapes)]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A dict, list or tuple with every value changed; any other object unchanged."""
    if isinstance(value, dict):
        return {key: change(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(change(each) for each in value)
    return value
