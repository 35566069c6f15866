"""Process sets and their registration, which all ranks of the world do together.

Each set has a session of its own. Operations of one set do not delay those of another, and one name may be pending in
several sets.
"""

from __future__ import annotations

import ctypes
import json
from typing import Dict, List, Sequence, Union

from . import connecting, operations, world
from .process_set import ProcessSet, global_process_set, ranks_text
from .session import Session

__all__ = ["ProcessSet", "add_process_set", "begin", "end", "global_process_set", "process_set_ids_and_ranks",
           "register_all", "remove_process_set"]


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Registers a set. Called by all ranks of the world, with the same sets in the same order; waits for them.

    Errors: ValueError if the set is invalid, is already registered, or sets may not be added
    (HOROVOD_DYNAMIC_PROCESS_SETS=0); MismatchError if the ranks add different sets; HorovodInternalError.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    with world.lock:
        made = world.get()
        _must_be_allowed(made)
        if added.mpi_comm is not None:
            raise ValueError("a process set of an mpi4py communicator is registered by init(process_sets=[...]); "
                             "pass its list of ranks to add_process_set()")
        _register(made, added)
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set. Called by all ranks of the world; waits for them. Pending operations of the set fail.

    Returns False if the set is not registered, and for the set of all ranks, which exists until shutdown(). Errors:
    ValueError if sets may not be removed (HOROVOD_DYNAMIC_PROCESS_SETS=0); MismatchError if the ranks remove different
    sets; HorovodInternalError.
    """
    with world.lock:
        made = world.get()
        _must_be_allowed(made)
        number = process_set.process_set_id
        if process_set is global_process_set or number is None or made.process_sets.get(number) is not process_set:
            return False
        _agree(f"remove set {number} of ranks {ranks_text(process_set.registered_ranks())}")
        del made.process_sets[number]
        _forget(process_set)
        session = made.sessions.pop(number, None)
        if session is not None:
            world.depart(process_set)
            session.end()
        return True


def process_set_ids_and_ranks() -> Dict[int, List[int]]:
    """The registered sets, including that of all ranks, by number."""
    made = world.get()
    every = {0: list(range(made.size))}
    every.update({number: list(each.registered_ranks()) for number, each in made.process_sets.items()})
    return every


def register_all(given: Sequence[Union[ProcessSet, Sequence[int]]]) -> None:
    """Registers the sets of init(): like add_process_set() for each of them, but communicators are supported, too.

    Ranks may pass different communicators of one split at the same position of the list: each of them is a set then.
    """
    made = world.get()
    for each in given:
        added = each if isinstance(each, ProcessSet) else ProcessSet(each)
        if added.mpi_comm is None:
            _register(made, added)
        else:
            _register_split(made, added)


def begin(made: world.World) -> None:
    """For a new world: its ranks are the ranks of the global set."""
    global_process_set.ranks = list(range(made.size))
    global_process_set._session = made.sessions[0]


def end(made: world.World) -> None:
    """Unregisters all sets of this world. The next world may register them again."""
    for each in made.process_sets.values():
        _forget(each)
    global_process_set.ranks = None
    global_process_set._session = None


def _forget(process_set: ProcessSet) -> None:
    process_set._session = None
    process_set.process_set_id = None


def _must_be_allowed(made: world.World) -> None:
    if not made.knobs.allows_process_sets:
        raise ValueError("HOROVOD_DYNAMIC_PROCESS_SETS is 0, so process sets cannot be added or removed after init(): "
                         "set it to 1, unset it, or pass the sets to init()")


def _register(made: world.World, added: ProcessSet) -> None:
    ranks = _checked(made, added)
    number = made.next_process_set
    _agree(f"add set {number} of ranks {ranks_text(ranks)}")
    if made.rank in ranks:
        added._session = connecting.interruptible(lambda: made.start_session(number, ranks), discard=Session.end)
    made.next_process_set += 1
    made.process_sets[number] = added
    added.process_set_id = number


def _register_split(made: world.World, added: ProcessSet) -> None:
    is_member = bool(added.mpi_comm)  # an empty communicator is false
    own = sorted(added.mpi_comm.allgather(made.rank)) if is_member else []
    name = f"split process set {made.next_process_set}"
    lists = {tuple(json.loads(part)) for part in _gather(name, json.dumps(own).encode())}
    for ranks in sorted(lists - {()}):
        part = added if list(ranks) == own else ProcessSet(ranks)
        part.ranks = list(ranks)
        _register(made, part)


def _checked(made: world.World, added: ProcessSet) -> List[int]:
    """Errors: ValueError with all faults."""
    ranks = added.ranks or []
    if added.process_set_id is not None:
        raise ValueError(f"{added!r} is already registered")
    faults = []
    if not ranks:
        faults.append("is empty")
    outside = [rank for rank in ranks if not 0 <= rank < made.size]
    if outside:
        faults.append(f"contains {ranks_text(outside)}, which is not in a world of {made.size}")
    twice = sorted({rank for rank in ranks if ranks.count(rank) > 1})
    if twice:
        faults.append(f"contains {ranks_text(twice)} twice")
    for number, there in process_set_ids_and_ranks().items():
        if there == ranks:
            faults.append(f"is already registered with the number {number}")
    if faults:
        raise ValueError(f"the process set of ranks {ranks_text(ranks)} " + " and ".join(faults))
    return ranks


def _agree(change: str) -> None:
    """Waits for all ranks. Under one name for all changes, so that ranks with different changes get a MismatchError and
    do not wait for each other."""
    operations.run("barrier", "process sets", process_set=global_process_set, buffers=(), shape=change)


def _gather(name: str, part: bytes) -> List[bytes]:
    buffer = (ctypes.c_char * max(len(part), 1)).from_buffer_copy(part or b"\0")
    result = operations.run("all_gather", name, process_set=global_process_set,
                            buffers=[(ctypes.addressof(buffer), None, len(part))], keep=buffer)
    return [] if result is None else result.parts()
