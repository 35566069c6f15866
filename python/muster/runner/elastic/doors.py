"""The listeners of the driver for its workers: on loopback, and on one address of this machine for each route to other
hosts, from the first such host on."""

from __future__ import annotations

import socket
from typing import Dict, List

from ...common.wire import join_address
from ...common.wire_server import Event, WireServer
from ..crew import Crew
from ..hosts import is_local

LOOPBACK = "127.0.0.1"


class Doors:
    def __init__(self, key: str, crew: Crew) -> None:
        self._key = key
        self._crew = crew
        self._by_host: Dict[str, WireServer] = {}

    @property
    def servers(self) -> List[WireServer]:
        return list(self._by_host.values())

    def address_for(self, host: str) -> str:
        """HOST:PORT for a worker on that host. Errors: OSError if this machine cannot listen there."""
        ours = self._ours(host)
        door = self._by_host.get(ours)
        if door is None:
            door = self._by_host[ours] = self._open(ours)
        return join_address(ours, door.port)

    def listen_at(self, host: str, hosts: List[str]) -> str:
        """As Orders.listen_at."""
        if hosts == [host] or all(is_local(each) for each in hosts):
            return LOOPBACK
        if not is_local(host):
            seen = self._crew.addresses(host)
            return seen.theirs if seen is not None else ""
        return self._ours(next(each for each in hosts if not is_local(each)))

    def events(self) -> List[Event]:
        """Returns the events so far. Does not wait."""
        return [event for server in self.servers for event in server.events(0)]

    def close(self) -> None:
        for server in self.servers:
            server.close()

    def _ours(self, host: str) -> str:
        """The address of this machine as seen from that host."""
        if is_local(host):
            return LOOPBACK
        seen = self._crew.addresses(host)
        return seen.ours if seen is not None and seen.ours else _address_towards(host)

    def _open(self, ours: str) -> WireServer:
        try:
            return WireServer(self._key, ours)
        except OSError:
            # The host sees this machine under an address that it does not have, because of address translation.
            return WireServer(self._key, "::" if ":" in ours else "0.0.0.0")


def _address_towards(host: str) -> str:
    """The address of this machine on the route to that host. Sends nothing."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK
