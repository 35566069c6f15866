"""Parameters in flat buckets that are divided among the ranks: the memory and the messages of ShardedOptimizer.

A bucket holds several parameters of one type, one after the other in one flat tensor, and each `p.data` is a view of
it. The flat tensor is cut into one shard for each rank. A rank's *pieces* are the parts of parameters in its shard:

    parameters   | weight 1              | bias 1 | weight 2                     |
    shards       | rank 0           | rank 1           | rank 2                  |
    pieces       | weight 1         | w. 1 | b. 1 | w. 2| weight 2                |

After the backward pass a reduce-scatter gives each rank the reduced gradients of its shard. The rank updates its
pieces, and an all-gather brings the shards of all ranks back together, in place.

A piece begins at a multiple of _ALIGNMENT elements of its parameter. So vector instructions work on the same groups of
elements as they do in the whole parameter, and an optimizer that treats each element by itself computes the same bits.
"""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common.operations import Pending, Prepared
from . import bucket_plan, tensors
from .buckets import Reduction, view_of

#: In elements: at least two of the longest vectors (64 bytes) of the smallest floats.
_ALIGNMENT = 64
_OWN_PAGES_BYTES = 1 << 20


class Slot:
    """One parameter, its place in a bucket, and this rank's piece of it."""

    __slots__ = ("parameter", "name", "group", "passes", "bucket", "offset", "view", "gradient", "begin", "length",
                 "piece")

    def __init__(self, parameter: torch.Tensor, name: str, group: int) -> None:
        self.parameter = parameter
        self.name = name
        #: The number of the optimizer's group.
        self.group = group
        #: The number of backward passes that must still come before the gradient is ready.
        self.passes = 1
        self.bucket: Any = None
        #: Where the parameter begins in the bucket, in elements.
        self.offset = 0
        #: The parameter's values in the bucket.
        self.view: Any = None
        #: Stage 1: the place of the gradient, which remains `p.grad`.
        self.gradient: Optional[torch.Tensor] = None
        #: This rank's piece, in elements of the parameter in the order of its memory; the length may be 0.
        self.begin = 0
        self.length = 0
        self.piece: Optional[torch.Tensor] = None


@dataclass(frozen=True)
class Layout:
    """Where parameters begin in a bucket, and the length of each rank's shard, in elements."""

    offsets: List[int]
    counts: List[int]

    @property
    def total(self) -> int:
        return sum(self.counts)


