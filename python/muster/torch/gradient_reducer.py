"""Reduces the gradients of an optimizer's parameters during the backward pass.

The first time, all gradients are reduced after the backward pass. By then every rank has the order in which its
gradients became ready, and the ranks agree on rank 0's order and on the set of sparse gradients. From then on, buckets
are made of gradients that become ready one after the other (bucket_plan.py). Each bucket is submitted as soon as its
last gradient is ready on this rank; other ranks may submit in other orders.

If there are several optimizers, each one begins its agreement as soon as all of its gradients are ready, and its own
thread completes it. So the ranks may step the optimizers in different orders.

A parameter without a gradient on some rank counts as zeros there. Thread-safety: hooks may be called from several
threads of autograd; all other functions from one thread at a time.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common import world
from ..common.exceptions import HorovodInternalError
from ..common.reduce_ops import ReduceOp
from ..common.session import SHUT_DOWN
from . import bucket_plan, tensors
from .buckets import Bucket, CompressedBucket, Reduction, Slot
from .compressed_buckets import FeedbackBucket, Int8Bucket, PowerSGDBucket
from .compression import Compression, PowerSGDCompressor, has_feedback
from .hooks import on_gradient
from .sparse import sparse_allreduce_async

#: By id of the parameter: the reducer of its gradient during the backward pass. It is the parameter's latest optimizer;
#: an earlier one that is still used reduces in its step().
_reducers: "Dict[int, weakref.ref[GradientReducer]]" = {}


class GradientReducer:
    def __init__(self, parameters: Sequence[Tuple[str, torch.Tensor]], reduction: Reduction, passes: int,
                 groups: Sequence[Sequence[int]], parts: Optional[int], sparse_as_dense: bool) -> None:
        self.slots = [Slot(parameter, name, place) for place, (name, parameter) in enumerate(parameters)]
        self._reduction = reduction
        self._groups = groups
        self._parts = parts
        self._sparse_as_dense = sparse_as_dense
        self._lock = threading.RLock()
        self._order: List[int] = []  # positions, as gradients became ready; before the agreement
        self._is_agreed = False
        self._agreement: Optional[_Agreement] = None  # for which synchronize() waits
        self._is_finishing = False  # synchronize() has launched all reductions, and has not finished all of them
        self._early: Optional[_Early] = None
        self._generation = 0  # the number of agreements that were dropped
        self._buckets: List[Any] = []
        #: The errors of a checkpoint, by bucket, until the buckets are made.
        self._restored: Optional[Dict[str, Dict[str, torch.Tensor]]] = None
        self._hooks: List[Any] = []
        #: Without `reduces`: called when a gradient is ready.
        self.on_ready: Optional["weakref.WeakMethod[Callable[[Slot], None]]"] = None
        self.set_passes(passes)

    def watch(self, reduces: bool = True) -> None:
        """Begins to reduce gradients as they become ready; without `reduces`, it only counts backward passes and calls
        on_ready."""
        own = weakref.ref(self)
        self._reduces = reduces
        for slot in self.slots:
            previous = _reducers.get(id(slot.parameter))
            earlier = previous() if previous is not None else None
            if earlier is not None and earlier is not self:
                earlier.unwatch()
            _reducers[id(slot.parameter)] = own
            self._hooks.append(on_gradient(slot.parameter, _hook(own, slot.place, reduces)))
        world.before_end(self.reset, self._reduction.process_set)

    def unwatch(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def set_passes(self, passes: int) -> None:
        self.passes = passes
        for slot in self.slots:
            slot.passes = passes

    def is_busy(self) -> bool:
        """Whether gradients of a completed backward pass wait for synchronize()."""
        return any(slot.passes <= 0 for slot in self.slots)

    def has_begun(self) -> bool:
        """Whether there was a backward pass since the last synchronize()."""
        return any(slot.passes != self.passes for slot in self.slots)

    def count(self, slot: Slot) -> bool:
        """Counts a backward pass for the gradient. True if the pass was the last before the reduction."""
        slot.passes -= 1
        if slot.passes < 0:
            raise AssertionError(
                f"the gradient of {slot.name!r} was computed more than backward_passes_per_step = {self.passes} "
                f"times before optimizer.step() or optimizer.synchronize(): raise backward_passes_per_step to "
                f"accumulate gradients")
        return slot.passes == 0

    def ready(self, slot: Slot) -> None:
        """Calls count(); after the last pass, the gradient is reduced as soon as its bucket is full."""
        with self._lock:
            if not self.count(slot):
                return
            if not self._is_agreed:
                self._order.append(slot.place)
                if len(self._order) == len(self.slots) and self._is_one_of_several():
                    self._begin_early()
            elif slot.sparse_dimensions:
                self._begin_sparse(slot)
            else:
                bucket: Any = slot.bucket
                bucket.missing -= 1
                if bucket.missing == 0:
                    for other in self._buckets:
                        other.proceed(wait=False)
                    bucket.launch()

    def synchronize(self) -> None:
        """Begins the reductions that have not begun yet, and waits for all.

        After Ctrl-C, the next call goes on where this one stopped: the other ranks reduce each gradient once.

        Errors: HorovodInternalError, MismatchError. The state is then that before the first pass.
        """
        try:
            if not self._is_finishing:
                self._begin_rest()
                self._is_finishing = True
            for bucket in self._buckets:
                bucket.proceed()
            for bucket in self._buckets:
                if bucket.is_launched:
                    bucket.finish()
            for slot in self.slots:
                if slot.sparse_wait is not None:
                    slot.parameter.grad = slot.sparse_wait()
                    slot.sparse_wait = None
        except Exception:
            self.reset()
            raise
        self._is_finishing = False
        self.set_passes(self.passes)

    def _begin_rest(self) -> None:
        """Begins the reductions that have not begun yet; before the first reduction, the ranks agree."""
        if not self._has_begun_early() and not self._is_agreed:
            if self._agreement is None:
                self._agreement = self._agree()
            has_begun = self.complete(self._agreement)
            self._agreement = None
            if not has_begun:
                raise HorovodInternalError(SHUT_DOWN)
        with self._lock:
            self._launch()

    def reset(self) -> None:
        """Returns to the state before any backward pass. Reductions in progress go on, with their memory."""
        with self._lock:
            for bucket in self._buckets:
                bucket.abandon()
            self._buckets = []
            self._is_agreed = self._is_finishing = False
            self._agreement = None
            self._generation += 1
            self._order = []
            for slot in self.slots:
                slot.sparse_dimensions = slot.dense_dimensions = 0
                slot.sparse_wait = slot.forgotten_wait = None
            self.set_passes(self.passes)

    def forget(self) -> None:
        """Returns to the state after the last step. The plan is kept, because the other ranks keep it."""
        with self._lock:
            if self._early is not None:
                self._early.agreement.is_forgotten = True
            self._forget_launched()
            self._is_finishing = False
            self._order = []
            self.set_passes(self.passes)

    def _forget_launched(self) -> None:
        for bucket in self._buckets:
            bucket.forget()
        for slot in self.slots:
            slot.forget()

    def finish_pending(self) -> None:
        """Waits for reductions in progress whose results are not used."""
        for bucket in self._buckets:
            if bucket.is_launched:
                bucket.finish()

    def add(self, parameters: Sequence[Tuple[str, torch.Tensor]]) -> None:
        """Adds parameters, at the same point of the program on all ranks."""
        self.finish_pending()
        self.reset()
        begin = len(self.slots)
        self.slots += [Slot(parameter, name, begin + number) for number, (name, parameter) in enumerate(parameters)]
        self.set_passes(self.passes)
        self.unwatch()
        self.watch(self._reduces)

    def wire_bytes(self) -> int:
        """The bytes of dense gradients that this rank sends in a step; 0 before the first step."""
        return sum(bucket.wire_bytes() for bucket in self._buckets)

    def errors(self) -> Dict[str, Any]:
        """What compressions with error feedback keep on this rank from step to step. Call it between steps."""
        with self._lock:
            kept = {bucket.name: {key: value.detach().clone() for key, value in bucket.kept().items()}
                    for bucket in self._buckets if isinstance(bucket, FeedbackBucket)}
            return {**self._place(), "buckets": kept or self._restored or {}}

    def restore_errors(self, errors: Dict[str, Any]) -> None:
        """Sets what errors() has returned in another run. Errors: ValueError for another rank, number of ranks,
        compression, or division into buckets; the last is detected in the next step, if no step was made yet."""
        place = self._place()
        found = {key: errors.get(key) for key in place}
        if found != place:
            raise ValueError(f"the errors are of {found}, but this is {place}")
        with self._lock:
            self._restored = dict(errors["buckets"])
            if self._buckets:
                self._restore_buckets()

    def _place(self) -> Dict[str, Any]:
        return {"rank": self._reduction.process_set.rank(), "ranks": self._reduction.process_set.size(),
                "compression": getattr(self._reduction.compression, "text", None)}

    def _restore_buckets(self) -> None:
        if not self._restored:
            return
        restored, self._restored = self._restored, None
        buckets = {bucket.name: bucket for bucket in self._buckets if isinstance(bucket, FeedbackBucket)}
        if set(buckets) != set(restored):
            raise ValueError("the errors are of gradients in other buckets: the parameters, `groups` and "
                             "HOROVOD_FUSION_THRESHOLD must be those of the run that has saved them")
        for name, bucket in buckets.items():
            bucket.restore(restored[name])

    def digest(self) -> str:
        """A digest of the parameters' names, which identifies the optimizer."""
        return hashlib.sha256("\n".join(slot.name for slot in self.slots).encode()).hexdigest()[:12]

    def _agree(self) -> "_Agreement":
        """Begins an agreement with all ranks, and does not wait for it."""
        with self._lock:
            seen = self._seen()
            contents = bucket_plan.contents([described(slot) for slot in self.slots])
            pending = operations.submit(
                "all_reduce", f"allreduce.optimizer.{self.digest()}", process_set=self._reduction.process_set,
                buffers=[(seen.data_ptr(), seen.data_ptr(), seen.numel())], type="int64", op=ReduceOp.SUM,
                shape=f"{contents}, {self._division()}", keep=seen)
            return _Agreement(self._generation, seen, pending)

    def complete(self, agreement: "_Agreement") -> bool:
        """Waits for all ranks, and begins to reduce all gradients by the plan. False if the agreement was dropped
        meanwhile. The lock is free during the wait, so that the world can be shut down."""
        agreement.pending.wait()
        with self._lock:
            if agreement.generation != self._generation:
                return False
            self._plan_by(agreement.seen)
            if agreement.is_forgotten:
                self._launch_for_the_others()
                return False
            self._launch()
        return True

    def _launch_for_the_others(self) -> None:
        """Takes part in a reduction whose result only the other ranks use. This rank's gradients do not change."""
        gradients = [slot.parameter.grad for slot in self.slots]
        self._launch()
        for slot, gradient in zip(self.slots, gradients):
            slot.parameter.grad = gradient
        self._forget_launched()

    def _begin_early(self) -> None:
        if self._early is None or not self._early.is_alive():
            self._early = _Early(self, self._agree())
            self._early.start()

    def _has_begun_early(self) -> bool:
        """Waits if another thread has begun the first reduction, and returns whether it has. Errors: those it met."""
        early = self._early
        if early is None:
            return False
        early.join()
        self._early = None
        if early.agreement.generation != self._generation:
            return False
        if early.failure is not None:
            raise early.failure
        return early.has_begun

    def _is_one_of_several(self) -> bool:
        others = (reference() for reference in list(_reducers.values()))
        return any(other is not None and other is not self and other._hooks for other in others)

    def _launch(self) -> None:
        """Launches the buckets that are not being reduced yet."""
        for bucket in self._buckets:
            if not bucket.is_launched:
                bucket.launch()
        for slot in self.slots:
            if slot.sparse_dimensions and slot.sparse_wait is None:
                self._begin_sparse(slot)

    def _seen(self) -> torch.Tensor:
        """The tensor that is summed over the ranks: a 1 from each rank, rank 0's order, and for each gradient the
        number of ranks where it is sparse and the sum of their sparse dimensions."""
        count = len(self.slots)
        seen = torch.zeros(1 + 3 * count, dtype=torch.int64)
        seen[0] = 1
        if self._reduction.process_set.rank() == 0:
            ready = set(self._order)
            rest = [place for place in reversed(range(count)) if place not in ready]
            seen[1:1 + count] = torch.tensor(self._order + rest)
        for slot in self.slots:
            gradient = slot.parameter.grad
            if gradient is not None and gradient.is_sparse:
                seen[1 + count + slot.place], seen[1 + 2 * count + slot.place] = 1, gradient.sparse_dim()
        return seen

    def _plan_by(self, seen: torch.Tensor) -> None:
        """Makes the plan from rank 0's order and the sparse gradients of all ranks. If a rank is missing (it joined), a
        plan that needs no agreement serves this time."""
        count = len(self.slots)
        self._is_agreed = int(seen[0]) == self._reduction.process_set.size()
        if self._is_agreed:
            order = seen[1:1 + count].tolist()
            sparse, dimensions = seen[1 + count:1 + 2 * count].tolist(), seen[1 + 2 * count:].tolist()
            for slot in self.slots:
                found = dimensions[slot.place] // max(sparse[slot.place], 1)
                slot.sparse_dimensions = 0 if self._sparse_as_dense else found
                slot.dense_dimensions = found if self._sparse_as_dense else 0
        else:
            order = list(reversed(range(count)))
        self._order = []
        self._make_buckets([place for place in order if not self.slots[place].sparse_dimensions])

    def _division(self) -> str:
        """A text of how gradients are divided into buckets. Ranks with different divisions would wait for each other's
        buckets for ever."""
        free = f"{self._parts} buckets" if self._parts else f"buckets of {_bucket_bytes()} bytes"
        lists = f", {len(self._groups)} groups {[list(group) for group in self._groups]}" if self._groups else ""
        text = f", {self._reduction.compression.text}" if has_feedback(self._reduction.compression) else ""
        return f"in {free} (groups, HOROVOD_FUSION_THRESHOLD){lists}{text}"

    def _make_buckets(self, order: Sequence[int]) -> None:
        for bucket in self._buckets:
            bucket.abandon()
        gradients = [described(slot) for slot in self.slots]
        groups = [[place for place in group if not self.slots[place].sparse_dimensions] for group in self._groups]
        planned = bucket_plan.plan(gradients, order, groups, _bucket_bytes(), self._parts)
        self._buckets = []
        for places in planned:
            slots = [self.slots[place] for place in places]
            name = bucket_plan.name_of(gradients, places)
            if isinstance(self._reduction.compression, PowerSGDCompressor):
                self._buckets.append(PowerSGDBucket(slots, name, bucket_plan.shape_of(gradients, places),
                                                    self._reduction))
            elif self._reduction.compression is Compression.int8:
                self._buckets.append(Int8Bucket(slots, name, bucket_plan.shape_of(gradients, places), self._reduction))
            elif self._reduction.is_own_compression():
                self._buckets.append(CompressedBucket(slots, name, self._reduction))
            else:
                self._buckets.append(Bucket(slots, name, bucket_plan.shape_of(gradients, places), self._reduction))
        self._restore_buckets()

    def _begin_sparse(self, slot: Slot) -> None:
        """A rank without a gradient takes part with an empty one, a rank with a dense gradient with its nonzeros."""
        slot.finish_forgotten()
        parameter = slot.parameter
        gradient = parameter.grad
        if gradient is None:
            gradient = torch.zeros_like(parameter).detach()
        if gradient.is_sparse and gradient.sparse_dim() != slot.sparse_dimensions:
            # PyTorch makes all dimensions of a sparse tensor sparse in zero_(), which zero_grad() calls.
            gradient = gradient.to_dense()
        if not gradient.is_sparse:
            gradient = gradient.to_sparse(slot.sparse_dimensions)
        slot.sparse_wait = sparse_allreduce_async(gradient, slot.name, self._reduction.op,
                                                  self._reduction.process_set)


