"""The output of `horovodrun --help`, from the table of options."""

from __future__ import annotations

import textwrap
from typing import Dict, List

from .option_table import COUNT, NUMBER, OPTIONS, RANGE, TEXT, Option

_VALUES = {TEXT: " ...", COUNT: " N", NUMBER: " X", RANGE: " MIN MAX"}
_COLUMN = 30
_WIDTH = 110

_HEAD = """usage: horovodrun [options] command...

Starts the command as a number of ranks, on this host or on several, and ends with the code of the first that fails.

    horovodrun -np 2 python3 train.py
    horovodrun -np 4 -H alpha:2,beta:2 python3 train.py
    horovodrun --min-np 2 --host-discovery-script ./hosts.sh python3 train.py

Default hosts are those of the Muster job, or of the LSF or Slurm allocation, in which this program runs, or else this
host. A key is made for each run. It never appears in a command line."""


def help_text() -> str:
    groups: Dict[str, List[Option]] = {}
    for option in OPTIONS:
        groups.setdefault(option.group, []).append(option)
    parts = [_HEAD]
    for group, options in groups.items():
        parts.append("\n".join([f"{group}:", *(_lines_of(option) for option in options)]))
    return "\n\n".join(parts)


def _lines_of(option: Option) -> str:
    names = "  " + ", ".join(option.names) + _VALUES.get(option.kind, "")
    first = names.ljust(_COLUMN) if len(names) < _COLUMN - 1 else names + "\n" + " " * _COLUMN
    return first + textwrap.fill(option.help, _WIDTH - _COLUMN).replace("\n", "\n" + " " * _COLUMN)
