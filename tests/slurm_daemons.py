"""A daemon in the foreground whose log the tests read: they wait for lines of the log instead of sleeping.

    daemon = Daemon("slurmctld", ["slurmctld", "-D"], environment, folder / "slurmctld.out")
    daemon.await_line("Running as primary controller")
    daemon.freeze(), daemon.thaw(), daemon.end(signal.SIGKILL)

A daemon always ends with the thread that has started it, so tests start daemons from the main thread.
"""

import ctypes
import os
import signal
import socket
import subprocess
import threading

from muster_harness import all_pids, descendants, read_bytes

# The time limit in seconds of every wait. Only a hang reaches it.
BOUND = 60

# The time limit for the end of Slurm's jobs. It is longer, because a step that could not report its end to the
# controller tries again after a minute.
ENDING_BOUND = 3 * BOUND

_PR_SET_PDEATHSIG = 1


def hold_ports(count):
    """Sockets with different ports of 127.0.0.1, which the system gives to no other program until they are closed. Slurm's
    daemons, which have SO_REUSEADDR, can listen on them."""
    held = []
    for _ in range(count):
        held.append(socket.socket())
        held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held[-1].bind(("127.0.0.1", 0))
    return held


def _ends_with_parent():
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def prepare():
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(125)

    return prepare


class Daemon:
    """`argv` must stay in the foreground and log to its standard error or output."""

    def __init__(self, name, argv, environment, log):
        self.name = name
        self._lines = []
        self._ended = False
        self._news = threading.Condition()
        self.popen = subprocess.Popen([str(word) for word in argv], env=environment, cwd="/",
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True,
                                      preexec_fn=_ends_with_parent())
        threading.Thread(target=self._read, args=[log], daemon=True).start()

    @property
    def pid(self):
        return self.popen.pid

    def log(self):
        with self._news:
            return "".join(self._lines)

    def await_line(self, words):
        """Returns when a line of its log contains `words`."""
        def said():
            return self._ended or any(words in line for line in self._lines)

        with self._news:
            come = self._news.wait_for(said, BOUND)
        if not come or not any(words in line for line in self._lines):
            raise RuntimeError(f"{self.name} did not say {words!r}, but:\n{self.log()[-4000:]}")

    def is_running(self):
        return self.popen.poll() is None

    def freeze(self):
        """Stops the daemon: it accepts connections and does not answer."""
        self.popen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self):
        self.popen.send_signal(signal.SIGCONT)

    def end(self, number=signal.SIGTERM):
        """Sends the signal and returns when the daemon has ended. A daemon that does not end in time is killed, which
        is an error."""
        if self.is_running():
            self.popen.send_signal(number)
            self.popen.send_signal(signal.SIGCONT)
        try:
            self.popen.wait(BOUND)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise RuntimeError(f"{self.name} did not end:\n{self.log()[-4000:]}") from None

    def _read(self, path):
        with self.popen.stdout as stream, open(path, "ab") as log:
            for line in stream:
                log.write(line)
                log.flush()
                with self._news:
                    self._lines.append(line.decode(errors="replace"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


def steps_of(log):
    """The slurmstepds that log to this file, and their processes: their slurmd is not their parent."""
    steps = [pid for pid in _pids_with_open(str(log))
             if read_bytes(f"/proc/{pid}/cmdline").startswith(b"slurmstepd")]
    return [*steps, *(pid for step in steps for pid in descendants(step))]


def _pids_with_open(path):
    for pid in all_pids():
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:  # it has ended
            continue
        if any(_is_link_to(path, f"/proc/{pid}/fd/{name}") for name in names):
            yield pid


def _is_link_to(path, link):
    try:
        return os.readlink(link) == path
    except OSError:  # it was closed
        return False
