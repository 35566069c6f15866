"""The listening side of the authenticated channel (the protocol is in `wire`): one thread, any number of connections.

    server = WireServer(key)                          # on loopback, on a port that the system chooses
    for event in server.events(timeout=1.0):
        if event.kind == "message":
            event.connection.send({"seen": event.message})

A stranger is a connection that has not yet proved that it holds the key. The number of strangers, the time of each, and
the bytes that each may send are limited. The server keeps none of the bytes, answers with the challenge only, and
repeats nothing. If there are too many, the oldest stranger is disconnected: peers with the key complete the handshake
in a moment. A peer that does not read is disconnected as well, so that no peer delays the others.

A server and its connections belong to one thread. `wake()` may be called from any thread.
"""

from __future__ import annotations

import errno
import hmac
import os
import select
import socket
import time
from collections import deque
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple

from .wire import (HELLO_BYTES, MAC_BYTES, MAX_MESSAGE, NONCE_BYTES, PROTOCOL, Message, Opener, Sealer, WireError,
                   join_address, key_bytes, notice_silence, prove, seals_of_server)

#: The limit of bytes that wait for a peer that does not read.
MAX_UNSENT = 64 << 20

_READ_ONCE = 1 << 16
_NEVER = float("inf")


class Event(NamedTuple):
    """An event of a connection: it "joined" (both ends hold the key), sent a "message", or "left"."""

    kind: str
    connection: Connection
    #: For the kind "message".
    message: Message
    #: For the kind "left": the reason, or "" if the peer closed in order.
    why: str


class Connection:
    """A peer that holds the key. `data` is free for the owner of the server."""

    def __init__(self, server: WireServer, peer: socket.socket, address: Tuple[Any, ...]) -> None:
        self._server = server
        self._socket = peer
        #: HOST:PORT of the peer's end.
        self.address = join_address(str(address[0]), int(address[1]))
        self.data: Any = None
        self._sealer: Optional[Sealer] = None
        self._opener: Optional[Opener] = None
        self._unsent = bytearray()
        self._nonces = (b"", b"")
        self._hello = b""
        self._proof = b""
        self._why: Optional[str] = None

    @property
    def is_open(self) -> bool:
        return self._why is None

    @property
    def peer_host(self) -> str:
        """The address of the peer, without its port."""
        return self.address.rpartition(":")[0].strip("[]")

    def send(self, message: Message) -> None:
        """Never waits. If the peer is lost or does not read, an event "left" follows and nothing is raised.

        Errors: ValueError (see Sealer.seal)."""
        assert self._sealer is not None
        sealed = self._sealer.seal(message)
        if self._why is None:
            self._unsent += sealed
            self._flush()

    def close(self) -> None:
        """Sends what the system takes at once, and closes the connection. No event follows."""
        if self._why is None:
            self._why = ""
            self._server._forget(self)

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            if len(self._unsent) > MAX_UNSENT:
                self._server._lose(self, "it does not read its messages")
                return
        except OSError as error:
            self._server._lose(self, f"the connection is lost: {error.strerror or error}")
            return
        self._server._watch(self, bool(self._unsent))


