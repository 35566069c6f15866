"""The hosts of an elastic run without a discovery script: the given hosts, for the whole run."""

from __future__ import annotations

from typing import Iterable, List, Optional

from ..settings import Host
from .discovery import Found, Outcome


class FixedHosts:
    """Replaces a Discovery."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._outcomes: List[Outcome] = [Found({host.name: host.slots for host in hosts})]

    def fileno(self) -> int:
        """A descriptor that never becomes readable."""
        return -1

    def wait_at_most(self) -> Optional[float]:
        return 0.0 if self._outcomes else None

    def events(self) -> List[Outcome]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def close(self) -> None:
        pass
