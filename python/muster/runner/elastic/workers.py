"""The state of each worker, for the driver of an elastic run."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional

from ...common.elastic import protocol


class Phase(enum.Enum):
    #: Its process has been started and has not asked for a place.
    STARTING = "starting"
    #: It waits for a place.
    READY = "ready"
    #: It is in the current round, or on its way into it.
    MEMBER = "member"
    #: It is still in an earlier round, which the others have left.
    LATE = "late"
    #: It was told to leave, or its process was told to end.
    LEAVING = "leaving"
    #: Its process is over.
    OVER = "over"


@dataclass(eq=False)
class Worker:
    """A process on a slot of a host, from its start to its end. Slots of a host are numbered from 0."""

    name: str
    host: str
    slot: int
    #: Seconds, of the driver's clock.
    started_at: float
    phase: Phase = Phase.STARTING
    #: Why its slot is to be given up; "" while it is not.
    unwanted: str = ""
    #: The newest round that it was given a place in, and which; 0 and None before.
    round: int = 0
    rank: Optional[int] = None
    #: The newest round in which it had the state of training.
    synced: int = 0
    #: How often it has saved it since.
    commits: int = 0
    #: Why it asked for a place, and what its world failed of where it did.
    because: str = protocol.BECAUSE_STARTED
    error: str = ""
    blames: Optional[int] = None
    #: Since when it is late.
    late_since: float = 0.0

    @property
    def is_live(self) -> bool:
        """Whether it is one to count on."""
        return self.phase in (Phase.STARTING, Phase.READY, Phase.MEMBER, Phase.LATE)

    @property
    def title(self) -> str:
        """The name of the worker in messages."""
        return f"rank {self.rank}" if self.rank is not None else "a worker that had no rank yet"
