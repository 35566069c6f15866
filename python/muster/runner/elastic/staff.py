"""The workers of the run: a process for each slot of each host, within the limits of the run."""

from __future__ import annotations

from typing import Dict, List, Optional, Set, Tuple

from ...common.elastic import protocol
from .host_book import HostBook
from .orders import Limits, Orders
from .workers import Phase, Worker


class Staff:
    def __init__(self, limits: Limits, orders: Orders, hosts: HostBook) -> None:
        self._limits = limits
        self._orders = orders
        self._hosts = hosts
        self._workers: Dict[str, Worker] = {}
        self._started = 0
        #: The exit code of the last lost worker.
        self.last_loss_code = 1

    def present(self) -> List[Worker]:
        """All workers whose processes have not ended."""
        self._workers = {name: each for name, each in self._workers.items() if each.phase is not Phase.OVER}
        return list(self._workers.values())

    def wanted(self, *phases: Phase) -> List[Worker]:
        """The workers in these phases that are to stay."""
        return [each for each in self.present() if each.phase in phases and not each.unwanted]

    def review(self) -> None:
        """The hosts have changed: decides which workers must leave, and which may stay after all."""
        for worker in self.present():
            slots = self._hosts.slots_of(worker.host)
            if slots == 0:
                worker.unwanted = f"host {worker.host} is no longer among the hosts of this run"
            elif worker.slot >= slots:
                worker.unwanted = f"host {worker.host} has {slots} slot{'s' * (slots > 1)} now"
            else:
                worker.unwanted = ""
            if worker.unwanted and worker.phase is Phase.STARTING:
                worker.phase = Phase.LEAVING
                self._orders.end(worker)

    def dismiss(self, worker: Worker, why: str) -> None:
        """Informs a worker that waits for a place that there is none."""
        worker.phase = Phase.LEAVING
        self._orders.send(worker, protocol.LEAVE, why=why)

    def fill(self, now: float) -> None:
        """Starts a process for each free slot, on hosts that take workers."""
        taken: Set[Tuple[str, int]] = {(each.host, each.slot) for each in self.present()}
        room = float("inf") if self._limits.most is None else self._limits.most
        room -= sum(each.is_live and not each.unwanted for each in self.present())
        for host, slots in self._hosts.present():
            if not self._hosts.takes_workers(host, now):
                continue
            for slot in range(slots):
                if room >= 1 and (host, slot) not in taken:
                    self._start(host, slot, now)
                    room -= 1

    def end_those_too_late(self, now: float) -> None:
        """Ends workers that have not come back from a round that is long over."""
        for worker in self.present():
            if worker.phase is Phase.LATE and now >= worker.late_since + self._limits.elastic_timeout:
                self._orders.say(f"{worker.title} on {worker.host} has not come back for "
                                 f"{self._limits.elastic_timeout:g} s: ending it")
                worker.phase = Phase.LEAVING
                self._orders.end(worker)

    def next_deadline(self) -> Optional[float]:
        times = [each.late_since + self._limits.elastic_timeout for each in self.present() if each.phase is Phase.LATE]
        return min(times) if times else None

    def _start(self, host: str, slot: int, now: float) -> None:
        worker = Worker(str(self._started), host, slot, now)
        self._started += 1
        self._workers[worker.name] = worker
        self._orders.start(worker)
