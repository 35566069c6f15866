"""Parses the command line of horovodrun, and a configuration file, with the table of options. Collects faults instead
of raising them."""

from __future__ import annotations

import math
import reprlib
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .option_table import COUNT, NO, OPTIONS, RANGE, TEXT, YES, Option

_BY_NAME = {name: option for option in OPTIONS for name in option.names}
#: Options whose value may follow without a space: -p22.
_SHORT = ("-H", "-p", "-i")

Faults = List[str]
#: By the key of an option: its value, and the name by which it was given. None: an invalid value, which was reported.
Asked = Dict[str, Tuple[Any, str]]


class CommandLine(NamedTuple):
    asked: Asked
    command: Tuple[str, ...]


def read_command_line(words: Sequence[str], faults: Faults) -> CommandLine:
    """Options come before the command, which begins with the first word that is not an option, or after "--"."""
    asked: Asked = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            rest.insert(0, word)
            break
        name, equals, attached = word.partition("=")
        if name not in _BY_NAME and word[:2] in _SHORT:
            name, equals, attached = word[:2], "=", word[2:]
        option = _BY_NAME.get(name)
        if option is None:
            faults.append(f"{name} is not an option of this program{_nearest(name)}; if it belongs to the command, "
                          "write the command before it")
        else:
            _take(option, name, [attached] if equals else None, rest, asked, faults)
    return CommandLine(asked, tuple(rest))


def _take(option: Option, name: str, attached: Optional[List[str]], rest: List[str], asked: Asked,
          faults: Faults) -> None:
    wanted = {YES: 0, NO: 0, RANGE: 2}.get(option.kind, 1)
    if wanted == 0 and attached:
        faults.append(f"{name} takes no value: omit ={attached[0]}")
        return
    texts = attached or []
    while len(texts) < wanted and rest:
        texts.append(rest.pop(0))
    if len(texts) < wanted:
        faults.append(f"{name} requires {'a value' if wanted == 1 else f'{wanted} values'}: {option.help}")
        return
    value = _value_of(option, texts, name, faults)
    before = asked.get(option.key)
    if before is not None and None not in (value, before[0]) and before[0] != value:
        faults.append(f"{before[1]} and {name} contradict each other: omit one of them" if before[1] != name else
                      f"{name} is given twice with different values: omit one of them")
    asked[option.key] = (value, name)


def _value_of(option: Option, texts: List[str], name: str, faults: Faults) -> Any:
    if option.kind in (YES, NO):
        return option.kind == YES
    if option.kind == TEXT:
        if not texts[0]:
            faults.append(f"{name} is empty: {option.help}")
        return texts[0] or None
    numbers = [_number_of(option, text, name, faults) for text in texts]
    if None in numbers:
        return None
    if option.kind == RANGE:
        if numbers[0] > numbers[1]:
            faults.append(f"{name} {texts[0]} {texts[1]}: the first number must not exceed the second")
            return None
        return tuple(numbers)
    return numbers[0]


def _number_of(option: Option, text: str, name: str, faults: Faults) -> Any:
    try:
        number = int(text) if option.kind == COUNT else float(text)
    except ValueError:
        number = math.nan
    # The negated comparison rejects NaN.
    if not option.least <= number < 1 << 53:
        kind = "a whole number" if option.kind == COUNT else "a number"
        faults.append(f"{name} {text}: expected {kind} from {option.least:g}")
        return None
    return number


def _nearest(name: str) -> str:
    import difflib
    found = difflib.get_close_matches(name, _BY_NAME, 1, 0.75)
    return f" (did you mean {found[0]}?)" if found else ""


def read_config_file(path: str, asked: Mapping[str, Tuple[Any, str]], faults: Faults) -> Asked:
    """Reads the file's options that are not in `asked`. Names may be written with - or _."""
    try:
        import yaml
    except ImportError:
        faults.append(f"--config-file {path}: reading it requires PyYAML, which is not installed: "
                      "python3 -m pip install pyyaml")
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError) as error:
        faults.append(f"--config-file {path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}")
        return {}
    except (yaml.YAMLError, RecursionError) as error:
        faults.append(f"--config-file {path}: invalid YAML: {' '.join(str(error).split())}")
        return {}
    said: Asked = {}
    for section, name, value in _entries_of(content, path, faults):
        where = f"{path}, {section + ': ' if section else ''}{name}"
        option = _option_at(section, name)
        if option is None:
            faults.append(f"{where}: unknown setting{_nearest_place(section, name)}")
        elif option.key not in asked:
            take_value(option, value, where, said, faults)
    return said


def _entries_of(content: Any, path: str, faults: Faults) -> List[Tuple[str, str, Any]]:
    if content is None:
        return []
    if not isinstance(content, dict):
        faults.append(f"--config-file {path}: expected sections, such as 'params:' and below it "
                      "'fusion-threshold-mb: 64'")
        return []
    entries: List[Tuple[str, str, Any]] = []
    for section, inner in content.items():
        if isinstance(inner, dict):
            entries += [(_plain(section), _plain(name), value) for name, value in inner.items()]
        elif inner is not None:
            entries.append(("", _plain(section), inner))
    return entries


def _plain(name: Any) -> str:
    return str(name).replace("_", "-")


def _option_at(section: str, name: str) -> Optional[Option]:
    return next((option for option in OPTIONS if option.place == (section, name)), None)


def _nearest_place(section: str, name: str) -> str:
    import difflib
    names = ["/".join(option.place) for option in OPTIONS if option.place]
    found = difflib.get_close_matches(f"{section}/{name}", names, 1, 0.6)
    return f" (did you mean '{found[0].strip('/').replace('/', ': ')}'?)" if found else ""


def take_value(option: Option, value: Any, where: str, said: Asked, faults: Faults) -> None:
    """Takes a value that is not a text of a command line. `where` is its position, for the user."""
    if option.kind in (YES, NO):
        if isinstance(value, bool):
            said[option.key] = (value if option.kind == YES else not value, where)
        else:
            faults.append(f"{where}: {value!r} is not true or false")
    elif option.kind == RANGE and isinstance(value, (list, tuple)) and len(value) == 2:
        read = _value_of(option, [str(each) for each in value], where, faults)
        if read is not None:
            said[option.key] = (read, where)
    elif isinstance(value, (dict, list, tuple, bool)) or value is None or option.kind == RANGE:
        faults.append(f"{where}: {reprlib.repr(value)} is not a {'text' if option.kind == TEXT else 'number'}")
    else:
        read = _value_of(option, [str(value)], where, faults)
        if read is not None:
            said[option.key] = (read, where)
