"""ShardedOptimizer: an optimizer whose state is divided among the ranks.

    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.001), model.named_parameters())

Each rank keeps the state of its part of the parameters only: with Adam in float32 on four ranks, 2 bytes for each
parameter instead of 8. A step reduces gradients with a reduce-scatter, updates this rank's part, and gathers the
parameters of all ranks. That sends as many bytes as the all-reduce of DistributedOptimizer.

    Rajbhandari et al.: ZeRO: Memory Optimizations Toward Training Trillion Parameter Models. SC 2020. Stages 1 and 2.

Stage 1 divides the state. Stage 2 also releases each gradient as soon as its reduction begins. Both begin to reduce
gradients during the backward pass, and update one bucket of parameters while others are being reduced or gathered.

The result is that of DistributedOptimizer to the bit if there are at most 8 ranks, and either all of them are on one
host or each is on a host of its own. In other layouts an all-reduce adds in another order than a reduce-scatter.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from ..common import operations, world
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, global_process_set
from ..common.reduce_ops import ReduceOp, choose
from . import bucket_plan, optimizer_arguments as arguments, sharded_state
from .buckets import Reduction
from .compression import Compression
from .hooks import on_gradient
from .optimizer import is_distributed
from .shards import Pool, ShardBucket, Slot, buckets_of, described

#: Optimizers of PyTorch that treat each element by itself.
_BY_ELEMENT = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")

#: Buckets whose gradients are on their way at the same time, and how long the next waits for the first of them.
_MOST_ON_THEIR_WAY = 2
_PATIENCE_MS = 2000


class ShardedOptimizer(torch.optim.Optimizer):
    """Takes the place of `optimizer`, which must not be used by itself afterwards. All ranks create it, with the same
    parameters and arguments. The parameters move into new memory, so create it after the last change of the model
    (model.to(), model.half()), and learning rate schedulers after it.

    stage: 1 or 2, see above.
    op: Average or Sum.
    compression: none, fp16 or bf16, for gradients. Parameters are always sent unchanged.
    backward_passes_per_step: gradients of this number of backward passes are added up before they are reduced.
    bucket_bytes: the size of parts that are reduced, updated and gathered together.
    elementwise: declares that an optimizer that is not one of PyTorch's treats each element of a parameter by itself.
      An optimizer that computes with whole tensors (LARS, LAMB, Muon, LBFGS) must not be used.

    A parameter without a gradient counts as zeros, as in DistributedOptimizer. After step(), `p.grad` is None in stage
    2; in stage 1 it has no meaningful value. For clipping, clip_grad_norm_() replaces PyTorch's function.

    Thread-safety: one thread at a time; backward passes may run on threads of autograd. Errors: ValueError for invalid
    arguments and before init(), MismatchError if the ranks' parameters differ.
    """

    def __init__(self, optimizer: torch.optim.Optimizer,
                 named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None, stage: int = 2,
                 op: int = ReduceOp.AVERAGE, compression: Any = Compression.none, backward_passes_per_step: int = 1,
                 bucket_bytes: int = bucket_plan.BUCKET_BYTES, elementwise: bool = False,
                 process_set: ProcessSet = global_process_set) -> None:
        reduce_op = choose(op)
        named = arguments.named_parameters_of(optimizer, named_parameters)
        _check(optimizer, reduce_op, stage, compression, backward_passes_per_step, bucket_bytes, elementwise,
               process_set)
        self._names = {id(parameter): name for name, parameter in sorted(named, key=lambda each: each[0])}
        self._reduction = Reduction(reduce_op, 1.0, 1.0, process_set, compression)
        self._stage = stage
        self._passes = backward_passes_per_step
        self._bucket_bytes = bucket_bytes
        self._template = optimizer
        self._lock = threading.RLock()
        self._pool = Pool()
        self._slots: List[Slot] = []
        self._buckets: List[ShardBucket] = []
        self._handles: List[Any] = []
        self._is_limited = True
        self._is_stepping = False  # step() has begun, and has not updated all parameters
        self._is_built = False
        super().__init__([dict(group) for group in optimizer.param_groups], dict(optimizer.defaults))
        # Hooks of the wrapped optimizer run once in each step, not once for each bucket.
        for name, value in vars(optimizer).items():
            if name.startswith("_optimizer_") and value:
                setattr(self, name, value)
        self._add(list(range(len(self.param_groups))))
        self._is_built = True
        if optimizer.state:
            self.load_state_dict(optimizer.state_dict())
            optimizer.state = defaultdict(dict)
        world.before_end(self._reset, process_set)

    # --- Building ---

    def _add(self, groups: Sequence[int]) -> None:
        """Makes buckets of the parameters of these groups."""
        slots = [Slot(parameter, self._names[id(parameter)], group) for group in groups
                 for parameter in self.param_groups[group]["params"] if parameter.requires_grad]
        if not slots:
            return
        self._agree(slots)
        buckets = buckets_of(slots, self._bucket_bytes, self._reduction, self._stage == 1, self._pool)
        own = weakref.ref(self)
        for slot in slots:
            slot.passes = self._passes
            self._handles.append(on_gradient(slot.parameter, _hook(own, slot)))
        self._slots += slots
        self._buckets += buckets
        for bucket in buckets:
            bucket.optimizer = self._optimizer_of(bucket)

    def _agree(self, slots: Sequence[Slot]) -> None:
        """Compares the parameters and the settings of all ranks. Errors: MismatchError."""
        gradients = [described(slot) for slot in slots]
        wire = getattr(self._reduction.compression, "__name__", self._reduction.compression)
        shape = (f"{bucket_plan.contents(gradients)}, sharded in stage {self._stage}, in buckets of "
                 f"{self._bucket_bytes} bytes, {wire}")
        digest = hashlib.sha256("\n".join(slot.name for slot in slots).encode()).hexdigest()[:12]
        seen = torch.zeros(1, dtype=torch.int64)
        operations.run("all_reduce", f"sharded.agree.{digest}", process_set=self._reduction.process_set,
                       buffers=[(seen.data_ptr(), seen.data_ptr(), 1)], type="int64", op=ReduceOp.SUM, shape=shape,
                       keep=seen)

    def _optimizer_of(self, bucket: ShardBucket) -> Optional[torch.optim.Optimizer]:
        """An optimizer of the wrapped class for this rank's pieces of the bucket; None if it has none."""
        pieces: Dict[int, List[torch.Tensor]] = {}
        for slot in bucket.slots:
            if slot.piece is not None:
                pieces.setdefault(slot.group, []).append(slot.piece)
        if not pieces:
            return None
        inner: Any = object.__new__(type(self._template))
        inner.__dict__.update((name, OrderedDict() if name.startswith("_optimizer_") else value)
                              for name, value in vars(self._template).items() if name != "step")
        inner.state = defaultdict(dict)
        inner.param_groups = [{"params": params, "of_group": group} for group, params in pieces.items()]
        return inner  # type: ignore[no-any-return]

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """As in torch.optim.Optimizer. All ranks call it, with the same parameters."""
        super().add_param_group(param_group)
        if not self._is_built:
            return
        number = len(self.param_groups) - 1
        for place, parameter in enumerate(self.param_groups[number]["params"]):
            self._names.setdefault(id(parameter), arguments.name_of_unnamed(number, place))
        self._add([number])

    # --- Training ---

    def _ready(self, slot: Slot) -> None:
        with self._lock:
            slot.passes -= 1
            if slot.passes < 0:
                raise AssertionError(
                    f"the gradient of {slot.name!r} was computed more than backward_passes_per_step = {self._passes} "
                    f"times before optimizer.step(): raise backward_passes_per_step to accumulate gradients")
            if slot.passes > 0:
                return
            slot.bucket.missing -= 1
            if slot.bucket.missing == 0:
                self._limit_memory()
                slot.bucket.launch()

    def _limit_memory(self) -> None:
        """Waits until few buckets' gradients are on their way, so that another needs no new memory. Ranks that compute
        their gradients in different orders would wait for each other: then the limit is given up."""
        while self._is_limited:
            held = [bucket for bucket in self._buckets if bucket.holds_memory]
            if len(held) < _MOST_ON_THEIR_WAY:
                return
            self._is_limited = held[0].finish_within(_PATIENCE_MS)

    def synchronize(self) -> None:
        """Waits until this rank's part of the gradients is reduced. step() does it, too."""
        self._launch()
        for bucket in self._buckets:
            bucket.finish()

    def _launch(self) -> None:
        with self._lock:
            for bucket in self._buckets:
                if not bucket.is_launched:
                    bucket.launch()

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:  # type: ignore[override]
        """The optimizer's step on this rank's part, and the exchange of the updated parameters. A closure is called
        once, before the step.

        Errors: HorovodInternalError if a rank is lost; parameters may then be partly updated, and training continues
        from a checkpoint."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        try:
            if not self._is_stepping:
                self._launch()
                self._is_stepping = True
            for bucket in self._buckets:
                if not bucket.is_launched or bucket.is_gathering:
                    continue  # Ctrl-C has interrupted step() after this bucket, and step() was called again
                bucket.finish()
                if bucket.optimizer is not None:
                    self._step_of(bucket.optimizer)
                bucket.begin_gather()
            for bucket in self._buckets:
                if bucket.is_gathering:
                    bucket.end_gather()
        except HorovodInternalError:
            # All operations in flight fail in a moment. Until then their names are in use.
            for bucket in self._buckets:
                bucket.settle()
            self._reset()
            raise
        except Exception:
            self._reset()
            raise
        self._is_stepping = False
        self._begin_pass()
        return loss

    def _step_of(self, inner: Any) -> None:
        for group in inner.param_groups:
            settings = self.param_groups[group["of_group"]]
            group.update((name, value) for name, value in settings.items() if name != "params")
        step = type(inner).step
        # PyTorch wraps step() of an optimizer's class to run hooks, which this optimizer's own step() has run already.
        (step.__wrapped__ if getattr(step, "hooked", False) else step)(inner)

    def _begin_pass(self) -> None:
        for slot in self._slots:
            slot.passes = self._passes

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As in torch.optim.Optimizer. Errors: AssertionError while gradients are being reduced."""
        if any(bucket.is_launched for bucket in self._buckets):
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() and before optimizer.step(): "
                                 "gradients are still being reduced")
        for slot in self._slots:
            gradient = slot.parameter.grad
            if gradient is None:
                continue
            if gradient is slot.gradient or not set_to_none:
                # Autograd then adds to the bucket's own memory, and no other memory is needed.
                gradient.requires_grad_(False).zero_()
            else:
                slot.parameter.grad = None

    def clip_grad_norm_(self, max_norm: float) -> float:
        """Scales the gradients so that the 2-norm of all gradients together is at most `max_norm`, and returns the norm
        before. Called by all ranks, between the backward pass and step()."""
        self.synchronize()
        with torch.no_grad():
            own = torch.zeros(1, dtype=torch.float64)
            names = hashlib.sha256("\n".join(slot.name for slot in self._slots).encode()).hexdigest()[:12]
            for slot in self._slots:
                if slot.piece is not None and slot.piece.grad is not None:
                    own += slot.piece.grad.double().pow(2).sum().cpu()
            operations.run("all_reduce", f"sharded.norm.{names}",
                           process_set=self._reduction.process_set, buffers=[(own.data_ptr(), own.data_ptr(), 1)],
                           type="float64", op=ReduceOp.SUM, keep=own)
            norm = float(own.sqrt())
            factor = max_norm / (norm + 1e-6)
            if factor < 1.0:
                for slot in self._slots:
                    if slot.piece is not None and slot.piece.grad is not None:
                        slot.piece.grad.mul_(factor)
        return norm

    def _reset(self) -> None:
        """Returns to the state before a backward pass. Operations in progress go on, with their memory."""
        with self._lock:
            for bucket in self._buckets:
                bucket.reset()
            self._is_stepping = False
            self._begin_pass()

    # --- State ---

    def shard(self) -> sharded_state.Shard:
        """This rank's part of the state."""
        process_set = self._reduction.process_set
        parts = {slot.name: self._part_of(slot) for slot in self._slots if slot.piece is not None}
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [self._names[id(parameter)] for parameter in group["params"]]}
                  for group in self.param_groups]
        return sharded_state.Shard(process_set.registered_rank(), len(process_set.registered_ranks()), groups, parts)

    def _part_of(self, slot: Slot) -> sharded_state.Part:
        inner = slot.bucket.optimizer
        return sharded_state.Part(slot.begin, slot.length, tuple(slot.parameter.shape),
                                  tuple(slot.parameter.stride()), dict(inner.state.get(slot.piece, {})))

    def state_dict(self) -> Dict[str, Any]:  # type: ignore[override]
        """This rank's part of the state, without communication. save_sharded() writes the parts of all ranks to files,
        and full_state_dict() brings them together."""
        return self.shard().to_dict()

    def full_state_dict(self, root_rank: int = 0) -> Optional[Dict[str, Any]]:
        """On the root, the state_dict() of the wrapped optimizer, as if it had trained alone; None on the other ranks.
        Called by all ranks. The root needs memory for the whole state."""
        shards = sharded_state.gather(self.shard(), root_rank, self._reduction.process_set)
        if shards is None:
            return None
        return sharded_state.whole(shards, [self._names[id(parameter)] for group in self.param_groups
                                            for parameter in group["params"]])

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Accepts a state_dict() of the same rank of the same number of ranks, and a state_dict() of the wrapped
        optimizer or full_state_dict(), which every rank passes whole. load_sharded() reads the files of any number of
        ranks. Errors: ValueError, and nothing is changed."""
        if sharded_state.is_shard(state_dict):
            self.load_shards([sharded_state.Shard.from_dict(state_dict)])
            return
        names = [self._names[id(parameter)] for group in self.param_groups for parameter in group["params"]]
        parameters = {slot.name: slot.parameter for slot in self._slots}
        self.load_shards([sharded_state.of_whole(state_dict, names, parameters)])

    def load_shards(self, shards: Iterable[sharded_state.Shard]) -> None:
        """Takes this rank's pieces out of the shards, which may come from any number of ranks. Errors: ValueError for
        another model, and if parts are missing; nothing is changed then."""
        self.use(self.taken_from(shards))

    def taken_from(self, shards: Iterable[sharded_state.Shard]) -> sharded_state.Taken:
        """The first half of load_shards(), which changes nothing. Errors: ValueError."""
        taker = sharded_state.Taker({slot.name: sharded_state.Part(
            slot.begin, slot.length, tuple(slot.parameter.shape), tuple(slot.parameter.stride()), {})
            for slot in self._slots if slot.piece is not None}, {slot.name for slot in self._slots})
        for shard in shards:
            taker.take(shard)
        return taker.finish([len(group["params"]) for group in self.param_groups])

    def use(self, taken: sharded_state.Taken) -> None:
        """The second half of load_shards()."""
        for slot in self._slots:
            if slot.piece is None:
                continue
            state = slot.bucket.optimizer.state
            state.pop(slot.piece, None)
            if values := taken.values[slot.name]:
                state[slot.piece] = {key: _moved(value, slot.piece) for key, value in values.items()}
        for own, given in zip(self.param_groups, taken.groups):
            own.update((name, value) for name, value in given.items() if name != "params")
        self._reset()

    @property
    def process_set(self) -> ProcessSet:
        return self._reduction.process_set

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a ShardedOptimizer cannot be copied or pickled: its state is divided among the ranks; use "
                        "save_sharded() or full_state_dict()")


def _moved(value: Any, piece: torch.Tensor) -> Any:
    """As in torch.optim: a state of the piece's shape is on its device; a step count stays where it is."""
    if isinstance(value, torch.Tensor) and value.numel() == piece.numel() and value.dim() > 0:
        return value.to(piece.device)
    return value


