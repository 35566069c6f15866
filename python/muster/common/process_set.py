"""A process set: some of the ranks of the world. process_sets.py registers it."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from . import communicators, world
from .session import Session


class ProcessSet:
    """Some ranks of the world. Within the set they are numbered from 0 in the order of their ranks.

    Made from a list of ranks or, for init(), from an mpi4py communicator. Operations require a set that init() or
    add_process_set() has registered on all ranks of the world; registration sets its `process_set_id`.
    """

    def __init__(self, ranks_or_comm: Any) -> None:
        self.process_set_id: Optional[int] = None
        self.mpi_comm: Any = None
        self.ranks: Optional[List[int]] = None
        self._session: Optional[Session] = None
        if communicators.is_communicator(ranks_or_comm):
            self.mpi_comm = ranks_or_comm
        else:
            try:
                self.ranks = sorted(int(rank) for rank in ranks_or_comm)
            except TypeError:
                raise ValueError(f"a process set needs a list of ranks or an mpi4py communicator, not "
                                 f"{ranks_or_comm!r}") from None

    def size(self) -> Optional[int]:
        """The number of ranks in the set; None if it is not registered."""
        return None if self.process_set_id is None else len(self.registered_ranks())

    def rank(self) -> Optional[int]:
        """The number of this rank within the set; None if the set is not registered. Operations identify ranks by their
        number in the world. Errors: ValueError if this rank does not belong to the set."""
        return None if self.process_set_id is None else self.registered_rank()

    def registered_rank(self) -> int:
        """As rank(). Errors: ValueError before init(), if the set is not registered, and if this rank does not belong
        to it."""
        own, ranks = world.get().rank, self.registered_ranks()
        if own not in ranks:
            raise ValueError(f"rank {own} is not in the process set of ranks {ranks_text(ranks)}")
        return ranks.index(own)

    def included(self) -> Optional[bool]:
        """Whether this rank belongs to the set; None if it is not registered."""
        return None if self.process_set_id is None else world.get().rank in self.registered_ranks()

    def registered_ranks(self) -> List[int]:
        """The ranks of the set. Errors: ValueError before init(), and if the set is not registered."""
        world.get()
        if self.process_set_id is None or self.ranks is None:
            raise ValueError(f"{self!r} is not registered: pass it to init() or to add_process_set()")
        return self.ranks

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"


def _global() -> ProcessSet:
    every_rank = ProcessSet([])
    every_rank.ranks = None
    every_rank.process_set_id = 0
    return every_rank


#: The set of all ranks. Its `ranks` are None before init().
global_process_set = _global()


def ranks_text(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
