"""Exchange of Python objects between ranks, in eager mode and beside graphs: no tensors of TensorFlow take part."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

from ..common import basics, objects
from ..common.process_sets import ProcessSet, global_process_set
from . import plans, tensors


def broadcast_object(obj: Any, root_rank: int = 0, session: Any = None, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, pickled, and unpickled on the other ranks; their own arguments are ignored. `session`, of
    programs for TensorFlow 1, is not needed.

    Errors: as broadcast(); an object that cannot be pickled raises on the root only, before anything is sent.
    """
    del session
    is_root = basics.rank() == root_rank
    name = f"object.{name or 'noname'}"
    data = np.frombuffer(objects.dumps(obj), np.uint8) if is_root else None
    length = np.array([0 if data is None else data.size], np.int64)
    size = int(_broadcast(length, root_rank, f"{name}.length", process_set)[0])
    received = _broadcast(np.empty(size, np.uint8) if data is None else data, root_rank, f"{name}.data", process_set)
    return obj if is_root else objects.loads(received.data)


def broadcast_object_fn(root_rank: int = 0, session: Any = None, name: Optional[str] = None,
                        process_set: ProcessSet = global_process_set) -> Callable[[Any], Any]:
    """broadcast_object() as a function of the object alone."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj: Any, session: Any = None, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks, in the order of the ranks."""
    del session
    data = np.frombuffer(objects.dumps(obj), np.uint8)
    name = f"object.{name or 'noname'}"
    lengths, _ = plans.gather([np.array([data.size], np.int64)], tensors.output_in_graph, name=f"{name}.lengths",
                              process_set=process_set).run()
    whole, _ = plans.gather([data], tensors.output_in_graph, name=f"{name}.datas", process_set=process_set).run()
    return [objects.loads(part.data) for part in np.split(whole, np.cumsum(lengths)[:-1])]


def _broadcast(array: np.ndarray, root_rank: int, name: str, process_set: ProcessSet) -> np.ndarray:
    (value,) = plans.broadcast([array], tensors.output_in_graph, name=name, root=root_rank,
                               process_set=process_set).run()
    return value  # type: ignore[no-any-return]
