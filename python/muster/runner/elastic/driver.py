"""The loop of an elastic run: waits for processes, messages of workers and the discovery script, passes events to the
rules, and executes their orders. It uses one thread and never polls."""

from __future__ import annotations

import select
import time
from typing import Any, Dict, List, Optional, Tuple, Union

from ...common import wire
from ...common.elastic import protocol
from ...common.wire_server import Connection, Event
from ..crew import Crew, Exited, HostLost, HostReached
from ..endings import INTERRUPTED_BY, Interrupts, code_of, say, sentence_of
from ..places import common_environment
from ..settings import Settings
from .discovery import Discovery, Found
from .doors import Doors
from .fixed_hosts import FixedHosts
from .orders import Limits, Verdict
from .run_rules import RunRules
from .workers import Phase, Worker


class Driver:
    """Executes the orders of RunRules. Belongs to one thread."""

    def __init__(self, settings: Settings, command: List[str], crew: Crew, interrupts: Interrupts,
                 limits: Limits) -> None:
        self._settings = settings
        self._command = command
        self._crew = crew
        self._interrupts = interrupts
        self._key = wire.new_key()
        self._doors = Doors(self._key, crew)
        self._rules = RunRules(limits, self)
        self._source: Union[Discovery, FixedHosts] = (
            Discovery(settings.host_discovery_script, settings.slots_per_host, settings.working_folder)
            if settings.host_discovery_script else FixedHosts(settings.hosts))
        self._workers: Dict[str, Worker] = {}
        self._connections: Dict[Worker, Connection] = {}
        self._reached: Dict[str, bool] = {}
        self._waiting_for_host: Dict[str, List[Worker]] = {}
        self._labels: Dict[Tuple[str, int], str] = {}

    def carry_out(self) -> Verdict:
        """Runs until the run and all of its processes have ended."""
        while True:
            now = time.monotonic()
            for outcome in self._source.events():
                if isinstance(outcome, Found):
                    self._rules.hosts_found(outcome.slots, now)
                else:
                    self._rules.discovery_failed(outcome.sentence)
            for event in self._doors.events():
                self._handle_event(event, now)
            self._take_crew_events(now)
            if self._interrupts.signal:
                verdict = Verdict(128 + self._interrupts.signal,
                                  f"{INTERRUPTED_BY[self._interrupts.signal]}: ending the workers")
                break
            self._rules.advance(now)
            if self._rules.verdict is not None:
                verdict = self._rules.verdict
                break
            self._wait()
        self._end_all()
        return verdict

    def close(self) -> None:
        """Closes the connections. Remaining workers detect that, and end."""
        self._source.close()
        self._doors.close()

    # --- Orders ---

    def start(self, worker: Worker) -> None:
        self._workers[worker.name] = worker
        self._label_of(worker)  # in the order of the hosts, not of their answers
        if self._reached.get(worker.host):
            self._start_process(worker)
            return
        self._waiting_for_host.setdefault(worker.host, []).append(worker)
        if worker.host not in self._reached:
            self._reached[worker.host] = False
            self._crew.begin_to_reach(worker.host)

    def end(self, worker: Worker) -> None:
        waiting = self._waiting_for_host.get(worker.host, [])
        if worker in waiting:
            waiting.remove(worker)
            worker.phase = Phase.OVER
        else:
            self._crew.end([worker.name])

    def send(self, worker: Worker, kind: str, **fields: Any) -> None:
        connection = self._connections.get(worker)
        if connection is not None:
            connection.send({"kind": kind, **fields})

    def say(self, sentence: str) -> None:
        say(sentence)

    def listen_at(self, host: str, hosts: List[str]) -> str:
        return self._doors.listen_at(host, hosts)

    # --- events ---

    def _handle_event(self, event: Event, now: float) -> None:
        connection, message = event.connection, event.message
        kind = message.get("kind")
        if event.kind == "left":
            # The process has ended or is about to end, and that event counts.
            if self._connections.get(connection.data) is connection:
                del self._connections[connection.data]
        elif kind == protocol.HELLO:
            worker = self._workers.get(str(message.get("worker")))
            if worker is not None:
                connection.data = worker
                self._connections[worker] = connection
        elif isinstance(connection.data, Worker) and connection.data.phase is not Phase.OVER:
            try:
                self._handle_message(connection.data, kind, message, now)
            except (KeyError, TypeError, ValueError):
                # The worker holds the key, but uses another version of the protocol.
                connection.close()

    def _handle_message(self, worker: Worker, kind: Any, message: Dict[str, Any], now: float) -> None:
        if kind == protocol.READY:
            self._rules.asks_for_place(worker, message, now)
        elif kind == protocol.LISTENING:
            self._rules.listens(worker, int(message["round"]), str(message["endpoint"]))
        elif kind == protocol.GAVE_UP:
            self._rules.gave_up(worker, str(message.get("error", "")), now)

    def _take_crew_events(self, now: float) -> None:
        for event in self._crew.events(0):
            if isinstance(event, Exited):
                self._note_end(event, now)
            elif isinstance(event, HostReached):
                self._reached[event.host] = True
                for worker in self._waiting_for_host.pop(event.host, []):
                    self._start_process(worker)
            elif isinstance(event, HostLost):
                self._reached.pop(event.host, None)
                for worker in self._waiting_for_host.pop(event.host, []):
                    self._over(worker, 1, f"host {event.host} cannot be reached: {event.why}", now)

    def _note_end(self, ended: Exited, now: float) -> None:
        worker = self._workers[ended.name]
        failed = bool(ended.code or ended.signal or ended.why)
        title = sentence_of(ended._replace(name=self._label_of(worker)), worker.title) if failed else ""
        self._over(worker, code_of(ended), title, now)

    def _over(self, worker: Worker, code: int, sentence: str, now: float) -> None:
        del self._workers[worker.name]
        self._connections.pop(worker, None)
        self._rules.over(worker, code, sentence, now)

    # --- implementation ---

    def _start_process(self, worker: Worker) -> None:
        environment = {
            **common_environment(self._settings),
            "HOROVOD_ELASTIC": "1", "HOROVOD_HOSTNAME": worker.host, "HOROVOD_LOCAL_RANK": str(worker.slot),
            "HOROVOD_SECRET_KEY": self._key, protocol.KEY_VARIABLE: self._key,
            protocol.DRIVER_VARIABLE: self._doors.address_for(worker.host), protocol.WORKER_VARIABLE: worker.name}
        self._crew.start(worker.host, worker.name, self._command, environment, label=self._label_of(worker))

    def _label_of(self, worker: Worker) -> str:
        """The prefix of its lines: its rank in the first round. A later worker of the slot has the same prefix."""
        return self._labels.setdefault((worker.host, worker.slot), str(len(self._labels)))

    def _wait(self) -> None:
        poller = select.poll()
        for each in (self._crew, self._source, *self._doors.servers):
            if each.fileno() >= 0:
                poller.register(each.fileno(), select.POLLIN)
        now = time.monotonic()
        deadline = self._rules.next_deadline(now)
        bounds = [each.wait_at_most() for each in (self._crew, self._source, *self._doors.servers)]
        bounds.append(None if deadline is None else deadline - now)
        left: Optional[float] = min((each for each in bounds if each is not None), default=None)
        # One more millisecond, since poll() counts whole milliseconds and must not wake before a deadline.
        poller.poll(None if left is None else 1000 * max(0.0, left) + 1)

    def _end_all(self) -> None:
        self._crew.end()
        while self._crew.running:
            self._crew.events()
