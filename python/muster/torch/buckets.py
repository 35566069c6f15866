"""Gradients that are reduced together, as one piece of memory.

The gradients of a bucket are views of one flat tensor in the arena, so that the ranks of a host reduce them in place.
Programs may replace `p.grad` or set it to None at any time (zero_grad(set_to_none=True) does). At the launch of the
bucket, any gradient that is not the view is copied into the view, and the view becomes `p.grad`.
"""

from __future__ import annotations

import warnings
from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common.operations import Pending, Prepared
from ..common.process_sets import ProcessSet
from ..common.reduce_ops import ReduceOp
from . import device_copies, tensors
from .arena import shared_zeros

#: Gradients begin at lines of the processor's cache.
_ALIGNMENT_BYTES = 64


class Slot:
    """One parameter, and the place of its gradient."""

    __slots__ = ("parameter", "name", "place", "passes", "sparse_dimensions", "dense_dimensions", "view", "bucket",
                 "sparse_wait", "forgotten_wait")

    def __init__(self, parameter: torch.Tensor, name: str, place: int) -> None:
        self.parameter = parameter
        self.name = name
        #: The position among the parameters of the optimizer.
        self.place = place
        #: The number of backward passes that must still come before the gradient is ready.
        self.passes = 1
        #: The sparse dimensions of a sparse gradient; 0: the gradient is dense.
        self.sparse_dimensions = 0
        #: The sparse dimensions of a sparse gradient that is reduced as a dense one; 0: the gradient is dense.
        self.dense_dimensions = 0
        self.view: Optional[torch.Tensor] = None
        self.bucket: Optional[Any] = None
        self.sparse_wait: Optional[Any] = None
        #: Waits for a reduction whose result is no longer used.
        self.forgotten_wait: Optional[Any] = None

    def forget(self) -> None:
        """Drops the result of the sparse reduction in progress."""
        if self.sparse_wait is not None:
            self.forgotten_wait, self.sparse_wait = self.sparse_wait, None

    def finish_forgotten(self) -> None:
        wait, self.forgotten_wait = self.forgotten_wait, None
        if wait is not None:
            wait()


class Reduction:
    """How the gradients of an optimizer are reduced."""

    __slots__ = ("op", "prescale", "postscale", "process_set", "compression")

    def __init__(self, op: ReduceOp, prescale: float, postscale: float, process_set: ProcessSet,
                 compression: Any) -> None:
        self.op = op
        self.prescale = prescale
        self.postscale = postscale
        self.process_set = process_set
        self.compression = compression

    def is_own_compression(self) -> bool:
        """Whether the compression is more than a conversion of the type: each tensor is then compressed by itself."""
        from .compression import Compression
        return self.compression not in (Compression.none, Compression.fp16, Compression.bf16)


