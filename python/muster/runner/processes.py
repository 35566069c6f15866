"""Starts, reads and ends the processes of a run on one host, and leaves none behind.

This file requires only Python's library, since it is also sent to other hosts and run there (see `remote_agent`).

Each process has a session of its own. Its end consists of two events: "exited" as soon as it has ended, and "finished"
once all of its output has been read, which may be a little later if its own children still run; they have
LEFTOVER_GRACE seconds to end by themselves. So a pool of workers or Python's own resource tracker can clean up, and no
process remains.

Two mechanisms guarantee that no process outlives this one however it ends, even by SIGKILL: the system is asked to kill
each process with it, and a guard, which is forked before the first process, kills their process groups when this
process ends.

Everything belongs to one thread, except for `wake`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import struct
import time

# Type checkers treat this as true. Other hosts need not load the module `typing` for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Set, Tuple, Union

    #: See Processes.events.
    Output = Tuple[Literal["output"], str, int, bytes]
    Exited = Tuple[Literal["exited"], str, int, int]
    Result = Tuple[Literal["result"], str, bytes]
    Finished = Tuple[Literal["finished"], str]
    Event = Union[Output, Exited, Result, Finished]

#: Seconds in which children of an ended process may end by themselves.
LEFTOVER_GRACE = 1.0

STDOUT, STDERR = 1, 2

PACKAGE_VARIABLE, RESULT_VARIABLE = "MUSTER_RUN_PACKAGE", "MUSTER_RUN_RESULT"

_PR_SET_PDEATHSIG = 1
_READ_ONCE = 1 << 16
_GUARDED = struct.Struct("=ci")


class _Process:
    def __init__(self, name: str, pid: int, pidfd: int, streams: Dict[int, int], result: int) -> None:
        self.name = name
        self.pid = pid
        self.pidfd = pidfd
        self.streams = streams  # number of descriptor -> STDOUT or STDERR
        self.result = result  # a file that it may write to, or -1
        self.is_over = False
        self.was_cleared = False  # whether its group was killed after its end
        self.kill_at: Optional[float] = None  # when its group is killed


class Processes:
    """The processes of one host. Descriptors that it opens are not inherited."""

    def __init__(self) -> None:
        _open_standard_streams()
        self._by_name: Dict[str, _Process] = {}
        self._by_descriptor: Dict[int, _Process] = {}
        self._epoll = select.epoll()
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll.register(self._woken, select.EPOLLIN)
        self._guard: Optional[_Guard] = None
        self._folder: Optional[str] = None
        self._package = -1
        self._prctl = ctypes.CDLL(None).prctl

    def __len__(self) -> int:
        """The number of processes that are not finished."""
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def set_folder(self, folder: str) -> None:
        """Sets a folder of files that is useless without this process: the guard removes it if this process cannot.
        Must be called before the first process starts."""
        self._folder = folder

    def set_package(self, package: bytes) -> None:
        """Every later process gets these bytes in a memory file, open as the descriptor in PACKAGE_VARIABLE. Events
        report the bytes that it writes to the descriptor in RESULT_VARIABLE."""
        self._package = os.memfd_create("package", os.MFD_CLOEXEC)
        with open(self._package, "wb", closefd=False) as file:
            file.write(package)

    def start(self, name: str, command: List[str], environment: Mapping[str, str], folder: str) -> None:
        """Starts `command` (found in the PATH of `environment`) in `folder`, with an empty standard input.

        Errors: OSError with the file name, if the folder or the program cannot be used."""
        if self._guard is None:
            self._guard = _Guard(self._folder)
        result = -1
        pipes: List[Tuple[int, int]] = []
        try:
            for _ in range(3):
                pipes.append(os.pipe2(os.O_CLOEXEC))
            if self._package >= 0:
                result = os.memfd_create("result", os.MFD_CLOEXEC)
                environment = dict(environment)
                environment.update({PACKAGE_VARIABLE: str(self._package), RESULT_VARIABLE: str(result)})
            kept = (self._package, result) if self._package >= 0 else ()
            pid = self._fork(command, environment, folder, kept, *(write for _, write in pipes))
        except BaseException:
            for descriptor in [pair[0] for pair in pipes] + [result] * (result >= 0):
                os.close(descriptor)
            raise
        finally:
            for pair in pipes:
                os.close(pair[1])
        (out, _), (err, _), (failed, _) = pipes
        self._guard.add(pid)
        with open(failed, "rb") as report:
            said = report.read()
        if said:
            os.waitpid(pid, 0)
            self._guard.remove(pid)
            for descriptor in [out, err] + [result] * (result >= 0):
                os.close(descriptor)
            number, what = said.split(b" ", 1)
            raise OSError(int(number), os.strerror(int(number)), os.fsdecode(what))
        process = _Process(name, pid, os.pidfd_open(pid), {out: STDOUT, err: STDERR}, result)
        self._by_name[name] = process
        for descriptor in (process.pidfd, out, err):
            self._by_descriptor[descriptor] = process
            self._epoll.register(descriptor, select.EPOLLIN)

    def end(self, names: Optional[Iterable[str]] = None, grace: float = 5.0) -> None:
        """Asks the processes (None: all) to end, and kills those that still run after `grace` seconds. Does not
        wait."""
        for process in [self._by_name[name] for name in (list(self._by_name) if names is None else names)
                        if name in self._by_name]:
            if not process.is_over:
                _signal_group(process.pid, signal.SIGTERM if grace > 0 else signal.SIGKILL)
                self._kill_within(process, grace)

    def fileno(self) -> int:
        return self._epoll.fileno()

    def wake(self) -> None:
        """Ends a wait in `events`. May be called from any thread or signal handler."""
        try:
            os.write(self._waker, b"w")
        except OSError:
            pass

    def wait_at_most(self) -> Optional[float]:
        """The seconds until `events` must be called even if nothing arrives; None: no limit."""
        deadlines = [each.kill_at for each in self._by_name.values() if each.kill_at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def events(self, timeout: Optional[float] = None) -> List[Event]:
        """Returns the events so far, in order: ("output", name, STDOUT or STDERR, bytes); ("exited", name, code,
        signal), of which the one that does not apply is 0; ("result", name, bytes) if it has one; ("finished", name).
        Waits up to `timeout` seconds (None: no limit) for the first, and returns early if it is woken."""
        bound = self.wait_at_most()
        wait = bound if timeout is None else timeout if bound is None else min(bound, timeout)
        events: List[Event] = []
        ended = []
        for descriptor, _ in self._epoll.poll(wait):
            process = self._by_descriptor.get(descriptor)
            if descriptor == self._woken:
                os.read(self._woken, 4096)
            elif process is None:
                continue
            elif descriptor == process.pidfd:
                ended.append(process)
            else:
                self._read(process, descriptor, events)
        for process in ended:
            self._note_end(process, events)
        self._kill_late()
        for process in list(self._by_name.values()):
            if process.is_over and not process.streams:
                self._finish(process, events)
        return events

    def close(self) -> List[Event]:
        """Kills the remaining processes and waits for them. Returns their last output, as `events` does."""
        events: List[Event] = []
        self.end(grace=0)
        for process in self._by_name.values():
            if process.is_over:
                process.kill_at = time.monotonic()
        while self._by_name:
            events += self.events()
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        self._epoll.close()
        for descriptor in [self._woken, self._waker] + [self._package] * (self._package >= 0):
            os.close(descriptor)
        return events

    def _fork(self, command: List[str], environment: Mapping[str, str], folder: str, kept: Sequence[int], out: int,
              err: int, failed: int) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            what = folder
            os.setsid()
            self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # the parent ended before this request
                os._exit(1)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            for descriptor in map(int, os.listdir("/proc/self/fd")):
                if descriptor > STDERR:
                    _set_inheritable(descriptor, descriptor in kept)
            for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
                           signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.chdir(folder)
            what = command[0]
            os.execvpe(command[0], command, environment)
        except OSError as error:
            os.write(failed, b"%d %s" % (error.errno or errno.EINVAL, os.fsencode(what)))
        except BaseException:
            os.write(failed, b"%d %s" % (errno.EINVAL, os.fsencode(what)))
        finally:
            os._exit(127)

    def _read(self, process: _Process, descriptor: int, events: List[Event]) -> None:
        received = os.read(descriptor, _READ_ONCE)
        if received:
            events.append(("output", process.name, process.streams[descriptor], received))
        else:
            self._close_stream(process, descriptor)

    def _close_stream(self, process: _Process, descriptor: int) -> None:
        self._epoll.unregister(descriptor)
        os.close(descriptor)
        del process.streams[descriptor], self._by_descriptor[descriptor]

    def _note_end(self, process: _Process, events: List[Event]) -> None:
        # It stays a zombie until it is finished, so that its id, which is that of its group, is not reused.
        status = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert status is not None  # since it waits without WNOHANG
        self._epoll.unregister(process.pidfd)
        del self._by_descriptor[process.pidfd]
        os.close(process.pidfd)
        process.is_over = True
        self._kill_within(process, LEFTOVER_GRACE)
        exited = status.si_code == os.CLD_EXITED
        events.append(("exited", process.name, status.si_status if exited else 0,
                       0 if exited else status.si_status))

    def _kill_within(self, process: _Process, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        process.kill_at = deadline if process.kill_at is None else min(process.kill_at, deadline)

    def _kill_late(self) -> None:
        now = time.monotonic()
        for process in self._by_name.values():
            if process.kill_at is None or process.kill_at > now:
                continue
            _signal_group(process.pid, signal.SIGKILL)
            if not process.is_over:
                process.kill_at = None
            elif not process.was_cleared:
                process.was_cleared = True
                process.kill_at = now + LEFTOVER_GRACE
            else:
                # A process that has left the group holds the other ends. Its output does not belong to the run any
                # more.
                for descriptor in list(process.streams):
                    self._close_stream(process, descriptor)

    def _finish(self, process: _Process, events: List[Event]) -> None:
        _signal_group(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
        if self._guard is not None:
            self._guard.remove(process.pid)
        del self._by_name[process.name]
        if process.result >= 0:
            with open(process.result, "rb") as file:
                file.seek(0)
                result = file.read()
            if result:
                events.append(("result", process.name, result))
        events.append(("finished", process.name))


def _set_inheritable(descriptor: int, is_inheritable: bool) -> None:
    try:
        os.set_inheritable(descriptor, is_inheritable)
    except OSError as error:
        if error.errno != errno.EBADF:  # the descriptor by which the list was read
            raise


def _close_if_open(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass  # the descriptor by which the list was read


def _open_standard_streams() -> None:
    """Opens missing standard streams. Otherwise a pipe could get their numbers, which the child processes use
    otherwise."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > STDERR:
            os.close(descriptor)
            return


class _Guard:
    """A process that waits for the end of this one, and then kills the given process groups."""

    def __init__(self, folder: Optional[str]) -> None:
        read, self._write = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _stand_guard(read, folder)
            finally:
                os._exit(0)
        os.close(read)

    def add(self, pid: int) -> None:
        os.write(self._write, _GUARDED.pack(b"+", pid))

    def remove(self, pid: int) -> None:
        os.write(self._write, _GUARDED.pack(b"-", pid))

    def close(self) -> None:
        os.close(self._write)
        os.waitpid(self._pid, 0)


def _stand_guard(read: int, folder: Optional[str]) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(read, 0)
    # Closes one by one: with a limit of 1,000 million descriptors, older Pythons would try to close as many.
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 0:
            _close_if_open(descriptor)
    groups: Set[int] = set()
    while True:
        record = os.read(0, _GUARDED.size)
        if len(record) < _GUARDED.size:
            break
        sign, pid = _GUARDED.unpack(record)
        (groups.add if sign == b"+" else groups.discard)(pid)
    for pid in groups:
        _signal_group(pid, signal.SIGKILL)
    if folder is not None and os.path.isdir(folder):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
