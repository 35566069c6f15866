"""Every operation of the backend "muster" on tensors of every kind."""

import gc
import unittest
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from muster.torch.c10d import works as handles
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

    def test_a_message_on_memory_that_is_being_reduced_is_refused(self):
        tensor = torch.ones(50)
        if RANK == 0:
            work = dist.all_reduce(tensor, async_op=True)
            for begin in (lambda: dist.irecv(tensor[49:], 1), lambda: dist.isend(tensor[:1], 1)):
                with self.assertRaisesRegex(ValueError, "memory is in use by 'operation .* in flight"):
                    begin()
            for rank in range(1, SIZE):
                dist.send(torch.ones(1), rank, tag=3)
            work.wait()
        else:
            dist.recv(torch.ones(1), 0, tag=3)
            dist.all_reduce(tensor)
        self.assert_equal(tensor, torch.full((50,), float(SIZE)))

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