class WireServer:
    """Listens on `host` and `port` (0: a free port). `key` in hexadecimal. Times are in seconds: `handshake` limits the
    handshake of a stranger; a host that is silent for `silence` is lost."""

    def __init__(self, key: str, host: str = "127.0.0.1", port: int = 0, *, max_strangers: int = 64,
                 handshake: float = 5.0, silence: float = 10.0, max_message: int = MAX_MESSAGE) -> None:
        """Errors: OSError if it cannot listen there, ValueError for an invalid key."""
        self._key = key_bytes(key)
        self._max_strangers = max_strangers
        self._handshake = handshake
        self._silence = silence
        self._max_message = max_message
        #: The number of connections that were closed because the other end did not prove that it holds the key.
        self.strangers_refused = 0
        # By the number of the socket, in the order in which strangers connected.
        self._strangers: Dict[int, Tuple[Connection, float]] = {}
        self._connections: Dict[int, Connection] = {}
        self._lost: Deque[Connection] = deque()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._listener.setblocking(False)
        self.host: str
        self.port: int
        self.host, self.port = self._listener.getsockname()[:2]
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._epoll.register(self._woken, select.EPOLLIN)

    @property
    def address(self) -> str:
        """HOST:PORT, for `wire.connect`."""
        return join_address(self.host, self.port)

    @property
    def connections(self) -> List[Connection]:
        """The connections that hold the key and have not left."""
        return list(self._connections.values())

    def fileno(self) -> int:
        """For waiting together with other descriptors; see `wait_at_most`."""
        return self._epoll.fileno()

    def wait_at_most(self) -> Optional[float]:
        """The seconds until `events` must be called even if nothing was received; None: no limit."""
        if self._lost:
            return 0.0
        if not self._strangers:
            return None
        _, deadline = next(iter(self._strangers.values()))
        return max(0.0, deadline - time.monotonic())

    def wake(self) -> None:
        """Ends a wait in `events`, which may then return an empty list. May be called from any thread or signal
        handler."""
        try:
            os.write(self._waker, b"w")
        except OSError:
            pass

    def events(self, timeout: Optional[float] = None) -> List[Event]:
        """Returns the events so far. Waits up to `timeout` seconds (None: no limit) for the first, or until woken."""
        deadline = _NEVER if timeout is None else time.monotonic() + timeout
        events: List[Event] = []
        while True:
            left = deadline - time.monotonic()
            bound = self.wait_at_most()
            wait = min(left, _NEVER if bound is None else bound)
            ready = self._epoll.poll(None if wait == _NEVER else max(0.0, wait))
            woken = self._handle(ready, events)
            self._refuse_late_strangers()
            while self._lost:
                connection = self._lost.popleft()
                events.append(Event("left", connection, {}, connection._why or ""))
            if events or woken or time.monotonic() >= deadline:
                return events

    def close(self) -> None:
        """Closes all connections."""
        for connection in [*self._connections.values(), *(each for each, _ in self._strangers.values())]:
            connection._why = ""
            connection._socket.close()
        self._connections.clear()
        self._strangers.clear()
        self._lost.clear()
        self._listener.close()
        self._epoll.close()
        for number in (self._spare, self._woken, self._waker):
            if number >= 0:
                os.close(number)
        self._spare = self._woken = self._waker = -1

    def __enter__(self) -> WireServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waker >= 0:
            self.close()

    def _handle(self, ready: List[Tuple[int, int]], events: List[Event]) -> bool:
        woken = False
        for number, what in ready:
            if number == self._woken:
                os.read(self._woken, 4096)
                woken = True
            elif number == self._listener.fileno():
                self._accept()
            elif number in self._strangers:
                self._hear_stranger(self._strangers[number][0], events)
            elif number in self._connections:
                connection = self._connections[number]
                if what & select.EPOLLOUT:
                    connection._flush()
                if what & ~select.EPOLLOUT and connection._why is None:
                    self._hear(connection, events)
        return woken

    def _accept(self) -> None:
        try:
            peer, address = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            return
        peer.setblocking(False)
        while len(self._strangers) >= self._max_strangers:
            self._refuse(next(iter(self._strangers.values()))[0])
        connection = Connection(self, peer, address)
        self._strangers[peer.fileno()] = (connection, time.monotonic() + self._handshake)
        self._epoll.register(peer, select.EPOLLIN)

    def _turn_away(self) -> None:
        """No descriptor is left: a spare descriptor accepts the waiting connection and closes it, which would otherwise
        be reported again and again."""
        os.close(self._spare)
        try:
            peer, _ = self._listener.accept()
            peer.close()
            self.strangers_refused += 1
        except OSError:
            pass
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _hear_stranger(self, stranger: Connection, events: List[Event]) -> None:
        wanted = MAC_BYTES if stranger._nonces[0] else HELLO_BYTES
        try:
            received = stranger._socket.recv(wanted - len(stranger._hello))
        except BlockingIOError:
            return
        except OSError:
            received = b""
        stranger._hello += received
        # Bytes that cannot become a hello are rejected at once, without an answer that shows how far they were right.
        if not received or (wanted == HELLO_BYTES and not _may_be_hello(stranger._hello)):
            self._refuse(stranger)
        elif len(stranger._hello) == wanted:
            said, stranger._hello = stranger._hello, b""
            if wanted == HELLO_BYTES:
                self._challenge(stranger, said[len(PROTOCOL):])
            else:
                self._judge(stranger, said, events)

    def _challenge(self, stranger: Connection, client_nonce: bytes) -> None:
        own = os.urandom(NONCE_BYTES)
        stranger._nonces = (client_nonce, own)
        answer = PROTOCOL + own + prove(self._key, b"server", client_nonce, own)
        try:
            # An empty send buffer has room for these few bytes.
            if stranger._socket.send(answer) == len(answer):
                return
        except OSError:
            pass
        self._refuse(stranger)

    def _judge(self, stranger: Connection, proof: bytes, events: List[Event]) -> None:
        if not hmac.compare_digest(proof, prove(self._key, b"client", *stranger._nonces)):
            self._refuse(stranger)
            return
        number = stranger._socket.fileno()
        del self._strangers[number]
        stranger._sealer, stranger._opener = seals_of_server(self._key, *stranger._nonces, self._max_message)
        self._connections[number] = stranger
        notice_silence(stranger._socket, self._silence)
        events.append(Event("joined", stranger, {}, ""))

    def _hear(self, connection: Connection, events: List[Event]) -> None:
        opener = connection._opener
        assert opener is not None
        try:
            received = connection._socket.recv(_READ_ONCE)
            if received:
                events.extend(Event("message", connection, each, "") for each in opener.feed(received))
            else:
                opener.end()
                self._lose(connection, "")
        except BlockingIOError:
            pass
        except WireError as error:
            self._lose(connection, str(error))
        except OSError as error:
            self._lose(connection, f"the connection is lost: {error.strerror or error}")

    def _refuse_late_strangers(self) -> None:
        now = time.monotonic()
        for stranger, deadline in list(self._strangers.values()):
            if deadline > now:
                break
            self._refuse(stranger)

    def _refuse(self, stranger: Connection) -> None:
        self.strangers_refused += 1
        stranger._why = ""
        del self._strangers[stranger._socket.fileno()]
        stranger._socket.close()

    def _lose(self, connection: Connection, why: str) -> None:
        connection._why = why
        self._forget(connection)
        self._lost.append(connection)

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection._socket.fileno(), None)
        connection._socket.close()

    def _watch(self, connection: Connection, writable: bool) -> None:
        self._epoll.modify(connection._socket, select.EPOLLIN | (select.EPOLLOUT if writable else 0))


def _may_be_hello(begun: bytes) -> bool:
    return begun[:len(PROTOCOL)] == PROTOCOL[:len(begun)]