class Bucket:
    """Used again and again: launch() when all gradients are ready, finish() before they are used."""

    def __init__(self, slots: Sequence[Slot], name: str, shape: str, reduction: Reduction) -> None:
        self.slots = list(slots)
        #: The number of gradients that are not ready yet.
        self.missing = len(self.slots)
        self._pending: Optional[Pending] = None
        self._forgotten: Optional[Pending] = None
        self._ranks = len(reduction.process_set.registered_ranks())
        self._version = 0
        first = slots[0].parameter
        offsets, count = _layout([slot.parameter for slot in slots])
        wire_type = getattr(reduction.compression, "wire_type", None) if first.dtype.is_floating_point else None
        travels_elsewhere = not tensors.is_on_host(first) or (wire_type is not None and wire_type != first.dtype)
        if travels_elsewhere:
            self._flat = torch.zeros(count, dtype=first.dtype, device=first.device)
            if first.is_cuda:
                self._wire = device_copies.empty_on_host((count,), wire_type or first.dtype, first.device).zero_()
                address = self._wire.data_ptr()
            else:
                self._wire, address = shared_zeros(count, wire_type or first.dtype, reduction.process_set)
        else:
            self._wire, address = shared_zeros(count, first.dtype, reduction.process_set)
            self._flat = self._wire
        for slot, offset in zip(self.slots, offsets):
            slot.bucket = self
            slot.view = view_of(self._flat, offset, slot.parameter)
        self._prepared: Prepared = operations.prepare(
            "all_reduce", name, process_set=reduction.process_set,
            buffers=[(address, address, count)],
            type=tensors.NAME_OF_TYPE[self._wire.dtype], op=reduction.op, prescale=reduction.prescale,
            postscale=reduction.postscale, shape=shape, keep=self._wire)

    @property
    def is_launched(self) -> bool:
        return self._pending is not None

    def launch(self) -> None:
        """Collects the gradients and begins their reduction. A gradient that is None counts as zeros.

        Waits for a forgotten reduction before: it has the name and the memory of the new one."""
        forgotten, self._forgotten = self._forgotten, None
        if forgotten is not None:
            forgotten.wait()
        _collect(self.slots)
        if self._wire is not self._flat:
            with torch.no_grad():
                device_copies.copy_to_host(self._wire, self._flat)
        self._version = self._flat._version
        self._pending = self._prepared.submit()

    def proceed(self, wait: bool = True) -> None:
        """For buckets with several exchanges; this one has a single one."""

    def wire_bytes(self) -> int:
        """The bytes that this rank sends in a step, with an algorithm that sends the least bytes."""
        return _least_bytes(self._wire.numel() * self._wire.element_size(), self._ranks)

    def finish(self) -> None:
        """Waits; then every `p.grad` is the reduced gradient."""
        assert self._pending is not None
        self._pending.wait()
        self._pending = None
        replaced = [slot for slot in self.slots if slot.parameter.grad is not slot.view]
        for slot in replaced:
            # The present value is this rank's only: with it, the ranks would diverge.
            _put_view(slot)
        if replaced or self._flat._version != self._version:
            warnings.warn(f"gradients of {self.slots[0].name} and {len(self.slots) - 1} more were changed while they "
                          f"were being reduced, and the change may be lost: call optimizer.synchronize() before "
                          f"clipping or scaling gradients, and optimizer.step() in optimizer.skip_synchronize()",
                          stacklevel=4)
        if self._wire is not self._flat:
            with torch.no_grad():
                device_copies.copy_to_device(self._flat, self._wire)
        for slot in self.slots:
            if slot.dense_dimensions:
                slot.parameter.grad = slot.view.to_sparse(slot.dense_dimensions)  # type: ignore[misc, union-attr]
        self.missing = len(self.slots)

    def forget(self) -> None:
        """Resets the bucket to the state without gradients. A reduction in progress goes on in the arena; the gradients
        are moved out of it."""
        self.missing = len(self.slots)
        if self._pending is not None:
            self._forgotten, self._pending = self._pending, None
            self._move_gradients_out()

    def abandon(self) -> None:
        """Drops the reduction in progress for good. Gradients are moved out of the arena, which may be freed soon."""
        self._pending = self._forgotten = None
        self._move_gradients_out()
        for slot in self.slots:
            slot.bucket = slot.view = None

    def _move_gradients_out(self) -> None:
        for slot in self.slots:
            if slot.parameter.grad is slot.view and slot.view is not None:
                slot.parameter.grad = slot.view.clone(memory_format=torch.preserve_format)


