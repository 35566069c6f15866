"""Runs a discovery script each second, which prints the available hosts.

Only one run of the script at a time, with limited time and output: a script that hangs is ended and counts as failed.
While it fails, the last successful result applies.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import Dict, List, Mapping, NamedTuple, Optional, Union

from ..processes import STDERR, STDOUT, Processes

#: The seconds from the start of one run to the start of the next, and the time limit of a run.
PERIOD = 1.0
LONGEST_RUN = 15.0
MAX_OUTPUT = 1 << 20
MAX_SLOTS = 1 << 16

#: A host must not begin with a dash, since ssh would treat it as an option.
_LINE = re.compile(r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.@%-]*)(?::(?P<slots>[0-9]{1,9}))?")
_NAME = "the discovery script"


class Found(NamedTuple):
    """Slots by host, in the order of the lines."""

    slots: Dict[str, int]


class Failed(NamedTuple):
    sentence: str


Outcome = Union[Found, Failed]


def parse_hosts(text: str, slots_per_host: Optional[int]) -> Outcome:
    """Parses lines HOST:SLOTS, or HOST, which has `slots_per_host` slots (default: 1)."""
    slots: Dict[str, int] = {}
    faults: List[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.fullmatch(line)
        if match is None:
            faults.append(f"{line[:80]!r} is not of the form HOST or HOST:SLOTS")
            continue
        host, count = match["host"], int(match["slots"] or slots_per_host or 1)
        slots[host] = slots.get(host, 0) + count
        if slots[host] > MAX_SLOTS:
            faults.append(f"{host} has {slots[host]} slots, more than {MAX_SLOTS}")
    if faults:
        return Failed(f"{_NAME} printed invalid lines: " + "; ".join(faults[:5]))
    return Found(slots)


class HostDiscovery:
    """Finds hosts. Programs may derive classes from it."""

    def find_available_hosts_and_slots(self) -> Dict[str, int]:
        """Slots by host."""
        raise NotImplementedError


class HostDiscoveryScript(HostDiscovery):
    """Runs a script once for each call. Errors: RuntimeError if it fails, or prints invalid lines."""

    def __init__(self, discovery_script: str, slots: Optional[int]) -> None:
        """slots: the number for a host for which the script prints no number."""
        self._script = discovery_script
        self._default_slots = slots

    def find_available_hosts_and_slots(self) -> Dict[str, int]:
        try:
            done = subprocess.run(["/bin/sh", "-c", self._script], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=LONGEST_RUN, check=True)
        except subprocess.SubprocessError as error:
            raise RuntimeError(f"{_NAME} failed: {error}") from error
        found = parse_hosts(done.stdout, self._default_slots)
        if isinstance(found, Failed):
            raise RuntimeError(found.sentence)
        return found.slots


class FixedHosts(HostDiscovery):
    """The hosts of the last set()."""

    def __init__(self, host_slots: Mapping[str, int]) -> None:
        self.set(host_slots)

    def set(self, host_slots: Mapping[str, int]) -> None:
        self._slots = dict(host_slots)

    def find_available_hosts_and_slots(self) -> Dict[str, int]:
        return dict(self._slots)


class Discovery:
    """Runs the script repeatedly. Belongs to one thread, whose loop waits for fileno() and wait_at_most()."""

    def __init__(self, script: str, slots_per_host: Optional[int], folder: str = os.curdir) -> None:
        """`script`: a command line for the shell, run in `folder`."""
        self._command = ["/bin/sh", "-c", script]
        self._slots_per_host = slots_per_host
        self._folder = folder
        self._processes = Processes()
        self._is_running = False
        self._started_at = 0.0
        # The time to start or stop the script; None while its end is awaited.
        self._due: Optional[float] = 0.0
        self._output: Dict[int, bytearray] = {}
        self._fault = ""
        self._status = (0, 0)
        self._is_closed = False

    def fileno(self) -> int:
        return self._processes.fileno()

    def wait_at_most(self) -> Optional[float]:
        """The seconds until events() must be called even if nothing arrives."""
        waits = [] if self._due is None else [max(0.0, self._due - time.monotonic())]
        bound = self._processes.wait_at_most()
        return min(waits + ([] if bound is None else [bound]), default=None)

    def events(self) -> List[Outcome]:
        """The results of the runs that have ended. Never waits."""
        outcomes: List[Outcome] = []
        for event in self._processes.events(0):
            if event[0] == "output":
                self._take(event[2], event[3])
            elif event[0] == "exited":
                self._status = (event[2], event[3])
            else:
                self._is_running = False
                self._due = self._started_at + PERIOD
                outcomes.append(self._outcome())
        if self._due is not None and time.monotonic() >= self._due:
            if self._is_running:
                self._stop(f"did not end within {LONGEST_RUN:g} s and was stopped")
            else:
                outcomes += self._start()
        return outcomes

    def close(self) -> None:
        """Ends the script. May be called repeatedly."""
        if not self._is_closed:
            self._is_closed = True
            self._processes.close()

    def _start(self) -> List[Outcome]:
        self._started_at = time.monotonic()
        self._due = self._started_at + PERIOD
        self._output = {STDOUT: bytearray(), STDERR: bytearray()}
        self._fault = ""
        self._status = (0, 0)
        try:
            self._processes.start("discovery", self._command, dict(os.environ), self._folder)
        except OSError as error:
            return [Failed(f"{_NAME} cannot be run: {error.strerror}: {error.filename}")]
        self._is_running = True
        self._due = self._started_at + LONGEST_RUN
        return []

    def _take(self, stream: int, received: bytes) -> None:
        output = self._output[stream]
        room = MAX_OUTPUT - len(output)
        output += received[:room]
        if len(received) > room and stream == STDOUT and not self._fault:
            self._stop(f"printed more than {MAX_OUTPUT >> 20} MiB and was stopped")

    def _stop(self, fault: str) -> None:
        self._fault = fault
        self._due = None
        self._processes.end(grace=0)

    def _outcome(self) -> Outcome:
        code, signal = self._status
        if self._fault or code or signal:
            why = self._fault or (f"ended with code {code}" if code else f"was ended by signal {signal}")
            said = bytes(self._output[STDERR]).decode(errors="replace").strip().splitlines()
            return Failed(f"{_NAME} {why}" + (f": {said[-1][:200]}" if said else ""))
        return parse_hosts(bytes(self._output[STDOUT]).decode(errors="replace"), self._slots_per_host)
