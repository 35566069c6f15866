"""The operations of a process group on tensors in the memory of the host.

Each operation is handed over under a number that counts the operations of the group. Ranks that call different
operations therefore meet under one number, and the error on each rank names both operations.

Tensors need not be contiguous: others are copied, and results are copied back. A collective waits for operations in
flight that write memory which it uses, or use memory which it writes, so that two reductions of one tensor follow each
other. This is the memory of the caller's tensors, whether or not they are copied. The memory of an input that was
copied is free once the operation has begun.

The methods have the names and the arguments of torch.distributed.ProcessGroup, of all releases from 1.13 on.
"""

from __future__ import annotations

from ctypes import c_int, c_uint64, pointer
import time
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from ..._native import abi
from .arguments import (TYPES, AsyncOptions, Memory, ReduceOp, Span, as_bytes, bytes_of, check_tensor, do_conflict,
                        fill_from, increment_version, is_plain, is_sync, mark_written, number_type, only_tensor, op_of,
                        rank_of, span_of)
from .errors import GroupError
from .links import MASK, NAMES, SLICE_MS, Link, Slot
from .works import Done, Several, Work, enter_event, is_profiled

_STRIDED = torch.strided
_BITWISE = (abi.BIT_AND, abi.BIT_OR, abi.BIT_XOR)
_FLOATS = (abi.FLOAT16, abi.BFLOAT16, abi.FLOAT32, abi.FLOAT64)

#: An operation examines the pending operations if there are more than this number, which releases those that have ended
#: without a thread that waited for them.
_MOST_PENDING = 64

#: Tags of messages that the library itself sends have this bit.
_OWN_TAGS = 1 << 63

_DONE = Done()


