"""All processes of a run, on all of its hosts. One thread starts, prints, watches and ends them, and waits for events.
Processes of this host are its children; processes of other hosts are reached through one connection per host.

    crew = Crew(settings, Output(settings, ranks=2))
    failed = crew.reach(["alpha", "beta"])          # nothing has been started yet
    crew.start("alpha", "0", command, environment)
    for event in crew.events():
        if isinstance(event, Exited): ...

Only one thread at a time may use a crew, except for `wake`. No process remains after `close`, or after the end of this
process for any reason.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from typing import (TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple, Union)

from .hosts import is_local
from .output import Output, write_all
from .places import NEVER_INHERITED, own_part
from .processes import STDERR, STDOUT, Processes
from .settings import END_GRACE, Settings

if TYPE_CHECKING:
    from .processes import Event as ProcessEvent
    from .remote import RemoteHost


class Exited(NamedTuple):
    """A process has ended. Of `code` and `signal` the one that does not apply is 0. `why`: the reason if it did not end
    by itself: it could not be started, or its host was lost. `errors`: the last bytes that it has printed on standard
    error. More output may arrive until it is Finished."""
    name: str
    host: str
    code: int
    signal: int
    why: str = ""
    errors: bytes = b""


class Finished(NamedTuple):
    """All output of the process has been printed."""

    name: str


class HostLost(NamedTuple):
    """The host was lost. Its processes are Exited and Finished in earlier events."""

    host: str
    why: str


class HostReached(NamedTuple):
    """After begin_to_reach: processes can be started there."""

    host: str


class HostAddresses(NamedTuple):
    """`ours`: the address of this machine as seen from that host; `theirs`: that of the host as seen from here. "" if
    it is unknown to the remote shell, and to this machine's names and routes."""

    ours: str
    theirs: str


Event = Union[Exited, Finished, HostLost, HostReached]

#: How often output of the remote shell of a lost host is read: some shells never stop printing.
_MOST_COMPLAINTS = 16

#: How much of the standard error of each process is kept for its end: a traceback.
_KEPT_ERRORS = 8192

