"""Converts between JSON and Python values. `record_of` reads every dataclass of the API, and `to_wire` writes it.

Times are aware datetimes with microseconds, although the server has nanoseconds. A text that is not UTF-8 is sent as
{"base64": "..."}. Here it is `bytes` if the bytes matter; a sentence for people is decoded with replacement
characters.
"""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime
import enum
import functools
import re
from typing import (Annotated, Any, Callable, Dict, FrozenSet, List, Literal, Mapping, NamedTuple, Optional, Sequence,
                    Tuple, Type, TypeVar, Union, get_args, get_origin, get_type_hints)
from urllib.parse import quote

from .errors import Invalid

T = TypeVar("T")
Reader = Callable[[Any], Any]

#: Text, or bytes that are not UTF-8.
Text = Union[str, bytes]


class Unset(enum.Enum):
    """In a change, UNSET keeps the value, and None removes a limit."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset.UNSET

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))")


def time_of(text: str) -> datetime.datetime:
    """An RFC 3339 time; digits after the microseconds are dropped."""
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
    """The text of a time for a request. A naive datetime is local time, as everywhere in Python."""
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


def same(wire: Any) -> Any:
    return wire


#: A sentence for people: a `str`, with an annotation for record_of.
Sentence = Annotated[str, sentence_of]


class _Plan(NamedTuple):
    """How a dataclass is read from JSON; made once for each class from its type hints."""

    #: By field name. None: the JSON value is the value of the field.
    readers: Dict[str, Optional[Reader]]
    #: Required fields that may be null.
    nullable: FrozenSet[str]
    #: Defaults that all records share.
    defaults: Dict[str, Any]
    #: Defaults that are created for each record.
    factories: Dict[str, Callable[[], Any]]


def record_of(kind: Type[T], wire: Mapping[str, Any]) -> T:
    """A dataclass from JSON. An absent or null property has the field's default; KeyError if there is none. Properties
    without a field come from a newer server and are ignored."""
    readers, nullable, defaults, factories = _PLANS.get(kind) or _plan_of(kind)
    values = defaults.copy()
    for name, value in wire.items():
        if name not in readers or (value is None and name not in nullable):
            continue
        read = readers[name]
        values[name] = value if read is None or value is None else read(value)
    for name, make in factories.items():
        if name not in values:
            values[name] = make()
    if len(values) < len(readers):
        raise KeyError(next(name for name in readers if name not in values))
    # The classes have neither slots nor a __post_init__, and __init__ of a frozen class is slow.
    record = kind.__new__(kind)
    record.__dict__.update(values)
    return record


_PLANS: Dict[Type[Any], _Plan] = {}


def _plan_of(kind: Type[Any]) -> _Plan:
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    factories = {field.name: field.default_factory for field in fields
                 if field.default_factory is not dataclasses.MISSING}
    nullable = frozenset(name for name, hint in hints.items()
                         if type(None) in get_args(hint) and name not in defaults)
    plan = _Plan({field.name: _reader_of(hints[field.name]) for field in fields}, nullable, defaults, factories)
    _PLANS[kind] = plan
    return plan


def _reader_of(hint: Any) -> Optional[Reader]:
    """The function that makes the value of a field with this type hint from JSON other than null. None: the JSON value
    itself."""
    if hint == Text:
        return text_of
    if hint == Sentence:
        return sentence_of
    if hint is datetime.datetime:
        return time_of
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(record_of, hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Union and type(None) in arguments:
        return _reader_of(Union[tuple(each for each in arguments if each is not type(None))])
    if origin in (list, collections.abc.Sequence):
        return _list_reader(_reader_of(arguments[0]))
    if origin in (dict, collections.abc.Mapping):
        return _dict_reader(_reader_of(arguments[1]))
    if hint in (str, int, float, bool, Any) or origin is Literal:
        return None
    raise TypeError(f"cannot read JSON as {hint}")


def _list_reader(read: Optional[Reader]) -> Reader:
    return list if read is None else lambda wire: [read(each) for each in wire]


def _dict_reader(read: Optional[Reader]) -> Reader:
    return dict if read is None else lambda wire: {key: read(value) for key, value in wire.items()}


def is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether this is the default of the field."""
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return field.default is not dataclasses.MISSING and bool(value == field.default)


def to_wire(value: Any) -> Any:
    """JSON for a value of the API. Fields of a dataclass that are None or have their default are omitted, except fields
    whose None has a meaning, which their metadata marks."""
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
            if (each is not None or field.metadata.get("null")) and not is_default(field, each)]


class Each(Tuple[Any, ...]):
    """Values that become separate parameters with the same name."""

    @classmethod
    def of(cls, values: Optional[Sequence[Any]]) -> Optional[Each]:
        # A text is a sequence of letters, too, but here it is one value.
        return None if values is None else cls([values] if isinstance(values, str) else values)


def segment(text: str) -> str:
    """A name or an id as a part of the path of a URL. An empty one would address the list of all objects."""
    if not text:
        raise Invalid("the name is empty", "give a name or an id")
    return quote(text, safe="")


def header_text(name: str, value: Any) -> str:
    """The text of a header."""
    text = query_text(value)
    if not all(" " <= letter <= "~" for letter in text):
        raise Invalid(f"{name} is {text!r}: a header may contain only letters, digits and signs of ASCII")
    return text


def query_pairs(query: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """The parameters of a URL. None values are omitted."""
    return [(name, query_text(each)) for name, value in query.items() if value is not None
            for each in (value if isinstance(value, Each) else [value])]


def query_text(value: Any) -> str:
    """The text of a parameter of a URL or of a header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return text_of_time(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)
