"""Converts Python objects to bytes and back, to send them between ranks.

Used only in a world whose ranks have proven that they hold the job's key, since loading executes code of the sender.
Uses cloudpickle if it is installed, which also supports functions and classes of a program's main file.
"""

from __future__ import annotations

import functools
import importlib
import pickle
from typing import Any


@functools.lru_cache(maxsize=None)
def _pickler() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def dumps(value: object) -> bytes:
    data: bytes = _pickler().dumps(value)
    return data


def loads(data: "bytes | bytearray | memoryview") -> object:
    return pickle.loads(data)  # noqa: S301  (from ranks of this job, see above)