#: The exit codes of shells for a program that does not exist or cannot be executed.
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class Crew:
    def __init__(self, settings: Settings, output: Output) -> None:
        self._settings = settings
        self._output = output
        self._local = Processes()
        self._remotes: Dict[str, RemoteHost] = {}
        self._watched: Dict[int, Tuple[RemoteHost, int]] = {}
        self._poll = select.epoll()
        self._poll.register(self._local.fileno(), select.EPOLLIN)
        self._where: Dict[str, str] = {}
        self._labels: Dict[str, str] = {}
        self._over: Dict[str, bool] = {}
        self._last_errors: Dict[str, bytes] = {}
        self._pending: Deque[Event] = deque()
        self._results: Dict[str, List[bytes]] = {}
        if settings.function is not None:
            self._local.set_package(settings.function.package)
        # Hosts of begin_to_reach that have not answered, and their deadlines.
        self._awaited: Dict[str, float] = {}

    def reach(self, hosts: Iterable[str], is_cancelled: Callable[[], bool] = lambda: False) -> Dict[str, str]:
        """Connects to the hosts that are not connected, all at the same time, within the settings' start_timeout.
        Returns the hosts that cannot be reached, with the reasons. Events of other processes are kept for `events`.
        Checks `is_cancelled` whenever it is woken."""
        wanted = [host for host in dict.fromkeys(hosts) if not is_local(host) and host not in self._remotes]
        if not wanted:
            return {}
        from .remote import RemoteHost
        failed: Dict[str, str] = {}
        for host in wanted:
            try:
                self._watch(RemoteHost(host, self._settings))
            except OSError as error:
                failed[host] = f"{self._settings.remote_shell[0]}: {error.strerror or error}"
        deadline = time.monotonic() + self._settings.start_timeout
        while True:
            waiting = [host for host in wanted if host in self._remotes and self._remotes[host].hello is None]
            left = deadline - time.monotonic()
            if not waiting or left <= 0 or is_cancelled():
                break
            self._step(left)
            for event in [each for each in self._pending if isinstance(each, HostLost) and each.host in waiting]:
                failed[event.host] = event.why
                self._pending.remove(event)
        for host in waiting:
            failed[host] = f"no answer within {self._settings.start_timeout:g} s"
            self.leave(host)
        return failed

    def begin_to_reach(self, host: str) -> None:
        """Begins to connect to a host, without waiting. A HostReached follows, or a HostLost if the host does not
        answer within the settings' start_timeout. A local host is reached at once."""
        remote = self._remotes.get(host)
        if is_local(host) or (remote is not None and remote.hello is not None):
            self._pending.append(HostReached(host))
            return
        from .remote import RemoteHost
        try:
            self._watch(RemoteHost(host, self._settings))
            self._awaited[host] = time.monotonic() + self._settings.start_timeout
        except OSError as error:
            self._pending.append(HostLost(host, f"{self._settings.remote_shell[0]}: {error.strerror or error}"))

    def set_folder(self, folder: str) -> None:
        """See Processes.set_folder."""
        self._local.set_folder(folder)

    def addresses(self, host: str) -> Optional[HostAddresses]:
        """The addresses of a host that was reached; None for this host."""
        remote = self._remotes.get(host)
        if remote is None or remote.hello is None:
            return None
        connection = str(remote.hello.get("connection", "")).split()
        ours, theirs = (connection[0], connection[2]) if len(connection) == 4 else _route_to(host)
        chosen = [each for each in dict(remote.hello.get("interfaces", {})).values() if each]
        return HostAddresses(ours, chosen[0] if chosen else theirs)

    def start(self, host: str, name: str, command: Sequence[str], environment: Mapping[str, str],
              label: Optional[str] = None) -> None:
        """Starts a process on a reached host. `name` is unique in this crew; `label` precedes its lines (default: the
        name). `environment` overrides that of this process, from which variables of another run are removed. Events
        report whether the process could be started."""
        self._where[name] = host
        self._labels[name] = name if label is None else label
        self._over[name] = False
        remote = self._remotes.get(host)
        folder = self._settings.working_folder
        if remote is not None:
            taken, filled = own_part(os.environ)
            remote.start(name, list(command), folder, {**taken, **environment}, filled, sorted(NEVER_INHERITED))
            self._watch_writing(remote)
            return
        inherited = {key: value for key, value in os.environ.items() if key not in NEVER_INHERITED}
        try:
            self._local.start(name, list(command), {**inherited, **environment, "PWD": folder}, folder)
        except OSError as error:
            self._could_not_start(name, str(error.filename), error.errno or 0)

    def events(self, timeout: Optional[float] = None) -> List[Event]:
        """Returns the events so far, and prints output meanwhile. Waits up to `timeout` seconds (None: no limit) for
        the first, and returns early if it is woken."""
        if not self._pending:
            self._step(timeout)
        events = list(self._pending)
        self._pending.clear()
        return events

    def end(self, names: Optional[Iterable[str]] = None, grace: float = END_GRACE) -> None:
        """Asks the processes (None: all) to end, and kills those that still run after `grace` seconds. Does not
        wait."""
        chosen = list(self._where) if names is None else [name for name in names if name in self._where]
        self._local.end([name for name in chosen if self._where[name] not in self._remotes], grace)
        for name in chosen:
            remote = self._remotes.get(self._where[name])
            if remote is not None and not self._over[name]:
                remote.end(name, grace)
                self._watch_writing(remote)

    @property
    def has_more(self) -> bool:
        """Whether there will be events: a process runs, or events have not been returned."""
        return bool(self._where or self._pending)

    @property
    def running(self) -> List[str]:
        """The names of the processes that are not Finished."""
        return list(self._where)

    def leave(self, host: str) -> None:
        """Disconnects a host. Its processes are killed, and no event reports that."""
        remote = self._remotes.pop(host, None)
        self._awaited.pop(host, None)
        if remote is None:
            return
        for descriptor in [each for each, (whose, _) in self._watched.items() if whose is remote]:
            self._unwatch(descriptor)
        remote.close()
        for name in [each for each, where in self._where.items() if where == host]:
            self._forget(name)

    def fileno(self) -> int:
        """For waiting together with other descriptors; see `wait_at_most`."""
        return self._poll.fileno()

    def wait_at_most(self) -> Optional[float]:
        """The seconds until `events` must be called even if nothing arrives; None: no limit."""
        if self._pending:
            return 0.0
        bounds = [each - time.monotonic() for each in self._awaited.values()]
        own = self._local.wait_at_most()
        bounds += [] if own is None else [own]
        return max(0.0, min(bounds)) if bounds else None

    def wake(self) -> None:
        """Ends a wait in `events`. May be called from any thread or signal handler."""
        self._local.wake()

    def close(self) -> None:
        """Kills the remaining processes on all hosts, and prints their last output."""
        for remote in self._remotes.values():
            if remote.stdin in self._watched:
                self._unwatch(remote.stdin)
            remote.hang_up()
        for host in list(self._remotes):
            self.leave(host)
        self._print(self._local.close())
        self._output.finish_all()
        self._poll.close()

    def _step(self, timeout: Optional[float]) -> None:
        bound = self.wait_at_most()
        wait = timeout if bound is None else bound if timeout is None else min(bound, timeout)
        for descriptor, what in self._poll.poll(wait):
            if descriptor in self._watched:
                self._serve(*self._watched[descriptor], what)
        self._print(self._local.events(0))
        self._note_answers()

    def _note_answers(self) -> None:
        now = time.monotonic()
        for host, deadline in list(self._awaited.items()):
            if self._remotes[host].hello is not None:
                del self._awaited[host]
                self._pending.append(HostReached(host))
            elif now >= deadline:
                self.leave(host)
                self._pending.append(HostLost(host, f"no answer within {self._settings.start_timeout:g} s"))

    def _print(self, events: List[ProcessEvent]) -> None:
        for event in events:
            name = event[1]
            if event[0] == "output":
                self._write(name, event[2], event[3])
            elif event[0] == "exited":
                self._exited(name, event[2], event[3])
            elif event[0] == "result":
                self._results[name] = [event[2]]
            else:
                self._finished(name)

    def _write(self, name: str, stream: int, data: bytes) -> None:
        if stream == STDERR:
            self._last_errors[name] = (self._last_errors.get(name, b"") + data)[-_KEPT_ERRORS:]
        self._output.write(self._labels[name], stream, data)

    def _serve(self, remote: RemoteHost, descriptor: int, what: int) -> None:
        if descriptor == remote.stdin:
            remote.flush()
            self._watch_writing(remote)
        elif descriptor == remote.stderr:
            said = remote.receive_complaint()
            if said is None:
                self._unwatch(descriptor)
            elif remote.hello is not None:
                write_all(STDERR, said)
        else:
            was_reached = remote.hello is not None
            frames = remote.receive()
            if frames is None:
                self._lose(remote)
            else:
                if not was_reached and remote.hello is not None and self._settings.function is not None:
                    remote.set_package(self._settings.function.package)
                    self._watch_writing(remote)
                try:
                    for kind, name, data in frames:
                        self._take(remote.name, kind, name, data)
                except (ValueError, KeyError, TypeError):
                    # An agent of Muster never sends such a message.
                    self._lose(remote)

    def _take(self, host: str, kind: bytes, name: str, data: bytes) -> None:
        # A host may report about its own processes only.
        if self._where.get(name) != host:
            return
        if kind in (b"1", b"2"):
            self._write(name, STDOUT if kind == b"1" else STDERR, data)
        elif kind == b"X":
            ended = _object_of(data)
            self._exited(name, int(ended["code"]), int(ended["signal"]))
        elif kind == b"R":
            self._results.setdefault(name, []).append(data)
        elif kind == b"F":
            self._finished(name)
        elif kind == b"N":
            fault = _object_of(data)
            self._could_not_start(name, str(fault["what"]), int(fault["number"]))

    def _lose(self, remote: RemoteHost) -> None:
        for _ in range(_MOST_COMPLAINTS):
            if not remote.receive_complaint():
                break
        why = remote.why_lost()
        for name in [each for each, where in self._where.items() if where == remote.name]:
            if not self._over[name]:
                self._exited(name, 0, 0, why)
            self._finished(name)
        self.leave(remote.name)
        self._pending.append(HostLost(remote.name, why))

    def _could_not_start(self, name: str, what: str, number: int) -> None:
        is_folder = what == self._settings.working_folder
        where = "" if is_local(self._where[name]) else f" on {self._where[name]}"
        kind = "the working folder" if is_folder else "the program"
        self._exited(name, _NOT_FOUND if number == 2 else _NOT_EXECUTABLE, 0,
                     f"{kind} {what!r} cannot be used{where}: {os.strerror(number)}")
        self._finished(name)

    def _exited(self, name: str, code: int, signal: int, why: str = "") -> None:
        self._over[name] = True
        self._pending.append(Exited(name, self._where[name], code, signal, why, self._last_errors.pop(name, b"")))

    def _finished(self, name: str) -> None:
        self._output.finish(self._labels[name])
        result = self._results.pop(name, None)
        if result is not None and self._settings.function is not None:
            self._settings.function.results[name] = b"".join(result)
        self._forget(name)
        self._pending.append(Finished(name))

    def _forget(self, name: str) -> None:
        del self._where[name], self._labels[name], self._over[name]
        self._last_errors.pop(name, None)

    def _watch(self, remote: RemoteHost) -> None:
        self._remotes[remote.name] = remote
        for descriptor in (remote.stdin, remote.stdout, remote.stderr):
            self._watched[descriptor] = (remote, descriptor)
            self._poll.register(descriptor, select.EPOLLOUT if descriptor == remote.stdin else select.EPOLLIN)

    def _watch_writing(self, remote: RemoteHost) -> None:
        """Waits for its standard input only while there are bytes to write."""
        is_watched = remote.stdin in self._watched
        if remote.has_unsent and not is_watched:
            self._watched[remote.stdin] = (remote, remote.stdin)
            self._poll.register(remote.stdin, select.EPOLLOUT)
        elif is_watched and not remote.has_unsent:
            self._unwatch(remote.stdin)

    def _unwatch(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._watched[descriptor]


def _route_to(host: str) -> Tuple[str, str]:
    """For a host whose name resolves here: the address of this machine towards it, and its own address."""
    import socket  # only for runs on several hosts
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0]), str(address[0])
    except OSError:
        return "", ""


def _object_of(data: bytes) -> Any:
    import json  # only for runs on several hosts
    return json.loads(data)