@dataclass
class _Agreement:
    """An agreement on a plan, while the ranks exchange their facts."""

    generation: int
    seen: torch.Tensor
    pending: operations.Pending
    #: Whether the agreement was dropped, because its gradients are no longer used.
    is_forgotten: bool = False


class _Early(threading.Thread):
    """Completes an agreement. A daemon thread: a program may end without the step that would wait for it."""

    def __init__(self, reducer: GradientReducer, agreement: _Agreement) -> None:
        super().__init__(name="muster-first-reduction", daemon=True)
        self._reducer: Optional[GradientReducer] = reducer
        self.agreement = agreement
        self.has_begun = False
        self.failure: Optional[Exception] = None

    def run(self) -> None:
        reducer, self._reducer = self._reducer, None
        assert reducer is not None
        try:
            self.has_begun = reducer.complete(self.agreement)
        except Exception as error:  # raised again in the thread that waits
            self.failure = error


def _hook(own: "weakref.ref[GradientReducer]", place: int, reduces: bool) -> Callable[..., None]:
    """A hook that keeps neither the reducer alive, as a parameter outlives its optimizers, nor the parameter."""

    def counted(*_: object) -> None:
        reducer = own()
        if reducer is not None and reducer.count(reducer.slots[place]) and reducer.on_ready is not None:
            on_ready = reducer.on_ready()
            if on_ready is not None:
                on_ready(reducer.slots[place])

    def ready(*_: object) -> None:
        reducer = own()
        if reducer is not None:
            reducer.ready(reducer.slots[place])

    return ready if reduces else counted


def described(slot: Slot) -> bucket_plan.Gradient:
    parameter = slot.parameter
    type_name = tensors.NAME_OF_TYPE.get(parameter.dtype)
    if type_name is None:
        raise ValueError(f"Tensor type {parameter.type()} is not supported: parameter {slot.name!r}.")
    shape = tensors.shape_text(type_name, parameter.shape)
    if not parameter.is_contiguous():
        shape += f" strides {list(parameter.stride())}"
    return bucket_plan.Gradient(slot.name, parameter.numel() * parameter.element_size(),
                                (parameter.dtype, parameter.device), shape)


def _bucket_bytes() -> int:
    """HOROVOD_FUSION_THRESHOLD, in bytes, if it is set; 0 reduces each gradient by itself."""
    given = os.environ.get("HOROVOD_FUSION_THRESHOLD", "")
    return int(given) if given.strip().isdigit() else bucket_plan.BUCKET_BYTES
