"""Guarantees for programs: names match operations in any order; a mismatch is an error on all ranks; worlds end and
begin again."""

import threading
import unittest

import torch

import muster.torch as hvd
from ranks.torch_world import Case, own


class Order(Case):
    def test_an_operation_that_waits_for_a_rank_does_not_delay_others(self):
        if hvd.rank() == 0:
            handle = hvd.allreduce_async(torch.ones(3), name="x", op=hvd.Sum)
        hvd.barrier()
        if hvd.rank() != 0:
            handle = hvd.allreduce_async(torch.ones(3), name="x", op=hvd.Sum)
        self.assertEqual(hvd.synchronize(handle).tolist(), [hvd.size()] * 3)

    def test_an_operation_does_not_complete_before_all_ranks_have_begun_it(self):
        if hvd.size() == 1:
            return
        if hvd.rank() == 0:
            handle = hvd.allreduce_async(torch.ones(3), name="not yet")
            self.assertFalse(hvd.poll(handle))
            hvd.barrier()
            hvd.synchronize(handle)
        else:
            hvd.barrier()
            hvd.allreduce(torch.ones(3), name="not yet")

    def test_every_rank_may_use_its_own_order(self):
        order = torch.randperm(40, generator=torch.Generator().manual_seed(hvd.rank())).tolist()
        handles = {}
        for i in order:
            name = f"order.{i}"
            tensor = torch.full((i + 1,), float(i))
            handles[i] = (hvd.allreduce_async(tensor, name=name) if i % 3 == 0 else
                          hvd.allgather_async(tensor, name=name) if i % 3 == 1 else
                          hvd.broadcast_async(tensor, 0, name=name))
        for i in reversed(order):
            length = (i + 1) * (hvd.size() if i % 3 == 1 else 1)
            self.assertEqual(hvd.synchronize(handles[i]).tolist(), [float(i)] * length)

    def test_from_many_threads(self):
        wrong = []

        def work(number):
            for step in range(30):
                value = hvd.allreduce(torch.tensor([float(step)]), name=f"thread.{number}", op=hvd.Sum).item()
                if value != step * hvd.size():
                    wrong.append((number, step, value))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_name_in_flight_is_refused(self):
        if hvd.size() == 1:
            return
        if hvd.rank() == 0:
            handle = hvd.allreduce_async(torch.ones(2), name="twice")
            with self.assertRaises(ValueError) as caught:
                hvd.allreduce_async(torch.ones(2), name="twice")
            self.assertIn("twice", str(caught.exception))
            hvd.barrier()
        else:
            hvd.barrier()
            handle = hvd.allreduce_async(torch.ones(2), name="twice")
        self.assertEqual(hvd.synchronize(handle).tolist(), [1.0, 1.0])


class Disagreement(Case):
    def setUp(self):
        if hvd.size() == 1:
            self.skipTest("one rank agrees with itself")

    def test_all_ranks_get_an_error_with_both_values(self):
        odd = hvd.rank() == hvd.size() - 1
        for call, words in (
                (lambda: hvd.allreduce(torch.ones(2 + odd), name="m"), ("float32[2]", "float32[3]")),
                (lambda: hvd.allreduce(torch.ones((2, 6) if odd else (3, 4)), name="m"), ("[2, 6]", "[3, 4]")),
                (lambda: hvd.allreduce(torch.ones(2, dtype=torch.int32 if odd else torch.float32), name="m"),
                 ("int32", "float32")),
                (lambda: hvd.allreduce(torch.ones(2), name="m", op=hvd.Sum if odd else hvd.Max), ()),
                (lambda: hvd.allreduce(torch.ones(2), name="m", prescale_factor=2.0 if odd else 1.0), ()),
                (lambda: hvd.broadcast(torch.ones(2), int(odd), name="m"), ()),
                (lambda: hvd.broadcast(torch.ones(2 + odd), 0, name="m"), ("float32[2]", "float32[3]")),
                (lambda: hvd.allgather(torch.ones(2, 2 + odd), name="m"), ("float32[?, 2]", "float32[?, 3]")),
                (lambda: hvd.allgather(torch.ones(2).to(torch.int32 if odd else torch.float32), name="m"),
                 ("int32", "float32")),
                (lambda: hvd.alltoall(torch.ones(hvd.size(), 2 + odd), name="m"), ("[?, 2]", "[?, 3]")),
                (lambda: hvd.reducescatter(torch.ones(4 + odd), name="m"), ("float32[4]", "float32[5]")),
                (lambda: hvd.grouped_allreduce([torch.ones(2)] * (2 + odd), name="m"), ())):
            self.refused_everywhere(RuntimeError, call, *words)

    def test_a_mismatch_of_one_operation_does_not_affect_others(self):
        good = hvd.allreduce_async(torch.ones(2), name="good", op=hvd.Sum)
        bad = hvd.allreduce_async(torch.ones(2 + hvd.rank()), name="bad")
        with self.assertRaises(RuntimeError):
            hvd.synchronize(bad)
        self.assertEqual(hvd.synchronize(good).tolist(), [hvd.size()] * 2)


