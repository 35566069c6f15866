"""An authenticated channel over TCP between the driver of a job and the job's processes: the protocol, and the
side that connects. The side that listens is in `wire_server`.

Both ends hold the job's key, 32 random bytes. A connection begins with a challenge in each direction:

    client -> server   8 bytes that identify the protocol, 32 random bytes
    server -> client   the same, and HMAC-SHA256(key, "server" + both challenges)
    client -> server   HMAC-SHA256(key, "client" + both challenges)

Before that, each end reads only these bytes of fixed length. Messages follow, which are JSON objects: 4 bytes of
length, the text, and an HMAC-SHA256 over the number of the message, its length and its text, with a key for that
connection and direction. A message that was recorded elsewhere, repeated, left out or truncated is therefore detected,
and ends the connection. Nothing is unpickled. Nothing is encrypted: a program that can listen on the network can read
the messages, so they must not contain secrets.

Any thread may send on a `Channel`; one thread at a time may receive.
"""

from __future__ import annotations

import hmac
import json
import os
import select
import socket
import struct
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

PROTOCOL = b"MUSTERJ1"
KEY_BYTES = 32
NONCE_BYTES = 32
MAC_BYTES = 32
HELLO_BYTES = len(PROTOCOL) + NONCE_BYTES
#: The default limit of a message. A longer message ends the connection.
MAX_MESSAGE = 16 << 20

_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")

Message = Dict[str, Any]


class WireError(ConnectionError):
    """The connection is unusable; the message has the reason."""


class AuthenticationError(WireError):
    """The other end does not hold this job's key."""


def new_key() -> str:
    """A new key, in hexadecimal as in environments and files."""
    return os.urandom(KEY_BYTES).hex()


def key_bytes(key: str) -> bytes:
    """The bytes of a key. Errors: ValueError for an invalid key; the message does not repeat it."""
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ValueError(f"the job's key is not {2 * KEY_BYTES} hexadecimal digits: start the program with its "
                         "launcher, which makes a key for each run")
    return raw


