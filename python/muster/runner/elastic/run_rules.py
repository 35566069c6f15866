"""The rules of an elastic run: which workers are started and ended, when a round begins, and when the run is over.

Training never waits for the start of a process. When a worker is lost, the others begin the next round as soon as they
have come back. Meanwhile a replacement, or a worker on a new host, gets ready, and only then are the workers that train
asked to come back at their next commit.

This module does not wait, communicate or read a clock: events arrive as calls with the time, and actions leave as
Orders.
"""

from __future__ import annotations

from typing import List, Mapping, Optional

from ...common.elastic import protocol
from ..settings import END_GRACE
from .host_book import HostBook
from .orders import Limits, Orders, Verdict
from .rounds import Rounds
from .staff import Staff
from .workers import Phase, Worker


class RunRules:
    """All times are seconds of the driver's clock. Each call is followed by `advance`."""

    def __init__(self, limits: Limits, orders: Orders) -> None:
        self._limits = limits
        self._orders = orders
        self._hosts = HostBook(limits.cooldown, limits.fewest)
        self._staff = Staff(limits, orders, self._hosts)
        self._rounds = Rounds(limits, orders, self._hosts, self._staff)
        self._discovery_fault = ""
        self._has_finished = False
        # The first worker whose program failed, and the deadline for its end.
        self._failing: Optional[Worker] = None
        self._failing_until = 0.0
        self._failure = ""
        #: Set once the run is over. Remaining processes must be ended then.
        self.verdict: Optional[Verdict] = None

    @property
    def workers(self) -> List[Worker]:
        """All workers whose processes have not ended."""
        return self._staff.present()

    @property
    def round(self) -> int:
        """The number of the current round; 0 before the first."""
        return self._rounds.number

    # --- events ---

    def hosts_found(self, slots: Mapping[str, int], now: float) -> None:
        """The hosts according to the discovery script or the command line."""
        self._discovery_fault = ""
        if self._hosts.found(slots):
            self._staff.review()

    def discovery_failed(self, sentence: str) -> None:
        if sentence != self._discovery_fault:
            self._orders.say(sentence + (f"; the hosts stay unchanged: {', '.join(self._hosts.order)}"
                                         if self._hosts.order else ""))
        self._discovery_fault = sentence

    def asks_for_place(self, worker: Worker, message: Mapping[str, object], now: float) -> None:
        """A `ready` message."""
        if worker.phase is Phase.LEAVING:
            self._orders.send(worker, protocol.LEAVE, why=worker.unwanted or "this run ends")
            return
        self._rounds.came_back(worker, message, now)

    def listens(self, worker: Worker, number: int, endpoint: str) -> None:
        """A `listening` message."""
        self._rounds.listens(worker, number, endpoint)

    def gave_up(self, worker: Worker, error: str, now: float) -> None:
        """A `gave_up` message: the program itself failed, and would fail again."""
        if self._failing is None:
            self._failing = worker
            self._failing_until = now + END_GRACE
            self._failure = f"the program failed on {worker.title} on {worker.host}: {error}"
        worker.phase = Phase.LEAVING

    def over(self, worker: Worker, code: int, sentence: str, now: float) -> None:
        """Its process has ended. If it failed, `sentence` has the reason, and `code` is not 0."""
        was, worker.phase = worker.phase, Phase.OVER
        if self.verdict is not None:
            return
        if self._failing is not None:
            if worker is self._failing:
                self.verdict = Verdict(code or 1, self._failure)
        elif was is Phase.LEAVING:
            pass
        elif code:
            self._lose(worker, was, code, sentence, now)
        elif was is Phase.MEMBER or self._rounds.number == 0:
            self._has_finished = True
            self._rounds.finished(worker)
        else:
            sentence = f"{worker.title} on {worker.host} ended with exit code 0 before its part was done"
            self._lose(worker, was, 1, sentence, now)

    # --- decisions ---

    def advance(self, now: float) -> None:
        """Executes the consequences of the events."""
        if self.verdict is not None:
            return
        if self._failing is not None:
            # It ends by itself, so that all of its output is printed.
            if now >= self._failing_until:
                self.verdict = Verdict(1, self._failure)
        elif self._has_finished:
            self._wind_up()
        else:
            self._staff.fill(now)
            self._staff.end_those_too_late(now)
            self.verdict = self._rounds.advance(now)

    def next_deadline(self, now: float) -> Optional[float]:
        """The time at which `advance` must be called even without an event; None: no limit."""
        if self._failing is not None:
            return self._failing_until
        times = [self._rounds.next_deadline(now), self._hosts.next_return(now), self._staff.next_deadline()]
        return min((each for each in times if each is not None), default=None)

    def _lose(self, worker: Worker, was: Phase, code: int, sentence: str, now: float) -> None:
        self._orders.say(sentence)
        self._staff.last_loss_code = code
        if worker.unwanted:
            left_out = None
        else:
            left_out = self._hosts.lost(worker.host, now - worker.started_at, now)
        if left_out:
            self._orders.say(left_out)
        self._rounds.lost(worker, was)

    def _wind_up(self) -> None:
        """A worker has done its part: no more rounds begin, and the other workers must do theirs."""
        members = self._rounds.members
        is_at_work = Phase.MEMBER if self._rounds.number else Phase.STARTING
        for worker in self._staff.present():
            if worker.phase not in (is_at_work, Phase.LEAVING):
                self._dismiss(worker, worker in members)
        if self._staff.wanted(is_at_work):
            return
        failed = self._rounds.failed_members()
        if not failed:
            self.verdict = Verdict(0)
        else:
            self.verdict = Verdict(self._staff.last_loss_code, f"{', '.join(each.title for each in failed)} failed "
                                   "after others had finished, so that no new round can begin")

    def _dismiss(self, worker: Worker, is_member: bool) -> None:
        if worker.phase is Phase.READY:
            self._orders.send(worker, protocol.LEAVE, why="the training is over")
            if is_member:
                self._rounds.failed_after_others(worker)
        else:
            self._orders.end(worker)
        worker.phase = Phase.LEAVING
