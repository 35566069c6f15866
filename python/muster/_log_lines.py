"""A log without gaps and without repetitions, over connections that break.

A log has an id only now and then, so what was read behind the last one comes again after a break. It
need not be cut into records as before; what stays the same are the bytes that each source printed. (A
source is one stream of one rank of a task in an attempt.) So it is bytes that are counted.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import Dict, Optional, Tuple

from ._generated import LogRecord

Source = Tuple[str, Optional[int], Optional[int], str]


class LogLines:
    """Tells what of the records that come was not seen yet."""

    def __init__(self) -> None:
        self._behind_id: Dict[Source, int] = {}  # bytes that were handed over since the last id
        self._again: Dict[Source, int] = {}  # of these, those that this connection has yet to repeat

    def broke(self) -> None:
        """From here on, everything behind the last id comes again."""
        self._again = dict(self._behind_id)

    def id_came(self) -> None:
        """What comes now stands behind a new id."""
        self._behind_id = dict(self._again)

    @property
    def has_handed_over(self) -> bool:
        """Something that stands behind no id."""
        return bool(self._behind_id)

    def take(self, record: LogRecord) -> Optional[LogRecord]:
        """What of the record is new; None: nothing."""
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
    """Its bytes, and the newline that ends it."""
    text = record.text
    size = len(text) if text is not None and text.isascii() else len(_bytes_of(record))
    return size + (0 if record.continues else 1)


def _without_front(record: LogRecord, count: int) -> LogRecord:
    """`text` is set always, `base64` where it is no UTF-8."""
    rest = _bytes_of(record)[count:]
    try:
        return dataclasses.replace(record, text=rest.decode(), base64=None)
    except UnicodeDecodeError:
        return dataclasses.replace(record, text=rest.decode("utf-8", "replace"),
                                   base64=base64.b64encode(rest).decode())
