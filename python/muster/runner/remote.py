"""One host that is reached by ssh or a replacement, over one connection for all processes there.

Command lines contain no data of the run: ssh starts a Python that reads `processes` and `remote_agent` from its
standard input, followed by the commands and environments.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

from .remote_agent import Frames, pack, parts
from .settings import Settings

#: The limit of a login's output before the agent's first message, and of the kept output of ssh.
MAX_BANNER = 64 << 10
MAX_COMPLAINT = 4 << 10

_SAFE_PATH = re.compile(r"[A-Za-z0-9_./+-]+")

Frame = Tuple[bytes, str, bytes]


class RemoteHost:
    """Belongs to one thread. Its three descriptors are non-blocking; the owner polls them."""

    def __init__(self, name: str, settings: Settings) -> None:
        """Starts to connect. Errors: OSError if ssh itself cannot be started."""
        self.name = name
        #: The first message of the agent, or None.
        self.hello: Optional[Dict[str, Any]] = None
        self._mark = os.urandom(16).hex().encode()
        self._banner: Optional[bytearray] = bytearray()
        self._frames = Frames()
        self._complaint = b""
        source = _agent_source(self._mark, settings)
        words = shell_words(settings)
        self._program = os.path.basename(words[0])
        self._shell = subprocess.Popen(
            [*words, name, _bootstrap(len(source))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, bufsize=0)
        assert self._shell.stdin and self._shell.stdout and self._shell.stderr
        self.stdin, self.stdout, self.stderr = (each.fileno() for each in (
            self._shell.stdin, self._shell.stdout, self._shell.stderr))
        for each in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(each, False)
        self._unsent = bytearray(source)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def start(self, name: str, command: List[str], folder: str, environment: Dict[str, str],
              defaults: Dict[str, str], unset: List[str]) -> None:
        """Requests the start of a process. The agent answers with frames."""
        self._send(b"S", name, {"command": command, "folder": folder, "environment": environment,
                                "defaults": defaults, "unset": unset})

    def set_package(self, package: bytes) -> None:
        """See Processes.set_package."""
        for part in parts(package):
            self._unsent += pack(b"P", "", part)
        self._unsent += pack(b"Q")
        self.flush()

    def end(self, name: str, grace: float) -> None:
        self._send(b"E", name, {"grace": grace})

    def _send(self, kind: bytes, name: str, value: Dict[str, Any]) -> None:
        self._unsent += pack(kind, name, json.dumps(value).encode())
        self.flush()

    def flush(self) -> None:
        """Sends queued data. A lost connection is detected at the end of its output."""
        try:
            while self._unsent:
                del self._unsent[:os.write(self.stdin, self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()

    def receive(self) -> Optional[List[Frame]]:
        """The messages of the agent; None at the end, or if the peer is not an agent."""
        try:
            received = os.read(self.stdout, 1 << 18)
        except BlockingIOError:
            return []
        if not received:
            return None
        if self._banner is not None:
            self._banner += received
            at = self._banner.find(self._mark)
            if at < 0:
                return [] if len(self._banner) <= MAX_BANNER else None
            received = bytes(self._banner[at + len(self._mark):])
            self._banner = None
        try:
            frames = self._frames.feed(received)
            for frame in [each for each in frames if each[0] == b"H"]:
                hello = dict(json.loads(frame[2]))
                self.hello = {"connection": str(hello.get("connection", "")),
                              "interfaces": dict(hello.get("interfaces", {}))}
                frames.remove(frame)
        except (ValueError, TypeError):
            return None
        return frames

    def receive_complaint(self) -> Optional[bytes]:
        """The standard error of the remote shell; None at its end."""
        try:
            received = os.read(self.stderr, 1 << 16)
        except BlockingIOError:
            return b""
        if self.hello is None:
            self._complaint = (self._complaint + received)[-MAX_COMPLAINT:]
        return received or None

    def why_lost(self) -> str:
        """The reason why the output of a host has ended, in the words of ssh if there are any. Waits at most a
        second."""
        code = self._end_shell()
        said = [line.strip() for line in self._complaint.decode("utf-8", "replace").splitlines() if line.strip()]
        if self.hello is not None:
            return "the connection to it was lost"
        if said:
            return said[-1] if code == 255 else "; ".join(said[-3:])
        if self._banner is not None and len(self._banner) > MAX_BANNER:
            return f"its login prints more than {MAX_BANNER} bytes before a process can be started there"
        return f"{self._program} ended with code {code} without a message"

    def hang_up(self) -> None:
        """Disconnects. The agent kills its processes, for which `close` waits."""
        assert self._shell.stdin
        self._shell.stdin.close()

    def close(self) -> None:
        self._end_shell()
        for each in (self._shell.stdin, self._shell.stdout, self._shell.stderr):
            assert each
            each.close()

    def _end_shell(self) -> int:
        assert self._shell.stdin
        self._shell.stdin.close()
        try:
            return self._shell.wait(1.0)
        except subprocess.TimeoutExpired:
            try:
                os.killpg(self._shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            return self._shell.wait()


def shell_words(settings: Settings) -> List[str]:
    """The command line that reaches a host, without the host."""
    words = list(settings.remote_shell)
    if os.path.basename(words[0]) != "ssh":
        return words
    # An elastic run must detect a lost host soon; another run should survive a short interruption.
    alive = ("1", "4") if settings.is_elastic else ("15", "4")
    words += ["-T", "-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={max(1, int(settings.start_timeout))}",
              "-o", f"ServerAliveInterval={alive[0]}", "-o", f"ServerAliveCountMax={alive[1]}"]
    if settings.ssh_port is not None:
        words += ["-p", str(settings.ssh_port)]
    if settings.ssh_identity_file is not None:
        words += ["-i", settings.ssh_identity_file]
    return words


def _bootstrap(length: int) -> str:
    """A command for any shell. Uses the same Python as this process if the host has it."""
    python = sys.executable if sys.executable and _SAFE_PATH.fullmatch(sys.executable) else "python3"
    return (f"exec /bin/sh -c 'p={python}; [ -x \"$p\" ] || p=python3; "
            f"exec \"$p\" -I -c \"import sys;exec(sys.stdin.buffer.read({length}).decode())\"'")


def _agent_source(mark: bytes, settings: Settings) -> bytes:
    """A program that contains both files as modules and calls `main` of the second."""
    folder = os.path.dirname(os.path.abspath(__file__))
    texts = {}
    for name in ("processes", "remote_agent"):
        with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
            texts[name] = file.read()
    return (f"p = {{}}\nexec(compile({texts['processes']!r}, 'muster/processes', 'exec'), p)\n"
            f"a = {{}}\nexec(compile({texts['remote_agent']!r}, 'muster/remote_agent', 'exec'), a)\n"
            f"a['main'](p['Processes'](), {mark!r}, {list(settings.network_interfaces)!r})\n").encode()
