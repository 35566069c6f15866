"""DistributedOptimizer: an optimizer whose gradients are reduced over the ranks before it uses them.

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

The result has the state, settings and hooks of the given optimizer, and a class that is derived from its class and has
the same name: learning rate schedulers, gradient scalers and checkpoints treat it as the original.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ..common import world
from ..common.basics import size
from ..common.exceptions import HorovodInternalError
from ..common.handles import synchronize
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp, choose
from . import bucket_plan, collectives, optimizer_arguments as arguments
from .buckets import Reduction, Slot
from .compression import Compression, PowerSGDCompressor
from .gradient_reducer import GradientReducer, described
from .reducing import grouped_allreduce


def DistributedOptimizer(  # noqa: N802  (a function under the name of what it makes)
        optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
        compression: Any = Compression.none, backward_passes_per_step: int = 1, op: int = ReduceOp.AVERAGE,
        gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: Union[None, int, Sequence[Sequence[torch.Tensor]]] = None, sparse_as_dense: bool = False,
        process_set: ProcessSet = global_process_set) -> torch.optim.Optimizer:
    """Wraps `optimizer`, which must not be used by itself afterwards.

    named_parameters: model.named_parameters(); the ranks match their gradients by these names. Required if several
      optimizers with similar parameters are used at the same time.
    backward_passes_per_step: the gradients of this number of backward passes are added up before they are reduced.
    op: Average, Sum, or Adasum, which reduces the changes by the optimizer's step instead of the gradients.
    compression: none, fp16, bf16, or with error feedback int8 and powersgd(rank=4), for op Average and Sum. The errors
      of a rank are not a part of state_dict(), which is equal on all ranks, but of error_state_dict().
    gradient_predivide_factor: for Average: gradients are divided by it before the sum, and by the rest after the sum.
    groups: a number of buckets, or lists of parameters whose gradients are reduced together; the other gradients are
      reduced in buckets by size, and so are all gradients by default. num_groups is the older name of the number.
    sparse_as_dense: makes sparse gradients dense before they are reduced, and sparse again afterwards.

    All ranks must call step() of several optimizers in the same order. The order is free only without Adasum and
    without a compression that exchanges twice (powersgd, int8), and only if a backward pass has computed all gradients.
    A gradient that a program keeps (g = p.grad) is memory into which the next step writes: clone() it to keep its
    values.

    Errors: ValueError for invalid arguments, and before init().
    """
    if is_distributed(optimizer):
        raise ValueError("the optimizer is a DistributedOptimizer already")
    reduce_op = choose(op)
    named = arguments.named_parameters_of(optimizer, named_parameters)
    if num_groups:
        warnings.warn("Parameter `num_groups` has been replaced with `groups` and will be removed.",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    if compression is PowerSGDCompressor:
        compression = PowerSGDCompressor()
    arguments.check(reduce_op, compression, gradient_predivide_factor, backward_passes_per_step, groups, process_set)
    settings = {"compression": compression, "backward_passes_per_step": backward_passes_per_step, "op": reduce_op,
                "gradient_predivide_factor": gradient_predivide_factor, "groups": groups,
                "sparse_as_dense": sparse_as_dense, "process_set": process_set}
    kind: type = _DistributedOptimizer
    if reduce_op == ReduceOp.ADASUM and _may_have_others():
        kind = _DistributedAdasumOptimizer
    return _derive(kind, optimizer, named, settings)


def _may_have_others() -> bool:
    """Whether there are other ranks, or may be in the next world of an elastic job."""
    return size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1"


def is_distributed(optimizer: Any) -> bool:
    """Whether DistributedOptimizer() has made it."""
    return isinstance(optimizer, _Distributed)


def _derive(kind: type, optimizer: torch.optim.Optimizer, named: List[Tuple[str, torch.Tensor]],
            settings: Dict[str, Any]) -> torch.optim.Optimizer:
    """A copy of the optimizer whose class has the same name and `kind` as its first base."""
    inner = type(optimizer)
    derived: Any = type(inner.__name__, (kind, inner), {"__doc__": inner.__doc__, "__module__": inner.__module__,
                                                        "_inner_class": inner})
    made: Any = derived.__new__(derived)
    # A learning rate scheduler that was made before has set its own step() there, which does not belong to the copy.
    made.__dict__.update((name, value) for name, value in vars(optimizer).items() if name != "step")
    made._wrapped = weakref.ref(optimizer)
    made._distribute(named, settings)
    return made  # type: ignore[no-any-return]


def _restore(inner: Any, state: Dict[str, Any], named: List[Tuple[str, torch.Tensor]],
             settings: Dict[str, Any]) -> torch.optim.Optimizer:
    """Used by pickle and copy. `inner`: the class of the wrapped optimizer."""
    optimizer = inner.__new__(inner)
    optimizer.__setstate__(state)
    return DistributedOptimizer(optimizer, named, **settings)


class _Distributed:
    """The common part of the plain and the Adasum optimizer. Precedes the optimizer's class in the order of bases."""

    _inner_class: type
    #: The optimizer that was wrapped. Schedulers that were made before still refer to it.
    _wrapped: "weakref.ref[torch.optim.Optimizer]"
    _named: List[Tuple[str, torch.Tensor]]

    def _distribute(self, named: List[Tuple[str, torch.Tensor]], settings: Dict[str, Any]) -> None:
        self._named = named
        self._settings = settings
        self._parameter_names = {parameter: name for name, parameter in sorted(named, key=lambda each: each[0])}
        self._process_set: ProcessSet = settings["process_set"]
        self._should_synchronize = True
        self._synchronized = False
        own: Any = self
        trained = [(self._parameter_names[parameter], parameter) for group in own.param_groups
                   for parameter in group["params"] if parameter.requires_grad]
        groups = settings["groups"]
        listed = arguments.places_of(groups, [parameter for _, parameter in trained])
        self._reducer = GradientReducer(trained, self._reduction(settings), settings["backward_passes_per_step"],
                                        listed, groups if isinstance(groups, int) else None,
                                        settings["sparse_as_dense"])
        self._is_active = self._process_set.included() and _may_have_others()
        if self._is_active:
            self._watch()

    def _reduction(self, settings: Dict[str, Any]) -> Reduction:
        factor = settings["gradient_predivide_factor"]
        return Reduction(settings["op"], 1.0 / factor, factor, self._process_set, settings["compression"])

    def _watch(self) -> None:
        self._reducer.watch()

    def wire_bytes(self) -> int:
        """The bytes of gradients that this rank sends in a step, with an algorithm that sends the least bytes; 0 before
        the first step. Sparse gradients do not count."""
        return self._reducer.wire_bytes()

    def error_state_dict(self) -> Dict[str, Any]:
        """What int8 or PowerSGD has not sent yet, which differs between the ranks: each rank saves its own, between
        steps, beside the state_dict() of one rank. Without such a compression it has no tensors."""
        return self._reducer.errors()

    def load_error_state_dict(self, state: Dict[str, Any]) -> None:
        """Continues with the errors that error_state_dict() has returned on this rank. Together with the model and the
        state_dict(), training then continues to the same bits. Without this call the errors begin with zeros.

        Errors: ValueError for another rank, number of ranks, compression, or division into buckets."""
        self._reducer.restore_errors(state)

    @property
    def backward_passes_per_step(self) -> int:
        return self._reducer.passes

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets the number of backward passes whose gradients are added up. Call it between steps only."""
        arguments.check_passes(passes)
        self._reducer.set_passes(passes)
        self._settings["backward_passes_per_step"] = passes

    def _tell_schedulers(self) -> None:
        """Prevents a warning: a learning rate scheduler warns if its optimizer has not stepped before the scheduler. A
        scheduler that was made before the optimizer was wrapped checks the wrapped optimizer."""
        wrapped: Any = self._wrapped()
        if wrapped is not None:
            wrapped._opt_called = True
            wrapped._step_count = 1  # before PyTorch 2.4

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As in the wrapped optimizer. Errors: AssertionError while gradients are being reduced."""
        if self._reducer.is_busy():
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() and before optimizer.step() "
                                 "or optimizer.synchronize(): gradients are still being reduced")
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As in the wrapped optimizer. Drops reductions of gradients in progress.

        The agreement of the ranks stays: one rank may load a state while the others do not, as
        broadcast_optimizer_state() does on all ranks but the root."""
        self._reducer.forget()
        self._synchronized = False
        self._should_synchronize = True
        return super().load_state_dict(*args, **kwargs)  # type: ignore[misc]

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """As in the wrapped optimizer. All ranks call it, with the same parameters."""
        super().add_param_group(param_group)  # type: ignore[misc]
        own: Any = self
        number = len(own.param_groups) - 1
        added = [(arguments.name_of_unnamed(number, place), parameter)
                 for place, parameter in enumerate(own.param_groups[-1]["params"])]
        self._named.extend(added)
        self._parameter_names.update((parameter, name) for name, parameter in added)
        if self._is_active:
            self._reducer.add([each for each in added if each[1].requires_grad])

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        own: Any = self
        settings = dict(self._settings)
        if settings["process_set"] is global_process_set:
            del settings["process_set"]
        return _restore, (self._inner_class, own.__getstate__(), self._named, settings)


class _DistributedOptimizer(_Distributed):
    """Reduces gradients as they become ready; step() waits for them."""

    def synchronize(self) -> None:
        """Waits until all gradients are reduced, including those that no backward pass has touched. Call it to clip or
        unscale gradients before step(), and then call step() within skip_synchronize()."""
        if self._is_active:
            self._reducer.synchronize()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within this context, step() uses the gradients as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: Any) -> Any:
        """The optimizer's step, with reduced gradients. Gradients of a closure are reduced at each call of it."""
        if not self._should_synchronize:
            if self._reducer.is_busy() and self._is_active and not self._synchronized:
                raise RuntimeError("optimizer.step() was called in skip_synchronize() while gradients are being "
                                   "reduced: call optimizer.synchronize() before")
        elif closure is None:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() after "
                              "optimizer.synchronize(): all gradients are reduced once more", stacklevel=2)
            self.synchronize()
        elif self._reducer.has_begun():
            self.synchronize()
        self._synchronized = False
        self._tell_schedulers()
        if closure is None or not self._should_synchronize:
            return super().step(closure, **kwargs)  # type: ignore[misc]

        def closure_and_synchronize() -> Any:
            loss = closure()
            self.synchronize()
            return loss

        loss = super().step(closure_and_synchronize, **kwargs)  # type: ignore[misc]
        self._synchronized = False
        return loss

    # PyTorch wraps step() of an optimizer's class to run hooks and to profile. That of the inner class is wrapped
    # already.
    step.hooked = True  # type: ignore[attr-defined]


