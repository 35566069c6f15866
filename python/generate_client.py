#!/usr/bin/env python3
"""Writes the generated part of the Python client from the API's document, which the build makes:

    cmake --build --preset release --target openapi
    python/generate_client.py            writes python/muster/_generated.py and _version.py
    python/generate_client.py --check    writes nothing; fails where they are not what it would write

`--document PATH` names the document. Without it, it is openapi.json in $MUSTER_BUILD, or else in build/release.

Each schema that an answer or a request is made of becomes a dataclass (those with an `enum` a Literal), each
operation a method. muster/_wire.py reads the dataclasses from JSON, by their type hints, and writes them. A property
that requests and answers share has a default in Python where its absence means one. One extension of the document is
read: `x-null`, a property whose null means something, and is not the same as its absence.
"""

import argparse
import json
import os
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "muster"
WIDTH = 118

#: The client itself fills in the project of its context, so it needs to see that a caller has named none.
FILLED_IN_BY_THE_CLIENT = {("JobSpec", "project"): "Empty: that of the client's context, else `default`."}

HEAD = '''\
"""Made by generate_client.py from the API's document: edit that, not this.

The shapes of the API as dataclasses, and its operations as methods.
"""

from __future__ import annotations

import abc
import datetime
from dataclasses import dataclass, field
from typing import (Any, Callable, Dict, Generic, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple,
                    TypeVar, Union)
from urllib.parse import quote

from ._tables import Record
from ._wire import UNSET, Each, Sentence, Text, Unset, same

__all__ = [@ALL@]

T = TypeVar("T")


@dataclass(frozen=True)
class StreamEvent(Generic[T]):
    """One event of a stream. `id` says where to go on when the stream breaks."""

    kind: str
    data: T
    id: Optional[str]
'''

OPERATIONS = '''

def _segment(text: str) -> str:
    return quote(text, safe="")


class Operations(abc.ABC):
    """The API, operation by operation. How a request travels is the subclass's business."""

    @abc.abstractmethod
    def _call(self, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
              body: Any) -> Tuple[int, Any]:
        """The status and the body: JSON, text, or None where there is none."""

    @abc.abstractmethod
    def _events(self, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
                kinds: Mapping[str, Callable[[Any], Any]]) -> Iterator[StreamEvent[Any]]:
        """The events of a stream, each read by the function of its kind, until the stream ends."""
'''


class Types:
    """What a schema is in Python."""

    def __init__(self, schemas):
        self.schemas = schemas

    def is_nullable(self, schema):
        kind = schema.get("type")
        return (isinstance(kind, list) and "null" in kind) or {"type": "null"} in schema.get("anyOf", ())

    def without_null(self, schema):
        if "anyOf" in schema:
            rest = [each for each in schema["anyOf"] if each != {"type": "null"}]
            if "type" in schema:  # the alternatives are ranges of one type
                return self.without_null({key: schema[key] for key in schema if key != "anyOf"})
            assert len(rest) == 1, schema
            return rest[0]
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [each for each in kind if each != "null"]
            assert len(rest) == 1, schema
            schema = dict(schema, type=rest[0])
            if "enum" in schema:
                schema["enum"] = [each for each in schema["enum"] if each is not None]
        return schema

    def python(self, schema, request=False, loose=None):
        """The type without its Optional. Of a request any sequence or mapping will do for a list or dictionary, and
        where it is `loose` (as what only requests have is), a mapping for a record and a text for a time."""
        loose = request if loose is None else loose
        schema = self.without_null(schema)
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            special = {"Time": "datetime.datetime", "Text": "Text", "Sentence": "Sentence"}.get(name)
            if special and schema.get("type") == "string":
                return "str"  # a Text that is always UTF-8
            if special:
                return f"Union[{special}, str]" if loose and name == "Time" else special
            target = self.schemas[name]
            if target.get("type") == "object" and "properties" not in target:
                return "Dict[str, Any]"
            if loose and target.get("type") == "object":
                return f"Union[{name}, Mapping[str, Any]]"
            return name
        if "oneOf" in schema:
            return "Text"
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(each) for each in schema['enum'])}]"
        kind = schema.get("type")
        if schema.get("format") == "binary":
            return "bytes"
        if kind == "array":
            inner = self.optional(schema["items"], request, loose)
            return f"Sequence[{inner}]" if request else f"List[{inner}]"
        if kind == "object":
            if "additionalProperties" not in schema:
                return "Dict[str, Any]"
            inner = self.optional(schema["additionalProperties"], request, loose)
            return f"Mapping[str, {inner}]" if request else f"Dict[str, {inner}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")

    def optional(self, schema, request=False, loose=None):
        inner = self.python(schema, request, loose)
        return f"Optional[{inner}]" if self.is_nullable(schema) else inner

    def reader(self, schema):
        """A function that makes the body of an answer or an event of its JSON."""
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        if name and "properties" in self.schemas[name]:
            return f"{name}.from_wire"
        assert name or schema.get("type") in ("string", "object"), schema
        return "same"

    def default(self, schema):
        """Of a property of a request that answers have, too: what it is where it is absent. None: absence has a
        meaning of its own."""
        plain = self.without_null(schema)
        if "default" in schema:
            kind = float if plain.get("type") == "number" else lambda value: value
            return repr(kind(schema["default"])).replace("'", '"')
        python = self.python(schema)
        if python in ("str", "Text"):
            return '""'
        if python.startswith(("List[", "Dict[")):
            return f"field(default_factory={python[:4].lower()})"
        target = self.record(schema)
        if target and not self.schemas[target].get("required"):
            return f"field(default_factory={target})"
        return None

    def record(self, schema):
        """The name of the record that a property holds; None: it holds none."""
        name = self.without_null(schema).get("$ref", "").rsplit("/", 1)[-1]
        return name if "properties" in self.schemas.get(name, {}) else None


def reachable(document, roots):
    """The names of all schemas that these are made of."""
    found, todo = set(), list(roots)
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            target = value.get("$ref", "")
            if isinstance(target, str) and target.startswith("#/components/schemas/"):
                name = target.rsplit("/", 1)[1]
                if name not in found:
                    found.add(name)
                    todo.append(document["components"]["schemas"][name])
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return found


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def answers(operation):
    """status -> (media type, schema) of each success, schema None where there is no body."""
    found = {}
    for status, response in operation["responses"].items():
        if status.startswith("2") and "$ref" not in response:
            content = next(iter(response.get("content", {}).items()), None)
            found[int(status)] = (content[0], content[1]["schema"]) if content else (None, None)
    return found


def event_kinds(operation):
    """kind of event -> what its data is; empty where the operation is no stream."""
    media, schema = answers(operation).get(200, (None, None))
    if media != "text/event-stream":
        return {}
    return {each["properties"]["event"]["const"]: each["properties"]["data"]["contentSchema"]
            for each in schema["oneOf"]}


def bodies(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return [each["schema"] for each in content.values()]


def paragraph(text, indent):
    pad = " " * indent
    return textwrap.fill(text, 100, initial_indent=pad, subsequent_indent=pad, break_long_words=False)


def doc(text, indent):
    lines = paragraph(text.replace("\\", "\\\\"), indent).lstrip()
    closing = '"""' if "\n" not in lines else "\n" + " " * indent + '"""'
    return f'{" " * indent}"""{lines}{closing}'


def comment(schema, indent=4):
    text = schema.get("description")
    return textwrap.fill(text, 100, initial_indent=" " * indent + "#: ", subsequent_indent=" " * indent + "#: ",
                         break_long_words=False) + "\n" if text else ""


def write_class(name, schema, types, is_answer, is_request):
    required = set(schema.get("required", ()))
    properties = schema["properties"]
    # Python wants those without a default first.
    order = sorted(properties, key=lambda each: each not in required)
    base = "(Record)" if is_answer else ""
    out = [f"\n\n@dataclass{'' if is_request else '(frozen=True)'}\nclass {name}{base}:"]
    out.append(doc(schema.get("description", f"See the API's document: {name}."), 4) + "\n")
    for prop in order:
        each = properties[prop]
        default = types.default(each) if is_request and (is_answer or "default" in each) else None
        if (name, prop) in FILLED_IN_BY_THE_CLIENT:
            each = dict(each, description=FILLED_IN_BY_THE_CLIENT[name, prop])
            default = '""'
        line = comment(each)
        plain = types.python(each, is_request, loose=is_request and not is_answer)
        nullable = types.is_nullable(each)
        if prop in required:
            line += f"    {prop}: {f'Optional[{plain}]' if nullable else plain}"
        elif each.get("x-null"):
            line += f'    {prop}: Union[{plain}, None, Unset] = field(default=UNSET, metadata={{"null": True}})'
        elif default is not None:
            line += f"    {prop}: {plain} = {default}"
        else:
            line += f"    {prop}: Optional[{plain}] = None" if plain != "Any" else f"    {prop}: Any = None"
        out.append(line)
    return "\n".join(out) + "\n"


def in_order(names, schemas, types):
    """The schemas by name; those that make the default of a property come before the class that has it."""
    found = {}

    def add(name):
        if name not in found:
            for each in schemas[name]["properties"].values():
                if (types.default(each) or "").endswith(f"={types.record(each)})"):
                    add(types.record(each))
            found[name] = schemas[name]

    for name in names:
        add(name)
    return found


def write_schemas(document, types):
    asked = reachable(document, [b for _, _, op in operations(document) for b in bodies(op)])
    told = reachable(document, [s for _, _, op in operations(document) for _, s in answers(op).values() if s])
    asked |= reachable(document, [p["schema"] for _, _, op in operations(document) for p in parameters(document, op)])
    schemas = document["components"]["schemas"]
    out = []
    for name, schema in schemas.items():
        if "enum" in schema and name in asked | told:
            out.append("\n" + comment(schema, 0) + f"{name} = {types.python(schema)}")
    out = ["\n".join(out) + "\n"]
    records = [name for name in schemas if name in asked | told and "properties" in schemas[name]]
    for name, schema in in_order(records, schemas, types).items():
        out.append(write_class(name, schema, types, name in told, name in asked))
    return "".join(out)


def parameters(document, operation):
    for each in operation.get("parameters", ()):
        if "$ref" in each:
            each = document["components"]["parameters"][each["$ref"].rsplit("/", 1)[1]]
        yield each


def python_name(name):
    return name.lower().replace("-", "_")


def argument(parameter):
    """What is handed on of it: a list of which each is a parameter of its own, or one text."""
    name = python_name(parameter["name"])
    return f"Each.of({name})" if parameter.get("explode") else name


def wrapped(head, items, tail, indent):
    """`head` item, item, ... `tail`; what does not fit goes on below the first item."""
    lines, line = [], " " * indent + head
    pad = " " * len(line)
    for index, item in enumerate(items):
        piece = item + (", " if index + 1 < len(items) else tail)
        if len(line) + len(piece.rstrip()) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = pad
        line += piece
    return "\n".join([*lines, line if items else line + tail])


def write_operation(path, method, operation, document, types):
    # A header that can be given as a parameter, too, is one argument.
    found = list({python_name(each["name"]): each for each in reversed(list(parameters(document, operation)))}.values())[::-1]
    arguments, keywords = ["self"], []
    for each in found:
        plain = types.python(each["schema"], request=True)
        if each["in"] == "path":
            arguments.append(f"{python_name(each['name'])}: {plain}")
        else:
            keywords.append(f"{python_name(each['name'])}: Optional[{plain}] = None")
    body = bodies(operation)
    if body:
        arguments.append(f"body: {types.python(body[0], request=True)}")
    if keywords:
        arguments += ["*", *keywords]

    url = re.sub(r"{(\w+)}", r"{_segment(\1)}", path)
    url = f'f"{url}"' if url != path else f'"{url}"'
    by_place = {place: "{" + ", ".join(f'"{each["name"]}": {argument(each)}' for each in found
                                       if each["in"] == place) + "}" for place in ("query", "header")}
    results = answers(operation)
    words = operation["summary"] + "." + ("\n" + operation["description"] if "description" in operation else "")

    kinds = event_kinds(operation)
    if kinds:
        union = ", ".join(dict.fromkeys(types.python(schema) for schema in kinds.values()))
        union = f"Union[{union}]" if "," in union else union
        returns = f"Iterator[StreamEvent[{union}]]"
        readers = "{" + ", ".join(f'"{kind}": {types.reader(schema)}' for kind, schema in kinds.items()) + "}"
        lines = [wrapped("return self._events(", [url, by_place["query"], by_place["header"], readers], ")", 8)]
    else:
        asked = [f'"{method.upper()}"', url, by_place["query"], by_place["header"], "body" if body else "None"]
        with_body = {status: schema for status, (_, schema) in results.items() if schema}
        kinds_of_body = dict.fromkeys(types.python(schema) for schema in with_body.values())
        if len(kinds_of_body) == 1:  # whichever of them it is
            with_body = dict([next(iter(with_body.items()))])
        returns = ", ".join(kinds_of_body) or "None"
        returns = f"Union[{returns}]" if len(kinds_of_body) > 1 else returns
        if not with_body:
            lines = [wrapped("self._call(", asked, ")", 8)]
        elif len(with_body) == 1:
            reader = types.reader(next(iter(with_body.values())))
            lines = [wrapped("_, answer = self._call(", asked, ")", 8)]
            if reader == "same":
                lines += [f"        result: {returns} = answer", "        return result"]
            else:
                lines += [f"        return {reader}(answer)"]
        else:
            lines = [wrapped("status, answer = self._call(", asked, ")", 8)]
            *first, last = with_body.items()
            for status, schema in first:
                lines += [f"        if status == {status}:", f"            return {types.reader(schema)}(answer)"]
            lines.append(f"        return {types.reader(last[1])}(answer)")
    head = "\n" + wrapped(f"def {operation['operationId']}(", arguments, f") -> {returns}:", 4)
    return "\n".join([head, doc_of(words), *lines]) + "\n"


def doc_of(words):
    first, *more = words.split("\n")
    if not more:
        return doc(first, 8)
    return f'        """{first}\n\n' + paragraph(" ".join(more), 8) + '\n        """'


def generated(document):
    types = Types(document["components"]["schemas"])
    schemas = write_schemas(document, types)
    names = re.findall(r"^(?:class )?([A-Z]\w+)(?:[(:]| = )", schemas, re.MULTILINE)
    listing = textwrap.fill(", ".join(f'"{name}"' for name in sorted([*names, "StreamEvent", "Operations"])), 110,
                            subsequent_indent=" " * 11)
    out = [HEAD.replace("@ALL@", listing), "\n", schemas, OPERATIONS]
    for path, method, operation in operations(document):
        if "101" not in operation["responses"]:
            out.append(write_operation(path, method, operation, document, types))
    return "".join(out)


def version():
    found = re.search(r"project\(muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    return f'"""Made by generate_client.py: the version of the project."""\n\n__version__ = "{found.group(1)}"\n'


def arguments_of_the_program():
    parser = argparse.ArgumentParser(description="Writes the generated part of the Python client.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the files are out of date")
    build = Path(os.environ.get("MUSTER_BUILD") or ROOT / "build" / "release")
    parser.add_argument("--document", type=Path, default=build / "openapi.json", metavar="PATH",
                        help="the API's document, which the build makes (default: %(default)s)")
    return parser.parse_args()


def document_at(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        sys.exit(f"generate_client.py: there is no {path}\n  the build makes the API's document: run\n"
                 "    cmake --build --preset release --target openapi\n"
                 "  or name the document with --document")
    except (OSError, ValueError) as error:
        sys.exit(f"generate_client.py: cannot read {path}: {error}")


def main():
    arguments = arguments_of_the_program()
    stale = []
    for name, text in (("_generated.py", generated(document_at(arguments.document))), ("_version.py", version())):
        path = PACKAGE / name
        if path.exists() and path.read_text() == text:
            continue
        if arguments.check:
            stale.append(name)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"{', '.join(stale)} in python/muster: not what the document makes of it; run python/generate_client.py")


if __name__ == "__main__":
    main()
