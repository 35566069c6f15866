"""The state of each worker, for the driver of an elastic run."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional

from ...common.elastic import protocol


class Phase(enum.Enum):
    #: Its process was started, and has not requested a place yet.
    STARTING = "starting"
    #: It waits for a place.
    READY = "ready"
    #: It is in the current round, or joining it.
    MEMBER = "member"
    #: It is still in an earlier round, which the other workers have left.
    LATE = "late"
    #: It was asked to leave, or its process was asked to end.
    LEAVING = "leaving"
    #: Its process has ended.
    OVER = "over"


@dataclass(eq=False)
class Worker:
    """The process of a slot of a host, from its start to its end. Slots of a host are numbered from 0."""

    name: str
    host: str
    slot: int
    #: In seconds of the driver's clock.
    started_at: float
    phase: Phase = Phase.STARTING
    #: The reason why its slot must be freed, or "".
    unwanted: str = ""
    #: The newest round in which it got a place, and its rank there; 0 and None before.
    round: int = 0
    rank: Optional[int] = None
    #: The newest round in which it had the state of training.
    synced: int = 0
    #: The number of commits since then.
    commits: int = 0
    #: The reason of its last request for a place, and the failure of its world, if any.
    because: str = protocol.BECAUSE_STARTED
    error: str = ""
    blames: Optional[int] = None
    #: The time since which it is late.
    late_since: float = 0.0

    @property
    def is_live(self) -> bool:
        """Whether the worker takes part or will take part."""
        return self.phase in (Phase.STARTING, Phase.READY, Phase.MEMBER, Phase.LATE)

    @property
    def title(self) -> str:
        """The name of the worker in messages."""
        return f"rank {self.rank}" if self.rank is not None else "a worker without a rank"
