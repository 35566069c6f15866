"""The hosts of a run in the order of their discovery, and which of them get no new workers for a while.

A host that loses a worker gets no more workers for the rest of the run, if the other hosts have the minimum number of
slots of the run. Otherwise the slot is filled again, unless three workers of the host in a row are lost within a minute
of their start. With a cooldown range, the host gets no workers for a time after each loss, which doubles each time
within the range. Workers that still run are kept. A host that leaves the list of hosts and comes back is a new host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

#: The loss of a worker that lived for longer than this number of seconds is not attributed to its host.
QUICK = 60.0
LOSSES_IN_A_ROW = 3
#: Losses on a host within this number of seconds are one loss, unless workers were started in between.
ONE_LOSS = 1.0

_FOR_EVER = float("inf")


@dataclass
class _Record:
    losses: int = 0
    last_loss: float = -_FOR_EVER
    aside_until: float = -_FOR_EVER


class HostBook:
    """All times are seconds of the driver's clock."""

    def __init__(self, cooldown: Optional[Tuple[float, float]] = None, fewest: int = 1) -> None:
        """`cooldown`: the shortest and the longest time for which a host is left out. `fewest`: the minimum number of
        workers of the run."""
        self._cooldown = cooldown
        self._fewest = fewest
        self._slots: Dict[str, int] = {}
        self._order: List[str] = []
        self._records: Dict[str, _Record] = {}

    @property
    def order(self) -> List[str]:
        """All hosts that have been discovered."""
        return self._order

    def slots_of(self, host: str) -> int:
        """The number of slots; 0 for an unknown host."""
        return self._slots.get(host, 0)

    def found(self, slots: Mapping[str, int]) -> bool:
        """Sets the current hosts. Returns whether they have changed."""
        changed = self._slots != dict(slots)
        for host in self._slots.keys() - slots.keys():
            self._records.pop(host, None)
        self._slots = dict(slots)
        self._order += [host for host in slots if host not in self._order]
        return changed

    def present(self) -> List[Tuple[str, int]]:
        return [(host, self._slots[host]) for host in self._order if self._slots.get(host, 0) > 0]

    def takes_workers(self, host: str, now: float) -> bool:
        return now >= self._record(host).aside_until

    def lost(self, host: str, lived: float, now: float) -> Optional[str]:
        """A worker of the host failed `lived` seconds after its start. Returns a message if the host is left out from
        now on."""
        record = self._record(host)
        if now - lived < record.last_loss and now - record.last_loss < ONE_LOSS:
            return None
        record.losses = record.losses + 1 if lived < QUICK or self._cooldown else 1
        if self._cooldown and now - record.last_loss > QUICK + self._cooldown[1]:
            record.losses = 1
        record.last_loss = now
        if self._cooldown:
            shortest, longest = self._cooldown
            seconds = min(longest, shortest * 2.0 ** min(record.losses - 1, 60))
            record.aside_until = now + seconds
            return f"host {host} gets no new workers for {seconds:g} s"
        if self._others_suffice(host, now):
            record.aside_until = _FOR_EVER
            return f"host {host} gets no more workers: it lost a worker, and the other hosts have enough slots"
        if lived < QUICK and record.losses >= LOSSES_IN_A_ROW:
            record.aside_until = _FOR_EVER
            return (f"host {host} gets no more workers: {record.losses} in a row were lost there within "
                    f"{QUICK:g} s of their start")
        # The first loss is replaced at once. Repeated failures must not keep this machine busy.
        record.aside_until = now + (ONE_LOSS if record.losses > 1 else 0)
        return None

    def _others_suffice(self, host: str, now: float) -> bool:
        """Whether the other hosts that take workers have the minimum number of slots of the run."""
        return sum(slots for other, slots in self.present()
                   if other != host and self.takes_workers(other, now)) >= self._fewest

    def all_left_out_for_good(self) -> bool:
        """Whether there are hosts, and none of them will take workers again."""
        present = self.present()
        return bool(present) and all(self._record(host).aside_until == _FOR_EVER for host, _ in present)

    def next_return(self, now: float) -> Optional[float]:
        """The time at which the next host takes workers again, or None."""
        times = [each.aside_until for each in self._records.values() if now < each.aside_until < _FOR_EVER]
        return min(times) if times else None

    def describe(self, now: float) -> str:
        """The hosts as part of a message."""
        words = [f"{host}:{slots}" + ("" if self.takes_workers(host, now) else " (left out)")
                 for host, slots in self.present()]
        return ", ".join(words) if words else "none"

    def _record(self, host: str) -> _Record:
        return self._records.setdefault(host, _Record())