class CompressedBucket:
    """The same as Bucket for a compression of the program, which compresses one tensor at a time."""

    def __init__(self, slots: Sequence[Slot], name: str, reduction: Reduction) -> None:
        self.slots = list(slots)
        self.missing = len(self.slots)
        self._name = name
        self._reduction = reduction
        self._pending: List[Tuple[Slot, Pending, torch.Tensor, Any]] = []
        self._forgotten: List[Pending] = []
        self._ranks = len(reduction.process_set.registered_ranks())
        self._sent_bytes = 0
        for slot in self.slots:
            slot.bucket = self

    @property
    def is_launched(self) -> bool:
        return bool(self._pending)

    def launch(self) -> None:
        while self._forgotten:
            self._forgotten.pop().wait()
        self._sent_bytes = 0
        for slot in self.slots:
            gradient = slot.parameter.grad
            if gradient is None:
                gradient = slot.parameter.grad = torch.zeros_like(slot.parameter)
            if gradient.is_sparse:
                gradient = gradient.to_dense()
            smaller, context = self._reduction.compression.compress(gradient)
            host = tensors.host_copy(smaller).contiguous()
            if host.data_ptr() == gradient.data_ptr():
                host = host.clone()
            type_name = tensors.check(host)
            self._sent_bytes += host.numel() * host.element_size()
            pending = operations.submit(
                "all_reduce", f"{self._name}.{slot.name}", process_set=self._reduction.process_set,
                buffers=[(host.data_ptr(), host.data_ptr(), host.numel())], type=type_name, op=self._reduction.op,
                prescale=self._reduction.prescale, postscale=self._reduction.postscale,
                shape=tensors.shape_text(type_name, host.shape), keep=host)
            self._pending.append((slot, pending, host.to(smaller.device), context)
                                 if tensors.is_on_host(smaller) else (slot, pending, host, context))

    def proceed(self, wait: bool = True) -> None:
        """As in Bucket."""

    def wire_bytes(self) -> int:
        """As in Bucket, for the gradients of the last step."""
        return _least_bytes(self._sent_bytes, self._ranks)

    def finish(self) -> None:
        while self._pending:
            slot, pending, host, context = self._pending[0]
            pending.wait()
            self._pending.pop(0)
            gradient = slot.parameter.grad
            whole = self._reduction.compression.decompress(host.to(slot.parameter.device), context)
            if slot.dense_dimensions:
                slot.parameter.grad = whole.to_sparse(slot.dense_dimensions)
            elif gradient is None:
                slot.parameter.grad = whole
            else:
                with torch.no_grad():
                    gradient.copy_(whole)
        self.missing = len(self.slots)

    def forget(self) -> None:
        self.missing = len(self.slots)
        self._forgotten += [pending for _, pending, _, _ in self._pending]
        self._pending.clear()

    def abandon(self) -> None:
        self._pending.clear()
        self._forgotten.clear()
        for slot in self.slots:
            slot.bucket = None


def _least_bytes(size: int, ranks: int) -> int:
    """What each rank sends in an all-reduce of `size` bytes."""
    return 2 * (ranks - 1) * size // ranks


def _layout(parameters: Sequence[torch.Tensor]) -> Tuple[List[int], int]:
    """The offset of each parameter's gradient, and the length of all, in elements."""
    step = max(_ALIGNMENT_BYTES // parameters[0].element_size(), 1)
    offsets, end = [], 0
    for parameter in parameters:
        offsets.append(end)
        end += -(-parameter.numel() // step) * step
    return offsets, end


def view_of(flat: torch.Tensor, offset: int, parameter: torch.Tensor) -> torch.Tensor:
    """A view with the parameter's strides (for example channels_last) if its elements fill their memory."""
    strides = parameter.stride()
    if not parameter.is_contiguous() and not is_dense(parameter):
        return flat[offset:offset + parameter.numel()].view(parameter.shape)
    return flat.as_strided(parameter.shape, strides, offset)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a piece of memory without gaps or overlaps, in any order."""
    expected = 1
    for stride, length in sorted((stride, length) for stride, length in zip(tensor.stride(), tensor.shape)
                                 if length != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def _collect(slots: Sequence[Slot]) -> None:
    """Makes every `p.grad` the view, with the gradient's values."""
    views, gradients = [], []
    for slot in slots:
        parameter, view = slot.parameter, slot.view
        gradient = parameter.grad
        if gradient is view:
            continue
        if gradient is None:
            view.zero_()  # type: ignore[union-attr]
        else:
            views.append(view)
            gradients.append(gradient.to_dense() if gradient.is_sparse else gradient)
        _put_view(slot)
    if views:
        with torch.no_grad():
            _copy_all(views, gradients)


def _put_view(slot: Slot) -> None:
    try:
        slot.parameter.grad = slot.view
    except RuntimeError as error:
        raise RuntimeError(f"parameter {slot.name!r} has another type, shape or device than when training began; "
                           f"create the DistributedOptimizer after the last change of the model") from error


def _copy_one_by_one(views: Sequence[Any], gradients: Sequence[torch.Tensor]) -> None:
    for view, gradient in zip(views, gradients):
        view.copy_(gradient)


#: One call for many small tensors, if this PyTorch has it.
_copy_all = getattr(torch, "_foreach_copy_", _copy_one_by_one)
