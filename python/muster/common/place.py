"""The place of a process in its world: its rank, the size of the world, and the address where the ranks meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Place:
    """The rank of this process, and the address at which the ranks meet. The library determines fields that are
    None."""

    rank: Optional[int] = None
    size: Optional[int] = None
    #: From the launcher; None: from the communicator.
    local_rank: Optional[int] = None
    local_size: Optional[int] = None
    cross_rank: Optional[int] = None
    cross_size: Optional[int] = None
    #: host:port where rank 0 listens, with the job's key in hex; or a file in a private folder.
    rendezvous: Optional[str] = None
    key: Optional[str] = None
    rendezvous_file: Optional[str] = None
    #: Rank 0 only: the descriptor of a socket that already listens at `rendezvous`. connect() takes it over.
    listener: int = -1
    #: A descriptor that turns readable when connect() should stop waiting for the other ranks.
    cancel: int = -1
    #: The name of this host in messages; processes with the same `host_id` share memory. None: determined.
    host: Optional[str] = None
    host_id: Optional[str] = None
    #: The origin of this place, for messages.
    told_by: str = "the environment"

    def __repr__(self) -> str:
        # Without the key: places are printed in logs and tracebacks.
        return f"Place(rank={self.rank}, size={self.size}, told_by={self.told_by!r})"
