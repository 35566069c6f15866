"""HTTP/1.1 over a unix socket or TLS. Connections are kept and used again; thread-safe."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import select
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import quote

from ._contexts import Endpoint
from .errors import Refused, TimedOut, Unavailable, error_of

#: The server closes a connection after 30 seconds without a request.
_IDLE_SECONDS = 20.0


@dataclass
class Request:
    method: str
    path: str
    query: Sequence[Tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Optional[bytes] = None


@dataclass
class Answer:
    status: int
    headers: Dict[str, str]
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("muster", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        # A folder can be swapped, but the kernel's information about the peer is reliable.
        peer = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", peer)
        if user not in (0, os.geteuid()):
            self.close()
            raise Refused(f"the server on '{self._path}' belongs to another user")


class _TlsConnection(http.client.HTTPSConnection):
    def __init__(self, endpoint: Endpoint, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=timeout, context=context)
        self._fingerprint = endpoint.fingerprint

    def connect(self) -> None:
        super().connect()
        if not self._fingerprint:
            return
        # Checked before a byte is sent, so that no other server gets the token.
        certificate = self.sock.getpeercert(True)
        shown = hashlib.sha256(certificate or b"").hexdigest()
        if not hmac.compare_digest(shown, self._fingerprint):
            self.close()
            raise Refused(f"the server at {self.host}:{self.port} shows a certificate that is not the "
                          f"trusted one: {shown}", "ask its administrator; if it was renewed, log in again: muster "
                                                   "login")


def _is_silent(connected: Optional[socket.socket]) -> bool:
    """Whether the other side has neither sent anything nor closed the connection."""
    if connected is None:
        return False
    poller = select.poll()
    poller.register(connected, select.POLLIN)
    return not poller.poll(0)


def _tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=endpoint.ca_file or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if endpoint.fingerprint:
        # The trusted certificate is known, so authorities and names add nothing.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Stream:
    """The body of an answer as it arrives. Close it, or use it as a context manager."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse,
                 connected: socket.socket) -> None:
        self._connection = connection
        self._response = response
        self._connected = connected
        self._timeout = connected.gettimeout()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pieces(self, deadline: Optional[float] = None) -> Iterator[bytes]:
        """The pieces of the body until its end. Unavailable: the connection broke before. TimedOut: `deadline` (of the
        monotonic clock) has passed."""
        try:
            while True:
                if deadline is not None:
                    left = deadline - time.monotonic()
                    if left <= 0:  # also while data keeps arriving
                        raise TimedOut("the time limit has passed")
                    self._connected.settimeout(left if self._timeout is None else min(self._timeout, left))
                piece = self._response.read1(1 << 16)
                if not piece:
                    break
                yield piece
        except (OSError, http.client.HTTPException) as error:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut("the time limit has passed") from None
            raise Unavailable(f"the connection to the server broke: {error or type(error).__name__}") from error

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Transport:
    """`timeout`: the maximum time without data from the server, in seconds."""

    def __init__(self, endpoint: Endpoint, timeout: float = 60.0) -> None:
        self.endpoint = endpoint
        self.timeout = timeout
        self._context = None if endpoint.socket else _tls_context(endpoint)
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()

    def send(self, request: Request) -> Answer:
        """Returns the whole answer. Unavailable: no server answers, or the connection broke. An answer with status 400
        or more is raised as its error."""
        connection = self._connection()
        try:
            response, _ = self._ask(connection, request)
            body = response.read()
        except BaseException as error:
            connection.close()
            raise self._told(error)
        headers = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        if response.status >= 400:
            raise error_of(response.status, headers, body)
        return Answer(response.status, headers, body)

    def stream(self, request: Request) -> Stream:
        """Returns the head of the answer, and its body as it arrives."""
        connection = self._new()
        try:
            response, connected = self._ask(connection, request)
            if response.status >= 400:
                headers = {name.lower(): value for name, value in response.getheaders()}
                raise error_of(response.status, headers, response.read())
        except BaseException as error:
            connection.close()
            raise self._told(error)
        return Stream(connection, response, connected)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _ask(self, connection: http.client.HTTPConnection,
             request: Request) -> Tuple[http.client.HTTPResponse, socket.socket]:
        headers = {"accept": "*/*", **request.headers}
        if self.endpoint.token:
            headers["authorization"] = f"Bearer {self.endpoint.token}"
        target = request.path
        if request.query:
            target += "?" + "&".join(f"{quote(name, '')}={quote(value, '')}" for name, value in request.query)
        connection.request(request.method, target, body=request.body, headers=headers)
        connected: socket.socket = connection.sock  # an answer that ends the connection removes it
        return connection.getresponse(), connected

    def _connection(self) -> http.client.HTTPConnection:
        """A kept connection that the server has not closed, else a new one, so that a request is not lost on a
        connection that is about to close."""
        while True:
            with self._lock:
                if not self._idle:
                    return self._new()
                connection, since = self._idle.pop()
            if _is_silent(connection.sock) and time.monotonic() - since < _IDLE_SECONDS:
                return connection
            connection.close()

    def _new(self) -> http.client.HTTPConnection:
        if self._context is None:
            return _UnixConnection(self.endpoint.socket, self.timeout)
        return _TlsConnection(self.endpoint, self._context, self.timeout)

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append((connection, time.monotonic()))

    def _told(self, error: BaseException) -> BaseException:
        """The error that the caller of a failed exchange gets."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return Refused(f"the certificate of {self.endpoint.name} is not trusted: {error.verify_message}",
                           "log in with its fingerprint (muster login), or set the authority that signed it")
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            advice = ("start one: muster server" if self.endpoint.socket else
                      "check the address, and whether the server runs")
            return Unavailable(f"no server answers at {self.endpoint.name}", advice)
        if isinstance(error, (OSError, http.client.HTTPException)):
            return Unavailable(f"the connection to {self.endpoint.name} broke: {error or type(error).__name__}")
        return error
