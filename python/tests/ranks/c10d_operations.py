"""Every operation of the backend "muster" on tensors of every kind."""

import gc
import itertools
import random
import unittest
import weakref
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist

from muster.torch.c10d import arguments, works as handles
from ranks.c10d_world import COMPLEX, RANK, SIZE, TYPES, Case, data, everyone, own

OPS = {"SUM": torch.sum, "PRODUCT": torch.prod, "MIN": lambda t, dim: t.min(dim).values,
       "MAX": lambda t, dim: t.max(dim).values}
SHAPES = [(), (1,), (0,), (5, 3), (70_000,)]


def reduced(op, parts):
    """The reduction of all parts, in their type."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stacked = torch.stack(parts)
        return stacked.any(0) if op in ("SUM", "MAX") else stacked.all(0)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return OPS[op](torch.stack([part.to(wide) for part in parts]), dim=0).to(dtype)


class Reductions(Case):
    def test_every_type_operation_and_shape(self):
        for dtype in TYPES:
            for op in OPS:
                for shape in SHAPES:
                    if shape == (70_000,) and dtype not in (torch.float32, torch.bfloat16):
                        continue
                    with self.subTest(dtype=dtype, op=op, shape=shape):
                        tensor = own(shape, dtype)
                        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
                        self.assert_equal(tensor, reduced(op, everyone(shape, dtype)))

    def test_bitwise_operations(self):
        for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64):
            for op, combine in (("BAND", torch.bitwise_and), ("BOR", torch.bitwise_or), ("BXOR", torch.bitwise_xor)):
                parts = everyone((33,), dtype)
                expected = parts[0]
                for part in parts[1:]:
                    expected = combine(expected, part)
                tensor = own((33,), dtype)
                dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
                self.assert_equal(tensor, expected)
        with self.assertRaisesRegex(ValueError, "non-integral"):
            dist.all_reduce(torch.zeros(2), op=dist.ReduceOp.BAND)

    @unittest.skipUnless(hasattr(dist.ReduceOp, "AVG"), "this PyTorch has no average")
    def test_average(self):
        tensor = own((9,), torch.float64)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        self.assertTrue(torch.allclose(tensor, torch.stack(everyone((9,), torch.float64)).mean(0)))

    def test_complex_numbers(self):
        for dtype in COMPLEX:
            tensor = own((4, 2), dtype)
            dist.all_reduce(tensor)
            self.assertTrue(torch.allclose(tensor, torch.stack(everyone((4, 2), dtype)).sum(0)))
            with self.assertRaisesRegex((ValueError, RuntimeError), "complex"):
                dist.all_reduce(tensor, op=dist.ReduceOp.MAX)

    def test_reduce_changes_the_root_only(self):
        for root in range(SIZE):
            tensor = own((7,), torch.int32)
            dist.reduce(tensor, root)
            if root == RANK:
                self.assert_equal(tensor, reduced("SUM", everyone((7,), torch.int32)))

    def test_reduce_scatter(self):
        for dtype in (torch.float32, torch.int64):
            parts = [own((3, 2), dtype, seed=rank) for rank in range(SIZE)]
            expected = reduced("SUM", everyone((3, 2), dtype, seed=RANK))
            output = torch.empty((3, 2), dtype=dtype)
            dist.reduce_scatter(output, parts)
            self.assert_equal(output, expected)
            output = torch.empty((3, 2), dtype=dtype)
            single = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
            single(output, torch.cat(parts))
            self.assert_equal(output, expected)

    def test_several_tensors(self):
        tensors = [own((3 + i,), torch.float32, seed=i) for i in range(5)]
        dist.all_reduce_coalesced(tensors)
        for i, tensor in enumerate(tensors):
            self.assert_equal(tensor, reduced("SUM", everyone((3 + i,), torch.float32, seed=i)))

    def test_sparse_tensors(self):
        for nonzero in (1, 0):
            tensor = torch.sparse_coo_tensor([[RANK] * nonzero, [0] * nonzero], [2.0] * nonzero, (SIZE + 1, 2))
            dist.all_reduce(tensor)
            expected = torch.zeros(SIZE + 1, 2)
            expected[:SIZE, 0] = 2 * nonzero
            self.assert_equal(tensor.to_dense(), expected)


class Moves(Case):
    def test_broadcast_and_gathers_of_every_type(self):
        for dtype in TYPES + COMPLEX:
            for shape in [(), (0,), (3, 5)]:
                with self.subTest(dtype=dtype, shape=shape):
                    parts = everyone(shape, dtype)
                    for root in range(SIZE):
                        tensor = own(shape, dtype)
                        dist.broadcast(tensor, root)
                        self.assert_equal(tensor, parts[root])
                    outputs = [torch.empty(shape, dtype=dtype) for _ in range(SIZE)]
                    dist.all_gather(outputs, own(shape, dtype))
                    for output, part in zip(outputs, parts):
                        self.assert_equal(output, part)
                    outputs = [torch.empty(shape, dtype=dtype) for _ in range(SIZE)] if RANK == 0 else None
                    dist.gather(own(shape, dtype), outputs, dst=0)
                    if RANK == 0:
                        for output, part in zip(outputs, parts):
                            self.assert_equal(output, part)
                    output = torch.empty(shape, dtype=dtype)
                    dist.scatter(output, everyone(shape, dtype) if RANK == SIZE - 1 else None, src=SIZE - 1)
                    self.assert_equal(output, parts[RANK])

    def test_all_gather_into_one_tensor(self):
        output = torch.empty(SIZE * 3, 2)
        single = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
        single(output, own((3, 2), torch.float32))
        self.assert_equal(output, torch.cat(everyone((3, 2), torch.float32)))
        with self.assertRaisesRegex(ValueError, "world_size"):
            single(torch.empty(1), torch.empty(3))

    def test_all_to_all(self):
        inputs = [torch.full((RANK + 1, other + 1), float(RANK * 10 + other)) for other in range(SIZE)]
        outputs = [torch.empty(other + 1, RANK + 1) for other in range(SIZE)]
        dist.all_to_all(outputs, inputs)
        for other, output in enumerate(outputs):
            self.assert_equal(output, torch.full((other + 1, RANK + 1), float(other * 10 + RANK)))

    def test_all_to_all_of_one_tensor_with_equal_and_other_splits(self):
        output = torch.empty(SIZE, 2)
        dist.all_to_all_single(output, torch.arange(SIZE * 2.0).view(SIZE, 2) + 100 * RANK)
        self.assert_equal(output, torch.stack([torch.arange(2.0) + 2 * RANK + 100 * rank for rank in range(SIZE)]))
        sent = [other + RANK for other in range(SIZE)]
        output = torch.empty(sum(sent), dtype=torch.int64)
        dist.all_to_all_single(output, torch.full((sum(sent),), RANK), sent, sent)
        self.assert_equal(output, torch.cat([torch.full((other + RANK,), other) for other in range(SIZE)]))
        with self.assertRaisesRegex(ValueError, "Split sizes"):
            dist.all_to_all_single(output, output.clone(), [100] * SIZE, [100] * SIZE)

    def test_tensors_that_are_not_contiguous(self):
        tensor = own((4, 6), torch.float32).t()
        dist.all_reduce(tensor)
        self.assert_equal(tensor, reduced("SUM", everyone((4, 6), torch.float32)).t())
        tensor = own((4, 6), torch.float32)[:, ::2]
        dist.broadcast(tensor, 1)
        self.assert_equal(tensor, data(1, (4, 6), torch.float32)[:, ::2])
        outputs = [torch.zeros(6, 4).t() for _ in range(SIZE)]
        dist.all_gather(outputs, own((4, 6), torch.float32))
        for rank, output in enumerate(outputs):
            self.assert_equal(output, data(rank, (4, 6), torch.float32))

    def test_views_with_a_lazy_sign_or_conjugation(self):
        def negated(rank):
            return torch._neg_view(torch.tensor([2.0 + rank, -1.0]))

        def total(make):
            return torch.stack([make(rank) for rank in range(SIZE)]).sum(0)

        self.assertTrue(negated(0).is_contiguous())
        outputs = [torch.zeros(2) for _ in range(SIZE)]
        dist.all_gather(outputs, negated(RANK))
        for rank, output in enumerate(outputs):
            self.assert_equal(output, negated(rank))
        tensor = negated(RANK)
        dist.broadcast(tensor, 1)
        self.assert_equal(tensor, negated(1))
        tensor = negated(RANK)
        dist.all_reduce(tensor)
        self.assert_equal(tensor, total(negated))
        tensors = [negated(RANK), negated(RANK)]
        dist.all_reduce_coalesced(tensors)
        self.assert_equal(tensors[1], total(negated))
        outputs = [torch.zeros(2) for _ in range(SIZE)]
        dist.all_to_all(outputs, [negated(RANK)] * SIZE)
        self.assert_equal(outputs[1], negated(1))
        output = torch.zeros(2)
        dist.reduce_scatter(output, [negated(RANK)] * SIZE)
        self.assert_equal(output, total(negated))
        received = negated(9)
        work = dist.isend(negated(RANK), (RANK + 1) % SIZE)
        dist.recv(received, (RANK - 1) % SIZE)
        work.wait()
        self.assert_equal(received, negated((RANK - 1) % SIZE))

        def conjugated(rank):
            return torch.tensor([1 + 2j, rank - 1j]).conj()

        # torch.distributed of PyTorch 1.13 refuses such a tensor before the group gets it.
        group = dist.group.WORLD
        tensor = conjugated(RANK)
        group.allreduce([tensor]).wait()
        self.assert_equal(tensor, total(conjugated))
        outputs = [torch.zeros(2, dtype=torch.complex64) for _ in range(SIZE)]
        group.allgather([outputs], [conjugated(RANK)]).wait()
        self.assert_equal(outputs[1], conjugated(1))

    def test_objects(self):
        gathered = [None] * SIZE
        dist.all_gather_object(gathered, {"rank": RANK, "more": "x" * RANK})
        self.assertEqual(gathered, [{"rank": rank, "more": "x" * rank} for rank in range(SIZE)])
        objects = [RANK, "of", {RANK}]
        dist.broadcast_object_list(objects, src=1)
        self.assertEqual(objects, [1, "of", {1}])
        gathered = [None] * SIZE if RANK == 0 else None
        dist.gather_object(("from", RANK), gathered, dst=0)
        if RANK == 0:
            self.assertEqual(gathered, [("from", rank) for rank in range(SIZE)])
        received = [None]
        dist.scatter_object_list(received, [f"for {rank}" for rank in range(SIZE)] if RANK == 0 else None, src=0)
        self.assertEqual(received, [f"for {RANK}"])

    def test_quantized_tensors_and_other_devices_are_refused(self):
        quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
        with self.assertRaisesRegex(ValueError, "quantized"):
            dist.all_reduce(quantized)
        with self.assertRaisesRegex(Exception, "meta"):
            dist.all_reduce(torch.empty(2, device="meta"))


class Messages(Case):
    def test_a_ring_of_messages(self):
        for count in (0, 1, 100_000):
            sent, received = own((count,), torch.float32), torch.empty(count)
            work = dist.isend(sent, (RANK + 1) % SIZE, tag=count)
            dist.recv(received, (RANK - 1) % SIZE, tag=count)
            work.wait()
            self.assert_equal(received, data((RANK - 1) % SIZE, (count,), torch.float32))

    def test_messages_from_any_rank_in_the_order_of_tags(self):
        if RANK == 0:
            senders = set()
            for tag in (2, 1):
                for _ in range(1, SIZE):
                    tensor = torch.empty(3, dtype=torch.int64)
                    sender = dist.recv(tensor, tag=tag)
                    self.assert_equal(tensor, torch.full((3,), 10 * sender + tag))
                    senders.add((sender, tag))
            self.assertEqual(len(senders), 2 * (SIZE - 1))
        else:
            for tag in (1, 2):
                dist.send(torch.full((3,), 10 * RANK + tag), 0, tag=tag)

    def test_several_messages_together(self):
        received = torch.empty(5)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.full((5,), float(RANK)), (RANK + 1) % SIZE),
            dist.P2POp(dist.irecv, received, (RANK - 1) % SIZE)])
        for work in works:
            work.wait()
        self.assert_equal(received, torch.full((5,), float((RANK - 1) % SIZE)))

    def test_a_message_of_another_length_is_an_error_that_names_the_rank(self):
        if RANK == 0:
            dist.send(torch.zeros(2), 1, tag=5)
        elif RANK == 1:
            with self.assertRaisesRegex(RuntimeError, "rank 0 .* sends 8 bytes; rank 1 .* receives 12"):
                dist.recv(torch.zeros(3), 0, tag=5)
        dist.barrier()


class Handles(Case):
    def test_works_and_their_futures(self):
        tensor = own((1000,), torch.float32)
        work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        then = future.then(lambda done: done.value()[0] * 2)
        expected = reduced("SUM", everyone((1000,), torch.float32))
        self.assert_equal(then.wait(), expected * 2)
        self.assertTrue(work.is_completed())
        self.assertTrue(work.is_success())
        work.wait()
        self.assert_equal(tensor, expected)
        self.assert_equal(work.result()[0], expected)

    def test_polling_sees_the_end(self):
        work = dist.all_reduce(torch.ones(10), async_op=True)
        while not work.is_completed():
            pass
        self.assertTrue(work.is_success())

    def test_a_callback_may_wait_for_another_operation(self):
        def again(future):
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        first = dist.all_reduce(torch.ones(4), async_op=True).get_future().then(again)
        self.assert_equal(first.wait(), torch.full((4,), float(SIZE * SIZE)))

    def test_reductions_of_one_tensor_follow_each_other(self):
        tensor = torch.ones(50_000)
        works = [dist.all_reduce(tensor, async_op=True) for _ in range(3)]
        for work in works:
            work.wait()
        self.assert_equal(tensor, torch.full((50_000,), float(SIZE ** 3)))
        works = [dist.all_reduce(tensor[begin:begin + 30_000], async_op=True) for begin in (0, 20_000)]
        for work in works:
            work.wait()
        self.assertEqual(tensor[25_000].item(), SIZE ** 5)

    def test_operations_on_tensors_that_are_copied_follow_each_other(self):
        tensor = torch.ones(4, 2).t()
        works = [dist.all_reduce(tensor, async_op=True) for _ in range(2)]
        for work in works:
            work.wait()
        self.assert_equal(tensor, torch.full((2, 4), float(SIZE ** 2)))
        gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
        scatter_sum = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
        ones = torch.ones(SIZE, 2)
        #: By name: the output of an operation whose values are all 1 or all SIZE, and the beginning of the operation.
        operations = {
            "all_gather": (torch.zeros(2), lambda output: dist.all_gather(
                [output, *(torch.zeros(2) for _ in range(1, SIZE))], ones[0], async_op=True)),
            "all_gather_into_tensor": (torch.zeros(2, SIZE).t(), lambda output: gather(
                output, ones[0], async_op=True)),
            "gather": (torch.ones(2), lambda output: dist.gather(
                ones[0], [output, *(torch.zeros(2) for _ in range(1, SIZE))] if RANK == 0 else None, async_op=True)),
            "scatter": (torch.zeros(2, 2).t(), lambda output: dist.scatter(
                output, [torch.ones(2, 2)] * SIZE if RANK == 0 else None, async_op=True)),
            "broadcast": (torch.full((2, 2), 1.0 - RANK).t(), lambda output: dist.broadcast(
                output, 0, async_op=True)),
            "reduce_scatter": (torch.zeros(2, 2).t(), lambda output: dist.reduce_scatter(
                output, [torch.ones(2, 2)] * SIZE, async_op=True)),
            "reduce_scatter_tensor": (torch.zeros(2, 2).t(), lambda output: scatter_sum(
                output, torch.ones(SIZE * 2, 2), async_op=True)),
            "all_to_all": (torch.zeros(2), lambda output: dist.all_to_all(
                [output, *(torch.zeros(2) for _ in range(1, SIZE))], list(ones), async_op=True)),
            "all_to_all_single": (torch.zeros(2, SIZE).t(), lambda output: dist.all_to_all_single(
                output, ones, async_op=True))}
        for name, (output, begin) in operations.items():
            with self.subTest(name):
                first = begin(output)
                second = dist.all_reduce(output, async_op=True)
                first.wait()
                second.wait()
                factor = SIZE if name.startswith("reduce_scatter") else 1
                self.assert_equal(output, torch.full(output.shape, float(SIZE * factor)))
        # An input is copied once it has its values.
        parts = [torch.ones(2) for _ in range(SIZE)]
        output = torch.zeros(2)
        works = [dist.all_reduce(parts[RANK], async_op=True), dist.reduce_scatter(output, parts, async_op=True)]
        for work in works:
            work.wait()
        self.assert_equal(output, torch.full((2,), float(2 * SIZE - 1)))

    def test_operations_that_read_the_same_memory_do_not_wait_for_each_other(self):
        tensor = torch.ones(3_000_000)
        if RANK == 0:
            work = dist.isend(tensor, 1)
        dist.all_gather([torch.zeros(tensor.shape) for _ in range(SIZE)], tensor)
        dist.broadcast(tensor, 0)
        if RANK == 0:
            work.wait()
        elif RANK == 1:
            dist.recv(tensor, 0)

    def test_a_collective_on_the_memory_of_an_unfinished_receive_waits_for_it(self):
        tensor = torch.zeros(4)
        if RANK == 0:
            work = dist.irecv(tensor, 1, tag=4)
            join = handles.Work.join

            def join_after_the_other_rank_may_send(work):
                dist.send(torch.ones(1), 1, tag=5)
                join(work)

            with mock.patch.object(handles.Work, "join", join_after_the_other_rank_may_send):
                dist.all_reduce(tensor)
            work.wait()
        else:
            if RANK == 1:
                dist.recv(torch.ones(1), 0, tag=5)
                dist.send(torch.full((4,), 5.0), 0, tag=4)
            dist.all_reduce(tensor)
        self.assert_equal(tensor, torch.full((4,), 5.0))

    def test_a_message_on_memory_that_is_being_reduced_is_refused(self):
        tensor = torch.ones(50)
        if RANK == 0:
            work = dist.all_reduce(tensor, async_op=True)
            copied = tensor.view(5, 10).t()
            for begin in (lambda: dist.irecv(tensor[49:], 1), lambda: dist.isend(tensor[:1], 1),
                          lambda: dist.irecv(copied, 1), lambda: dist.isend(copied, 1)):
                with self.assertRaisesRegex(ValueError, "memory is in use by 'all_reduce', which is in flight"):
                    begin()
            for rank in range(1, SIZE):
                dist.send(torch.ones(1), rank, tag=3)
            work.wait()
        else:
            dist.recv(torch.ones(1), 0, tag=3)
            dist.all_reduce(tensor)
        self.assert_equal(tensor, torch.full((50,), float(SIZE)))

    def test_views_of_different_columns_are_different_memory(self):
        tensor = torch.zeros(4, 4)
        if RANK == 0:
            works = [dist.irecv(tensor[:, column], 1, tag=column) for column in (0, 3)]
            with self.assertRaisesRegex(ValueError, "memory is in use by 'recv from rank 1 with tag 3'"):
                dist.irecv(tensor[:, 2:], 1, tag=5)
        with mock.patch.object(handles.Work, "join", side_effect=AssertionError("waits for another column")):
            dist.all_reduce(tensor[:, 1])
        if RANK == 0:
            dist.send(torch.ones(1), 1, tag=6)
            for work in works:
                work.wait()
            self.assert_equal(tensor, torch.tensor([5.0, 0.0, 0.0, 8.0]).expand(4, 4))
        elif RANK == 1:
            dist.recv(torch.ones(1), 0, tag=6)
            for column in (0, 3):
                dist.send(torch.full((4,), 5.0 + column), 0, tag=column)

    def test_memory_of_an_input_that_was_copied_is_not_in_use(self):
        memory = torch.ones(4, 2)
        outputs = [torch.zeros(2, 4) for _ in range(SIZE)]
        if RANK == 0:
            work = dist.all_gather(outputs, memory.t(), async_op=True)
            receive = dist.irecv(memory, 1, tag=7)  # like a new tensor in the memory of a tensor that was freed
            dist.send(torch.ones(1), 1, tag=8)
            receive.wait()
            work.wait()
            self.assert_equal(memory, torch.full((4, 2), 3.0))
        else:
            if RANK == 1:
                dist.recv(torch.ones(1), 0, tag=8)
                dist.send(torch.full((4, 2), 3.0), 0, tag=7)
            dist.all_gather(outputs, memory.t())
        for output in outputs:
            self.assert_equal(output, torch.ones(2, 4))

    def test_operations_without_an_input_or_output_on_this_rank_do_not_wait_for_each_other(self):
        values = torch.full((3,), float(RANK))
        outputs = [torch.zeros(3) for _ in range(2)]
        lists = [[torch.zeros(3) for _ in range(SIZE)] for _ in range(2)]
        begins = {
            "gather": lambda turn: dist.gather(values, lists[turn] if RANK == 0 else None, async_op=True),
            "scatter": lambda turn: dist.scatter(outputs[turn], [torch.full((3,), 5.0 + turn)] * SIZE if RANK == 0
                                                 else None, async_op=True)}
        for name, begin in begins.items():
            with self.subTest(name):
                if RANK == 0:
                    for rank in range(1, SIZE):
                        dist.recv(torch.ones(1), rank, tag=9)
                    works = [begin(turn) for turn in range(2)]
                else:
                    waits = AssertionError("waits for the operation before")
                    with mock.patch.object(handles.Work, "join", side_effect=waits):
                        works = [begin(turn) for turn in range(2)]
                    used = [span for work in works for span in work.spans]
                    self.assertEqual([span for span in used if span[0] == 0 and span[1] > 0], [])
                    dist.send(torch.ones(1), 0, tag=9)
                for work in works:
                    work.wait()
        for turn in range(2):
            self.assert_equal(outputs[turn], torch.full((3,), 5.0 + turn))
            if RANK == 0:
                self.assert_equal(lists[turn][1], torch.ones(3))

    def test_a_short_operation_has_few_bytes_in_all(self):
        group = dist.new_group()
        for lengths, is_quick in (((1 << 14,), True), (((1 << 14) + 1,), False), ((1000,) * 8, True),
                                  ((1000,) * 100, False)):
            with self.subTest(lengths=lengths):
                work = group.allreduce_coalesced([torch.ones(length) for length in lengths])
                for part in getattr(work, "_parts", [work]):
                    self.assertEqual(part._is_quick(), is_quick)
                work.wait()
        dist.destroy_process_group(group)

    def test_many_operations_in_flight(self):
        tensors = [torch.full((3,), float(i)) for i in range(5000)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for i, (tensor, work) in enumerate(zip(tensors, works)):
            work.wait()
            self.assertEqual(tensor[0].item(), i * SIZE)

    def test_operations_that_no_thread_waits_for(self):
        for _ in range(300):
            dist.all_reduce(torch.ones(1000), async_op=True)
        dist.barrier()

    def test_results_are_freed_with_their_last_owner(self):
        def by_polling(work):
            while not work.is_completed():
                pass

        ends = {"wait": lambda work: work.wait(), "polling": by_polling,
                "future": lambda work: work.get_future().wait(),
                "callback": lambda work: work.get_future().then(lambda done: done.value()[0].sum()).wait()}
        for name, end in ends.items():
            for length in (1000, 100_000):  # a future of a short operation is complete at once
                tensor = torch.ones(length)
                work = dist.all_reduce(tensor, async_op=True)
                end(work)
                left = weakref.ref(tensor)
                del tensor, work
                # The threads that complete futures have let go of their works.
                with handles._settled:
                    handles._settled.wait_for(lambda: not handles._watched and not handles._busy)
                gc.collect()
                self.assertTrue(left() is None, name)

    def test_results_of_a_group_that_was_destroyed_are_freed(self):
        group = dist.new_group()
        tensor = torch.ones(1000)
        dist.barrier()
        if RANK == 0:
            dist.all_reduce(tensor, group=group, async_op=True)
        group._link.end()
        left = weakref.ref(tensor)
        del tensor
        gc.collect()
        self.assertTrue(left() is None)
        dist.barrier()
        dist.destroy_process_group(group)

    def test_in_place_operations_invalidate_saved_tensors(self):
        weight = torch.ones(3, requires_grad=True)
        values = torch.ones(3)
        product = (weight * values).sum()
        dist.all_reduce(values)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            product.backward()


class Spans(Case):
    def test_gaps_between_the_elements_of_views_are_free(self):
        matrix = torch.zeros(6, 8)
        numbers = torch.zeros(4, dtype=torch.complex64)
        blocks = torch.zeros(3, 4, 5)
        for one, other, expected in (
                (matrix[:, 0], matrix[:, 7], False), (matrix[:, :3], matrix[:, 3:], False),
                (matrix[:, :4], matrix[:, 3:], True), (matrix[:, 1], matrix[2], True),
                (matrix[::2], matrix[1::2], False), (matrix[::2], matrix[4], True),
                (matrix.t()[0], matrix.t()[1], False), (matrix[:, ::2], matrix[:, 1::2], False),
                (numbers.real, numbers.imag, False), (numbers.real, numbers, True),
                (blocks[:, 1], blocks[:, 2], False), (blocks[:, 1:3], blocks[:, 2], True),
                (matrix[:, 0], matrix[:, 1:1], False), (matrix[:0], matrix, False),
                (matrix[2].expand(4, 8), matrix[2:3], True)):
            for first, second in ((one, other), (other, one)):
                spans = arguments.span_of(first, True), arguments.span_of(second, False)
                self.assertEqual(arguments.do_conflict(spans[:1], spans[1:]), expected, (first.size(), second.size()))

    def test_views_with_common_memory_always_conflict(self):
        chance = random.Random(1)
        pool = torch.zeros(200, dtype=torch.uint8)

        def view():
            elements = pool.view(chance.choice([torch.uint8, torch.int16, torch.int32]))
            while True:
                size = [chance.randint(1, 4) for _ in range(chance.randint(0, 3))]
                stride = [chance.choice([0, 1, 1, 2, 3, 4, 6, 8, 12]) for _ in size]
                start = chance.randint(0, 20)
                if start + sum((length - 1) * step for length, step in zip(size, stride)) < len(elements):
                    return elements.as_strided(size, stride, start)

        def addresses(tensor):
            width = tensor.element_size()
            return {tensor.data_ptr() + width * sum(map(int.__mul__, at, tensor.stride())) + byte
                    for at in itertools.product(*map(range, tensor.shape)) for byte in range(width)}

        for _ in range(2000):
            one, other = view(), view()
            if addresses(one) & addresses(other):
                spans = arguments.span_of(one, True), arguments.span_of(other, False)
                views = [(each.shape, each.stride(), each.storage_offset(), each.dtype) for each in (one, other)]
                self.assertTrue(arguments.do_conflict(spans[:1], spans[1:]), views)

    def test_many_spans_are_compared_in_one_pass(self):
        comparisons = []

        class Address(int):
            def __lt__(self, other):
                comparisons.append(None)
                return int(self) < int(other)

        def spans(begin, is_written=True):
            return [(Address(begin + 10 * i), Address(begin + 10 * i + 4), is_written, 0, 4) for i in range(1000)]

        self.assertFalse(arguments.do_conflict(spans(100), spans(105)))
        self.assertLess(len(comparisons), 100_000)
        self.assertTrue(arguments.do_conflict(spans(100), spans(103, False)))
        self.assertFalse(arguments.do_conflict(spans(100, False), spans(103, False)))
        self.assertTrue(arguments.do_conflict([(0, 50_000, False, 0, 50_000)], spans(100)))
        self.assertFalse(arguments.do_conflict([(0, 50_000, False, 0, 50_000)], spans(100, False)))
        gaps = [(begin, begin + 9901, True, 100, 1) for begin in range(0, 100, 2)]
        self.assertFalse(arguments.do_conflict(gaps, [(begin + 1, *rest) for begin, *rest in gaps]))
        self.assertTrue(arguments.do_conflict(gaps, [(begin + 2, *rest) for begin, *rest in gaps]))


class Disagreements(Case):
    def test_another_length_type_operation_or_order_is_an_error_on_every_rank(self):
        other = RANK == SIZE - 1
        for what, call in {
                "count": lambda: dist.all_reduce(torch.zeros(3 + other)),
                "type": lambda: dist.all_reduce(torch.zeros(3, dtype=torch.int32 if other else torch.float32)),
                "operation": lambda: dist.all_reduce(torch.zeros(3), op=dist.ReduceOp.MAX if other
                                                     else dist.ReduceOp.MIN),
                "root": lambda: dist.broadcast(torch.zeros(3), int(other)),
                "kind": lambda: dist.barrier() if other else dist.all_reduce(torch.zeros(3)),
                "future": lambda: dist.all_reduce(torch.zeros(3 + other), async_op=True).get_future().wait()}.items():
            with self.subTest(what), self.assertRaisesRegex(RuntimeError, f"rank 0 .*rank {SIZE - 1} "):
                call()
        dist.barrier()

    def test_lists_of_the_wrong_length(self):
        with self.assertRaises((ValueError, RuntimeError)):
            dist.all_gather([torch.zeros(1)] * (SIZE + 1), torch.zeros(1))
        with self.assertRaises((ValueError, RuntimeError)):
            dist.scatter(torch.zeros(1), [torch.zeros(1)] * (SIZE + 1), src=RANK)
        dist.barrier()


class Groups(Case):
    def test_groups_of_some_ranks(self):
        pair = dist.new_group([SIZE - 1, 0])
        if RANK in (0, SIZE - 1):
            tensor = torch.tensor([float(RANK)])
            dist.all_reduce(tensor, group=pair)
            self.assertEqual(tensor.item(), SIZE - 1)
            if RANK == 0:
                dist.send(tensor, SIZE - 1, group=pair)
            else:
                dist.recv(tensor, 0, group=pair)
            dist.destroy_process_group(pair)
        dist.barrier()

    def test_many_groups(self):
        groups = [dist.new_group() for _ in range(20)]
        works = []
        tensors = [torch.full((2,), float(i)) for i in range(len(groups))]
        for group, tensor in zip(groups, tensors):
            works.append(dist.all_reduce(tensor, group=group, async_op=True))
        for i, (work, tensor) in enumerate(zip(works, tensors)):
            work.wait()
            self.assertEqual(tensor[0].item(), i * SIZE)
        for group in groups:
            dist.destroy_process_group(group)

    def test_a_timeout_can_be_lowered_but_not_raised_above_the_first_one(self):
        group = dist.group.WORLD
        group.set_timeout(timedelta(seconds=50))
        self.assertEqual(group._link.timeout_ms, 50_000)
        with self.assertRaisesRegex(ValueError, r"to 61 s: it was created with a timeout of 60 s.*new_group\(\)"):
            group.set_timeout(timedelta(seconds=61))
        group.set_timeout(timedelta(seconds=60))
        self.assertEqual(group._link.timeout_ms, 60_000)

    def test_monitored_barrier(self):
        group = dist.group.WORLD
        dist.monitored_barrier()
        group.monitored_barrier(timedelta(seconds=60))
        if RANK == 0:
            with self.assertRaisesRegex(RuntimeError, f"Rank {SIZE - 1} failed to pass monitoredBarrier"):
                group.monitored_barrier(timedelta(milliseconds=300))
        elif RANK != SIZE - 1:
            with self.assertRaisesRegex(RuntimeError, "rank 0"):
                group.monitored_barrier(timedelta(milliseconds=300))
        dist.barrier()
