"""allgather, broadcast, alltoall and sparse allreduce of muster.torch."""

import unittest

import numpy
import torch

import muster.torch as hvd
from ranks.torch_world import FLOATS, INTEGERS, Case, data, own

TYPES = FLOATS + INTEGERS + [torch.bool]


class Allgather(Case):
    def test_every_type_with_lengths_that_differ(self):
        for dtype in TYPES:
            for rest in [(), (3,), (2, 2), (0,)]:
                for base in (0, 1, 100):
                    with self.subTest(dtype=dtype, rest=rest, base=base):
                        lengths = [(base + rank) % (base + 2) for rank in range(hvd.size())]
                        parts = [data(rank, (length, *rest), dtype) for rank, length in enumerate(lengths)]
                        whole = hvd.allgather(parts[hvd.rank()])
                        self.assertEqual(whole.dtype, dtype)
                        self.assertTrue(torch.equal(whole, torch.cat(parts)))

    def test_a_number_of_each_rank(self):
        self.assertEqual(hvd.allgather(torch.tensor(3 * hvd.rank())).tolist(), [3 * r for r in range(hvd.size())])

    def test_the_result_outlives_the_operation_and_can_be_written(self):
        whole = hvd.allgather(own((1000,), torch.float64))
        others = [hvd.allgather(own((1000,), torch.float64, seed=seed)) for seed in range(1, 5)]
        expected = torch.cat([data(rank, (1000,), torch.float64) for rank in range(hvd.size())])
        self.assertTrue(torch.equal(whole, expected))
        whole += 1
        self.assertTrue(torch.equal(whole, expected + 1))
        del others

    def test_groups_and_asynchronous(self):
        tensors = [own((hvd.rank() + i, 2), torch.float32, seed=i) for i in range(4)]
        expected = [torch.cat([data(rank, (rank + i, 2), torch.float32, seed=i) for rank in range(hvd.size())])
                    for i in range(4)]
        for result in (hvd.grouped_allgather(tensors),
                       hvd.synchronize(hvd.grouped_allgather_async(tensors, name="g")),
                       [hvd.synchronize(hvd.allgather_async(tensor)) for tensor in tensors]):
            for tensor, right in zip(result, expected):
                self.assertTrue(torch.equal(tensor, right))


class Broadcast(Case):
    def test_every_type_shape_and_root(self):
        for dtype in TYPES:
            for shape in [(), (1,), (5, 7), (0,), (100_000,)]:
                for root in range(hvd.size()):
                    with self.subTest(dtype=dtype, shape=shape, root=root):
                        tensor, right = own(shape, dtype), data(root, shape, dtype)
                        before = tensor.clone()
                        self.assertTrue(torch.equal(hvd.broadcast(tensor, root), right))
                        self.assertTrue(torch.equal(tensor, before), "the input was changed")
                        self.assertIs(hvd.broadcast_(tensor, root), tensor)
                        self.assertTrue(torch.equal(tensor, right))

    def test_asynchronous(self):
        handles = [hvd.broadcast_async(torch.full((3,), hvd.rank()), root, name=f"b{root}")
                   for root in range(hvd.size())]
        in_place = [torch.full((3,), hvd.rank()) for _ in handles]
        more = [hvd.broadcast_async_(tensor, root) for root, tensor in enumerate(in_place)]
        for root, (handle, handle_) in enumerate(zip(handles, more)):
            self.assertEqual(hvd.synchronize(handle).tolist(), [root] * 3)
            self.assertIs(hvd.synchronize(handle_), in_place[root])
            self.assertEqual(in_place[root].tolist(), [root] * 3)


