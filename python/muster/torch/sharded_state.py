"""The state of a ShardedOptimizer as values: shards, and how shards of one number of ranks become those of another.

A parameter's state is stored by elements of the parameter, in the order of its memory: `begin` and `length` of the part
that a rank has. A value that is not divided, such as a step count, is stored with each part.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

import torch

from ..common import objects
from ..common.process_sets import ProcessSet
from .gathering import alltoall
from .functions import allgather_object, broadcast_object

_FORMAT = "muster.sharded.1"

#: The tensors without dimensions that PyTorch's optimizers keep for each parameter, whatever its shape.
_OF_WHOLE_PARAMETERS = ("eta", "mu", "mu_product", "step")


@dataclass
class Part:
    """A rank's part of the state of one parameter."""

    begin: int
    length: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    #: By name: tensors of `length` elements, and values of the whole parameter.
    values: Dict[str, Any]


@dataclass
class Shard:
    """A rank's part of the state of an optimizer."""

    rank: int
    size: int
    #: The settings of each group, with the names of its parameters as "params".
    groups: List[Dict[str, Any]]
    parts: Dict[str, Part]

    def to_dict(self) -> Dict[str, Any]:
        """Plain values and tensors only, as torch.load(weights_only=True) accepts."""
        return {"format": _FORMAT, "rank": self.rank, "size": self.size, "param_groups": self.groups,
                "state": {name: {"begin": part.begin, "length": part.length, "shape": list(part.shape),
                                 "strides": list(part.strides), "values": part.values}
                          for name, part in self.parts.items()}}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> "Shard":
        """Errors: ValueError."""
        try:
            return Shard(int(given["rank"]), int(given["size"]), list(given["param_groups"]),
                         {name: Part(int(part["begin"]), int(part["length"]), tuple(part["shape"]),
                                     tuple(part["strides"]), dict(part["values"]))
                          for name, part in given["state"].items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not the state of a ShardedOptimizer: {error!r}") from None


def is_shard(state: Mapping[str, Any]) -> bool:
    return isinstance(state, Mapping) and state.get("format") == _FORMAT


@dataclass
class Taken:
    """What a Taker has found: the values of each part, and the settings of the groups."""

    values: Dict[str, Dict[str, Any]]
    groups: List[Dict[str, Any]]


class Taker:
    """Takes the wanted parts out of any number of shards. `wanted`: the parts without values. `known`: the names of all
    parameters of the optimizer."""

    def __init__(self, wanted: Mapping[str, Part], known: Set[str]) -> None:
        self._wanted = wanted
        self._known = known
        self._values: Dict[str, Dict[str, Any]] = {name: {} for name in wanted}
        self._covered = {name: 0 for name in wanted}
        self._groups: Optional[List[Dict[str, Any]]] = None
        self._faults: List[str] = []

    def take(self, shard: Shard) -> None:
        if self._groups is None:
            self._groups = shard.groups
            stored = {name for group in shard.groups for name in group["params"]}
            if missing := sorted(self._known - stored):
                self._faults.append(f"it has no state for {_listed(missing)}")
        for name, part in shard.parts.items():
            wanted = self._wanted.get(name)
            if wanted is None:
                continue
            if (part.shape, part.strides) != (wanted.shape, wanted.strides):
                self._faults.append(f"{name!r} is stored with shape {list(part.shape)} and strides "
                                    f"{list(part.strides)}, and has shape {list(wanted.shape)} and strides "
                                    f"{list(wanted.strides)} here")
                continue
            begin = max(part.begin, wanted.begin)
            end = min(part.begin + part.length, wanted.begin + wanted.length)
            if end > begin:
                self._copy(name, part, wanted, begin, end)

    def _copy(self, name: str, part: Part, wanted: Part, begin: int, end: int) -> None:
        self._covered[name] += end - begin
        target = self._values[name]
        for key, value in part.values.items():
            if not _is_divided(key, value, part):
                target.setdefault(key, value.clone() if isinstance(value, torch.Tensor) else value)
                continue
            if value.numel() != part.length:
                self._faults.append(f"{key!r} of {name!r} has {value.numel()} elements for a part of {part.length}")
                continue
            if key not in target:
                target[key] = torch.zeros(wanted.length, dtype=value.dtype)
            target[key][begin - wanted.begin:end - wanted.begin].copy_(
                value.reshape(-1)[begin - part.begin:end - part.begin])

    def finish(self, lengths: Sequence[int]) -> Taken:
        """lengths: the numbers of parameters of the optimizer's groups. Errors: ValueError with all faults."""
        groups = self._groups or []
        if not self._faults:
            stored = [len(group["params"]) for group in groups]
            if stored != list(lengths):
                self._faults.append(f"it has groups of {stored} parameters, the optimizer of {list(lengths)}")
            for name, wanted in self._wanted.items():
                if self._covered[name] != wanted.length:
                    self._faults.append(f"it has {self._covered[name]} of {wanted.length} elements of {name!r} "
                                        f"(load_sharded() reads the parts of another number of ranks)")
        if self._faults:
            rest = len(self._faults) - 5
            raise ValueError("this state does not fit this optimizer: " + "; ".join(self._faults[:5]) +
                             (f"; and {rest} more differences" if rest > 0 else ""))
        return Taken(self._values, groups)


def of_whole(state: Mapping[str, Any], names: Sequence[str], parameters: Mapping[str, torch.Tensor]) -> Shard:
    """The state_dict() of an ordinary optimizer as one shard with everything. Errors: ValueError."""
    try:
        order = [index for group in state["param_groups"] for index in group["params"]]
        if len(order) != len(names):
            raise ValueError(f"this state does not fit this optimizer: it has {len(order)} parameters, the optimizer "
                             f"{len(names)}")
        name_of = dict(zip(order, names))
        groups = [{**group, "params": [name_of[index] for index in group["params"]]}
                  for group in state["param_groups"]]
        parts = {}
        for index, name in name_of.items():
            parameter = parameters.get(name)
            if parameter is None:
                continue
            values = {key: _flat(value, parameter) for key, value in state["state"].get(index, {}).items()}
            parts[name] = Part(0, parameter.numel(), tuple(parameter.shape), tuple(parameter.stride()), values)
        return Shard(0, 1, groups, parts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not the state of an optimizer: {error!r}") from None


def _is_divided(key: str, value: Any, part: Part) -> bool:
    """Whether the value has an element for each element of the part. If the parameter has no dimensions, neither have
    such values in the state of an ordinary optimizer; the pieces of ranks have one dimension."""
    return isinstance(value, torch.Tensor) and (
        value.dim() > 0 or (part.shape == () and key not in _OF_WHOLE_PARAMETERS))


def _flat(value: Any, parameter: torch.Tensor) -> Any:
    """A tensor of the parameter's shape as its elements in the order of the parameter's memory."""
    if not isinstance(value, torch.Tensor) or value.shape != parameter.shape or value.dim() == 0:
        return value
    flat = torch.empty(parameter.numel(), dtype=value.dtype)
    flat.as_strided(parameter.shape, parameter.stride()).copy_(value)
    return flat


def whole(shards: Iterable[Shard], names: Sequence[str]) -> Dict[str, Any]:
    """The inverse of of_whole(), of the shards of all ranks."""
    place = {name: index for index, name in enumerate(names)}
    state: Dict[int, Dict[str, Any]] = {}
    groups: List[Dict[str, Any]] = []
    for shard in shards:
        groups = groups or shard.groups
        for name, part in shard.parts.items():
            target = state.setdefault(place[name], {})
            for key, value in part.values.items():
                if not _is_divided(key, value, part):
                    target.setdefault(key, value)
                    continue
                if key not in target:
                    target[key] = _empty(part, value.dtype)
                storage = target[key].as_strided((target[key].numel(),), (1,))
                storage[part.begin:part.begin + part.length].copy_(value)
    return {"state": {index: values for index, values in sorted(state.items()) if values},
            "param_groups": [{**group, "params": [place[name] for name in group["params"]]} for group in groups]}


def _empty(part: Part, dtype: torch.dtype) -> torch.Tensor:
    count = 1
    for length in part.shape:
        count *= length
    return torch.zeros(count, dtype=dtype).as_strided(part.shape, part.strides)


def gather(shard: Shard, root_rank: int, process_set: ProcessSet) -> Optional[List[Shard]]:
    """The shards of all ranks on the root; None on the other ranks."""
    data = torch.frombuffer(bytearray(objects.dumps(shard.to_dict())), dtype=torch.uint8)
    ranks = process_set.registered_ranks()
    splits = [data.numel() if rank == root_rank else 0 for rank in ranks]
    received, lengths = alltoall(data, splits, name="sharded.state", process_set=process_set)
    if ranks[process_set.registered_rank()] != root_rank:
        return None
    parts: List[Any] = [objects.loads(part.numpy()) for part in received.split(lengths.tolist())]
    return [Shard.from_dict(part) for part in parts]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# --- Files ---

_MANIFEST = "checkpoint.json"
_FLOAT = "float.hex"
#: The prefix of files that are being written. A save that was killed leaves some.
_DRAFT = ".muster-draft-"
#: The names of a checkpoint's files, with its number: the folder may contain other files, which are not removed.
_PART = re.compile(r"optimizer\.([0-9]+)\.[0-9]+-of-[0-9]+|model\.([0-9]+)")


def save_sharded(folder: str, optimizer: Any, model: Optional[torch.nn.Module] = None,
                 progress: Optional[Dict[str, Any]] = None) -> None:
    """Writes a checkpoint into `folder`, which all ranks must see. Called by all ranks.

    Each rank writes its part of the optimizer's state. Rank 0 also writes the model and `progress`, and at last
    checkpoint.json, which makes the new checkpoint valid. So a complete checkpoint exists whenever the job is killed.
    Files of older checkpoints are removed afterwards; other files in the folder remain.

    progress: a dict of numbers, texts and tensors, and of lists, tuples and dicts of them.

    Errors, on all ranks: ValueError for a value that load_sharded() could not read, before anything is written;
    OSError with the rank and the path. The previous checkpoint remains.
    """
    process_set = optimizer.process_set
    rank, size = process_set.registered_rank(), len(process_set.registered_ranks())
    root = process_set.registered_ranks()[0]
    fault, number = None, 0
    if rank == 0:
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            number = (_manifest(folder) or {"number": 0})["number"] + 1
            _remove_drafts(folder)
        except Exception as error:  # noqa: B902  (the other ranks wait for the outcome, here and below)
            fault = str(error)
    fault, number = broadcast_object((fault, number), root, name="sharded.number", process_set=process_set)
    _raise([fault])
    contents: Dict[str, Any] = {}
    try:
        contents[_file_of(number, rank, size)] = _storable(optimizer.state_dict(), "optimizer.state_dict()")
        if rank == 0:
            contents[f"model.{number}"] = {
                "model": None if model is None else _storable(model.state_dict(), "model.state_dict()"),
                "progress": _storable(progress, "progress")}
    except Exception as error:  # noqa: B902
        fault = f"rank {rank}: {error}"
    _raise(allgather_object(fault, name="sharded.checked", process_set=process_set), ValueError)
    try:
        for name, content in contents.items():
            _write(os.path.join(folder, name), content)
    except Exception as error:  # noqa: B902
        fault = f"rank {rank}: {error}"
    _raise(allgather_object(fault, name="sharded.written", process_set=process_set))
    if rank == 0:
        try:
            _write_text(os.path.join(folder, _MANIFEST),
                        json.dumps({"format": _FORMAT, "number": number, "ranks": size}) + "\n")
            _remove_others(folder, number)
        except Exception as error:  # noqa: B902
            fault = str(error)
    _raise([broadcast_object(fault, root, name="sharded.done", process_set=process_set)])


def load_sharded(folder: str, optimizer: Any, model: Optional[torch.nn.Module] = None) -> Optional[Dict[str, Any]]:
    """Restores what save_sharded() has written, by any number of ranks, and returns the progress ({} if none was
    stored). Returns None and changes nothing if there is no checkpoint. Called by all ranks.

    With the same number of ranks, training continues to the same bits.

    Errors, on all ranks: ValueError for a checkpoint that cannot be read, is damaged, or belongs to another model or
    optimizer. Nothing is changed then.
    """
    process_set = optimizer.process_set
    rank = process_set.registered_rank()
    root = process_set.registered_ranks()[0]
    fault, manifest = None, None
    if rank == 0:
        try:
            manifest = _manifest(folder)
        except Exception as error:  # noqa: B902
            fault = str(error)
    fault, manifest = broadcast_object((fault, manifest), root, name="sharded.manifest", process_set=process_set)
    _raise([fault], ValueError)
    if manifest is None:
        return None
    stored: Dict[str, Any] = {}
    taken = None
    try:
        stored = _read(os.path.join(folder, f"model.{manifest['number']}"))
        if model is not None:
            _compare_models(stored["model"], model, folder)
        taken = optimizer.taken_from(Shard.from_dict(_read(os.path.join(folder, _file_of(
            manifest["number"], each, manifest["ranks"])))) for each in range(manifest["ranks"]))
    except Exception as error:  # noqa: B902  (a damaged file raises errors of many types)
        fault = f"rank {rank}: {error}"
    _raise(allgather_object(fault, name="sharded.read", process_set=process_set), ValueError)
    optimizer.use(taken)
    if model is not None:
        model.load_state_dict(stored["model"])
    return stored["progress"] or {}


def _compare_models(stored: Optional[Mapping[str, Any]], model: torch.nn.Module, folder: str) -> None:
    """Errors: ValueError."""
    if stored is None:
        raise ValueError(f"the checkpoint in {folder} contains no model: save_sharded() was called without it")
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    if different := sorted(name for name in own.keys() | found.keys() if own.get(name) != found.get(name)):
        first = different[0]
        raise ValueError(f"the checkpoint in {folder} belongs to another model: {len(different)} tensors differ, the "
                         f"first is {first!r} of shape {found.get(first)} there and {own.get(first)} here")


def _file_of(number: int, rank: int, size: int) -> str:
    return f"optimizer.{number}.{rank}-of-{size}"


def _manifest(folder: str) -> Optional[Dict[str, Any]]:
    path = os.path.join(folder, _MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    if not isinstance(found, dict) or found.get("format") != _FORMAT or \
            not all(isinstance(found.get(name), int) for name in ("number", "ranks")):
        raise ValueError(f"{path} is not the description of a sharded checkpoint")
    return found


def _write(path: str, value: Any) -> None:
    with _Replacing(path) as file:
        torch.save(value, file)


def _write_text(path: str, text: str) -> None:
    with _Replacing(path) as file:
        file.write(text.encode())


class _Replacing:
    """A file that takes the place of `path` once it is complete and on the disk."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> Any:
        handle, self._temporary = tempfile.mkstemp(prefix=_DRAFT, dir=os.path.dirname(self._path) or ".")
        self._file = os.fdopen(handle, "wb")
        return self._file

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                os.replace(self._temporary, self._path)
        finally:
            self._file.close()
            if os.path.exists(self._temporary):
                os.unlink(self._temporary)


def _read(file: Any) -> Any:
    """The value in a file: a path, or an open file. Executes no code of the file."""
    return _with_floats(torch.load(file, map_location="cpu", weights_only=True))


def _storable(value: Any, where: str) -> Any:
    """The value in a form that _read() accepts: with a Python number in place of each number of numpy, and a text in
    place of each float, because weights_only=True of PyTorch 1.13 refuses floats.

    where: describes the value in errors. Errors: ValueError for a value that _read() would refuse or change.
    """
    value = _without_numpy(value)
    if isinstance(value, float):
        return {_FLOAT: value.hex()}
    if isinstance(value, dict):
        if list(value) == [_FLOAT]:
            raise ValueError(f"{where} has the single key {_FLOAT!r}, which is reserved")
        return {_readable(_without_numpy(key), f"the key {key!r} of {where}"): _storable(each, f"{where}[{key!r}]")
                for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_storable(each, f"{where}[{index}]") for index, each in enumerate(value))
    return _readable(value, where)


def _without_numpy(value: Any) -> Any:
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def _readable(value: Any, where: str) -> Any:
    """The value. Errors: ValueError if _read() refuses its type."""
    if value is None or type(value) in (bool, int, str) or _is_plain_tensor(value):
        return value
    # Which other types can be read depends on the version of PyTorch, and on torch.serialization.add_safe_globals().
    file = io.BytesIO()
    try:
        torch.save(value, file)
        file.seek(0)
        _read(file)
    except Exception:  # noqa: B902  (an object may raise an error of any type while it is pickled)
        raise ValueError(f"{where} has type {type(value).__name__}, which load_sharded() cannot read") from None
    return value


def _is_plain_tensor(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided \
        and not value.is_quantized and not vars(value)


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == [_FLOAT]:
        return float.fromhex(value[_FLOAT])
    return _mapped(value, _with_floats)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(each) for key, each in value.items()}
    return type(value)(change(each) for each in value) if type(value) in (list, tuple) else value


def _remove_others(folder: str, number: int) -> None:
    for name in _files_in(folder):
        part = _PART.fullmatch(name)
        if part is not None and int(part[1] or part[2]) != number:
            os.unlink(os.path.join(folder, name))


def _remove_drafts(folder: str) -> None:
    for name in _files_in(folder):
        if name.startswith(_DRAFT):
            os.unlink(os.path.join(folder, name))


def _files_in(folder: str) -> List[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]


def _raise(faults: Sequence[Optional[str]], kind: type = OSError) -> None:
    """Raises the first fault."""
    for fault in faults:
        if fault is not None:
            raise kind(fault)