def layout_of(lengths: Sequence[int], ranks: int) -> Layout:
    """Divides parameters of these lengths evenly; the last ranks may get less."""
    offsets, end = [], 0
    for length in lengths:
        offsets.append(end)
        end += _rounded_up(length)
    share = _rounded_up(-(-end // ranks))
    counts = [max(min(share, end - rank * share), 0) for rank in range(ranks)]
    return Layout(offsets, counts)


def _rounded_up(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


class Pool:
    """Flat tensors for gradients on their way, which buckets use in turns. Holds at most as many of a type as were in
    use at the same time."""

    def __init__(self) -> None:
        self._longest: Dict[torch.dtype, int] = {}
        self._free: Dict[torch.dtype, List[torch.Tensor]] = {}

    def announce(self, count: int, dtype: torch.dtype) -> None:
        """Each bucket announces its length before the first take()."""
        if count > self._longest.get(dtype, -1):  # a bucket may have no elements
            self._longest[dtype] = count
            self._free.pop(dtype, None)

    def take(self, dtype: torch.dtype) -> torch.Tensor:
        """A tensor as long as the longest bucket."""
        free = self._free.get(dtype)
        return free.pop() if free else flat_zeros(self._longest[dtype], dtype)

    def give_back(self, flat: torch.Tensor) -> None:
        if flat.numel() == self._longest[flat.dtype]:
            self._free.setdefault(flat.dtype, []).append(flat)


def flat_zeros(count: int, dtype: torch.dtype, device: Optional[torch.device] = None) -> torch.Tensor:
    """Large tensors are pages of their own. In the heap they would lie between the gradients of the backward pass, and
    the heap could not shrink."""
    size = count * torch.empty(0, dtype=dtype).element_size()
    if size < _OWN_PAGES_BYTES or (device is not None and device.type != "cpu"):
        return torch.zeros(count, dtype=dtype, device=device)
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=torch.uint8).view(dtype)  # type: ignore[call-overload]


class ShardBucket:
    """Used again and again: launch() when all gradients are ready, finish() before this rank's pieces are updated,
    begin_gather() and end_gather() afterwards."""

    def __init__(self, slots: Sequence[Slot], name: str, shape: str, reduction: Reduction, keeps: bool,
                 pool: Pool) -> None:
        """keeps: stage 1, in which the gradients stay in memory."""
        self.slots = list(slots)
        self.missing = len(self.slots)
        self.name = name
        #: Updates this rank's pieces; None if this rank has none.
        self.optimizer: Any = None
        self._pool = pool
        self._keeps = keeps
        first = slots[0].parameter
        process_set = reduction.process_set
        layout = layout_of([slot.parameter.numel() for slot in slots], len(process_set.registered_ranks()))
        rank = process_set.registered_rank()
        self._begin = sum(layout.counts[:rank])
        self._own = layout.counts[rank]
        dtype, device = first.dtype, first.device
        self._is_alone = len(layout.counts) == 1
        # A world of one rank sends nothing.
        chosen = getattr(reduction.compression, "wire_type", None) if not self._is_alone else None
        self._wire_type: torch.dtype = chosen or dtype
        self._is_on_host = tensors.is_on_host(first)
        pool.announce(layout.total, self._wire_type)
        self._flat = flat_zeros(layout.total, dtype, device)
        for slot, offset in zip(self.slots, layout.offsets):
            self._place(slot, offset)
        #: The flat gradients of stage 1.
        self._gradients: Optional[torch.Tensor] = None
        if keeps:
            self._gradients = flat_zeros(layout.total, dtype, device)
            for slot in self.slots:
                slot.gradient = view_of(self._gradients, slot.offset, slot.parameter)
        # Stage 1 without conversion reduces in place, within the gradients.
        if keeps and self._wire_type == dtype and self._is_on_host:
            assert self._gradients is not None
            self._reduced = self._received = self._gradients[self._begin:self._begin + self._own]
        else:
            self._reduced = flat_zeros(self._own, dtype, device)
            self._received = self._reduced
            if self._wire_type != dtype or not self._is_on_host:
                self._received = flat_zeros(self._own, self._wire_type)
        for slot in self.slots:
            if slot.piece is not None:
                at = slot.offset + slot.begin - self._begin
                slot.piece.grad = self._reduced[at:at + slot.length]
        self._scatter: Prepared = operations.prepare(
            "reduce_scatter", f"sharded.scatter.{name}", process_set=process_set, buffers=[(0, 0, layout.total)],
            type=tensors.NAME_OF_TYPE[self._wire_type], op=reduction.op, prescale=reduction.prescale,
            postscale=reduction.postscale, counts=layout.counts, shape=shape)
        # A device's parameters are gathered in the host's memory.
        self._host_flat = self._flat if self._is_on_host else flat_zeros(layout.total, dtype)
        element = self._flat.element_size()
        address = self._host_flat.data_ptr()
        self._gather: Prepared = operations.prepare(
            "all_gather", f"sharded.gather.{name}", process_set=process_set,
            buffers=[(address + self._begin * element, address, self._own * element)],
            counts=[count * element for count in layout.counts], shape=shape, keep=self._host_flat)
        self._pending: Optional[Pending] = None
        self._gathering: Optional[Pending] = None
        #: Gradients on their way, which belong to the pool.
        self._wire: Optional[torch.Tensor] = None
        self._is_finished = False

    def _place(self, slot: Slot, offset: int) -> None:
        """Moves the parameter into the bucket."""
        parameter = slot.parameter
        slot.bucket, slot.offset = self, offset
        slot.view = view_of(self._flat, offset, parameter)
        with torch.no_grad():
            slot.view.copy_(parameter.detach())
        parameter.data = slot.view
        begin = max(self._begin - offset, 0)
        end = min(self._begin + self._own - offset, parameter.numel())
        slot.begin, slot.length = begin, max(end - begin, 0)
        if slot.length:
            slot.piece = self._flat[offset + slot.begin:offset + slot.begin + slot.length]

    @property
    def is_launched(self) -> bool:
        return self._pending is not None or self._is_finished

    @property
    def is_gathering(self) -> bool:
        """Whether this rank's pieces are updated, and end_gather() must follow."""
        return self._gathering is not None

    def launch(self) -> None:
        """Begins the reduction. A gradient that is None counts as zeros. In stage 2 the gradients are released."""
        with torch.no_grad():
            for slot in self.slots:
                _check_place(slot)
                if self._is_alone and slot.piece is not None:
                    # As without ranks: the optimizer skips a parameter without a gradient.
                    at = slot.offset - self._begin
                    slot.piece.grad = (None if slot.parameter.grad is None
                                       else self._reduced[at:at + slot.length])
            source = self._collect() if self._keeps else None
            if source is None or source.dtype != self._wire_type or not self._is_on_host:
                self._wire = self._pool.take(self._wire_type)
                wire = self._wire[:self._flat.numel()]
                if source is not None:
                    wire.copy_(source)
                else:
                    self._release_into(wire)
                source = wire
        self._scatter.set_buffers([(source.data_ptr(), self._received.data_ptr(), source.numel())],
                                  (source, self._received))
        self._pending = self._scatter.submit()

    def _collect(self) -> torch.Tensor:
        for slot in self.slots:
            gradient = slot.parameter.grad
            if gradient is slot.gradient:
                continue
            assert slot.gradient is not None
            if gradient is None:
                slot.gradient.zero_()
            else:
                slot.gradient.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
            slot.parameter.grad = slot.gradient
        assert self._gradients is not None
        return self._gradients

    def _release_into(self, wire: torch.Tensor) -> None:
        for slot in self.slots:
            gradient = slot.parameter.grad
            place = view_of(wire, slot.offset, slot.parameter)
            if gradient is None:
                place.zero_()
            else:
                place.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
            slot.parameter.grad = None

    @property
    def holds_memory(self) -> bool:
        """Whether gradients on their way hold memory of the pool."""
        return self._wire is not None

    def finish_within(self, milliseconds: int) -> bool:
        """As finish(), and returns whether the reduction was done in time."""
        if self._pending is not None and not self._pending.wait_at_most(milliseconds):
            return False
        self._pending = None
        self._take()
        return True

    def finish(self) -> None:
        """Waits; then the pieces have their reduced gradients."""
        if self._is_finished:
            return
        assert self._pending is not None
        self._pending.wait()  # again, if Ctrl-C has interrupted it
        self._pending = None
        self._take()

    def _take(self) -> None:
        if self._wire is not None:
            self._pool.give_back(self._wire)
            self._wire = None
        if self._received is not self._reduced:
            with torch.no_grad():
                self._reduced.copy_(self._received)
        self._is_finished = True

    def begin_gather(self) -> None:
        """Begins to bring the updated shards of all ranks together."""
        if self._host_flat is not self._flat:
            with torch.no_grad():
                own = slice(self._begin, self._begin + self._own)
                self._host_flat[own].copy_(self._flat[own])
        self._gathering = self._gather.submit()

    def end_gather(self) -> None:
        """Waits; then every parameter is updated."""
        assert self._gathering is not None
        self._gathering.wait()
        if self._host_flat is not self._flat:
            with torch.no_grad():
                self._flat.copy_(self._host_flat)
        self.reset()

    def settle(self) -> None:
        """Waits for the operations in flight, however they end."""
        for pending in (self._pending, self._gathering):
            if pending is not None:
                with contextlib.suppress(Exception):
                    pending.wait()

    def reset(self) -> None:
        """Returns to the state before the backward pass. Operations in progress keep their memory."""
        self._pending = self._gathering = self._wire = None
        self._is_finished = False
        self.missing = len(self.slots)


def _check_place(slot: Slot) -> None:
    parameter = slot.parameter
    if parameter.data_ptr() != slot.view.data_ptr() or parameter.shape != slot.view.shape:
        raise RuntimeError(f"parameter {slot.name!r} was moved or converted after the ShardedOptimizer was created "
                           f"(model.to(), model.half(), p.data = ...); create the optimizer after the last change of "
                           f"the model")


def buckets_of(slots: Sequence[Slot], limit: int, reduction: Reduction, keeps: bool, pool: Pool) -> List[ShardBucket]:
    """Divides the parameters into buckets of about `limit` bytes. The last parameters are in the first bucket, since
    their gradients are usually ready first."""
    gradients = [described(slot) for slot in slots]
    planned = bucket_plan.plan(gradients, list(reversed(range(len(slots)))), [], limit)
    return [ShardBucket([slots[place] for place in places], bucket_plan.name_of(gradients, places),
                        bucket_plan.shape_of(gradients, places), reduction, keeps, pool) for places in planned]


def described(slot: Slot) -> bucket_plan.Gradient:
    """Errors: ValueError for a type that cannot be reduced."""
    parameter = slot.parameter
    type_name = tensors.NAME_OF_TYPE.get(parameter.dtype)
    if type_name is None or not parameter.dtype.is_floating_point:
        raise ValueError(f"Tensor type {parameter.type()} is not supported: parameter {slot.name!r}.")
    shape = tensors.shape_text(type_name, parameter.shape)
    if not parameter.is_contiguous():
        shape += f" strides {list(parameter.stride())}"
    return bucket_plan.Gradient(slot.name, parameter.numel() * parameter.element_size(),
                                (parameter.dtype, parameter.device), shape)
