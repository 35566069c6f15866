"""The far end of a remote shell: runs the processes of one host, following the launcher's messages on standard input.

The launcher sends the text of `processes` and of this file, so that the host needs only Python. Messages in both
directions are frames: a letter, the lengths of a name and of the data (4 bytes each), the name, the data.

    launcher -> agent    S name {command, folder, environment, defaults, unset}   start the process
                         E name {grace}                                           end the process
                         P ""   bytes, repeated                                   a part of a package (see `processes`)
                         Q ""   empty                                             the end of the package
    agent -> launcher    H ""   {...}                                      hello, the first message
                         1, 2   name, bytes                                output of a process
                         X name {code, signal}                             the process has ended
                         R name, bytes, repeated                           a part of its result
                         F name                                            the process is finished (see `processes`)
                         N name {what, number}                             the process could not be started

The end of standard input means that the launcher has ended: all processes are killed. If this process is killed, the
guard of `processes` does the same.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct

# As in `processes`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, NoReturn, Sequence, Tuple

    from .processes import Event, Processes

FRAME = struct.Struct(">cII")
#: The limit of the data of a frame.
MAX_FRAME = 64 << 20
#: The size of the parts of packages and results.
PART = 1 << 20


def parts(data: bytes) -> List[bytes]:
    return [data[begin:begin + PART] for begin in range(0, len(data), PART)]


def pack(kind: bytes, name: str = "", data: bytes = b"") -> bytes:
    raw = name.encode()
    return FRAME.pack(kind, len(raw), len(data)) + raw + data


class Frames:
    """Takes received bytes, and returns complete frames (kind, name, data). Errors: ValueError for an invalid frame."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, received: bytes) -> List[Tuple[bytes, str, bytes]]:
        self._bytes += received
        frames = []
        while len(self._bytes) >= FRAME.size:
            kind, name, data = FRAME.unpack_from(self._bytes)
            if name + data > MAX_FRAME:
                raise ValueError("an invalid frame")
            middle, end = FRAME.size + name, FRAME.size + name + data
            if len(self._bytes) < end:
                break
            frames.append((kind, self._bytes[FRAME.size:middle].decode(), bytes(self._bytes[middle:end])))
            del self._bytes[:end]
        return frames


class _Agent:
    def __init__(self, processes: Processes, interfaces: Sequence[str]) -> None:
        self._processes = processes
        self._frames = Frames()
        self._is_asked = True
        self._package: List[bytes] = []
        self._say(b"H", "", {
            # "client port server port": the addresses of the launcher's host and of this host.
            "connection": os.environ.get("SSH_CONNECTION", ""),
            "interfaces": {name: address_of(name) for name in interfaces},
        })

    def run(self) -> None:
        poller = select.poll()
        poller.register(0, select.POLLIN)
        poller.register(self._processes.fileno(), select.POLLIN)
        while self._is_asked:
            bound = self._processes.wait_at_most()
            ready = poller.poll(None if bound is None else 1000 * bound + 1)
            if any(descriptor == 0 for descriptor, _ in ready):
                self._listen()
            self._report(self._processes.events(0))
        self._processes.close()

    def _listen(self) -> None:
        received = os.read(0, 1 << 16)
        self._is_asked = bool(received)
        for kind, name, data in self._frames.feed(received):
            if kind == b"S":
                self._start(name, json.loads(data.decode()))
            elif kind == b"E":
                self._processes.end([name], json.loads(data.decode())["grace"])
            elif kind == b"P":
                self._package.append(data)
            elif kind == b"Q":
                self._processes.set_package(b"".join(self._package))

    def _start(self, name: str, asked: Dict[str, Any]) -> None:
        # Variables of this host take precedence over the launcher's defaults.
        environment = dict(asked["defaults"])
        environment.update(os.environ)
        for each in asked["unset"]:
            environment.pop(each, None)
        environment.update(asked["environment"])
        environment["PWD"] = asked["folder"]
        try:
            self._processes.start(name, asked["command"], environment, asked["folder"])
        except OSError as error:
            self._say(b"N", name, {"what": str(error.filename), "number": error.errno})

    def _report(self, events: Sequence[Event]) -> None:
        for event in events:
            name = event[1]
            if event[0] == "output":
                self._write(pack(b"%d" % event[2], name, event[3]))
            elif event[0] == "exited":
                self._say(b"X", name, {"code": event[2], "signal": event[3]})
            elif event[0] == "result":
                for part in parts(event[2]):
                    self._write(pack(b"R", name, part))
            else:
                self._write(pack(b"F", name))

    def _say(self, kind: bytes, name: str, value: Dict[str, Any]) -> None:
        self._write(pack(kind, name, json.dumps(value).encode()))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view):]


def address_of(interface: str) -> str:
    """Its first IPv4 address, or "" if it has none."""
    import fcntl
    import socket
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, 0x8915, struct.pack("256s", interface.encode()[:15]))  # SIOCGIFADDR
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def main(processes: Processes, mark: bytes, interfaces: Sequence[str]) -> NoReturn:
    """`mark`: the bytes that the launcher waits for, after any output of the login."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(1))
    os.write(1, mark)
    try:
        _Agent(processes, interfaces).run()
    except OSError:
        pass  # the launcher has ended; the guard does the rest
    os._exit(0)
