"""Decides when a round begins, and with which workers."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set

from ...common.elastic import protocol
from ...common.elastic.notification import HostUpdateResult
from .assignment import assign
from .host_book import HostBook
from .orders import Limits, Orders, Verdict
from .staff import Staff
from .workers import Phase, Worker

#: How long workers that have come back wait for a missing one, after the last that has come. The missing worker may be
#: in a long computation, or stopped; it joins again when it comes.
GRACE = 3.0
#: How long ready workers wait for workers that are starting, before workers that train are interrupted.
GATHERING = 2.0
#: After this number of seconds the user is informed what a delayed round waits for.
PATIENCE = 3.0
PATIENCE_WITH_STARTING = 30.0
#: The limit of consecutive rounds that fail without a lost worker.
FRUITLESS_ROUNDS = 5


class Rounds:
    def __init__(self, limits: Limits, orders: Orders, hosts: HostBook, staff: Staff) -> None:
        self._limits = limits
        self._orders = orders
        self._hosts = hosts
        self._staff = staff
        self.number = 0
        #: The workers of the current round, except those that have ended.
        self.members: Set[Worker] = set()
        #: The newest change that workers were informed of, and the newest that the current round covers.
        self._serial = 0
        self._covered = 0
        self._is_broken = False
        self._worker_was_lost = False
        self._fruitless = 0
        #: Members that wait for rank 0's address, with the messages that they will get.
        self._unplaced: Dict[Worker, Dict[str, Any]] = {}
        self._failed: List[Worker] = []
        self._last_return = float("-inf")
        self._waiting_since: Optional[float] = None
        self._shortage_reported = False

    # --- events ---

    def came_back(self, worker: Worker, message: Mapping[str, object], now: float) -> None:
        """A worker requests a place in the next round."""
        worker.because = str(message.get("because"))
        worker.synced = int(str(message.get("synced", 0)))
        worker.commits = int(str(message.get("commits", 0)))
        worker.error = str(message.get("error", ""))
        blames = message.get("blames")
        worker.blames = blames if isinstance(blames, int) else None
        worker.phase = Phase.READY
        self._last_return = now
        if worker in self.members and worker.because == protocol.BECAUSE_WORLD_FAILED:
            self._call_off()

    def listens(self, worker: Worker, number: int, endpoint: str) -> None:
        """Rank 0 reports its address for the other ranks."""
        if number != self.number or worker not in self.members:
            return
        for member, fields in list(self._unplaced.items()):
            self._place(member, dict(fields, endpoint=endpoint))
        self._unplaced.clear()

    def lost(self, worker: Worker, was: Phase) -> None:
        """Its process has ended with a failure."""
        if worker not in self.members:
            if self.number == 0:
                self._failed.append(worker)
            return
        self.members.discard(worker)
        self._unplaced.pop(worker, None)
        self._failed.append(worker)
        self._worker_was_lost = True
        self._call_off()

    def finished(self, worker: Worker) -> None:
        """Its process has ended, and the worker has done its part."""
        self.members.discard(worker)

    def failed_after_others(self, worker: Worker) -> None:
        self.members.discard(worker)
        self._failed.append(worker)

    def failed_members(self) -> List[Worker]:
        """The workers of the current round that were lost or failed."""
        return self._failed

    # --- decisions ---

    def advance(self, now: float) -> Optional[Verdict]:
        """Begins the next round if possible, and asks workers to come back for it when it is due. Returns the verdict
        if the run cannot continue."""
        self._dismiss_the_unwanted()
        if not self._is_over(now):
            self._announce(now)
            return None
        ready = self._staff.wanted(Phase.READY)
        if self._is_enough(ready, now):
            return self._begin(ready, now)
        return self._wait(len(ready), now)

    def next_deadline(self, now: float) -> Optional[float]:
        times = []
        if any(each.phase is Phase.READY for each in self._staff.present()):
            times += [self._last_return + GRACE, self._last_return + GATHERING]
        if self._waiting_since is not None:
            times += [self._waiting_since + each
                      for each in (PATIENCE, PATIENCE_WITH_STARTING, self._limits.elastic_timeout)]
        return min((each for each in times if each > now), default=None)

    def _dismiss_the_unwanted(self) -> None:
        for worker in self._staff.present():
            if worker.phase is Phase.READY and worker.unwanted:
                self.members.discard(worker)
                self._staff.dismiss(worker, worker.unwanted)

    def _is_over(self, now: float) -> bool:
        """Whether all expected workers have come back from the current round, or their time is up."""
        missing = [each for each in self.members if each.phase is Phase.MEMBER]
        if not missing:
            return True
        returned = [each for each in self.members if each.phase is Phase.READY]
        if not returned:
            return False
        return self._are_blamed(missing, returned) or now >= self._last_return + GRACE

    def _are_blamed(self, missing: List[Worker], returned: List[Worker]) -> bool:
        """Whether the errors of the returned workers blame exactly the missing ones."""
        blamed = {each.blames for each in returned}
        return all(each.rank in blamed for each in missing)

    def _announce(self, now: float) -> None:
        """Asks workers that train to come back if a worker waits to join them or must leave."""
        if self._is_broken or self._serial > self._covered:
            return
        coming = [each for each in self._staff.wanted(Phase.READY) if each not in self.members]
        going = [each for each in self.members if each.unwanted]
        if coming and self._staff.wanted(Phase.STARTING) and now < self._last_return + GATHERING:
            coming = []
        result = (HostUpdateResult.added if coming else 0) | (HostUpdateResult.removed if going else 0)
        if not result:
            return
        self._serial += 1
        for member in self.members:
            self._orders.send(member, protocol.HOSTS, serial=self._serial, result=int(result))

    def _is_enough(self, ready: List[Worker], now: float) -> bool:
        if self.number > 0:
            return len(ready) >= self._limits.fewest
        waited = self._waiting_since is not None and now >= self._waiting_since + self._limits.elastic_timeout
        if waited:
            return len(ready) >= self._limits.fewest
        # The first round waits for all workers, since no worker trains yet.
        return len(ready) >= self._limits.first and not self._staff.wanted(Phase.STARTING)

    def _wait(self, ready: int, now: float) -> Optional[Verdict]:
        if self._waiting_since is None:
            self._waiting_since = now
            self._shortage_reported = False
        waited = now - self._waiting_since
        needed = self._limits.fewest if self.number > 0 else self._limits.first
        missing = (f"{ready} of the {needed} required workers are ready, "
                   f"{len(self._staff.wanted(Phase.STARTING))} are starting; hosts: {self._hosts.describe(now)}")
        if waited >= self._limits.elastic_timeout:
            return Verdict(self._staff.last_loss_code, f"not enough workers within {self._limits.elastic_timeout:g} s "
                           f"(--elastic-timeout): {missing}")
        is_hopeless = not self._staff.wanted(Phase.STARTING, Phase.LATE) and self._hosts.all_left_out_for_good()
        if is_hopeless:
            return Verdict(self._staff.last_loss_code, f"no host takes workers any more: {missing}")
        if waited >= self._patience(ready) and not self._shortage_reported:
            self._shortage_reported = True
            self._orders.say(f"waiting for workers: {missing}")
        return None

    def _patience(self, ready: int) -> float:
        needed = self._limits.fewest if self.number > 0 else self._limits.first
        will_do = ready + len(self._staff.wanted(Phase.STARTING)) >= needed
        return PATIENCE_WITH_STARTING if will_do else PATIENCE

    def _begin(self, ready: List[Worker], now: float) -> Optional[Verdict]:
        fault = self._fault_before_begin()
        if fault:
            return fault
        self._let_late_ones_go(now)
        for worker in ready[self._limits.most:] if self._limits.most else []:
            self._staff.dismiss(worker, f"this run has at most {self._limits.most} workers")
        ready = ready[:self._limits.most]
        stay = all(each in self.members and each.because == protocol.BECAUSE_HOSTS_CHANGED
                   and each.synced == self.number for each in ready)
        if self.number and not any(each.synced for each in ready):
            self._orders.say("no worker with the state of the training is left: the training starts from the "
                             "beginning, with the state that the program loads")
        self.number += 1
        self._covered = self._serial
        self._is_broken = self._worker_was_lost = False
        self._failed = []
        self._waiting_since = None
        self.members = set(ready)
        placed = assign(ready, self._hosts.order)
        common = {"round": self.number, "may_skip_sync": stay, "announced": self._covered}
        self._unplaced = {worker: {**fields, **common} for worker, fields in placed[1:]}
        for worker in ready:
            worker.phase = Phase.MEMBER
        first, fields = placed[0]
        fields.update(common)
        if len(placed) > 1:
            fields["listen_at"] = self._orders.listen_at(first.host, sorted({each.host for each in ready}))
        self._place(first, fields)
        return None

    def _fault_before_begin(self) -> Optional[Verdict]:
        if self.number and self._limits.reset_limit is not None and self.number > self._limits.reset_limit:
            return Verdict(self._staff.last_loss_code if self._worker_was_lost else 1,
                           f"the world was replaced {self.number - 1} times and has failed again: the limit of "
                           f"replacements is reached (--reset-limit {self._limits.reset_limit})")
        self._fruitless = self._fruitless + 1 if self._is_broken and not self._worker_was_lost else 0
        if self._fruitless >= FRUITLESS_ROUNDS:
            why = next((each.error for each in self.members if each.error), "")
            return Verdict(1, f"the world failed {self._fruitless} times in a row although no worker was lost: {why}")
        return None

    def _place(self, worker: Worker, fields: Dict[str, Any]) -> None:
        worker.round, worker.rank = self.number, fields["rank"]
        self._orders.send(worker, protocol.PLACE, **fields)

    def _let_late_ones_go(self, now: float) -> None:
        for worker in self.members:
            if worker.phase is Phase.MEMBER:
                worker.phase, worker.late_since = Phase.LATE, now
                self._orders.say(f"{worker.title} on {worker.host} does not come back: the others continue without it")

    def _call_off(self) -> None:
        """A worker of the round was lost: no other worker must wait for the round to meet, or for a place in it."""
        self._is_broken = True
        for member in self.members:
            if member in self._unplaced:
                member.phase, member.blames = Phase.READY, None
            elif member.phase is Phase.MEMBER:
                self._orders.send(member, protocol.CALLED_OFF, round=self.number)
        self._unplaced.clear()
