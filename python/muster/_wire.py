"""What JSON and Python values have to do with each other: the few shapes that are not plain JSON.

Times are aware datetimes (Python's stop at microseconds, the server's do not). A text that is no
UTF-8 travels as {"base64": "..."}: where bytes matter it is `bytes` here, and where it is a sentence
for people it is decoded with replacement characters.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

T = TypeVar("T")

#: Text, or bytes that are no UTF-8.
Text = Union[str, bytes]


class Unset(enum.Enum):
    """In a change, what is UNSET stays as it is; None takes a bound away."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset.UNSET

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))")


def time_of(text: str) -> datetime.datetime:
    """An RFC 3339 time; digits past the microsecond are dropped."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31T12:34:56Z")
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    offset = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    moment = datetime.datetime(int(year), int(month), int(day), int(hour), int(minute),
                               min(int(second), 59), int((fraction or "")[:6].ljust(6, "0")),
                               tzinfo=datetime.timezone.utc)
    return moment - offset if sign != "-" else moment + offset


def text_of_time(time: Union[datetime.datetime, str]) -> str:
    """For the wire. A naive datetime is local time, as everywhere in Python."""
    if isinstance(time, str):
        return time
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def text_of(wire: Any) -> Text:
    if isinstance(wire, dict):
        return base64.b64decode(wire["base64"])
    return str(wire)


def sentence_of(wire: Any) -> str:
    text = text_of(wire)
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def optional(wire: Any, read: Callable[[Any], T]) -> Optional[T]:
    return None if wire is None else read(wire)


def list_of(wire: Any, read: Callable[[Any], T]) -> List[T]:
    return [read(each) for each in wire or ()]


def dict_of(wire: Any, read: Callable[[Any], T]) -> Dict[str, T]:
    return {key: read(value) for key, value in (wire or {}).items()}


def same(wire: Any) -> Any:
    return wire


def to_wire(value: Any) -> Any:
    """JSON for a value of the API. Of a dataclass, fields that are None or UNSET are left out, but for
    those whose None means something (they say so in their metadata)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_wire(each) for field, each in _fields_of(value)}
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        return text_of_time(value)
    if isinstance(value, Mapping):
        return {str(key): to_wire(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_wire(each) for each in value]
    return value


def _fields_of(value: Any) -> List[Tuple[dataclasses.Field[Any], Any]]:
    pairs = [(field, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return [(field, each) for field, each in pairs
            if each is not UNSET and (each is not None or field.metadata.get("null"))]


class Each(Tuple[Any, ...]):
    """Values of which each is a parameter of its own, all of one name."""

    @classmethod
    def of(cls, values: Optional[Sequence[Any]]) -> Optional[Each]:
        # A text is a sequence, too, but of letters: it is one value.
        return None if values is None else cls([values] if isinstance(values, str) else values)


def query_pairs(query: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """The parameters of a URL; what is None is not there."""
    return [(name, query_text(each)) for name, value in query.items() if value is not None
            for each in (value if isinstance(value, Each) else [value])]


def query_text(value: Any) -> str:
    """A parameter of a URL or a header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return text_of_time(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)