class Alltoall(Case):
    def test_equal_parts_give_the_tensor_alone(self):
        for dtype in TYPES:
            tensor = own((2 * hvd.size(), 3), dtype)
            expected = torch.cat([data(rank, (2 * hvd.size(), 3), dtype)[2 * hvd.rank():2 * hvd.rank() + 2]
                                  for rank in range(hvd.size())])
            self.assertTrue(torch.equal(hvd.alltoall(tensor), expected))

    def test_splits(self):
        size, rank = hvd.size(), hvd.rank()
        for rest in [(), (2, 3), (0,)]:
            for dtype in (torch.float32, torch.int8, torch.bfloat16):
                splits = [[(sender + receiver) % 3 for receiver in range(size)] for sender in range(size)]
                sent = [data(sender, (sum(splits[sender]), *rest), dtype) for sender in range(size)]
                expected = torch.cat([sent[sender].split(splits[sender])[rank] for sender in range(size)])
                for given in (splits[rank], torch.tensor(splits[rank], dtype=torch.int32),
                              torch.tensor(splits[rank], dtype=torch.int64)):
                    output, received = hvd.alltoall(sent[rank], splits=given)
                    self.assertTrue(torch.equal(output, expected))
                    self.assertEqual(received.dtype, torch.int32)
                    self.assertEqual(received.tolist(), [splits[sender][rank] for sender in range(size)])

    def test_a_handle_always_gives_both(self):
        output, received = hvd.synchronize(hvd.alltoall_async(torch.arange(hvd.size())))
        self.assertEqual(output.tolist(), [hvd.rank()] * hvd.size())
        self.assertEqual(received.tolist(), [1] * hvd.size())

    def test_refused(self):
        size = hvd.size()
        for tensor, splits, words in (
                (torch.ones(3), [3] + [1] * (size - 1) if size > 1 else [4], "add up"),
                (torch.ones(3), [3] + [0] * size, "one for each rank"),
                (torch.ones(size), [-1] + [1] * (size - 2) + [2] if size > 1 else [-1], "negative"),
                (torch.ones(size), torch.ones(size), "whole numbers"),
                (torch.tensor(1.0), None, "first dimension")):
            self.refused_everywhere(ValueError, lambda: hvd.alltoall(tensor, splits), words)
        if size > 1:
            self.refused_everywhere(ValueError, lambda: hvd.alltoall(torch.ones(size + 1)), "divided evenly")


class Sparse(Case):
    def test_sum_and_average(self):
        for op, divisor in ((hvd.Sum, 1), (hvd.Average, hvd.size())):
            dense = [torch.zeros(6, 3, dtype=torch.float64) for _ in range(hvd.size())]
            for rank, each in enumerate(dense):
                each[rank % 6] = rank + 1
                each[5] = 1
            wait = hvd.sparse_allreduce_async(dense[hvd.rank()].to_sparse(1), "sparse", op)
            reduced = wait()
            self.assertTrue(reduced.is_sparse)
            self.assertTrue(torch.allclose(reduced.to_dense(), sum(dense) / divisor, rtol=0, atol=1e-15))

    def test_a_rank_without_values_and_places_named_twice(self):
        values = 2 * hvd.rank()
        tensor = torch.sparse_coo_tensor(torch.zeros(1, values, dtype=torch.int64), torch.ones(values), (4,))
        reduced = hvd.sparse_allreduce_async(tensor, "none", hvd.Sum)().to_dense()
        self.assertEqual(reduced.tolist(), [sum(2.0 * rank for rank in range(hvd.size())), 0, 0, 0])

    def test_refused(self):
        tensor = torch.eye(2).to_sparse()
        self.refused_everywhere(ValueError, lambda: hvd.sparse_allreduce_async(tensor, "s", hvd.Max), "Max")
        self.refused_everywhere(ValueError, lambda: hvd.sparse_allreduce_async(torch.eye(2), "s", hvd.Sum),
                                "sparse")
        self.refused_everywhere(ValueError, lambda: hvd.allreduce(tensor), "is not supported")


class Objects(Case):
    def test_broadcast_of_any_object(self):
        for root in range(hvd.size()):
            sent = {"rank": root, "numbers": numpy.arange(5).tolist(), "nothing": None, "text": "ü" * 1000}
            value = hvd.broadcast_object(sent if hvd.rank() == root else "not looked at", root)
            self.assertEqual(value, sent)
        self.assertEqual(hvd.broadcast_object_fn(root_rank=0)(hvd.rank()), 0)

    def test_allgather_of_objects_of_different_lengths(self):
        self.assertEqual(hvd.allgather_object("x" * hvd.rank()), ["x" * rank for rank in range(hvd.size())])
        self.assertEqual(hvd.allgather_object((hvd.rank(), [1]), name="named"),
                         [(rank, [1]) for rank in range(hvd.size())])


if __name__ == "__main__":
    unittest.main()
