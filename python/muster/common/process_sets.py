"""Process sets: some of the ranks, among themselves.

Each set has a session of its own, so that what one of them waits for holds no other up.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Union

from .._native import abi
from . import world


class ProcessSet:
    """Ranks of the world that work together. Numbered among themselves in ascending order of their ranks.

    Made by anybody at any time, from a list of ranks or an mpi4py communicator; good for operations once init() or
    add_process_set() has registered it on all ranks of the world.
    """

    def __init__(self, ranks_or_comm: Any) -> None:
        self.mpi_comm: Any = None
        self._listed: Optional[List[int]] = None
        self._session: Optional[world.Session] = None
        self.process_set_id: Optional[int] = None
        if hasattr(ranks_or_comm, "Get_group"):
            self.mpi_comm = ranks_or_comm
        else:
            self._listed = sorted(int(rank) for rank in ranks_or_comm)

    @property
    def ranks(self) -> Optional[List[int]]:
        return None if self._listed is None else list(self._listed)

    def size(self) -> int:
        """Errors: ValueError before it is registered."""
        return len(self._registered())

    def rank(self) -> int:
        """This rank's number within the set; -1 where it does not belong to it."""
        ranks = self._registered()
        own = world.get().rank
        return ranks.index(own) if own in ranks else -1

    def included(self) -> bool:
        return self.rank() >= 0

    def _registered(self) -> List[int]:
        if self.process_set_id is None or self._listed is None:
            world.get()
            raise ValueError(f"{self!r} is not registered: hand it to init() or to add_process_set()")
        return self._listed

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self._listed}, mpi_comm={self.mpi_comm})"


class _GlobalProcessSet(ProcessSet):
    def __init__(self) -> None:
        super().__init__([])
        self._listed = None
        self.process_set_id = 0

    def _registered(self) -> List[int]:
        world.get()
        return super()._registered()


#: All ranks.
global_process_set = _GlobalProcessSet()


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Registers a set; called by all ranks of the world, with the same ranks in it and in the same order of calls.

    Errors: ValueError for ranks that are not in the world, twice in the list, or a set already; MismatchError where
    the ranks add different sets.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    with world.lock:
        register(world.get(), added)
    return added


def register(made: world.World, added: ProcessSet) -> None:
    """add_process_set() for a world that need not be the current one yet. Under the world's lock."""
    if added.process_set_id is not None:
        raise ValueError(f"{added!r} is registered already")
    ranks = _ranks_of(made, added)
    for identity, other in made.process_sets.items():
        if other.ranks == ranks:
            raise ValueError(f"a process set of ranks {_text(ranks)} is there already (number {identity}): "
                             f"remove_process_set() it first, or use it")
    identity = made.next_process_set
    made.agree(f"process set {identity}", f"add ranks {_text(ranks)}")
    if made.rank in ranks:
        added._session = made.start_session(ranks, abi.session_options())
        made.sessions[identity] = added._session
    made.next_process_set += 1
    made.process_sets[identity] = added
    added._listed = ranks
    added.process_set_id = identity


def remove_process_set(process_set: ProcessSet) -> bool:
    """Takes a set away; called by all ranks of the world. What is pending in it fails.

    False where it is not registered. Errors: ValueError for the set of all ranks; MismatchError where the ranks
    remove different sets.
    """
    with world.lock:
        made = world.get()
        identity = process_set.process_set_id
        if process_set is global_process_set or identity == 0:
            raise ValueError("the set of all ranks cannot be removed; shutdown() ends the world")
        if identity is None or made.process_sets.get(identity) is not process_set:
            return False
        made.agree(f"process set {identity} removed", f"remove ranks {_text(process_set._listed or ())}")
        del made.process_sets[identity]
        forget(process_set)
        session = made.sessions.pop(identity, None)
        if session is not None:
            session.end()
        return True


def forget(process_set: ProcessSet) -> None:
    """The set is no longer registered; it may be again."""
    process_set._session = None
    process_set.process_set_id = None


def _ranks_of(made: world.World, added: ProcessSet) -> List[int]:
    if added.mpi_comm is not None:
        raise ValueError("a process set of an mpi4py communicator is made by init(comm=...) alone")
    ranks = added._listed or []
    outside = [rank for rank in ranks if not 0 <= rank < made.size]
    faults = []
    if not ranks:
        faults.append("is empty")
    if outside:
        faults.append(f"names {_text(outside)}, not in a world of {made.size}")
    twice = sorted({rank for rank in ranks if ranks.count(rank) > 1})
    if twice:
        faults.append(f"names {_text(twice)} twice")
    if faults:
        raise ValueError(f"the process set {ranks} " + " and ".join(faults))
    return ranks


def _text(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