class Collectives:
    """A base of the classes that PyTorch accepts as a process group. `_link` is the session of the group."""

    _link: Link
    #: The name of the backend.
    _name: str
    _collected: Optional[List[Any]] = None

    # How operations are handed over.

    def _begin(self, kind: int, what: str, start: int, out: int, count: int, size: int, keep: object,
               result: Sequence[torch.Tensor], sync: bool, *, type: int = 0, op: int = 0, root: int = 0,
               counts: Optional[Sequence[int]] = None, received: Optional[Sequence[int]] = None,
               finish: Optional[Callable[[], object]] = None, limit: Optional[timedelta] = None,
               shown: Sequence[torch.Tensor] = (), tensors: Any = None, out_size: Optional[int] = None,
               writes: bool = True, used: Sequence[Span] = ()) -> Any:
        """Hands an operation over; if `sync`, waits for it. `start` and `out` are addresses, `size` and `out_size`
        (default: `size`) the bytes that the operation uses from there, and `writes` is whether it writes to `out`.
        `used`: other memory of the caller that it uses. `shown`: what a profiler shows. `tensors`: an array of
        several."""
        link = self._link
        if link.closed is not None:
            link.refuse()
        slot = link.slots.pop() if link.slots else Slot()
        operation = slot.operation
        operation.kind = kind
        operation.type = type
        operation.op = op
        operation.root = root
        tensor = slot.tensor
        tensor.in_ = start
        tensor.out = out
        tensor.count = count
        if counts is None:
            operation.counts = None
        else:
            slot.arrays = [(c_uint64 * len(counts))(*counts)]
            operation.counts = slot.arrays[0]
        if received is None:
            operation.received = None
        else:
            slot.arrays.append((c_uint64 * len(received))(*received))
            operation.received = slot.arrays[1]
        if tensors is not None:
            operation.tensors = tensors
            operation.tensor_count = len(tensors)
        spans: Sequence[Span]
        if start == out and out_size is None:
            spans = ((start, start + size, writes, 0, size), *used)
        else:
            if out_size is None:
                out_size = size
            spans = ((start, start + size, False, 0, size), (out, out + out_size, writes, 0, out_size), *used)
        if link.pending:
            self._order(spans, what)
        turn = next(link.sequence) & MASK
        earlier = link.turns[turn]
        if earlier is not None:
            earlier.join()
        operation.name = NAMES[turn]
        event = None
        if is_profiled():
            event = enter_event(f"{self._name}:{what}", *shown)
        runs = sync and event is None
        work: Optional[Work] = None
        slot.ticket.value = 0
        try:
            if runs:
                code = link.run(link.pointer, slot.reference, SLICE_MS, slot.ticket_reference, None)
            else:
                code = link.begin(link.pointer, slot.reference, slot.ticket_reference)
            if code == (abi.PENDING if runs else abi.OK):
                work = Work(link, slot.ticket.value, what, keep, result, finish, spans, limit=limit, event=event,
                            turn=turn)
        except BaseException:
            # Ctrl-C may come after the library has taken the buffers and before an object owns them.
            if slot.ticket.value:
                Work(link, slot.ticket.value, what, keep, result, finish, spans, turn=turn)
            raise
        if work is None and code != abi.OK:
            link.raise_last(code, what)
        if tensors is not None:
            slot.one_tensor()
        link.slots.append(slot)
        if work is None:
            if finish is not None:
                finish()
            return _DONE
        if self._collected is not None:
            self._collected.append(work)
        if sync:
            work.wait()
        return work

    def _settle(self, what: str, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor] = ()) -> List[Span]:
        """Waits for operations in flight on the memory of these tensors. Returns the written memory, which stays in
        use. The caller copies the values that are read, or passes their addresses to _begin()."""
        used = [span_of(tensor, True) for tensor in written]
        if self._link.pending:
            self._order([*(span_of(tensor, False) for tensor in read), *used], what)
        return used

    def _order(self, spans: Sequence[Span], what: str) -> None:
        """Waits for operations in flight with which this one would conflict."""
        works = list(self._link.pending.values())
        for work in works:
            if do_conflict(work.spans, spans):
                try:
                    work.join()
                except GroupError as error:
                    raise GroupError(f"{what} cannot begin while an operation in flight uses its memory: {error}",
                                     rank=error.rank, host=error.host) from error
        self._release(works)

    @staticmethod
    def _release(works: Sequence[Work]) -> None:
        if len(works) > _MOST_PENDING:
            for work in works:
                work.is_completed()

    def _refuse_used(self, spans: Sequence[Span], what: str) -> None:
        """A message does not wait for an operation in flight on its memory, whose other ranks may wait for the message.

        Errors: ValueError naming the operation.
        """
        works = list(self._link.pending.values())
        for work in works:
            if do_conflict(work.spans, spans) and not work.is_completed():
                raise ValueError(f"{what}: its memory is in use by {work.what!r}, which is in flight; wait for that "
                                 f"operation first")
        self._release(works)

    def _message(self, kind: int, tensor: torch.Tensor, other: int, tag: int, what: str, sender: Any = None,
                 finish: Optional[Callable[[], object]] = None, keep: object = None,
                 spans: Sequence[Span] = ()) -> Work:
        """`spans`: the memory of the caller that the library uses."""
        link = self._link
        if link.closed is not None:
            link.refuse()
        slot = link.slots.pop() if link.slots else Slot()
        operation = slot.operation
        operation.kind = kind
        operation.root = other
        operation.tag = tag
        slot.tensor.in_ = slot.tensor.out = tensor.data_ptr()
        slot.tensor.count = bytes_of(tensor)
        operation.sender = None if sender is None else pointer(sender)
        event = None
        if is_profiled():
            event = enter_event(f"{self._name}:{what.split()[0]}", tensor)
        kept = (tensor, keep, sender)
        slot.ticket.value = 0
        try:
            code = link.begin(link.pointer, slot.reference, slot.ticket_reference)
            if code != abi.OK:
                link.raise_last(code, what)
            work = Work(link, slot.ticket.value, what, kept, (tensor,), finish, spans, sender=sender, event=event)
        except BaseException:
            # As in _begin().
            if slot.ticket.value:
                Work(link, slot.ticket.value, what, kept, (tensor,), finish, spans, sender=sender)
            raise
        operation.sender = None
        link.slots.append(slot)
        if self._collected is not None:
            self._collected.append(work)
        return work

    # Reductions.

    def allreduce(self, tensors: Any, opts: Any = ReduceOp.SUM, timeout: Any = None) -> Any:
        tensor = only_tensor(tensors, "all_reduce")
        if tensor.layout is not _STRIDED:
            return self.allreduce_sparse([tensor], opts)
        return self._reduce_in_place(tensor, "all_reduce", abi.OPERATION_ALL_REDUCE, op_of(opts), is_sync(opts))

    def _reduce_in_place(self, tensor: torch.Tensor, what: str, kind: int, op: int, sync: bool, root: int = 0) -> Any:
        if not tensor.is_cpu or tensor.is_quantized:
            check_tensor(tensor, what)
        result = (tensor,)
        writes = kind != abi.OPERATION_REDUCE or root == self._link.rank
        used: Sequence[Span] = ()
        finish: Optional[Callable[[], object]] = None
        if is_plain(tensor):
            values, type = self._numbers(tensor, op, what)
            if not tensor.is_inference():
                increment_version(tensor)
        else:
            used = self._settle(what, (), result) if writes else self._settle(what, result)
            memory = Memory(tensor, is_read=True)
            values, type = self._numbers(memory.flat, op, what)
            if writes:
                finish = memory.bring_back
        address = values.data_ptr()
        count = values.numel()
        return self._begin(kind, what, address, address, count, count * values.element_size(), (tensor, values), result,
                           sync, type=type, op=op, root=root, finish=finish, shown=result, writes=writes,
                           used=used)

    @staticmethod
    def _numbers(tensor: torch.Tensor, op: int, what: str) -> Tuple[torch.Tensor, int]:
        """The tensor as numbers that the library reduces, and their type. A complex number is two numbers."""
        type = TYPES.get(tensor.dtype)
        if type is None:
            if not tensor.is_complex():
                raise ValueError(f"Invalid scalar type: {what} does not take {tensor.dtype}")
            if op not in (abi.SUM, abi.AVERAGE):
                raise ValueError(f"{what} does not support this operation on complex tensors")
            tensor = torch.view_as_real(tensor)
            type = number_type(tensor, what)
        if op in _BITWISE and type in _FLOATS:
            raise ValueError(f"Cannot use ReduceOp.BAND, BOR or BXOR with non-integral dtype {tensor.dtype}")
        return tensor, type

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = ReduceOp.SUM) -> Any:
        op = op_of(opts)
        for tensor in tensors:
            check_tensor(tensor, "all_reduce_coalesced")
        if len(tensors) > 1 and all(tensor.dtype == tensors[0].dtype and is_plain(tensor) for tensor in tensors):
            return self._reduce_together(list(tensors), op, is_sync(opts))
        works = [self._reduce_in_place(tensor, "all_reduce", abi.OPERATION_ALL_REDUCE, op, False) for tensor in tensors]
        return self._together(works, list(tensors), is_sync(opts))

    def _reduce_together(self, tensors: List[torch.Tensor], op: int, sync: bool) -> Any:
        """One operation of the library on plain tensors of one type."""
        numbers = [self._numbers(tensor, op, "all_reduce") for tensor in tensors]
        array = (abi.Tensor * len(tensors))()  # type: ignore[operator]
        for entry, (values, _), tensor in zip(array, numbers, tensors):
            entry.in_ = entry.out = values.data_ptr()
            entry.count = values.numel()
            mark_written(tensor)
        return self._begin(abi.OPERATION_ALL_REDUCE, "all_reduce", 0, 0, 0, 0, (tensors, numbers, array),
                           tuple(tensors), sync, type=numbers[0][1], op=op, shown=tensors, tensors=array,
                           used=[span_of(tensor, True) for tensor in tensors])

    def allreduce_sparse(self, tensors: Any, opts: Any = ReduceOp.SUM) -> Any:
        """The sum of sparse COO tensors, into the given tensor."""
        tensor = only_tensor(tensors, "all_reduce")
        if tensor.layout is not torch.sparse_coo:
            raise ValueError(f"all_reduce takes dense and sparse COO tensors, not {tensor.layout}")
        if op_of(opts) != abi.SUM:
            raise ValueError("all_reduce of sparse tensors supports ReduceOp.SUM only")
        mine = tensor.detach().coalesce()
        size = self._link.size
        counts = torch.empty(size, dtype=torch.int64)
        self._gather_flat(counts, torch.tensor([mine._nnz()]), True)
        lengths = [int(count) for count in counts]
        indices = mine._indices().t().contiguous()
        values = mine._values().contiguous()
        all_indices = torch.empty((sum(lengths), indices.shape[1]), dtype=torch.int64)
        all_values = torch.empty((sum(lengths), *values.shape[1:]), dtype=values.dtype)
        row = indices.shape[1] * 8
        self._gather_flat(all_indices, indices, True, [length * row for length in lengths])
        row = bytes_of(all_values) // max(1, sum(lengths))
        self._gather_flat(all_values, values, True, [length * row for length in lengths])
        total = torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.shape).coalesce()
        with torch.no_grad():
            tensor.copy_(total)
        return Done((tensor,))

    def reduce(self, tensors: Any, opts: Any = 0, op: Any = ReduceOp.SUM) -> Any:
        tensor = only_tensor(tensors, "reduce")
        check_tensor(tensor, "reduce")
        number = op_of(opts) if hasattr(opts, "reduceOp") else op_of(op)
        return self._reduce_in_place(tensor, "reduce", abi.OPERATION_REDUCE, number, is_sync(opts), rank_of(opts))

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = ReduceOp.SUM) -> Any:
        output = only_tensor(output_tensors, "reduce_scatter")
        parts = input_tensors[0] if input_tensors and not isinstance(input_tensors[0], torch.Tensor) else input_tensors
        self._check_list(parts, "reduce_scatter")
        for part in parts:
            check_tensor(part, "reduce_scatter")
        own = parts[self._link.rank]
        if own.numel() != output.numel() or own.dtype != output.dtype:
            raise ValueError(f"the output of reduce_scatter has {output.numel()} elements of {output.dtype}, but the "
                             f"input for this rank has {own.numel()} of {own.dtype}")
        self._settle("reduce_scatter", parts)
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        return self._scatter_sum(output, flat, [part.numel() for part in parts], opts)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = ReduceOp.SUM) -> Any:
        check_tensor(input, "reduce_scatter_tensor")
        if input.numel() != output.numel() * self._link.size:
            raise ValueError(f"input tensor must be the same size as output size times world size: the input of "
                             f"reduce_scatter_tensor has {input.numel()} elements, the output {output.numel()}, and "
                             f"there are {self._link.size} ranks")
        return self._scatter_sum(output, input, [output.numel()] * self._link.size, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor],
                                        opts: Any = ReduceOp.SUM) -> Any:
        works = [self.reduce_scatter_single(output, input, AsyncOptions(opts))
                 for output, input in zip(outputs, inputs)]
        return self._together(works, list(outputs), is_sync(opts))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _scatter_sum(self, output: torch.Tensor, flat: torch.Tensor, counts: Sequence[int], opts: Any) -> Any:
        check_tensor(output, "reduce_scatter")
        if output.dtype != flat.dtype:
            raise ValueError(f"reduce_scatter has an output of {output.dtype} and an input of {flat.dtype}")
        op = op_of(opts)
        used = self._settle_copied("reduce_scatter", flat, output)
        source, type = self._numbers(Memory(flat, is_read=True).flat, op, "reduce_scatter")
        into = Memory(output, is_read=False)
        target, _ = self._numbers(into.flat, op, "reduce_scatter")
        if flat.is_complex():
            counts = [2 * count for count in counts]
        mark_written(output)
        return self._begin(abi.OPERATION_REDUCE_SCATTER, "reduce_scatter", source.data_ptr(), target.data_ptr(),
                           source.numel(), bytes_of(source), (source, target, output), (output,), is_sync(opts),
                           type=type, op=op, counts=counts, finish=into.bring_back if into.is_copy else None,
                           shown=(flat,), out_size=bytes_of(target), used=used)

    def _settle_copied(self, what: str, input: torch.Tensor, output: torch.Tensor) -> Sequence[Span]:
        """_settle() for tensors of which at least one is not plain. The library uses the memory of the others itself,
        and _begin() has its addresses."""
        return () if is_plain(input) and is_plain(output) else self._settle(what, (input,), (output,))

    # Copies.

    def broadcast(self, tensors: Any, opts: Any = 0, timeout: Any = None) -> Any:
        tensor = only_tensor(tensors, "broadcast")
        check_tensor(tensor, "broadcast")
        root = rank_of(opts)
        writes = root != self._link.rank
        used: Sequence[Span] = ()
        if not is_plain(tensor):
            used = self._settle("broadcast", (), (tensor,)) if writes else self._settle("broadcast", (tensor,))
        memory = Memory(tensor, is_read=not writes)
        if writes:
            mark_written(tensor)
        address, size = memory.flat.data_ptr(), bytes_of(tensor)
        is_copied = memory.is_copy and writes
        return self._begin(abi.OPERATION_BROADCAST, "broadcast", address, address, size, size, (tensor, memory.flat),
                           (tensor,), is_sync(opts), root=root, finish=memory.bring_back if is_copied else None,
                           shown=(tensor,), writes=writes, used=used)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        input = only_tensor(input_tensors, "all_gather")
        outputs = output_tensors[0] if output_tensors and not isinstance(output_tensors[0], torch.Tensor) \
            else output_tensors
        self._check_list(outputs, "all_gather")
        for output in outputs:
            check_tensor(output, "all_gather")
        check_tensor(input, "all_gather")
        own = outputs[self._link.rank]
        if own.numel() != input.numel() or own.dtype != input.dtype:
            raise ValueError(f"the output of all_gather for this rank has {own.numel()} elements of {own.dtype}, but "
                             f"the input has {input.numel()} of {input.dtype}")
        sizes = [bytes_of(output) for output in outputs]
        return self._gather_list(abi.OPERATION_ALL_GATHER, "all_gather", outputs, input, sizes, is_sync(opts), 0)

    def _gather_list(self, kind: int, what: str, outputs: Sequence[torch.Tensor], input: torch.Tensor,
                     sizes: List[int], sync: bool, root: int, counts: Optional[List[int]] = None,
                     shown: Optional[Sequence[torch.Tensor]] = None) -> Any:
        """Gathers into one piece of memory, of which each tensor is filled. `sizes` are the bytes of the tensors,
        `counts` those of the ranks, if they are not the same."""
        used = self._settle(what, (input,), outputs)
        flat = torch.empty(sum(sizes), dtype=torch.uint8)
        source = Memory(input, is_read=True).flat
        for output in outputs:
            mark_written(output)

        size = bytes_of(source)
        return self._begin(kind, what, source.data_ptr(), flat.data_ptr(), size, size, (source, flat, outputs),
                           tuple(outputs), sync, counts=counts or sizes, root=root,
                           finish=fill_from(flat, outputs, sizes), shown=shown or (input,), out_size=bytes_of(flat),
                           used=used)

    def _gather_flat(self, output: torch.Tensor, input: torch.Tensor, sync: bool,
                     sizes: Optional[Sequence[int]] = None) -> Any:
        used = self._settle_copied("all_gather_into_tensor", input, output)
        into = Memory(output, is_read=False)
        source = Memory(input, is_read=True).flat
        size = bytes_of(source)
        mark_written(output)
        return self._begin(abi.OPERATION_ALL_GATHER, "all_gather_into_tensor", source.data_ptr(), into.flat.data_ptr(),
                           size, size, (source, into.flat, output), (output,), sync,
                           counts=[size] * self._link.size if sizes is None else sizes,
                           finish=into.bring_back if into.is_copy else None, shown=(input,),
                           out_size=bytes_of(output), used=used)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        check_tensor(output, "all_gather_into_tensor")
        check_tensor(input, "all_gather_into_tensor")
        if output.numel() != input.numel() * self._link.size or output.dtype != input.dtype:
            raise ValueError(f"output tensor size must be equal to world_size times input tensor size: the output of "
                             f"all_gather_into_tensor has {output.numel()} elements of {output.dtype}, the input "
                             f"{input.numel()} of {input.dtype}, and there are {self._link.size} ranks")
        return self._gather_flat(output, input, is_sync(opts))

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor],
                                    opts: Any = None) -> Any:
        works = [self.all_gather_single(output, input) for output, input in zip(outputs, inputs)]
        return self._together(works, list(outputs), is_sync(opts))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists: Any, input_list: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """`output_lists` has for each rank the outputs for all inputs."""
        self._check_list(output_lists, "all_gather_coalesced")
        for outputs in output_lists:
            if len(outputs) != len(input_list):
                raise ValueError(f"all_gather_coalesced has {len(input_list)} inputs, but {len(outputs)} outputs of a "
                                 f"rank")
            for output, input in zip(outputs, input_list):
                check_tensor(output, "all_gather_coalesced")
                if output.shape != input.shape or output.dtype != input.dtype:
                    raise ValueError(f"an output of all_gather_coalesced has the shape {tuple(output.shape)} of "
                                     f"{output.dtype}, its input {tuple(input.shape)} of {input.dtype}")
        self._settle("all_gather", input_list)
        source = as_bytes(input_list)
        outputs = [output for outputs in output_lists for output in outputs]
        return self._gather_list(abi.OPERATION_ALL_GATHER, "all_gather", outputs, source,
                                 [bytes_of(output) for output in outputs], is_sync(opts), 0,
                                 [bytes_of(source)] * self._link.size, input_list)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = 0, root: Any = None) -> Any:
        input = only_tensor(input_tensors, "gather")
        check_tensor(input, "gather")
        to = rank_of(opts)
        size = bytes_of(input)
        if to != self._link.rank:
            if output_tensors and output_tensors[0]:
                raise ValueError("gather takes outputs on the destination rank only")
            if not is_plain(input):
                self._settle("gather", (input,))
            source = Memory(input, is_read=True).flat
            return self._begin(abi.OPERATION_GATHER, "gather", source.data_ptr(), 0, size, size, source, (),
                               is_sync(opts), root=to, shown=(input,), out_size=0, writes=False)
        outputs = output_tensors[0] if output_tensors and not isinstance(output_tensors[0], torch.Tensor) \
            else output_tensors
        self._check_list(outputs, "gather")
        for output in outputs:
            check_tensor(output, "gather")
            if output.numel() != input.numel() or output.dtype != input.dtype:
                raise ValueError(f"an output of gather has {output.numel()} elements of {output.dtype}, but the input "
                                 f"has {input.numel()} of {input.dtype}")
        return self._gather_list(abi.OPERATION_GATHER, "gather", outputs, input, [size] * self._link.size,
                                 is_sync(opts), to)

    def gather_single(self, output: Any, input: torch.Tensor, opts: Any = 0) -> Any:
        outputs = [list(output.view(self._link.size, *input.shape).unbind(0))] \
            if rank_of(opts) == self._link.rank else []
        return self.gather(outputs, [input], opts)

    gather_into_tensor = gather_single

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = 0, root: Any = None) -> Any:
        output = only_tensor(output_tensors, "scatter")
        check_tensor(output, "scatter")
        source = rank_of(opts)
        used = self._settle("scatter", (), (output,))
        into = Memory(output, is_read=False)
        size = bytes_of(output)
        finish = into.bring_back if into.is_copy else None
        mark_written(output)
        if source != self._link.rank:
            if input_tensors and input_tensors[0]:
                raise ValueError("scatter takes inputs on the source rank only")
            return self._begin(abi.OPERATION_SCATTER, "scatter", 0, into.flat.data_ptr(), size, 0,
                               (into.flat, output), (output,), is_sync(opts), root=source, finish=finish,
                               shown=(output,), out_size=size, used=used)
        parts = input_tensors[0] if input_tensors and not isinstance(input_tensors[0], torch.Tensor) else input_tensors
        self._check_list(parts, "scatter")
        for part in parts:
            check_tensor(part, "scatter")
            if part.numel() != output.numel() or part.dtype != output.dtype:
                raise ValueError(f"an input of scatter has {part.numel()} elements of {part.dtype}, but the output has "
                                 f"{output.numel()} of {output.dtype}")
        self._settle("scatter", parts)
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        return self._begin(abi.OPERATION_SCATTER, "scatter", flat.data_ptr(), into.flat.data_ptr(), size,
                           bytes_of(flat), (flat, into.flat, output), (output,), is_sync(opts),
                           counts=[size] * self._link.size, root=source, finish=finish, shown=parts, out_size=size,
                           used=used)

    def all_to_all_single(self, output: torch.Tensor, input: torch.Tensor, output_split_sizes: Sequence[int] = (),
                          input_split_sizes: Sequence[int] = (), opts: Any = None) -> Any:
        check_tensor(output, "all_to_all_single")
        check_tensor(input, "all_to_all_single")
        if output.dtype != input.dtype:
            raise ValueError(f"all_to_all_single has an output of {output.dtype} and an input of {input.dtype}")
        sent = self._splits(input, input_split_sizes, "input")
        received = self._splits(output, output_split_sizes, "output")
        used = self._settle_copied("all_to_all", input, output)
        into = Memory(output, is_read=False)
        source = Memory(input, is_read=True).flat
        mark_written(output)
        return self._swap(source, into.flat, sent, received, (output,), is_sync(opts),
                          into.bring_back if into.is_copy else None, used)

    alltoall_base = all_to_all_single

    def _swap(self, source: torch.Tensor, target: torch.Tensor, sent: Sequence[int], received: Sequence[int],
              result: Sequence[torch.Tensor], sync: bool, finish: Optional[Callable[[], object]],
              used: Sequence[Span]) -> Any:
        size = bytes_of(source)
        return self._begin(abi.OPERATION_ALL_TO_ALL, "all_to_all", source.data_ptr(), target.data_ptr(), size, size,
                           (source, target, result), result, sync, counts=sent, received=received, finish=finish,
                           shown=(source,), out_size=bytes_of(target), used=used)

    def _splits(self, tensor: torch.Tensor, sizes: Sequence[int], what: str) -> List[int]:
        """The bytes of each rank's part."""
        size = self._link.size
        rows = tensor.shape[0] if tensor.dim() > 0 else 0
        if len(sizes) == 0:
            if rows % size != 0:
                raise ValueError(f"Tensor's dim 0 does not divide equally across group size: the {what} has {rows} "
                                 f"rows for {size} ranks")
            return [bytes_of(tensor) // size] * size
        if len(sizes) != size:
            raise ValueError(f"Number of tensor splits not equal to group size: the {what} has {len(sizes)} splits "
                             f"for {size} ranks")
        if sum(sizes) != rows:
            raise ValueError(f"Split sizes doesn't match total dim 0 size: the splits of the {what} add up to "
                             f"{sum(sizes)}, but it has {rows} rows")
        row = bytes_of(tensor) // rows if rows else 0
        return [count * row for count in sizes]

    def alltoall(self, output_tensors: Sequence[torch.Tensor], input_tensors: Sequence[torch.Tensor],
                 opts: Any = None) -> Any:
        self._check_list(output_tensors, "all_to_all")
        self._check_list(input_tensors, "all_to_all")
        for tensor in (*output_tensors, *input_tensors):
            check_tensor(tensor, "all_to_all")
        sent = [bytes_of(tensor) for tensor in input_tensors]
        received = [bytes_of(tensor) for tensor in output_tensors]
        outputs = list(output_tensors)
        used = self._settle("all_to_all", input_tensors, outputs)
        source = as_bytes(input_tensors)
        target = torch.empty(sum(received), dtype=torch.uint8)
        for output in outputs:
            mark_written(output)

        return self._swap(source, target, sent, received, tuple(outputs), is_sync(opts),
                          fill_from(target, outputs, received), used)

    # Messages.

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        tensor = only_tensor(tensors, "send")
        check_tensor(tensor, "send")
        what = f"send to rank {dst} with tag {tag}"
        spans = [span_of(tensor, False)]
        self._refuse_used(spans, what)
        flat = Memory(tensor, is_read=True).flat
        return self._message(abi.OPERATION_SEND, flat, dst, tag, what, keep=tensor,
                             spans=spans if flat is tensor else ())

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        tensor = only_tensor(tensors, "recv")
        check_tensor(tensor, "recv")
        return self._receive(tensor, src, tag, f"recv from rank {src}")

    def _receive(self, tensor: torch.Tensor, src: int, tag: int, what: str) -> Work:
        what = f"{what} with tag {tag}"
        spans = [span_of(tensor, True)]
        self._refuse_used(spans, what)
        into = Memory(tensor, is_read=False)
        mark_written(tensor)
        return self._message(abi.OPERATION_RECEIVE, into.flat, src, tag, what, c_int(src),
                             into.bring_back if into.is_copy else None, tensor, spans)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        tensor = only_tensor(tensors, "recv")
        check_tensor(tensor, "recv")
        return self._receive(tensor, abi.ANY_RANK, tag, "recvAnySource")

    recvAnysource = recv_anysource

    # Barriers.

    def barrier(self, opts: Any = None, timeout: Any = None) -> Any:
        return self._begin(abi.OPERATION_BARRIER, "barrier", 0, 0, 0, 0, None, (), is_sync(opts),
                           limit=getattr(opts, "timeout", timeout))

    def monitored_barrier(self, timeout: Optional[timedelta] = None, wait_all_ranks: bool = False) -> None:
        """Rank 0 waits for a message of each rank, and answers when it has them all.

        Errors: GroupError naming the ranks that are missing.
        """
        link = self._link
        if isinstance(timeout, (int, float)):
            timeout = timedelta(seconds=timeout)
        if timeout is None or timeout < timedelta(0):
            timeout = timedelta(milliseconds=link.timeout_ms)
        tag = _OWN_TAGS | 1
        nothing = torch.empty(0, dtype=torch.uint8)
        if link.rank != 0:
            self._message(abi.OPERATION_SEND, nothing, 0, tag, "monitored_barrier").wait()
            try:
                self._message(abi.OPERATION_RECEIVE, nothing, 0, tag, "monitored_barrier").wait(2 * timeout)
            except GroupError as error:
                raise GroupError(f"Rank {link.rank} successfully reached monitoredBarrier, but received errors while "
                                 f"waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank. "
                                 f"Original exception: {error}", rank=0) from error
            return
        began = time.monotonic()
        longest = timedelta(milliseconds=link.longest_ms)
        missing, cause = self._ranks_that_do_not_arrive(timeout, tag, wait_all_ranks)
        if missing:
            words = f"Ranks {', '.join(map(str, missing))}" if wait_all_ranks else f"Rank {missing[0]}"
            passed = 1000 * (time.monotonic() - began)
            reason = "" if cause is None else f": {cause}"
            if cause is not None and timeout > longest:
                reason += f"; a barrier cannot wait longer than the timeout of its group, {longest.total_seconds():g} s"
            raise GroupError(f"{words} failed to pass monitoredBarrier in {passed:.0f} ms{reason}",
                             rank=missing[0]) from cause
        for rank in range(1, link.size):
            self._message(abi.OPERATION_SEND, nothing, rank, tag, "monitored_barrier").wait()

    def _ranks_that_do_not_arrive(self, timeout: timedelta, tag: int,
                                  wait_all_ranks: bool) -> Tuple[List[int], Optional[Exception]]:
        """The ranks, and the first failure of a message. A message that is still in flight has not failed."""
        deadline = time.monotonic() + timeout.total_seconds()
        nothing = torch.empty(0, dtype=torch.uint8)
        arrivals = [(rank, self._message(abi.OPERATION_RECEIVE, nothing, rank, tag, "monitored_barrier"))
                    for rank in range(1, self._link.size)]
        missing: List[int] = []
        cause: Optional[Exception] = None
        for rank, work in arrivals:
            left = timedelta(seconds=deadline - time.monotonic())
            if left <= timedelta(0) and not missing:
                raise GroupError(f"Rank 0 timed out in monitoredBarrier after {timeout / timedelta(milliseconds=1):g} "
                                 f"ms", rank=0)
            try:
                work.wait(max(left, timedelta(milliseconds=1)))
            except GroupError:
                missing.append(rank)
                cause = cause or work.exception()
                if not wait_all_ranks:
                    break
        return missing, cause

    # Several operations.

    def start_coalescing(self, device: Any = None) -> None:
        """Until end_coalescing(), operations are also collected."""
        self._collected = []

    def end_coalescing(self, device: Any = None) -> Any:
        works, self._collected = self._collected or [], None
        return Several(works, ())

    def _together(self, works: Sequence[Any], result: Sequence[torch.Tensor], sync: bool) -> Any:
        several = Several(works, result)
        if sync:
            several.wait()
        return several

    def _check_list(self, tensors: Any, what: str) -> None:
        if len(tensors) != self._link.size:
            raise ValueError(f"{what} takes a list of {self._link.size} tensors, one for each rank, not "
                             f"{len(tensors)}")


__all__ = ["Collectives"]
