"""Commands that run while an end-to-end test continues, with pipes or on a terminal, and gates at which jobs wait."""

import fcntl
import http.client
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

from machine_state import BOUND


class Stream:
    """A running command. The test reads its standard output line by line as it arrives; `errors` is what the command
    has written to standard error so far."""

    def __init__(self, argv, environment, stdin=subprocess.DEVNULL, pass_fds=(), cwd=None):
        self.argv = argv
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, env=environment, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=self._errors, pass_fds=pass_fds, cwd=cwd)
        self.text = ""
        self._pending = b""
        self._unread = []

    def line(self, bound=BOUND):
        """Returns the next line without its newline; None at the end."""
        deadline = time.monotonic() + bound
        while not self._unread:
            if not self._read_some(deadline):
                if not self._pending:
                    return None
                self._add(self._pending)
                self._pending = b""
        return self._unread.pop(0)

    def until(self, words, bound=BOUND):
        """Reads until a line contains `words`, and returns the line."""
        while (line := self.line(bound)) is not None:
            if words in line:
                return line
        raise AssertionError(f"{self} ended before a line with {words!r}{self._evidence()}")

    def finish(self, bound=BOUND):
        """Reads the remaining output, waits for the end of the command and returns its exit code."""
        while self.line(bound) is not None:
            pass
        code = self.process.wait(bound)
        self.process.stdout.close()
        return code

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    @property
    def errors(self):
        # With pread, because a seek would also move the position at which the command writes.
        descriptor = self._errors.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._errors.close()

    def _read_some(self, deadline):
        descriptor = self.process.stdout.fileno()
        left = deadline - time.monotonic()
        if not select.select([descriptor], [], [], max(0, left))[0]:
            raise AssertionError(f"{self} printed nothing more within the time limit{self._evidence()}")
        data = os.read(descriptor, 1 << 16)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._add(line)
        return bool(data)

    def _add(self, line):
        text = line.decode(errors="replace")
        self.text += text + "\n"
        self._unread.append(text)

    def _evidence(self):
        return f"\n--- output:\n{self.text[-4000:]}--- errors:\n{self.errors[-4000:]}"

    def __str__(self):
        return f"`{' '.join(map(str, self.argv[-12:]))}`"


class Gate:
    """A named pipe at which a job waits until the test opens the gate. The job runs `gate.wait`, a shell command."""

    def __init__(self, path):
        self._path = path
        os.mkfifo(path, 0o666)
        os.chmod(path, 0o666)
        self.wait = f"head -c 1 {path} > /dev/null"
        # Opened for reading and writing, so that neither side waits for the other to open it.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def open(self, times=1):
        os.write(self._descriptor, b"x" * times)

    def pass_through(self):
        """Waits until the job has opened the gate."""
        if not select.select([self._descriptor], [], [], BOUND)[0]:
            raise AssertionError("the job did not open the gate")
        os.read(self._descriptor, 1)

    def tell(self, times=1):
        """A shell command with which a job opens the gate."""
        return f"printf {'x' * times} > {self._path}"

    def close(self):
        os.close(self._descriptor)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket of a server."""

    def __init__(self, path):
        super().__init__("muster", timeout=BOUND)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(BOUND)
        self.sock.connect(self.path)


def without_mpirun_warnings(text):
    """The lines of `text`, without those in which Open MPI 4 warns about a harmless race in setpgid()
    (docs/troubleshooting.md)."""
    return [line for line in text.splitlines() if "plm:rsh: Warning: setpgid" not in line]


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Typed:
    """A command on a terminal of its own, to which the test types. `argv`: a program to run in place of muster."""

    def __init__(self, muster, *words, rows=24, columns=80, argv=None, environment=None):
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            set_size(0, rows, columns)
            os.chdir(muster.work)
            argv = argv or muster.argv(*words)
            os.execvpe(argv[0], argv, environment or muster.environment)
        self.text = b""

    def resize(self, rows, columns):
        set_size(self._terminal, rows, columns)

    def type(self, text):
        os.write(self._terminal, text)

    def until(self, words):
        deadline = time.monotonic() + BOUND
        while words not in self.text:
            left = max(0, deadline - time.monotonic())
            if not select.select([self._terminal], [], [], left)[0] or not self._read():
                raise AssertionError(f"{words!r} did not appear in {self.text!r}")

    def echoes(self):
        """Whether the terminal echoes typed text, as it does before and after the command."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def finish(self):
        pieces = [self.text]
        while more := self._take():
            pieces.append(more)
        self.text = b"".join(pieces)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def close(self):
        os.close(self._terminal)

    def hang_up(self):
        """Closes the terminal of the command; returns the command's exit code."""
        self.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self):
        more = self._take()
        self.text += more
        return bool(more)

    def _take(self):
        try:
            return os.read(self._terminal, 1 << 16)
        except OSError:  # its other end is closed
            return b""
