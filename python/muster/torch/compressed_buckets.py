"""Buckets of gradients whose reduction is compressed with error feedback: int8 and PowerSGD.

Such a reduction has two exchanges. The first begins when the bucket's last gradient is ready, and proceed() goes on
with the second when the first is done: later gradients call it during the backward pass, and step() at its end.

In step t, a rank with gradient g sends C(g + e) and keeps the error e' = g + e - C(g + e) for step t + 1. So the sum of
all that is ever sent differs from the sum of all gradients by the last error only.

An error that is not finite is dropped: an infinite gradient spoils one step, as it does without compression, and not
every later step.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from ..common import operations
from ..common.exceptions import HorovodInternalError
from ..common.operations import Pending
from ..common.reduce_ops import ReduceOp
from . import tensors
from .buckets import Reduction, Slot

#: The elements that share a scale. The scales add 0.8 % to the bytes.
_CHUNK = 512


class FeedbackBucket:
    """The common part: gathers gradients into one flat float32 tensor on their device, and gives the result back."""

    def __init__(self, slots: Sequence[Slot], name: str, shape: str, reduction: Reduction) -> None:
        self.slots = list(slots)
        self.missing = len(self.slots)
        #: Equal on all ranks, and for the same parameters in every run.
        self.name = name
        self._shape = shape
        self._process_set = reduction.process_set
        self._ranks = len(reduction.process_set.registered_ranks())
        self._rank = reduction.process_set.registered_rank()
        #: The compressions compute averages.
        self._factor = float(self._ranks) if reduction.op == ReduceOp.SUM else 1.0
        self._device = slots[0].parameter.device
        self._pending: Optional[Pending] = None
        self._phase = 0  # 0: not launched, 1 and 2: that exchange is under way, 3: done
        for slot in self.slots:
            slot.bucket = self

    @property
    def is_launched(self) -> bool:
        return self._phase > 0

    def wire_bytes(self) -> int:
        """The bytes that this rank sends in a step."""
        raise NotImplementedError

    def kept(self) -> Dict[str, torch.Tensor]:
        """The tensors that this rank keeps from step to step, by name."""
        raise NotImplementedError

    def restore(self, kept: Mapping[str, torch.Tensor]) -> None:
        """Sets what kept() has returned in another run. Errors: ValueError."""
        own = self.kept()
        shapes = {key: value.shape for key, value in own.items()}
        if {key: value.shape for key, value in kept.items()} != shapes:
            raise ValueError(f"the errors of bucket {self.name!r} have other shapes than its gradients")
        for key, value in own.items():
            value.copy_(kept[key])

    def launch(self) -> None:
        with torch.no_grad():
            self._pending = self._begin()
        self._phase = 1

    def proceed(self, wait: bool = True) -> None:
        """Begins the second exchange if the first is done; with `wait`, waits for the first. Errors: those of
        Pending.wait()."""
        if self._phase != 1 or not (wait or self._pending is None or self._pending.done()):
            return
        self._wait()
        with torch.no_grad():
            self._pending = self._go_on()
        self._phase = 2

    def finish(self) -> None:
        """Waits; then every `p.grad` is the reduced gradient."""
        self.proceed()
        if self._phase == 2:
            self._wait()
            self._phase = 3
        with torch.no_grad():
            self._give(self._end())
        self._phase = 0
        self.missing = len(self.slots)

    def forget(self) -> None:
        """Drops the result. The other ranks may need it, so this rank completes the exchanges, unless they have failed:
        elastic training loads its last state before it leaves a world that has lost a rank."""
        if self._pending is not None:
            with contextlib.suppress(HorovodInternalError):
                self.proceed()
                self._wait()
        self._pending = None
        self._phase = 0
        self.missing = len(self.slots)

    def abandon(self) -> None:
        self._pending = None
        self._phase = 0
        for slot in self.slots:
            slot.bucket = None

    def _begin(self) -> Pending:
        raise NotImplementedError

    def _go_on(self) -> Pending:
        raise NotImplementedError

    def _end(self) -> List[torch.Tensor]:
        """The average of each gradient, in any shape with its elements."""
        raise NotImplementedError

    def _wait(self) -> None:
        if self._pending is None:
            return
        try:
            self._pending.wait()
        except Exception:
            self._pending = None
            raise
        # Not after Ctrl-C, which interrupts the wait: it is then repeated.
        self._pending = None

    def _give(self, averages: Sequence[torch.Tensor]) -> None:
        for slot, average in zip(self.slots, averages):
            parameter = slot.parameter
            whole = average.view(parameter.shape)
            if self._factor != 1.0:
                whole = whole * self._factor
            if slot.dense_dimensions:
                parameter.grad = whole.to(parameter.dtype).to_sparse(slot.dense_dimensions)
            elif parameter.grad is None or parameter.grad.is_sparse:
                parameter.grad = torch.empty_like(parameter).copy_(whole)
            else:
                parameter.grad.copy_(whole)

    def _submit(self, kind: str, part: str, source: torch.Tensor, target: torch.Tensor, **arguments: Any) -> Pending:
        return operations.submit(
            kind, f"{self.name}.{part}", process_set=self._process_set,
            buffers=[(source.data_ptr(), target.data_ptr(), source.numel())], shape=self._shape,
            keep=(source, target), **arguments)


class Int8Bucket(FeedbackBucket):
    """Each rank sends every other rank its part of the bucket in 8 bits, adds what it gets for its own part in float32,
    and sends the average to all ranks in 8 bits. Both conversions have errors that are fed back."""

    def __init__(self, slots: Sequence[Slot], name: str, shape: str, reduction: Reduction) -> None:
        super().__init__(slots, name, shape, reduction)
        lengths = [slot.parameter.numel() for slot in slots]
        chunks = max(math.ceil(sum(lengths) / _CHUNK / self._ranks), 1)  # of each rank's part
        self._part = chunks * _CHUNK
        self._lengths = lengths + [self._ranks * self._part - sum(lengths)]
        self._values = torch.zeros(self._ranks * self._part, device=self._device)
        #: What this rank has not sent yet.
        self.error = torch.zeros_like(self._values)
        #: What this rank has not sent yet of the average of its own part.
        self.error_of_average = torch.zeros(self._part, device=self._device)
        #: For each rank its part: 8 bits for each element, and then the scales.
        self._bytes = self._part + 4 * chunks
        self._sent = torch.zeros(self._ranks * self._bytes, dtype=torch.uint8)
        self._received = torch.zeros_like(self._sent)

    def wire_bytes(self) -> int:
        return 2 * (self._ranks - 1) * self._bytes

    def kept(self) -> Dict[str, torch.Tensor]:
        return {"error": self.error, "error_of_average": self.error_of_average}

    def _begin(self) -> Pending:
        *places, padding = self._values.split(self._lengths)
        padding.zero_()
        for slot, place in zip(self.slots, places):
            gradient = slot.parameter.grad
            if gradient is None:
                place.zero_()
            else:
                place.view(slot.parameter.shape).copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        self._values.add_(self.error)
        self._pack(self._values, self.error, self._sent)
        return self._submit("all_to_all", "int8", self._sent, self._received, counts=[self._bytes] * self._ranks)

    def _go_on(self) -> Pending:
        average = torch.zeros(self._part, device=self._device)
        for part in self._received.view(self._ranks, -1):
            average += self._unpacked(part)
        average.div_(self._ranks).add_(self.error_of_average)
        own = self._sent[:self._bytes]
        self._pack(average, self.error_of_average, own)
        return self._submit("all_gather", "average", own, self._received, counts=[self._bytes] * self._ranks)

    def _end(self) -> List[torch.Tensor]:
        whole = self._values
        for part, packed in zip(whole.view(self._ranks, -1), self._received.view(self._ranks, -1)):
            part.copy_(self._unpacked(packed))
        return list(whole.split(self._lengths))[:-1]

    def _pack(self, values: torch.Tensor, error: torch.Tensor, packed: torch.Tensor) -> None:
        """Writes the values of one or more parts into `packed`, and what that loses into `error`."""
        chunks = values.view(-1, _CHUNK)
        scales = chunks.abs().amax(dim=1, keepdim=True).div_(127)
        # A chunk of zeros has the scale 0, and a NaN or an infinity makes its chunk NaN.
        rounded = (chunks / scales.where(scales > 0, torch.ones_like(scales))).round_()
        restored = rounded * scales
        torch.sub(values, restored.view(-1), out=error)
        error.nan_to_num_(0.0, 0.0, 0.0)
        parts = packed.view(-1, self._bytes)
        elements = rounded.nan_to_num_(0.0).clamp_(-127, 127).to(torch.int8).view(len(parts), -1)
        parts[:, :self._part].copy_(elements.view(torch.uint8))
        parts[:, self._part:].copy_(scales.reshape(len(parts), -1).cpu().view(torch.uint8))

    def _unpacked(self, packed: torch.Tensor) -> torch.Tensor:
        elements = packed[:self._part].view(torch.int8).to(self._device, torch.float32).view(-1, _CHUNK)
        scales = packed[self._part:].clone().view(torch.float32).to(self._device)
        return (elements * scales.view(-1, 1)).view(-1)


class _Matrix:
    """A gradient of a x b, its error, and its factors p (a x rank) and q (b x rank) in the bucket's flat tensors."""

    def __init__(self, place: int, rows: int, columns: int, rank: int) -> None:
        self.place = place
        self.rows = rows
        self.columns = columns
        self.rank = rank
        self.values: Any = None
        self.error: Any = None
        self.p: Any = None
        self.q: Any = None
        self.random: Any = None

    def prepare_q(self) -> None:
        """Orthogonalizes q. Draws columns anew that are 0, as after a gradient of lower rank, or not finite: they would
        stay so. All ranks have the same q, and draw the same."""
        size = self.q.abs().amax(dim=0)
        is_usable = (size > 0) & torch.isfinite(size)
        if not bool(is_usable.all()):
            drawn = torch.randn(self.q.shape, generator=self.random).to(self.q.device)
            self.q.copy_(torch.where(is_usable, self.q, drawn))
        _orthogonalize(self.q)