class _DistributedAdasumOptimizer(_Distributed):
    """The optimizer for Adasum. Each rank takes its own step with its own gradients, and the changes of all ranks are
    combined by Adasum, tensor by tensor (Maleki et al.: Scaling distributed training with adaptive summation, MLSys
    2021). It therefore also works for optimizers that scale their gradients, such as Adam.

    The first step is taken in step(). There the ranks agree whether later steps may be taken bucket by bucket during
    the backward pass: no rank has changed gradients between the backward pass and step(), and none has hooks of the
    optimizer. The result is the same to the bit. In the next world they agree anew, with ranks that are new there.
    """

    def _watch(self) -> None:
        #: Whether steps are taken during the backward pass; None before the agreement.
        self._overlaps: Optional[bool] = None
        self._is_ending = False  # step() has begun to combine all changes, and has not applied all of them
        self._buckets: List[_AdasumBucket] = []
        #: By position of the parameter: its gradient and the gradient's version, when it was ready.
        self._seen: Dict[int, Tuple[Any, int]] = {}
        self._lock = threading.RLock()
        self._reducer.on_ready = weakref.WeakMethod(self._ready)
        self._reducer.watch(reduces=False)
        world.before_end(self._leave_world, self._process_set)

    def _leave_world(self) -> None:
        """Returns to the state before the agreement. Drops a step that has begun."""
        with self._lock:
            for bucket in self._buckets:
                bucket.reset()
            self._overlaps, self._buckets = None, []
            self._is_ending = False
            self._seen.clear()

    def _ready(self, slot: Slot) -> None:
        """Called when the last backward pass has computed a gradient."""
        with self._lock:
            if self._overlaps is None:
                gradient = slot.parameter.grad
                if gradient is not None:
                    self._seen[slot.place] = gradient, gradient._version
                return
            if not self._overlaps:
                return
            bucket = self._buckets[slot.bucket]  # type: ignore[index]
            bucket.missing -= 1
            if bucket.missing == 0:
                self._begin(bucket)

    def _begin(self, bucket: "_AdasumBucket") -> None:
        """Takes this rank's step for the parameters of the bucket, begins to combine the changes, and undoes the step:
        the backward pass may still need the parameters."""
        own: Any = self
        parameters = [slot.parameter for slot in bucket.slots]
        chosen = set(map(id, parameters))
        every = [group["params"] for group in own.param_groups]
        with torch.no_grad():
            bucket.before = [parameter.detach().clone() for parameter in parameters]
            try:
                for group in own.param_groups:
                    group["params"] = [parameter for parameter in group["params"] if id(parameter) in chosen]
                step = self._inner_class.step  # type: ignore[attr-defined]
                (step.__wrapped__ if getattr(step, "hooked", False) else step)(self)
            finally:
                for group, params in zip(own.param_groups, every):
                    group["params"] = params
            changes = [(parameter - start).contiguous() for parameter, start in zip(parameters, bucket.before)]
            for parameter, start in zip(parameters, bucket.before):
                parameter.copy_(start)
            compression = self._settings["compression"]
            pairs = [compression.compress(change) for change in changes]
        bucket.contexts = [context for _, context in pairs]
        bucket.versions = [(parameter.grad, None if parameter.grad is None else parameter.grad._version)
                           for parameter in parameters]
        bucket.handle = collectives.begin_group_reduce([change for change, _ in pairs], None, bucket.name,
                                                       ReduceOp.ADASUM, 1.0, 1.0, self._process_set)

    def _end(self, bucket: "_AdasumBucket") -> None:
        try:
            combined: Any = synchronize(bucket.handle)  # type: ignore[arg-type]
        except Exception:
            bucket.handle, self._is_ending = None, False
            raise
        with torch.no_grad():
            for slot, start, change, context in zip(bucket.slots, bucket.before, combined, bucket.contexts):
                slot.parameter.copy_(start.add_(self._settings["compression"].decompress(change, context)))
        if any(slot.parameter.grad is not gradient or (gradient is not None and gradient._version != version)
               for slot, (gradient, version) in zip(bucket.slots, bucket.versions)):
            warnings.warn("gradients were changed between loss.backward() and optimizer.step(), which had no effect: "
                          "Adasum takes each rank's step during the backward pass, because gradients were not changed "
                          "before the first step", stacklevel=3)
        bucket.reset()

    def _agree(self, may_overlap: bool) -> None:
        flag = torch.tensor([0 if may_overlap else 1], dtype=torch.int64)
        collectives.reduce_now(flag, flag, f"adasum.overlap.{self._reducer.digest()}", ReduceOp.MAX, 1.0, 1.0,
                               self._process_set)
        self._overlaps = int(flag) == 0
        self._seen.clear()
        if not self._overlaps:
            return
        slots = self._reducer.slots
        gradients = [described(slot) for slot in slots]
        planned = bucket_plan.plan(gradients, list(reversed(range(len(slots)))), [], bucket_plan.BUCKET_BYTES)
        self._buckets = []
        for number, places in enumerate(planned):
            for place in places:
                slots[place].bucket = number
            self._buckets.append(_AdasumBucket([slots[place] for place in places],
                                               f"adasum.{bucket_plan.name_of(gradients, places)}"))

    def _may_overlap(self, closure: Any) -> bool:
        has_hooks = any(value for name, value in vars(self).items()
                        if name.startswith("_optimizer_step_") and isinstance(value, dict))
        are_dense = all(slot.parameter.grad is None or not slot.parameter.grad.is_sparse
                        for slot in self._reducer.slots)
        return closure is None and not has_hooks and are_dense and all(
            self._reducer.slots[place].parameter.grad is gradient and gradient._version == version
            for place, (gradient, version) in self._seen.items())

    def synchronize(self) -> None:
        """Does nothing: gradients are not reduced."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("a step without synchronization is not possible with Adasum, whose step() is what "
                             "synchronizes")
        yield

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        super(_Distributed, self).zero_grad(*args, **kwargs)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As in the wrapped optimizer. Drops a step that has begun."""
        for bucket in self._buckets:
            if bucket.handle is not None:
                with contextlib.suppress(HorovodInternalError, ValueError):
                    synchronize(bucket.handle)
            bucket.reset()
        self._is_ending = False
        return super().load_state_dict(*args, **kwargs)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._overlaps = None
        self._seen.clear()

    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: Any) -> Any:
        """This rank's step, and the combination of the changes of all ranks."""
        self._tell_schedulers()
        if not self._overlaps or kwargs:
            return self._step_whole(closure, **kwargs)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with self._lock:
            for bucket in self._buckets:
                if bucket.handle is None and not self._is_ending:
                    self._begin(bucket)
        self._is_ending = True
        for bucket in self._buckets:
            if bucket.handle is not None:  # after Ctrl-C, step() goes on where it stopped
                self._end(bucket)
        self._is_ending = False
        self._reducer.set_passes(self._reducer.passes)
        return loss

    def _step_whole(self, closure: Optional[Callable[[], Any]], **kwargs: Any) -> Any:
        may_overlap = self._overlaps is None and self._may_overlap(closure) and not kwargs
        parameters = [slot.parameter for slot in self._reducer.slots]
        with torch.no_grad():
            before = [parameter.detach().clone() for parameter in parameters]
        loss = super().step(closure, **kwargs)  # type: ignore[misc]
        with torch.no_grad():
            changes = [(parameter - start).contiguous() for parameter, start in zip(parameters, before)]
            combined: List[torch.Tensor] = grouped_allreduce(
                changes, name=f"adasum.{self._reducer.digest()}", compression=self._settings["compression"],
                op=ReduceOp.ADASUM, process_set=self._process_set)
            for parameter, start, change in zip(parameters, before, combined):
                parameter.copy_(start.add_(change))
        self._reducer.set_passes(self._reducer.passes)
        if self._overlaps is None:
            self._agree(may_overlap)
        return loss

    step.hooked = True  # type: ignore[attr-defined]


class _AdasumBucket:
    """Parameters whose changes are combined together."""

    def __init__(self, slots: Sequence[Slot], name: str) -> None:
        self.slots = list(slots)
        self.name = name
        self.reset()

    def reset(self) -> None:
        self.missing = len(self.slots)
        self.handle: Optional[int] = None
        self.before: List[torch.Tensor] = []
        self.contexts: List[Any] = []
        self.versions: List[Any] = []
