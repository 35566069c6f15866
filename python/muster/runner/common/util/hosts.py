"""Hosts with their slots, and the assignment of ranks to them."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from ... import hosts as _hosts

_PAIR = re.compile(r"[\w.-]+:[0-9]+")


@dataclass
class HostInfo:
    hostname: str
    slots: int

    @staticmethod
    def from_string(host_string: str) -> "HostInfo":
        """Parses "name:slots". Errors: ValueError."""
        name, _, slots = host_string.strip().partition(":")
        return HostInfo(name, int(slots))


@dataclass
class SlotInfo:
    """The place of a rank."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self) -> str:
        return ",".join(map(str, (self.rank, self.size, self.local_rank, self.local_size, self.cross_rank,
                                  self.cross_size)))


INVALID_SLOT_INFO = SlotInfo("", -1, -1, -1, -1, -1, -1)


def parse_host_files(filename: str) -> str:
    """A hostfile (NAME slots=N) as "name:slots,name:slots". Errors: ValueError."""
    faults: List[str] = []
    found = _hosts.hosts_of_file(filename, faults)
    if faults:
        raise ValueError("; ".join(faults))
    return ",".join(f"{host.name}:{host.slots}" for host in found)


def parse_hosts_and_slots(hosts: str) -> Tuple[List[str], Dict[str, int]]:
    """The names of "name:slots,name:slots" in order, and the slots by name. Errors: ValueError."""
    pairs = [part.strip() for part in hosts.split(",")]
    for pair in pairs:
        if not _PAIR.fullmatch(pair):
            raise ValueError(f"{pair!r} is not of the form name:slots; for example worker-0:2,worker-1:2")
    slots = {name: int(count) for name, count in (pair.split(":") for pair in pairs)}
    return [pair.split(":")[0] for pair in pairs], slots


def parse_hosts(hosts_string: str) -> List[HostInfo]:
    """Parses "name:slots,name:slots". Errors: ValueError."""
    return [HostInfo.from_string(part) for part in hosts_string.split(",")]


def get_host_assignments(hosts: Sequence[HostInfo], min_num_proc: int,
                         max_num_proc: Optional[int] = None) -> List[SlotInfo]:
    """The places of the ranks: each host is filled before the next one, up to max_num_proc ranks.

    Errors: ValueError if the hosts have fewer than min_num_proc slots.
    """
    places = [(host.hostname, local) for host in hosts for local in range(host.slots)][:max_num_proc]
    if len(places) < min_num_proc:
        raise ValueError(f"{min_num_proc} processes were requested, but the hosts have {len(places)} slots")
    local_sizes = collections.Counter(name for name, _ in places)
    cross_sizes = collections.Counter(local for _, local in places)
    cross_ranks: Dict[int, int] = collections.Counter()
    assigned = []
    for rank, (name, local) in enumerate(places):
        assigned.append(SlotInfo(name, rank, local, cross_ranks[local], len(places), local_sizes[name],
                                 cross_sizes[local]))
        cross_ranks[local] += 1
    return assigned