class Refusals(Case):
    def test_tensors_that_cannot_be_handed_over(self):
        calls = {"allreduce": hvd.allreduce, "allreduce_": hvd.allreduce_, "allgather": hvd.allgather,
                 "reducescatter": hvd.reducescatter, "alltoall": hvd.alltoall,
                 "broadcast": lambda tensor: hvd.broadcast(tensor, 0),
                 "broadcast_": lambda tensor: hvd.broadcast_(tensor, 0),
                 "grouped_allreduce": lambda tensor: hvd.grouped_allreduce([tensor])}
        tensors = {"Tensor is required to be contiguous.": torch.ones(4, 6).t(),
                   "Tensor type torch.ComplexFloatTensor is not supported.": torch.ones(6, dtype=torch.complex64),
                   "meta": torch.ones(6, device="meta"),
                   "is not supported": torch.eye(6).to_sparse()}
        for name, call in calls.items():
            for words, tensor in tensors.items():
                with self.subTest(operation=name, tensor=words):
                    self.refused_everywhere(ValueError, lambda: call(tensor), words)
            self.refused_everywhere(TypeError, lambda: call([1.0, 2.0]))

    def test_the_rest(self):
        for kind, call in ((ValueError, lambda: hvd.allreduce(torch.ones(1), op=99)),
                           (ValueError, lambda: hvd.broadcast(torch.ones(1), hvd.size())),
                           (ValueError, lambda: hvd.broadcast(torch.ones(1), -1)),
                           (ValueError, lambda: hvd.grouped_allreduce([])),
                           (ValueError, lambda: hvd.synchronize(-5)), (ValueError, lambda: hvd.poll(10 ** 9))):
            self.refused_everywhere(kind, call)


class Joining(Case):
    def test_a_joined_rank_counts_as_zeros(self):
        if hvd.rank() == 0:
            self.assertIn(hvd.join(), range(hvd.size()))
            return
        ranks = range(1, hvd.size())
        self.assertEqual(hvd.allreduce(torch.tensor([float(hvd.rank())]), name="j", op=hvd.Sum).item(), sum(ranks))
        self.assertAlmostEqual(hvd.allreduce(torch.tensor([float(hvd.rank())]), name="j2").item(),
                               sum(ranks) / hvd.size(), places=6)
        for call in (lambda: hvd.allgather(torch.ones(1), name="no gathering with join"),
                     lambda: hvd.broadcast(torch.ones(1), 1, name="no broadcast with join")):
            with self.assertRaises(hvd.HorovodInternalError) as caught:
                call()
            self.assertIn("has joined", str(caught.exception))
        hvd.join()

    def test_operations_without_names_match_after_a_join(self):
        for first in range(hvd.size()):
            if hvd.rank() != first:
                hvd.allreduce(torch.ones(1))
            hvd.join()
        self.assertEqual(hvd.allgather(torch.tensor([hvd.rank()])).tolist(), list(range(hvd.size())))
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_training_with_batches_that_run_out(self):
        model = torch.nn.Linear(2, 1)
        with torch.no_grad():
            model.weight.fill_(1.0)
            model.bias.fill_(0.0)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        for _ in range(2 + hvd.rank()):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        last = hvd.join()
        hvd.broadcast_parameters(model.state_dict(), last)
        # In step s the ranks that still have a batch, size - max(s - 1, 0) of them, share a gradient of 1.
        moved = sum(0.1 * (hvd.size() - max(step - 1, 0)) / hvd.size() for step in range(hvd.size() + 1))
        self.assertAlmostEqual(model.bias.item(), -moved, places=5)


