"""How the ranks of a run on several hosts find each other, if their number is fixed: this process sends the address of
rank 0 to all ranks. (On one host they meet by a file, see `meeting_file`.)

It uses the protocol of the driver of an elastic job (`muster.common.elastic.protocol`), so that ranks have only one way
to request a place. Each time the world is left and replaced, another round begins.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Sequence

from ..common.elastic import protocol
from ..common.wire import join_address
from ..common.wire_server import Connection, Event, WireServer
from .crew import HostAddresses
from .places import Place


class Rendezvous:
    """Places for the ranks of `places`, which are in the order of their ranks. Belongs to one thread.

    `addresses`: for each other host, the addresses of it and of this machine towards each other; `interface_address`:
    the address of this machine on the interface that the user selected, or None."""

    def __init__(self, key: str, places: Sequence[Place], addresses: Dict[str, HostAddresses],
                 interface_address: Optional[str] = None) -> None:
        """Errors: OSError if it cannot listen."""
        self._places = places
        self._addresses = addresses
        ours = {each.ours for each in addresses.values() if each.ours}
        # If one address is sufficient for all hosts, the server does not listen on any other.
        self._shared = interface_address or (ours.pop() if len(ours) == 1 else None)
        self._server = _listen(key, self._shared)
        self._round = 0
        self._ready: Dict[int, Connection] = {}
        self._left: List[int] = []
        self._is_meeting = False
        #: A message, once no world can be formed any more.
        self.fault = ""

    def environment_of(self, place: Place) -> Dict[str, str]:
        """The variables by which this rank finds the driver."""
        return {protocol.DRIVER_VARIABLE: join_address(self._host_for(place.host), self._server.port),
                protocol.WORKER_VARIABLE: str(place.rank)}

    def fileno(self) -> int:
        return self._server.fileno()

    def wait_at_most(self) -> Optional[float]:
        return self._server.wait_at_most()

    def serve(self) -> None:
        """To be called when its descriptor is readable, or its time has come. Does not wait."""
        for event in self._server.events(0):
            self._take(event)

    def close(self) -> None:
        self._server.close()

    def _host_for(self, host: str) -> str:
        seen = self._addresses.get(host)
        if self._server.host not in ("0.0.0.0", "::"):
            return self._server.host
        return seen.ours if seen is not None and seen.ours else os.uname().nodename if seen is not None else "127.0.0.1"

    def _take(self, event: Event) -> None:
        kind = event.message.get("kind")
        if event.kind == "left" and event.connection.data is not None:
            self._left.append(event.connection.data)
            self._notice_stuck()
        elif kind == protocol.HELLO:
            worker = str(event.message.get("worker"))
            if worker.isdigit() and int(worker) < len(self._places):
                event.connection.data = int(worker)
        elif kind == protocol.READY and event.connection.data is not None:
            self._ready[event.connection.data] = event.connection
            self._notice_stuck()
            if len(self._ready) == len(self._places):
                self._begin_round()
        elif kind == protocol.LISTENING and self._is_meeting:
            self._tell_all(str(event.message.get("endpoint")))

    def _begin_round(self) -> None:
        self._round += 1
        self._is_meeting = True
        self._ready[0].send({**self._place(0), "listen_at": self._listen_at()})

    def _tell_all(self, endpoint: str) -> None:
        ready, self._ready, self._is_meeting = self._ready, {}, False
        for rank, connection in ready.items():
            if rank != 0:
                connection.send({**self._place(rank), "endpoint": endpoint})

    def _place(self, rank: int) -> Dict[str, object]:
        place = self._places[rank]
        return {"kind": protocol.PLACE, "round": self._round,
                **{name: getattr(place, name) for name in (
                    "rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")}}

    def _listen_at(self) -> str:
        """An address of rank 0 that other ranks can reach; "": rank 0 finds one."""
        seen = self._addresses.get(self._places[0].host)
        if seen is not None:
            return seen.theirs
        return self._shared or next((each.ours for each in self._addresses.values() if each.ours), "")

    def _notice_stuck(self) -> None:
        if self._left and self._ready and not self.fault:
            self.fault = (f"rank {min(self._ready)} calls init() again, but rank {min(self._left)} has ended and will "
                          "not join: let every rank call init() equally often")


def _listen(key: str, address: Optional[str]) -> WireServer:
    if address is not None:
        try:
            return WireServer(key, address)
        except OSError:
            # The host sees this machine under an address that it does not have, because of address translation.
            pass
    return WireServer(key, "0.0.0.0")
