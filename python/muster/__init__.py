"""The Python interface of Muster.

Submit training jobs, watch them, read their logs:

    import muster

    with muster.Client() as client:
        job = client.submit(muster.JobSpec(name="hello", command=["echo", "hi"], folder="/tmp"))
        for record in client.logs(job.id, follow=True):
            print(record.text)
        client.wait(job)

Standard library only. Training is in muster.torch, muster.tensorflow and muster.keras, which do not load the client.
This module does not load them either: each name here is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from ._version import __version__

if TYPE_CHECKING:
    from . import errors
    from ._generated import *  # noqa: F401,F403  (all schemas of the API)
    from ._generated import __all__ as _shapes
    from ._wire import UNSET, Text
    from .client import Client
    from .errors import (ArrayFailed, Conflict, Exhausted, Fault, Internal, Invalid, JobFailed, MusterError, NotFound,
                         Refused, TimedOut, Unavailable)

    __all__ = ["ArrayFailed", "Client", "Conflict", "Exhausted", "Fault", "Internal", "Invalid", "JobFailed",
               "MusterError", "NotFound", "Refused", "Text", "TimedOut", "UNSET", "Unavailable", "__version__", "errors", *_shapes]

#: The modules of the client's names that are not schemas of the API.
_HOMES = {"Client": ".client", "UNSET": "._wire", "Text": "._wire",
          **{name: ".errors" for name in ("ArrayFailed", "Conflict", "Exhausted", "Fault", "Internal", "Invalid",
                                          "JobFailed", "MusterError", "NotFound", "Refused", "TimedOut", "Unavailable")}}


def _shapes_of_the_api() -> List[str]:
    names: List[str] = import_module("._generated", __name__).__all__
    return names


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module(".errors", __name__)
    if name == "__all__":
        value: Any = [*_HOMES, "__version__", "errors", *_shapes_of_the_api()]
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
    elif not name.startswith("_") and name in _shapes_of_the_api():
        value = getattr(import_module("._generated", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__getattr__("__all__")})
