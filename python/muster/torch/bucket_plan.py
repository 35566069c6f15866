"""Which gradients are reduced together: a pure function of what all ranks know, so that all come to the same plan.

A bucket is a run of gradients of one type, in the order in which they become ready, that is large enough to be worth
an operation and small enough that its reduction begins while the backward pass still goes on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Dict, Hashable, List, Optional, Sequence

#: Less than the caches of a few cores, more than what hides the cost of an operation.
BUCKET_BYTES = 8 << 20

_NAMES_SHOWN = 8


@dataclass(frozen=True)
class Gradient:
    """What the plan has to know of one parameter's gradient. Those of equal `kind` (type and device) can share a
    bucket."""

    name: str
    size_bytes: int
    kind: Hashable
    shape: str


def plan(gradients: Sequence[Gradient], order: Sequence[int], groups: Sequence[Sequence[int]], limit: int,
         parts: Optional[int] = None) -> List[List[int]]:
    """The buckets, each a list of places in `gradients`.

    order: all places, in the order in which gradients become ready. groups: places that belong together whatever
    their size. limit: bytes of a bucket of the others, which may hold a single larger one. parts: instead of by
    bytes, the others are divided into so many buckets of about equally many gradients (but one type each).
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
    """The name under which the ranks find each other's bucket. It says what is in it, so that two plans never meet by
    accident."""
    first = gradients[bucket[0]].name
    if len(bucket) == 1:
        return f"allreduce.{first}"
    content = "\n".join(f"{gradients[place].name} {gradients[place].shape}" for place in bucket)
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return f"allreduce.{first}+{len(bucket) - 1}.{digest}"


def shape_of(gradients: Sequence[Gradient], bucket: Sequence[int]) -> str:
    """For comparing buckets across ranks, and short enough to be read."""
    shown = ", ".join(gradients[place].shape for place in bucket[:_NAMES_SHOWN])
    rest = len(bucket) - _NAMES_SHOWN
    return shown if rest <= 0 else f"{shown} and {rest} more"


def contents(gradients: Sequence[Gradient]) -> str:
    """For comparing what optimizers train: short, and different wherever a name, type or shape is."""
    digest = hashlib.sha256("\n".join(f"{each.name} {each.shape}" for each in gradients).encode()).hexdigest()[:12]
    return f"an optimizer of {len(gradients)} ({shape_of(gradients, range(len(gradients)))}; {digest})"


def _by_kind(gradients: Sequence[Gradient], places: Sequence[int]) -> List[List[int]]:
    kinds: Dict[Hashable, List[int]] = {}
    for place in places:
        kinds.setdefault(gradients[place].kind, []).append(place)
    return list(kinds.values())


def _by_size(gradients: Sequence[Gradient], places: Sequence[int], limit: int) -> List[List[int]]:
    """Filled in order; a bucket of each kind is open at a time."""
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
