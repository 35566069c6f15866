"""Helpers that programs and plug-ins import from horovod.tensorflow.util."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

import tensorflow as tf

__all__ = ["_cache", "_executing_eagerly", "_make_subgraph", "refs_to_vars", "vars_to_refs"]


def _executing_eagerly() -> bool:
    """Whether operations run at once, not as parts of a graph."""
    return bool(tf.executing_eagerly())


def _make_subgraph(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a tf.function."""
    return tf.function(f)  # type: ignore[no-any-return]


def _cache(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, called once for the same arguments, and once more for each graph."""
    results: Dict[Tuple[Any, bool], Any] = {}

    @functools.wraps(f)
    def cached(*args: Any) -> Any:
        key = (args, _executing_eagerly())
        if key not in results:
            results[key] = f(*args)
        return results[key]

    return cached


def vars_to_refs(vars: Any) -> Any:
    """Variables as references, which can be keys: lists become tuples, at every level."""
    return tuple(vars_to_refs(each) for each in vars) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """The inverse of vars_to_refs()."""
    return [refs_to_vars(each) for each in refs] if isinstance(refs, tuple) else refs.deref()