class PowerSGDBucket(FeedbackBucket):
    """Algorithms 1 and 2 of Vogels et al.: one step of the power method with the q of the step before. The first
    exchange averages all p, and the gradients that are sent unchanged; the second averages all q."""

    def __init__(self, slots: Sequence[Slot], name: str, shape: str, reduction: Reduction) -> None:
        super().__init__(slots, name, shape, reduction)
        self._matrices: List[_Matrix] = []
        self._unchanged: List[Tuple[int, torch.Tensor]] = []  # place of the slot, and its part of the first exchange
        divided = [_matrix_of(slot, place, reduction.compression.rank) for place, slot in enumerate(self.slots)]
        lengths = [slot.parameter.numel() if matrix is None else matrix.rows * matrix.rank
                   for slot, matrix in zip(self.slots, divided)]
        self._first = torch.zeros(sum(lengths), device=self._device)
        for place, (matrix, part) in enumerate(zip(divided, self._first.split(lengths))):
            if matrix is None:
                self._unchanged.append((place, part))
            else:
                matrix.p = part.view(matrix.rows, matrix.rank)
                self._matrices.append(matrix)
        lengths = [matrix.columns * matrix.rank for matrix in self._matrices]
        self._second = torch.zeros(sum(lengths), device=self._device)
        for matrix, part in zip(self._matrices, self._second.split(lengths)):
            matrix.q = part.view(matrix.columns, matrix.rank)
            # Equal on all ranks.
            seed = int.from_bytes(hashlib.sha256(self.slots[matrix.place].name.encode()).digest()[:7], "big")
            matrix.random = torch.Generator().manual_seed(seed)
            matrix.error = torch.zeros(matrix.rows, matrix.columns, device=self._device)
        self._host = [tensors.host_copy(self._first).clone(), tensors.host_copy(self._second).clone()] \
            if not tensors.is_on_host(self._first) else [self._first, self._second]

    def wire_bytes(self) -> int:
        """With an algorithm that sends the least bytes."""
        return 2 * (self._ranks - 1) * 4 * (self._first.numel() + self._second.numel()) // self._ranks

    def kept(self) -> Dict[str, torch.Tensor]:
        found: Dict[str, torch.Tensor] = {}
        for matrix in self._matrices:
            name = self.slots[matrix.place].name
            found[f"{name}.error"], found[f"{name}.q"] = matrix.error, matrix.q
            found[f"{name}.random"] = matrix.random.get_state()
        return found

    def restore(self, kept: Mapping[str, torch.Tensor]) -> None:
        super().restore(kept)
        for matrix in self._matrices:
            matrix.random.set_state(kept[f"{self.slots[matrix.place].name}.random"])

    def errors(self) -> List[Tuple[Slot, torch.Tensor]]:
        return [(self.slots[matrix.place], matrix.error) for matrix in self._matrices]

    def _begin(self) -> Pending:
        for place, part in self._unchanged:
            gradient = self._gradient(place)
            if gradient is None:
                part.zero_()
            else:
                part.view(gradient.shape).copy_(gradient)
        for matrix in self._matrices:
            gradient = self._gradient(matrix.place)
            if gradient is None:
                matrix.values = matrix.error.clone()
            else:
                matrix.values = matrix.error + gradient.reshape(matrix.rows, matrix.columns)
            matrix.prepare_q()
            torch.matmul(matrix.values, matrix.q, out=matrix.p)
        return self._average("p", self._first, self._host[0])

    def _gradient(self, place: int) -> Optional[torch.Tensor]:
        gradient = self.slots[place].parameter.grad
        return gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient

    def _average(self, part: str, values: torch.Tensor, host: torch.Tensor) -> Pending:
        if host is not values:
            host.copy_(values)
        return self._submit("all_reduce", part, host, host, type="float32", op=ReduceOp.AVERAGE)

    def _go_on(self) -> Pending:
        if self._host[0] is not self._first:
            self._first.copy_(self._host[0])
        for matrix in self._matrices:
            _orthogonalize(matrix.p)
            torch.matmul(matrix.values.t(), matrix.p, out=matrix.q)
        return self._average("q", self._second, self._host[1])

    def _end(self) -> List[torch.Tensor]:
        if self._host[1] is not self._second:
            self._second.copy_(self._host[1])
        averages: List[Any] = [None] * len(self.slots)
        for place, part in self._unchanged:
            averages[place] = part
        for matrix in self._matrices:
            averages[matrix.place] = sent = matrix.p @ matrix.q.t()
            torch.sub(matrix.values, sent, out=matrix.error)
            matrix.error.nan_to_num_(0.0, 0.0, 0.0)
            matrix.values = None
        return averages


def _matrix_of(slot: Slot, place: int, rank: int) -> Optional[_Matrix]:
    """None if the factors would not be smaller than the gradient."""
    parameter = slot.parameter
    if parameter.dim() < 2 or parameter.numel() == 0:
        return None
    rows = parameter.shape[0]
    columns = parameter.numel() // rows
    rank = min(rank, rows, columns)
    return _Matrix(place, rows, columns, rank) if rank * (rows + columns) < rows * columns else None


def _orthogonalize(matrix: torch.Tensor) -> None:
    """Gram-Schmidt, in place, by columns. A column that depends on the columns before it becomes 0: what rounding has
    left of it would point in their direction."""
    limits = matrix.norm(dim=0).mul_(1e-5)
    for column in range(matrix.shape[1]):
        current = matrix[:, column:column + 1]
        length = current.norm()
        current.mul_(torch.where(length <= limits[column], torch.zeros_like(length), 1.0 / length))
        if column + 1 < matrix.shape[1]:
            rest = matrix[:, column + 1:]
            rest.sub_(current @ (current.t() @ rest))
