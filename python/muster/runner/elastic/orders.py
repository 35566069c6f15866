"""The orders of the rules of an elastic run, and its result. The driver executes the orders; tests record them."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Tuple

from .workers import Worker


class Orders(Protocol):
    def start(self, worker: Worker) -> None:
        """Starts its process. The driver reports when the process requests a place, or has ended."""

    def end(self, worker: Worker) -> None:
        """Ends its process. Does not wait."""

    def send(self, worker: Worker, kind: str, **fields: Any) -> None:
        """Sends it a message of `muster.common.elastic.protocol`."""

    def say(self, sentence: str) -> None:
        """Prints a message for the user."""

    def listen_at(self, host: str, hosts: List[str]) -> str:
        """An address of `host` for rank 0 to listen at, which workers on `hosts` can reach; "": the address by which it
        reaches the driver."""


class Limits(NamedTuple):
    """Times are in seconds."""

    #: The number of workers of the first round, and the minimum of every other round.
    first: int
    fewest: int
    #: The maximum number of workers; None: as many as there are slots.
    most: Optional[int] = None
    #: The time limit for enough workers, or for a worker that does not come back.
    elastic_timeout: float = 600.0
    #: How many times the world may be replaced; None: any number.
    reset_limit: Optional[int] = None
    cooldown: Optional[Tuple[float, float]] = None


class Verdict(NamedTuple):
    """How the run ended: the exit code, and a message or ""."""

    code: int
    sentence: str = ""


Placed = List[Tuple[Worker, Dict[str, Any]]]