def split_address(address: str) -> Tuple[str, int]:
    """("127.0.0.1", 4711) of "127.0.0.1:4711"; ("::1", 4711) of "[::1]:4711". Errors: ValueError."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{address!r} is not an address: use HOST:PORT, for example 127.0.0.1:4711")
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), int(port)


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def prove(key: bytes, who: bytes, client_nonce: bytes, server_nonce: bytes) -> bytes:
    """The proof that only a holder of the key can compute for these challenges. `who` prevents returning a peer's
    proof."""
    return hmac.digest(key, who + client_nonce + server_nonce, "sha256")


class Sealer:
    """Seals the messages of one direction of one connection, in order."""

    def __init__(self, key: bytes, max_message: int) -> None:
        self._key = key
        self._number = 0
        self._max_message = max_message

    def seal(self, message: Message) -> bytes:
        """Errors: ValueError for a message that is not JSON or too long, which does not count as a message."""
        text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
        if len(text) > self._max_message:
            raise ValueError(f"a message of {len(text)} bytes exceeds the limit of {self._max_message} bytes")
        head = _LENGTH.pack(len(text))
        mac = hmac.digest(self._key, _NUMBER.pack(self._number) + head + text, "sha256")
        self._number += 1
        return head + text + mac


class Opener:
    """The other end of a Sealer: takes received bytes, and returns complete messages."""

    def __init__(self, key: bytes, max_message: int) -> None:
        self._key = key
        self._number = 0
        self._max_message = max_message
        self._bytes = bytearray()

    def feed(self, received: bytes) -> List[Message]:
        """Errors: WireError for bytes that the other end cannot have sealed as the next message."""
        self._bytes += received
        messages: List[Message] = []
        while True:
            message = self._next()
            if message is None:
                return messages
            messages.append(message)

    def end(self) -> None:
        """Called at the end of the stream. Errors: WireError if it ends within a message."""
        if self._bytes:
            raise WireError("the connection ended in the middle of a message")

    def _next(self) -> Optional[Message]:
        if len(self._bytes) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes)
        if length > self._max_message:
            raise WireError(f"a message exceeds the limit of {self._max_message} bytes")
        end = _LENGTH.size + length
        if len(self._bytes) < end + MAC_BYTES:
            return None
        signed = bytes(self._bytes[:end])
        expected = hmac.digest(self._key, _NUMBER.pack(self._number) + signed, "sha256")
        if not hmac.compare_digest(expected, bytes(self._bytes[end:end + MAC_BYTES])):
            raise WireError("a message was changed in transit, or has another sender")
        del self._bytes[:end + MAC_BYTES]
        self._number += 1
        return _object_of(signed[_LENGTH.size:])


def _object_of(text: bytes) -> Message:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise WireError("a message is not a JSON object")
    return message


def seals_of_client(key: bytes, client_nonce: bytes, server_nonce: bytes,
                    max_message: int) -> Tuple[Sealer, Opener]:
    """The sealer and the opener of the client. `seals_of_server` returns those of the server."""
    return (Sealer(prove(key, b"from client", client_nonce, server_nonce), max_message),
            Opener(prove(key, b"from server", client_nonce, server_nonce), max_message))


def seals_of_server(key: bytes, client_nonce: bytes, server_nonce: bytes,
                    max_message: int) -> Tuple[Sealer, Opener]:
    return (Sealer(prove(key, b"from server", client_nonce, server_nonce), max_message),
            Opener(prove(key, b"from client", client_nonce, server_nonce), max_message))


def notice_silence(connection: socket.socket, seconds: float) -> None:
    """Ends the connection if the other host is silent for about `seconds`, but at least three."""
    whole = max(3, int(seconds))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, whole - 2))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * whole)


class Channel:
    """The connecting side of an authenticated connection."""

    def __init__(self, connection: socket.socket, sealer: Sealer, opener: Opener) -> None:
        self._socket = connection
        self._sealer = sealer
        self._opener = opener
        self._sending = threading.Lock()
        self._receiving = threading.Lock()
        self._waiting: List[Message] = []

    def fileno(self) -> int:
        """For waiting for a message. It does not show messages that were received together with another one: call
        `receive(0)` until it raises TimeoutError."""
        return self._socket.fileno()

    @property
    def local_host(self) -> str:
        """The address of this host on the connection."""
        return str(self._socket.getsockname()[0])

    def send(self, message: Message) -> None:
        """Waits until the system has taken all bytes. Errors: WireError, ValueError (see Sealer.seal)."""
        with self._sending:
            sealed = self._sealer.seal(message)
            try:
                self._socket.sendall(sealed)
            except OSError as error:
                raise WireError(f"the connection is lost: {error.strerror or error}") from None

    def receive(self, timeout: Optional[float] = None) -> Optional[Message]:
        """Returns the next message, or None if either end has closed. `timeout` in seconds; None: no limit.

        Errors: TimeoutError (the connection stays usable), WireError.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._receiving:
            return self._receive(deadline)

    def _receive(self, deadline: Optional[float]) -> Optional[Message]:
        while not self._waiting:
            if self._socket.fileno() < 0:
                return None
            _wait_until_readable(self._socket, deadline)
            try:
                received = self._socket.recv(1 << 16)
            except OSError as error:
                raise WireError(f"the connection is lost: {error.strerror or error}") from None
            if not received:
                self._opener.end()
                return None
            self._waiting = self._opener.feed(received)
        return self._waiting.pop(0)

    def request(self, message: Message, timeout: Optional[float] = None) -> Message:
        """Sends, and receives the answer. Errors: WireError, also if the other end closes instead."""
        self.send(message)
        answer = self.receive(timeout)
        if answer is None:
            raise WireError("the other end closed the connection instead of answering")
        return answer

    def close(self) -> None:
        """May be called from any thread, and repeatedly. A receiving thread gets the end of the stream."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        # Closes only when no thread waits on the descriptor, whose number may be reused soon.
        with self._receiving:
            self._socket.close()

    def forget(self) -> None:
        """For a child after fork(): closes its copy of the connection, which stays open in the parent."""
        number = self._socket.detach()
        if number >= 0:
            os.close(number)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(address: str, key: str, *, timeout: float = 10.0, silence: float = 10.0,
            max_message: int = MAX_MESSAGE) -> Channel:
    """Connects to the driver at HOST:PORT. Both ends authenticate each other. `timeout` limits all of it, in seconds.

    Errors: AuthenticationError if the other end holds another key, WireError if it does not answer in time, ValueError
    for an invalid address or key.
    """
    secret = key_bytes(key)
    host_and_port = split_address(address)
    deadline = time.monotonic() + timeout
    connection = None
    try:
        connection = socket.create_connection(host_and_port, timeout=timeout)
        channel = _shake_hands(connection, secret, deadline, max_message)
        connection.settimeout(None)
        notice_silence(connection, silence)
        return channel
    except AuthenticationError as error:
        _close(connection)
        raise AuthenticationError(f"{address}: {error}") from None
    except OSError as error:
        _close(connection)
        what = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) or "timed out" in str(error) \
            else error.strerror or error
        raise WireError(f"cannot reach the job's driver at {address}: {what}") from None


def _shake_hands(connection: socket.socket, key: bytes, deadline: float, max_message: int) -> Channel:
    own = os.urandom(NONCE_BYTES)
    connection.sendall(PROTOCOL + own)
    answer = _receive_exactly(connection, HELLO_BYTES + MAC_BYTES, deadline)
    if not answer.startswith(PROTOCOL):
        raise AuthenticationError("the program there is not the driver of a job, or has another version")
    other = answer[len(PROTOCOL):HELLO_BYTES]
    if not hmac.compare_digest(answer[HELLO_BYTES:], prove(key, b"server", own, other)):
        raise AuthenticationError("the program there does not hold this job's key; it may be the driver of another run")
    connection.sendall(prove(key, b"client", own, other))
    return Channel(connection, *seals_of_client(key, own, other, max_message))


def _receive_exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    received = b""
    while len(received) < count:
        _wait_until_readable(connection, deadline)
        more = connection.recv(count - len(received))
        if not more:
            raise WireError("it closed the connection before both ends had proved that they hold the job's key")
        received += more
    return received


def _wait_until_readable(connection: socket.socket, deadline: Optional[float]) -> None:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    if not poller.poll(None if left is None else 1000 * left):
        raise TimeoutError("no message came in time")


def _close(connection: Optional[socket.socket]) -> None:
    if connection is not None:
        connection.close()
