"""Prints the output of the ranks as it arrives: whole lines, each with its rank, without loss.

    [1]<stdout>:epoch 3: loss 0.25

Standard output of the ranks goes to standard output, standard error to standard error. With --output-filename the
output of each rank is also written, byte for byte, to separate files. A reader that does not read the output blocks the
ranks in the end, instead of filling memory.
"""

from __future__ import annotations

import os
import select
import time
from typing import Dict, Optional, Tuple

from .settings import Settings

#: A longer line is printed in parts, between which lines of other ranks may be printed.
MAX_LINE = 1 << 20

_NAMES = {1: "stdout", 2: "stderr"}
_TITLES = {1: "standard output", 2: "standard error"}


class Output:
    """Belongs to one thread. `ranks`: the maximum number of ranks, which determines the width of the numbers in names
    of folders; None: unknown."""

    def __init__(self, settings: Settings, ranks: Optional[int] = None) -> None:
        self._folder = settings.output_filename
        self._has_time = settings.prefix_output_with_timestamp
        self._digits = len(str(max(0, (ranks or 1) - 1)))
        self._streams: Dict[Tuple[str, int], _Stream] = {}

    def write(self, label: str, stream: int, data: bytes) -> None:
        """`stream`: 1 or 2. Errors: BrokenPipeError if the reader is gone; OSError of the files."""
        key = (label, stream)
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = _Stream(f"[{label}]<{_NAMES[stream]}>:", self._file_of(label, stream))
        if found.file is not None:
            _write_named(found.file, data, self._path_of(label, stream))
        whole = found.take_whole(data)
        if whole:
            _write_named(stream, _prefixed(whole, self._prefix(found), found), _TITLES[stream])

    def finish(self, label: str) -> None:
        """Prints an incomplete last line."""
        for stream in _NAMES:
            found = self._streams.pop((label, stream), None)
            if found is None:
                continue
            if found.file is not None:
                os.close(found.file)
            rest = bytes(found.begun)
            if rest or found.is_within_line:
                _write_named(stream, _prefixed(rest, self._prefix(found), found) + b"\n", _TITLES[stream])

    def finish_all(self) -> None:
        for label in sorted({label for label, _ in self._streams}):
            self.finish(label)

    def _prefix(self, stream: _Stream) -> bytes:
        return (time.asctime() if self._has_time else "").encode() + stream.prefix

    def _file_of(self, label: str, stream: int) -> Optional[int]:
        if self._folder is None:
            return None
        path = self._path_of(label, stream)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # A rank that is started again in an elastic run appends to the file of its predecessor.
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def _path_of(self, label: str, stream: int) -> str:
        return os.path.join(self._folder or "", "rank." + label.zfill(self._digits), _NAMES[stream])


class _Stream:
    def __init__(self, prefix: str, file: Optional[int]) -> None:
        self.prefix = prefix.encode()
        self.file = file
        self.begun = bytearray()
        self.is_within_line = False

    def take_whole(self, data: bytes) -> bytes:
        """Returns the complete lines, and keeps the rest. A carriage return ends a line, too, since progress bars use
        no other end. If it is the last byte, a line feed may follow, and both are one end."""
        begun = self.begun
        searched = max(0, len(begun) - 1)
        begun += data
        end = max(begun.rfind(b"\n", searched), begun.rfind(b"\r", searched, len(begun) - 1)) + 1
        if end == 0 and len(begun) >= MAX_LINE:
            end = len(begun) - begun.endswith(b"\r")
        whole = bytes(begun[:end])
        del begun[:end]
        return whole


def _prefixed(lines: bytes, prefix: bytes, stream: _Stream) -> bytes:
    """Each line of `lines` with the prefix, except for the first if it continues an incomplete line."""
    lead = b"" if stream.is_within_line else prefix
    stream.is_within_line = not lines.endswith((b"\n", b"\r"))
    body, end = (lines, b"") if stream.is_within_line else (lines[:-1], lines[-1:])
    if b"\r" in lines:
        if lines.endswith(b"\r\n"):
            body, end = lines[:-2], b"\r\n"
        body = body.replace(b"\r", b"\r" + prefix).replace(b"\r" + prefix + b"\n", b"\r\n")
    return lead + body.replace(b"\n", b"\n" + prefix) + end


def _write_named(descriptor: int, data: bytes, name: str) -> None:
    """write_all(), with an error that names the file."""
    try:
        write_all(descriptor, data)
    except OSError as error:
        error.filename = name
        raise


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view):]
        except BlockingIOError:
            # A terminal or pipe of another program may be in non-blocking mode.
            poller = select.poll()
            poller.register(descriptor, select.POLLOUT)
            poller.poll()