def _hook(own: "weakref.ref[ShardedOptimizer]", slot: Slot) -> Callable[..., None]:
    def ready(*_: object) -> None:
        optimizer = own()
        if optimizer is not None:
            optimizer._ready(slot)

    return ready


def _check(optimizer: torch.optim.Optimizer, op: ReduceOp, stage: int, compression: Any, passes: int,
           bucket_bytes: int, elementwise: bool, process_set: ProcessSet) -> None:
    """Errors: ValueError with all faults."""
    faults = []
    name = type(optimizer).__name__
    is_own = type(optimizer).__module__.startswith("torch.optim.")
    if isinstance(optimizer, ShardedOptimizer) or is_distributed(optimizer):
        faults.append("the optimizer is distributed already: pass the optimizer that it was made of")
    elif is_own and name not in _BY_ELEMENT:
        faults.append(f"{name} computes with whole tensors or sparse ones, which cannot be divided; use one of "
                      f"{', '.join(_BY_ELEMENT)}")
    elif not is_own and not elementwise:
        faults.append(f"{name} is not an optimizer of PyTorch: pass elementwise=True if it treats each element of a "
                      f"parameter by itself, without norms or other values of a whole tensor")
    if stage not in (1, 2):
        faults.append(f"stage is {stage!r}: it must be 1 or 2")
    if op not in (ReduceOp.AVERAGE, ReduceOp.SUM):
        faults.append(f"op must be Average or Sum, not {op.name.capitalize()}")
    if compression not in (Compression.none, Compression.fp16, Compression.bf16):
        faults.append("compression must be Compression.none, fp16 or bf16; the others need whole gradients")
    if passes <= 0:
        faults.append(f"backward_passes_per_step is {passes}: it must be > 0")
    if bucket_bytes <= 0:
        faults.append(f"bucket_bytes is {bucket_bytes}: it must be > 0")
    if faults:
        raise ValueError("; ".join(faults))
    process_set.registered_rank()  # raises before init(), and for a set without this rank
