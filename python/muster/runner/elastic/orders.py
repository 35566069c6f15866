"""What the rules of an elastic run may order, and how it ended. The driver carries it out; tests write it down."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Tuple

from .workers import Worker


class Orders(Protocol):
    def start(self, worker: Worker) -> None:
        """Starts its process; the driver tells when it asks for a place, or is over."""

    def end(self, worker: Worker) -> None:
        """Ends its process. Does not wait."""

    def send(self, worker: Worker, kind: str, **fields: Any) -> None:
        """Sends it a message of `muster.common.elastic.protocol`."""

    def say(self, sentence: str) -> None:
        """To the user."""

    def listen_at(self, host: str, hosts: List[str]) -> str:
        """An address of `host` for rank 0 to listen at, that workers on `hosts` reach; "": that by which it reaches the
        driver."""


class Limits(NamedTuple):
    """Seconds where a time is meant."""

    #: How many workers the first round needs, and every other.
    first: int
    fewest: int
    #: How many there are at the most; None: as many as there is room for.
    most: Optional[int] = None
    #: How long to wait for enough workers, or for one that does not come back.
    elastic_timeout: float = 600.0
    #: How many times the world may be made anew; None: any number.
    reset_limit: Optional[int] = None
    cooldown: Optional[Tuple[float, float]] = None


class Verdict(NamedTuple):
    """How the run ended: the exit code, and a sentence where there is something to say."""

    code: int
    sentence: str = ""


Placed = List[Tuple[Worker, Dict[str, Any]]]
