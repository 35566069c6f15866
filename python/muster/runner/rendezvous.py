"""How the ranks of a run on several hosts find each other, where their number does not change: this process tells
everybody where rank 0 listens. (On one host a file does, see `meeting_file`.)

It speaks as the driver of an elastic job does (`muster.common.elastic.protocol`), so that a rank asks in one way alone.
As often as the world is left and made anew there is another round.
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
    """Places for the ranks of `places`, which is in order of ranks. Belongs to one thread.

    `addresses`: of each host but this one, how it and this machine are reached from each other; `interface_address`: of
    this machine, on the interface that the user chose, or None."""

    def __init__(self, key: str, places: Sequence[Place], addresses: Dict[str, HostAddresses],
                 interface_address: Optional[str] = None) -> None:
        """Errors: OSError where it cannot listen."""
        self._places = places
        self._addresses = addresses
        ours = {each.ours for each in addresses.values() if each.ours}
        # Where one address serves all, nobody who comes by another can even knock.
        self._shared = interface_address or (ours.pop() if len(ours) == 1 else None)
        self._server = _listen(key, self._shared)
        self._round = 0
        self._ready: Dict[int, Connection] = {}
        self._left: List[int] = []
        self._is_meeting = False
        #: A sentence, once a world cannot come about any more.
        self.fault = ""

    def environment_of(self, place: Place) -> Dict[str, str]:
        """By which this rank finds the driver."""
        return {protocol.DRIVER_VARIABLE: join_address(self._host_for(place.host), self._server.port),
                protocol.WORKER_VARIABLE: str(place.rank)}

    def fileno(self) -> int:
        return self._server.fileno()

    def wait_at_most(self) -> Optional[float]:
        return self._server.wait_at_most()

    def serve(self) -> None:
        """To be called where its descriptor is readable, or its time has come. Does not wait."""
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
        """Rank 0's own address that others can reach; "" leaves it to find one."""
        seen = self._addresses.get(self._places[0].host)
        if seen is not None:
            return seen.theirs
        return self._shared or next((each.ours for each in self._addresses.values() if each.ours), "")

    def _notice_stuck(self) -> None:
        if self._left and self._ready and not self.fault:
            self.fault = (f"rank {min(self._ready)} wants to join a world that rank {min(self._left)} will not come "
                          "to, for it has ended: let every rank call init() equally often")


def _listen(key: str, address: Optional[str]) -> WireServer:
    if address is not None:
        try:
            return WireServer(key, address)
        except OSError:
            # The other side knows this machine by an address that it does not have: something between translates.
            pass
    return WireServer(key, "0.0.0.0")