class Worlds(Case):
    def test_again_and_again(self):
        for _ in range(5):
            hvd.shutdown()
            self.assertFalse(hvd.is_initialized())
            with self.assertRaises(ValueError) as caught:
                hvd.rank()
            self.assertIn("Horovod has not been initialized; use hvd.init().", str(caught.exception))
            for call in (lambda: hvd.allreduce(torch.ones(1)), lambda: hvd.allgather(torch.ones(1)),
                         lambda: hvd.allreduce_(torch.ones(1), name="named"), hvd.barrier, hvd.join):
                with self.assertRaises(ValueError):
                    call()
            hvd.init()
            self.assertEqual(hvd.allreduce(own((5,), torch.float32), name="named", op=hvd.Sum).shape, (5,))

    def test_process_sets(self):
        if hvd.size() == 1:
            return  # the only set has all ranks
        evens = hvd.ProcessSet(range(0, hvd.size(), 2))
        hvd.shutdown()
        hvd.init(process_sets=[evens])
        try:
            tensor = torch.full((hvd.size() * 2,), float(hvd.rank()))
            if evens.included():
                total = sum(evens.ranks)
                self.assertEqual(hvd.allreduce(tensor, op=hvd.Sum, process_set=evens)[0].item(), total)
                self.assertEqual(hvd.allgather(tensor[:1], process_set=evens).tolist(), evens.ranks)
                self.assertEqual(hvd.broadcast(tensor, evens.ranks[-1], process_set=evens)[0], evens.ranks[-1])
                self.assertEqual(hvd.allgather_object(hvd.rank(), process_set=evens), evens.ranks)
                weight = torch.nn.Parameter(torch.zeros(2))
                optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=evens)
                for _ in range(2):
                    optimizer.zero_grad()
                    (weight * hvd.rank()).sum().backward()
                    optimizer.step()
                self.assertAlmostEqual(weight[0].item(), -2 * total / len(evens.ranks), places=6)
            else:
                with self.assertRaises(ValueError):
                    hvd.allreduce(tensor, process_set=evens)
                weight = torch.nn.Parameter(torch.zeros(2))
                optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=evens)
                weight.sum().backward()
                optimizer.step()
                self.assertEqual(weight.tolist(), [-1.0, -1.0])
        finally:
            hvd.shutdown()
            hvd.init()


class InPlace(Case):
    def test_two_operations_that_write_to_one_tensor_are_refused(self):
        whole = torch.ones(100)
        begin_each = {
            "allreduce": lambda tensor: hvd.allreduce_async_(tensor, name="second", op=hvd.Sum),
            "group": lambda tensor: hvd.grouped_allreduce_async_([torch.ones(2), tensor], name="second"),
            "broadcast": lambda tensor: hvd.broadcast_async_(tensor, 0, name="second"),
            "blocking": lambda tensor: hvd.allreduce_(tensor, name="second"),
        }
        for part in (whole, whole[50:60], whole[99:], whole.view(10, 10)):
            handle = hvd.allreduce_async_(whole, name="first", op=hvd.Sum)
            for begin in begin_each.values():
                with self.assertRaisesRegex(ValueError, "'[a-z]+.second' would write .* 'allreduce.first'"):
                    begin(part)
            hvd.synchronize(handle)
            self.assertIsNotNone(hvd.synchronize(begin_each["allreduce"](part)))

    def test_neighbours_are_not_refused(self):
        whole = torch.ones(100)
        handles = [hvd.allreduce_async_(whole[10 * each:10 * each + 10], name=f"part.{each}", op=hvd.Sum)
                   for each in (5, 3, 4, 0, 9, 1)]
        for handle in handles:
            hvd.synchronize(handle)
        self.assertEqual(whole[55].item(), hvd.size())

    def test_a_failed_operation_gives_the_tensor_back(self):
        tensor, other = torch.ones(4), torch.ones(3)
        handle = hvd.allreduce_async_(other, name="taken")
        with self.assertRaises(ValueError):
            hvd.allreduce_async_(tensor, name="taken")
        hvd.synchronize(handle)
        hvd.allreduce_(tensor, name="free")
        if hvd.size() > 1:
            handle = hvd.allreduce_async_(tensor if hvd.rank() else torch.ones(5), name="different")
            with self.assertRaises(hvd.HorovodInternalError):
                hvd.synchronize(handle)
            hvd.allreduce_(tensor, name="free again")

    def test_autograd_notices(self):
        for reduce in (lambda tensor: hvd.allreduce_(tensor, name="noticed"), hvd.allreduce_,
                       lambda tensor: hvd.synchronize(hvd.allreduce_async_(tensor, name="noticed later")),
                       lambda tensor: hvd.grouped_allreduce_([tensor], name="noticed group"),
                       lambda tensor: hvd.broadcast_(tensor, 0, name="noticed broadcast")):
            for shape in ((), (3,), (2, 3)):
                factor, weight = torch.full(shape, 2.0), torch.ones(shape, requires_grad=True)
                product = (factor * weight).sum()
                version = factor._version
                reduce(factor)
                self.assertGreater(factor._version, version)
                with self.assertRaisesRegex(RuntimeError, "inplace operation"):
                    product.backward()
        handle = hvd.allreduce_async_(factor, name="between")
        product = (factor * weight).sum()
        hvd.synchronize(handle)
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            product.backward()


if __name__ == "__main__":
    unittest.main()
