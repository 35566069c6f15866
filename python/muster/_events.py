"""Decodes server-sent events (WHATWG HTML, section 9.2) from pieces that are divided anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional

_LINE_END = re.compile(b"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"  # the byte order mark, with which a stream may begin


@dataclass(frozen=True)
class RawEvent:
    """An event. `kind` is empty if only an id came, which marks the position of the stream."""

    kind: str
    data: str
    #: The last id in the stream so far, or None.
    id: Optional[str]


class EventDecoder:
    """Takes the bytes of a stream and returns complete events.

    An id is valid once its event is complete: a stream that continues after the id does not miss the event.
    """

    def __init__(self, last_id: Optional[str] = None) -> None:
        self.last_id = last_id
        self._rest = b""
        self._at_start = True
        self._kind = ""
        self._id: Optional[str] = None
        self._data: List[str] = []

    def put(self, piece: bytes) -> List[RawEvent]:
        rest = self._rest + piece
        if self._at_start:
            if len(rest) < len(_MARK) and _MARK.startswith(rest):
                self._rest = rest  # may be the beginning of a byte order mark
                return []
            self._at_start = False
            rest = rest[len(_MARK):] if rest.startswith(_MARK) else rest
        events: List[RawEvent] = []
        begin = 0
        for end in _LINE_END.finditer(rest):
            # A "\r" at the end may be the first half of "\r\n".
            if end.group() == b"\r" and end.end() == len(rest):
                break
            self._take(rest[begin:end.start()], events)
            begin = end.end()
        self._rest = rest[begin:]
        return events

    def _take(self, line: bytes, events: List[RawEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        # A comment has an empty name. `retry` is ignored, since the client has its own rule.

    def _dispatch(self, events: List[RawEvent]) -> None:
        if self._id is not None:
            self.last_id = self._id
        if self._data:
            events.append(RawEvent(self._kind or "message", "\n".join(self._data), self.last_id))
        elif self._id is not None:
            events.append(RawEvent("", "", self.last_id))
        self._kind, self._id, self._data = "", None, []
