"""The launcher: `horovodrun`, and `run()`, which calls a function on every rank.

    results = muster.runner.run(train, args=("data",), num_proc=2)

Modules are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import RankError, run

__all__ = ["RankError", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(".function", __name__), name)
    if name == "_HorovodArgs":
        raise ImportError("Muster's horovod has no _HorovodArgs: horovod.run() takes the same arguments")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
