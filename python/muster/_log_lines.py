"""Reads a log without gaps and repetitions, over connections that break.

Only some records of a log have an id, so after a break the records since the last id are repeated. They need not be
divided as before; only the bytes of each source are the same. (A source is one stream of one rank of a task in an
attempt.) Therefore this class counts bytes.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import Dict, Optional, Tuple

from ._generated import LogRecord

Source = Tuple[str, Optional[int], Optional[int], str]


class LogLines:
    """Returns the new part of each record."""

    def __init__(self) -> None:
        self._behind_id: Dict[Source, int] = {}  # bytes that were returned since the last id
        self._again: Dict[Source, int] = {}  # the part of these that this connection has yet to repeat

    def broke(self) -> None:
        """The connection broke: everything since the last id will be repeated."""
        self._again = dict(self._behind_id)

    def id_came(self) -> None:
        """An id came: the following records come after it."""
        self._behind_id = dict(self._again)

    def take(self, record: LogRecord) -> Optional[LogRecord]:
        """Returns the new part of the record, or None."""
        source = (record.task, record.attempt, record.rank, record.stream)
        size = _printed_size(record)
        seen = self._again.pop(source, 0)
        if seen >= size:
            if seen > size:
                self._again[source] = seen - size
            return None
        self._behind_id[source] = self._behind_id.get(source, 0) + size - seen
        return _without_front(record, seen) if seen or record.text is None else record


def _bytes_of(record: LogRecord) -> bytes:
    return record.text.encode() if record.text is not None else base64.b64decode(record.base64 or "")


def _printed_size(record: LogRecord) -> int:
    """The number of printed bytes, including the newline at the end."""
    text = record.text
    size = len(text) if text is not None and text.isascii() else len(_bytes_of(record))
    return size + (0 if record.continues else 1)


def _without_front(record: LogRecord, count: int) -> LogRecord:
    """`text` is always set; `base64` is set if the bytes are not UTF-8."""
    rest = _bytes_of(record)[count:]
    try:
        return dataclasses.replace(record, text=rest.decode(), base64=None)
    except UnicodeDecodeError:
        return dataclasses.replace(record, text=rest.decode("utf-8", "replace"),
                                   base64=base64.b64encode(rest).decode())
