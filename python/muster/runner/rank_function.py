"""The program of the processes of `run()`: reads the function, calls it, and writes the result."""

from __future__ import annotations

import io
import os
import pickle
import sys
import traceback
from typing import Any, Dict, List, Optional, Tuple

from .processes import PACKAGE_VARIABLE, RESULT_VARIABLE


def main() -> int:
    package, result = (int(os.environ.pop(name)) for name in (PACKAGE_VARIABLE, RESULT_VARIABLE))
    for descriptor in (package, result):
        os.set_inheritable(descriptor, False)
    outcome = _call(package)
    with open(result, "wb") as file:
        file.write(pickle.dumps(outcome))
    return 0 if outcome["error"] is None else 1


def _call(package: int) -> Dict[str, Any]:
    """The value or the exception, as a separate pickle: the rest can be read even if the reader cannot load it."""
    try:
        file = io.BytesIO(_content_of(package))
        sys.path += [each for each in pickle.load(file) if each not in sys.path]
        func, args, kwargs = pickle.load(file)
        value = func(*args, **kwargs)
        return {**_place(), "value": _dumps(value), "error": None}
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        return {**_place(), "value": _dumps_if_possible(error), "error": text}


def _content_of(descriptor: int) -> bytes:
    # All processes of a host share this open file, including its position.
    parts: List[bytes] = []
    at = 0
    while True:
        part = os.pread(descriptor, 1 << 24, at)
        if not part:
            return b"".join(parts)
        parts.append(part)
        at += len(part)


def _place() -> Dict[str, int]:
    """The rank in the last world of this process, and in an elastic run the round of that world; 0: it joined none."""
    places = sys.modules.get("muster.common.elastic.places")
    last: Tuple[int, Optional[int]] = places.last_place() if places is not None else (0, None)
    if last[1] is not None:
        return {"round": last[0], "rank": last[1]}
    return {"round": 0, "rank": _rank()}


def _rank() -> int:
    basics = sys.modules.get("muster.common.basics")
    if basics is not None and basics.is_initialized():
        return int(basics.rank())
    for name in ("HOROVOD_RANK", "MUSTER_ELASTIC_WORKER"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _dumps(value: Any) -> bytes:
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    try:
        dumped: bytes = dumps(value)
        return dumped
    except Exception as error:
        raise TypeError(f"the result of the function, a {type(value).__name__}, cannot be sent back: "
                        f"{error}") from error


def _dumps_if_possible(error: BaseException) -> bytes:
    try:
        return _dumps(error)
    except TypeError:
        return b""


if __name__ == "__main__":
    sys.exit(main())
