"""A run with a fixed set of ranks: all of them are started or none. If a rank fails, the others are ended."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Set, Union

from .crew import Crew, Exited, HostAddresses
from .endings import INTERRUPTED_BY, Interrupts, code_of, lost_rank_in, say, sentence_of
from .hosts import is_local
from .output import Output
from .places import Place, common_environment, environment_of, lay_out
from .settings import Settings

if TYPE_CHECKING:
    from .meeting_file import RendezvousFile
    from .rendezvous import Rendezvous

#: The code if hosts could not be reached, or the run could not begin for another reason.
COULD_NOT_START = 1

#: How long a rank that another one reported as lost may take to end. It left the others because it is about to end.
_LAST_WORDS = 10.0


def run_static(settings: Settings, extra: Optional[Mapping[str, str]] = None,
               command: Optional[Sequence[str]] = None) -> int:
    """Runs the settings' command (or `command`) as settings.num_proc ranks, with `extra` in the environment of each.
    Returns the exit code of the run: that of the rank that failed first, 128 plus the signal if a signal killed it, 130
    after Ctrl-C."""
    assert settings.num_proc is not None
    places = lay_out(settings.hosts, settings.num_proc)
    crew = Crew(settings, Output(settings, len(places)))
    with Interrupts(crew.wake) as interrupts:
        try:
            failed = crew.reach((place.host for place in places), lambda: interrupts.signal != 0)
            if interrupts.signal:
                return 128 + interrupts.signal
            if failed:
                _say_unreachable(failed, settings)
                return COULD_NOT_START
            run = _Run(settings, places, crew, interrupts)
            return run.carry_out(list(command or settings.command), dict(extra or {}))
        finally:
            crew.close()


class _Run:
    def __init__(self, settings: Settings, places: List[Place], crew: Crew, interrupts: Interrupts) -> None:
        self._settings = settings
        self._places = places
        self._crew = crew
        self._interrupts = interrupts
        self._failure: Optional[Exited] = None
        # The first rank that failed because it lost another one, and the lost ranks that may still end by themselves.
        self._follower: Optional[Exited] = None
        self._lost: Set[str] = set()
        self._named_at = 0.0
        self._over: Set[str] = set()
        self._is_ending = False
        self._driver: Optional[Rendezvous] = None

    def carry_out(self, command: List[str], extra: Dict[str, str]) -> int:
        key = _new_key()
        meeting = self._meeting(key)
        try:
            common = {**common_environment(self._settings), "HOROVOD_SECRET_KEY": key, "MUSTER_RENDEZVOUS_KEY": key,
                      **extra}
            for place in self._places:
                environment = {**common, **environment_of(place), **meeting.environment_of(place)}
                self._crew.start(place.host, str(place.rank), command, environment)
            self._watch()
        finally:
            meeting.close()
        return self._conclude()

    def _meeting(self, key: str) -> Union[Rendezvous, RendezvousFile]:
        hosts = dict.fromkeys(place.host for place in self._places)
        if all(is_local(host) for host in hosts):
            from .meeting_file import RendezvousFile
            meeting = RendezvousFile()
            self._crew.set_folder(meeting.folder)
            return meeting
        from .rendezvous import Rendezvous
        addresses: Dict[str, HostAddresses] = {}
        for host in hosts:
            seen = self._crew.addresses(host)
            if seen is not None:
                addresses[host] = seen
        self._driver = Rendezvous(key, self._places, addresses, _interface_address(self._settings))
        return self._driver

    def _watch(self) -> None:
        driver = self._driver
        poller = select.poll()
        poller.register(self._crew.fileno(), select.POLLIN)
        if driver is not None:
            poller.register(driver.fileno(), select.POLLIN)
        while self._crew.has_more:
            bounds = (self._crew.wait_at_most(), None if driver is None else driver.wait_at_most(),
                      max(0.0, self._named_at - time.monotonic()) if self._lost else None)
            known = [each for each in bounds if each is not None]
            poller.poll(1000 * min(known) + 1 if known else None)
            if driver is not None:
                driver.serve()
                if driver.fault and not self._is_ending:
                    say(driver.fault)
                    self._end()
            for event in self._crew.events(0):
                if isinstance(event, Exited):
                    self._note(event)
            if self._lost and time.monotonic() >= self._named_at:
                self._name(self._follower)
            if self._interrupts.signal and not self._is_ending:
                say(f"{INTERRUPTED_BY[self._interrupts.signal]}: ending {_count(len(self._crew.running))}")
                self._end()

    def _note(self, ended: Exited) -> None:
        """A rank that leaves the others in order to end takes longer than the rank that fails because of that. So the
        lost rank has a moment in which it ends, and is named then."""
        self._over.add(ended.name)
        if self._is_ending:
            return
        if ended.code == 0 and ended.signal == 0 and not ended.why:
            self._lost.discard(ended.name)
            if self._follower is not None and not self._lost:
                self._name(self._follower)
            return
        lost = lost_rank_in(ended.errors)
        if lost in self._over and self._lost - {ended.name}:
            self._lost.discard(ended.name)
            return  # it follows another follower; the rank that was lost first may still end
        if lost is None or lost in self._over or lost not in self._crew.running:
            is_first = lost is None or ended.name in self._lost
            self._name(ended if is_first or self._follower is None else self._follower)
            return
        if self._follower is None:
            self._follower = ended
            self._named_at = time.monotonic() + _LAST_WORDS
        self._lost.discard(ended.name)
        self._lost.add(lost)

    def _name(self, failed: Optional[Exited]) -> None:
        assert failed is not None
        self._failure = failed
        others = sum(name not in self._over for name in self._crew.running)
        say(sentence_of(failed, f"rank {failed.name}") + (f"; ending {_count(others, 'other ')}" if others else ""))
        self._end()

    def _end(self) -> None:
        self._is_ending = True
        self._lost.clear()
        self._crew.end()

    def _conclude(self) -> int:
        if self._interrupts.signal:
            return 128 + self._interrupts.signal
        if self._failure is not None:
            return code_of(self._failure)
        return COULD_NOT_START if self._is_ending else 0


def _new_key() -> str:
    import os
    return os.urandom(32).hex()


def _count(ranks: int, other: str = "") -> str:
    return f"the {other}rank" if ranks == 1 else f"the {ranks} {other}ranks"


def _interface_address(settings: Settings) -> Optional[str]:
    if not settings.network_interfaces:
        return None
    from .remote_agent import address_of
    found = [address_of(name) for name in settings.network_interfaces]
    return next((each for each in found if each), None)


def _say_unreachable(failed: Mapping[str, str], settings: Settings) -> None:
    shell = " ".join(settings.remote_shell)
    for host, why in failed.items():
        say(f"{host} cannot be reached: {why}")
    say(f"no rank was started; '{shell} {next(iter(failed))} true' must work without a prompt, as this user"
        f"{' and from here' if len(failed) == 1 else ', and so for each'}")
