"""A server on a unix socket that sends given answers, one per connection, and records the
requests."""

import json
import os
import socket
import tempfile
import threading


def answer(status, body=b"", content_type="application/json", **headers):
    """The bytes of an answer; the connection stays open after it."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    head = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", f"content-length: {len(body)}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def stream(*pieces, whole=False):
    """The bytes of an answer in chunks; cut off, unless it is whole."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in map(str.encode, pieces))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + chunks + (b"0\r\n\r\n" if whole else b"")


class ScriptedServer:
    """Each connection takes the next of `answers`, for one request, and is closed. b"": closed at once."""

    def __init__(self, answers):
        self.requests = []
        self._closed = threading.Semaphore(0)
        self._folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._folder.name, "socket")
        self._answers = list(answers)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def wait_until_closed(self):
        """Waits until the server has closed the next of its connections: a client that reads an answer may be faster."""
        assert self._closed.acquire(timeout=20), "the server has closed no connection"

    def close(self):
        """Ends the server. Fails if an answer was not used."""
        if self._answers:
            with socket.socket(socket.AF_UNIX) as waker:
                waker.connect(self.path)
        left = len(self._answers)
        self._answers.clear()
        self._thread.join(20)
        self._listener.close()
        self._folder.cleanup()
        assert left == 0, f"{left} answers were not used"

    def _serve(self):
        while self._answers:
            connection, _ = self._listener.accept()
            with connection:
                request = self._read(connection)
                if request is None:
                    return
                self.requests.append(request)
                if self._answers:
                    connection.sendall(self._answers.pop(0))
            self._closed.release()

    @staticmethod
    def _read(connection):
        """The request line, its headers, its body; None: nothing requests."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        line, *rest = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        return line.rsplit(" ", 1)[0], headers, body
