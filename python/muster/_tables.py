"""The display of records and lists of records in a notebook: plain HTML tables with escaped values."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import html
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple, Type, TypeVar

from ._wire import is_default, record_of

R = TypeVar("R", bound="Record")
T = TypeVar("T")


class Record:
    """The base class of all answers of the server: they are read from JSON, and a notebook shows them as tables,
    without fields that have their default."""

    @classmethod
    def from_wire(cls: Type[R], wire: Mapping[str, Any]) -> R:
        return record_of(cls, wire)

    def _repr_html_(self) -> str:
        rows = [(field, getattr(self, field.name)) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        if len(rows) == 1 and isinstance(rows[0][1], list):
            return list_html(rows[0][1])
        body = "".join(f"<tr><th style='text-align:left'>{escaped(field.name)}</th>"
                       f"<td style='text-align:left'>{cell(value)}</td></tr>"
                       for field, value in rows if value not in (None, "", [], {}) and not is_default(field, value))
        return f"<table>{body}</table>"


class Table(List[T]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return list_html(self)


def escaped(text: object) -> str:
    return html.escape(str(text), quote=True)


def cell(value: Any) -> str:
    """One value in a table."""
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return escaped(value.strftime("%Y-%m-%d %H:%M:%S"))
    if dataclasses.is_dataclass(value):
        return Record._repr_html_(value)  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return "<br>".join(f"{escaped(key)}: {cell(each)}" for key, each in value.items())
    if isinstance(value, bytes):
        return escaped(value.decode("utf-8", "replace"))
    if isinstance(value, (list, tuple)):
        return list_html(value) if value and dataclasses.is_dataclass(value[0]) else "<br>".join(map(cell, value))
    return escaped(value)


def list_html(records: Sequence[Any]) -> str:
    columns = _columns_of(records)
    head = "".join(f"<th>{escaped(name)}</th>" for name, _ in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell(read(each))}</td>" for _, read in columns) + "</tr>"
                   for each in records)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Column = Tuple[str, Callable[[Any], Any]]


def _field(name: str) -> Column:
    return name, lambda record: getattr(record, name)


def _used(part: str, of: str) -> Callable[[Any], str]:
    return lambda node: f"{getattr(node, of) - getattr(node, part):g} of {getattr(node, of):g}"


def _line_of(record: Any) -> str:
    if record.text is not None:
        return str(record.text)
    return base64.b64decode(record.base64 or "").decode("utf-8", "replace")


# The columns of the most frequent lists, as the command line shows them.
_COLUMNS: Dict[str, List[Column]] = {
    "Job": [("name", lambda job: job.spec.name), ("project", lambda job: job.spec.project), _field("phase"),
            _field("reason"), _field("owner"), _field("submitted"), _field("started"), _field("ended")],
    "Project": [_field("name"), _field("parent"), ("GPUs", lambda each: each.status.allocated.gpus),
                ("deserved", lambda each: each.status.deserved.gpus), ("limit", lambda each: each.quota.limit.gpus),
                ("running", lambda each: each.status.running), ("waiting", lambda each: each.status.waiting)],
    "Node": [_field("name"), _field("pool"), _field("state"), ("CPUs", _used("cpus_free", "cpus")),
             ("GPUs", lambda node: f"{sum(1 - each.free for each in node.devices):g} of {len(node.devices)}"),
             _field("jobs")],
    "LogRecord": [_field("time"), _field("task"), _field("rank"),
                  ("line", _line_of)],
}


def _columns_of(records: Iterable[Any]) -> List[Column]:
    for record in records:
        if not dataclasses.is_dataclass(record):
            break
        known = _COLUMNS.get(type(record).__name__)
        return known or [_field(field.name) for field in dataclasses.fields(record)]
    return [("", lambda value: value)]
