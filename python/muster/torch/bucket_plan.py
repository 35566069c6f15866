"""Decides which gradients are reduced together: a pure function of facts that all ranks share, so that all ranks get
the same plan.

A bucket is a run of gradients of one type, in the order in which they become ready. It is large enough to be worth an
operation, and small enough that its reduction begins during the backward pass.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Dict, Hashable, List, Optional, Sequence

#: Less than the caches of a few cores; large enough that the fixed cost of an operation is small in comparison.
BUCKET_BYTES = 8 << 20

_NAMES_SHOWN = 8


@dataclass(frozen=True)
class Gradient:
    """The facts about one parameter's gradient that the plan needs. Gradients of equal `kind` (type and device) can
    share a bucket."""

    name: str
    size_bytes: int
    kind: Hashable
    shape: str


def plan(gradients: Sequence[Gradient], order: Sequence[int], groups: Sequence[Sequence[int]], limit: int,
         parts: Optional[int] = None) -> List[List[int]]:
    """The buckets, each a list of positions in `gradients`.

    order: all positions, in the order in which gradients become ready. groups: positions that belong together whatever
    their size. limit: the bytes of a bucket of all other gradients; a single larger gradient fills one alone. parts:
    the number of buckets for all other gradients, instead of `limit`: each has about equally many gradients of one
    type.
    """
    grouped = {place for group in groups for place in group}
    free = [place for place in order if place not in grouped]
    buckets = [bucket for group in groups for bucket in _by_kind(gradients, group)]
    if parts:
        for part in _divided(free, parts):
            buckets.extend(_by_kind(gradients, part))
        return buckets
    return buckets + _by_size(gradients, free, limit)


def name_of(gradients: Sequence[Gradient], bucket: Sequence[int]) -> str:
    """The name by which the ranks match a bucket. It depends on the contents, so that buckets of two plans never match
    by accident."""
    first = gradients[bucket[0]].name
    if len(bucket) == 1:
        return f"allreduce.{first}"
    content = "\n".join(f"{gradients[place].name} {gradients[place].shape}" for place in bucket)
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return f"allreduce.{first}+{len(bucket) - 1}.{digest}"


def shape_of(gradients: Sequence[Gradient], bucket: Sequence[int]) -> str:
    """A readable text of the shapes, for comparison between ranks."""
    shown = ", ".join(gradients[place].shape for place in bucket[:_NAMES_SHOWN])
    rest = len(bucket) - _NAMES_SHOWN
    return shown if rest <= 0 else f"{shown} and {rest} more"


def contents(gradients: Sequence[Gradient]) -> str:
    """A short text for comparison between optimizers: it differs if any name, type or shape differs."""
    digest = hashlib.sha256("\n".join(f"{each.name} {each.shape}" for each in gradients).encode()).hexdigest()[:12]
    return f"an optimizer of {len(gradients)} ({shape_of(gradients, range(len(gradients)))}; {digest})"


def _by_kind(gradients: Sequence[Gradient], places: Sequence[int]) -> List[List[int]]:
    kinds: Dict[Hashable, List[int]] = {}
    for place in places:
        kinds.setdefault(gradients[place].kind, []).append(place)
    return list(kinds.values())


def _by_size(gradients: Sequence[Gradient], places: Sequence[int], limit: int) -> List[List[int]]:
    """Buckets filled in order; for each kind, one bucket at a time is open."""
    closed: List[List[int]] = []
    is_open: Dict[Hashable, List[int]] = {}
    filled: Dict[Hashable, int] = {}
    for place in places:
        kind, size = gradients[place].kind, gradients[place].size_bytes
        if kind in is_open and filled[kind] + size > limit:
            closed.append(is_open.pop(kind))
        if kind not in is_open:
            is_open[kind], filled[kind] = [], 0
        is_open[kind].append(place)
        filled[kind] += size
    return closed + list(is_open.values())


def _divided(places: Sequence[int], parts: int) -> List[List[int]]:
    share, rest = divmod(len(places), parts)
    divided, begin = [], 0
    for part in range(parts):
        end = begin + share + (1 if part < rest else 0)
        if end > begin:
            divided.append(list(places[begin:end]))
        begin = end
    return divided
