"""The operations of muster.tensorflow, eagerly and in graphs, against numpy in double precision."""

import unittest

import numpy
import tensorflow as tf

import muster.tensorflow as hvd
from ranks.tensorflow_world import FLOATS, INTEGERS, Case, both_ways, inputs, own

SHAPES = [(), (1,), (17,), (3, 5), (0,), (0, 3), (200, 37)]
NUMPY = {hvd.Sum: lambda all: numpy.sum(all, 0), hvd.Average: lambda all: numpy.mean(all, 0),
         hvd.Min: lambda all: numpy.min(all, 0), hvd.Max: lambda all: numpy.max(all, 0),
         hvd.Product: lambda all: numpy.prod(all, 0)}


class Allreduce(Case):
    def test_every_type_shape_and_operation(self):
        for dtype in FLOATS + INTEGERS:
            # One graph for all, because tracing one per case would take too long.
            pairs = [(shape, op) for shape in SHAPES for op in NUMPY]

            def all_of_them(*tensors):
                return [hvd.allreduce(tensor, op=op) for tensor, (_, op) in zip(tensors, pairs)]

            for way, run in both_ways(all_of_them).items():
                reduced = run(*[own(shape, dtype) for shape, _ in pairs])
                for tensor, (shape, op) in zip(reduced, pairs):
                    with self.subTest(dtype=dtype, shape=shape, op=op, way=way):
                        expected = NUMPY[op](inputs(shape, dtype))
                        self.assertEqual(tensor.dtype, dtype)
                        self.assert_near(tensor, expected if dtype.is_floating else numpy.trunc(expected))

    def test_the_input_is_not_changed(self):
        tensor = own((100,), tf.float32)
        before = tensor.numpy().copy()
        hvd.allreduce(tensor, op=hvd.Sum)
        numpy.testing.assert_array_equal(tensor.numpy(), before)

    def test_every_rank_has_the_same_bits(self):
        for dtype in FLOATS:
            tensor = tf.cast(tf.random.stateless_normal((977,), seed=[hvd.rank(), 7]), dtype)
            self.assert_same_bits(hvd.allreduce(tensor), f"bits {dtype.name}")

    def test_scales(self):
        for way, run in both_ways(lambda tensor: hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.25,
                                                               postscale_factor=3.0)).items():
            with self.subTest(way=way):
                self.assert_near(run(own((7, 11), tf.float64)),
                                 numpy.sum(inputs((7, 11), tf.float64), 0) * 0.25 * 3.0)

    def test_compression_travels_in_16_bits_and_returns_the_type(self):
        for compression, wire in ((hvd.Compression.fp16, tf.float16), (hvd.Compression.bf16, tf.bfloat16)):
            reduced = hvd.allreduce(own((50,), tf.float32), op=hvd.Sum, compression=compression)
            self.assertEqual(reduced.dtype, tf.float32)
            self.assert_near(reduced, numpy.sum(inputs((50,), tf.float32), 0), wire)

    def test_average_and_op_are_not_given_together(self):
        with self.assertRaisesRegex(ValueError, "only one"):
            hvd.allreduce(tf.ones(2), average=True, op=hvd.Sum)
        with self.assertWarns(DeprecationWarning):
            reduced = hvd.allreduce(own((3,), tf.float32), average=False)
        self.assert_near(reduced, numpy.sum(inputs((3,), tf.float32), 0))

    def test_types_that_cannot_travel_are_refused(self):
        with self.assertRaisesRegex(ValueError, "complex64 is not supported"):
            hvd.allreduce(tf.complex(1.0, 1.0))

    def test_a_shape_that_is_known_stays_known_in_a_graph(self):
        shapes = []

        @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([4, 2])])
        def graph(open_one, closed_one):
            outputs = [hvd.allreduce(closed_one), hvd.allgather(closed_one), hvd.allreduce(open_one),
                       hvd.reducescatter(closed_one), hvd.broadcast(closed_one, 0)]
            shapes.extend(each.shape.as_list() for each in outputs)
            return outputs

        graph(tf.ones((2, 3)), tf.ones((4, 2)))
        self.assertEqual(shapes, [[4, 2], [None, 2], [None, 3], [None, 2], [4, 2]])


class GroupedAndSparse(Case):
    def test_a_group_of_several_types(self):
        types = [tf.float32, tf.float64, tf.int32, tf.float32, tf.bfloat16]

        def group(*tensors):
            return hvd.grouped_allreduce(list(tensors), op=hvd.Sum)

        for way, run in both_ways(group).items():
            reduced = run(*[own((5, i), dtype, seed=i) for i, dtype in enumerate(types)])
            for i, (tensor, dtype) in enumerate(zip(reduced, types)):
                with self.subTest(way=way, index=i):
                    self.assert_near(tensor, numpy.sum(inputs((5, i), dtype, seed=i), 0))

    def test_indexed_slices_are_put_behind_each_other_and_averaged(self):
        rank, size = hvd.rank(), hvd.size()

        def reduce(values, indices):
            return hvd.allreduce(tf.IndexedSlices(values, indices, tf.constant([size + 1, 2])))

        for way, run in both_ways(reduce).items():
            with self.subTest(way=way):
                slices = run(tf.fill((rank + 1, 2), float(rank + 1)), tf.range(rank + 1))
                self.assertIsInstance(slices, tf.IndexedSlices)
                expected = numpy.zeros((size + 1, 2))
                for other in range(size):
                    expected[:other + 1] += (other + 1) / size
                self.assert_near(tf.convert_to_tensor(slices), expected)

    def test_indexed_slices_have_no_smallest(self):
        with self.assertRaisesRegex(NotImplementedError, "sparse_as_dense"):
            hvd.allreduce(tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0])), op=hvd.Min)
        slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]))
        for factors in ({"prescale_factor": 0.5}, {"postscale_factor": 0.5}):
            with self.assertRaisesRegex(NotImplementedError, "multiply their values"):
                hvd.allreduce(slices, op=hvd.Sum, **factors)
        # Also if dense tensors come first: they are not submitted before the check.
        with self.assertRaisesRegex(NotImplementedError, "sparse_as_dense"):
            hvd.grouped_allreduce([tf.ones(2), slices], op=hvd.Adasum)


class Moves(Case):
    def test_allgather_of_different_lengths(self):
        rank = hvd.rank()
        for dtype in FLOATS + INTEGERS + [tf.bool]:
            for way, run in both_ways(lambda a, b: hvd.grouped_allgather([a, b])).items():
                with self.subTest(dtype=dtype, way=way):
                    mine = tf.cast(tf.fill((rank, 3), rank), dtype)
                    gathered, numbers = run(mine, tf.cast(tf.constant(rank), dtype))
                    expected = numpy.concatenate([numpy.full((r, 3), r) for r in range(hvd.size())])
                    numpy.testing.assert_array_equal(gathered.numpy().astype(bool if dtype == tf.bool else float),
                                                     expected.astype(bool if dtype == tf.bool else float))
                    self.assertEqual(numbers.shape, (hvd.size(),))

    def test_allgather_of_rows_without_elements(self):
        self.assertEqual(hvd.allgather(tf.ones((hvd.rank() + 1, 0))).shape,
                         (hvd.size() * (hvd.size() + 1) // 2, 0))

    def test_broadcast_from_every_root(self):
        for root in range(hvd.size()):
            for dtype in FLOATS + INTEGERS + [tf.bool]:
                for way, run in both_ways(lambda x: hvd.broadcast(x, root)).items():
                    with self.subTest(root=root, dtype=dtype, way=way):
                        values = run(tf.cast(own((4, 3), tf.int32), dtype))
                        expected = inputs((4, 3), tf.int32)[root]
                        numpy.testing.assert_array_equal(
                            values.numpy().astype(float), (expected != 0) if dtype == tf.bool else expected)

    def test_broadcast_into_variables(self):
        root = hvd.size() - 1
        variables = [tf.Variable(own((3,), tf.float32)), tf.Variable(own((2, 2), tf.int64))]
        self.assertIs(hvd.broadcast_(variables, root)[0], variables[0])
        self.assert_near(variables[0], inputs((3,), tf.float32)[root])
        self.assert_near(variables[1], inputs((2, 2), tf.int64)[root])

    def test_alltoall_with_and_without_splits(self):
        rank, size = hvd.rank(), hvd.size()
        for way, run in both_ways(lambda x: hvd.alltoall(x)).items():
            with self.subTest(way=way):
                mine = tf.range(size * 2) + 100 * rank
                expected = [100 * r + 2 * rank + i for r in range(size) for i in range(2)]
                self.assertEqual(run(mine).numpy().tolist(), expected)
        # Rank r sends i+1 rows to rank i.
        splits = [i + 1 for i in range(size)]
        for way, run in both_ways(lambda x, s: hvd.alltoall(x, splits=s)).items():
            with self.subTest(way=way, splits=splits):
                received, rows = run(tf.fill((sum(splits), 2), float(rank)), tf.constant(splits))
                self.assertEqual(rows.dtype, tf.int32)
                self.assertEqual(rows.numpy().tolist(), [rank + 1] * size)
                numpy.testing.assert_array_equal(received.numpy()[:, 0], numpy.repeat(range(size), rank + 1))

    def test_invalid_splits_are_refused_with_all_their_faults(self):
        with self.assertRaisesRegex(ValueError, "entries for .* ranks, and has negative entries.*, and adds up to"):
            hvd.alltoall(tf.ones(4), splits=[-1] * (hvd.size() + 1))

    def test_reducescatter(self):
        size, rank = hvd.size(), hvd.rank()
        length = 2 * size + 1
        for dtype in FLOATS + INTEGERS:
            for op in (hvd.Sum, hvd.Average):
                for way, run in both_ways(lambda x: hvd.grouped_reducescatter([x, x], op=op)).items():
                    with self.subTest(dtype=dtype, op=op, way=way):
                        whole = NUMPY[op](inputs((length, 2), dtype))
                        if not dtype.is_floating:
                            whole = numpy.trunc(whole)
                        first = 2 * rank + min(rank, 1)
                        for scattered in run(own((length, 2), dtype)):
                            self.assert_near(scattered, whole[first:first + 2 + (rank == 0)])

    def test_objects(self):
        self.assertEqual(hvd.broadcast_object({"from": hvd.rank()}, root_rank=1), {"from": 1})
        self.assertEqual(hvd.broadcast_object_fn(root_rank=0)([hvd.rank()]), [0])
        self.assertEqual(hvd.allgather_object("x" * hvd.rank()), ["x" * rank for rank in range(hvd.size())])


class Agreement(Case):
    def test_a_mismatch_is_an_error_on_every_rank_and_the_world_goes_on(self):
        with self.assertRaisesRegex(hvd.MismatchError, r"float32\[2\].*float32\[3\]|float32\[3\].*float32\[2\]"):
            hvd.allreduce(tf.ones(2 if hvd.rank() == 0 else 3), name="differs")
        self.assert_near(hvd.allreduce(tf.ones(3), op=hvd.Sum, name="agrees"), [hvd.size()] * 3)

    def test_a_mismatch_within_a_graph_can_be_recognized(self):
        from muster.tensorflow.errors import raised_as_own

        @tf.function
        def graph(tensor):
            return hvd.allreduce(tensor, name="differs in a graph")

        with self.assertRaisesRegex(hvd.MismatchError, r"float32\[2\]"), raised_as_own():
            graph(tf.ones(2 if hvd.rank() == 0 else 3))

    def test_lists_of_different_lengths_are_an_error_on_every_rank(self):
        size, rank = hvd.size(), hvd.rank()
        for name, call in (
                ("variables", lambda listed: hvd.broadcast_variables([tf.Variable(each) for each in listed], 0)),
                ("reduce", hvd.grouped_allreduce), ("gather", hvd.grouped_allgather),
                ("scatter", hvd.grouped_reducescatter)):
            for short, more in ((1, 12), (2, 12), (1, 2)):
                # Types that differ are reduced by several operations.
                listed = [tf.ones((size, 2), tf.float32 if i % 2 else tf.float64)
                          for i in range(more if rank else short)]
                with self.subTest(name, short=short, more=more):
                    with self.assertRaises(hvd.MismatchError):
                        call(listed)
                    self.assert_near(hvd.allreduce(tf.ones(3), op=hvd.Sum), [size] * 3)
        listed = [tf.ones(2)] * (1 if rank else 2)
        with self.assertRaisesRegex(hvd.MismatchError, r"float32\[2\], float32\[2\]"):
            hvd.grouped_allreduce(listed)

    def test_lists_of_different_lengths_in_a_graph_are_an_error_on_every_rank(self):
        from muster.tensorflow.errors import raised_as_own

        @tf.function
        def graph(tensors):
            return hvd.grouped_allgather(tensors, name="differs in length")

        for more in (1, 2, 12, 1):
            with self.subTest(more=more):
                tensors = [tf.ones(2)] * (more + (0 if hvd.rank() == 0 else 1))
                with self.assertRaises(hvd.MismatchError), raised_as_own():
                    graph(tensors)
                self.assertEqual(len(graph([tf.ones(2)] * more)), more)

    def test_process_sets(self):
        even = hvd.add_process_set([rank for rank in range(hvd.size()) if rank % 2 == 0])
        try:
            self.assertEqual(int(hvd.process_set_included_op(even.process_set_id)), int(hvd.rank() % 2 == 0))
            self.assertEqual(int(hvd.size_op(even.process_set_id)), (hvd.size() + 1) // 2)
            if even.included():
                for way, run in both_ways(lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=even)).items():
                    with self.subTest(way=way):
                        self.assert_near(run(own((6,), tf.float32)),
                                         numpy.sum(inputs((6,), tf.float32)[::2], 0))
        finally:
            hvd.remove_process_set(even)

    def test_join_and_barrier(self):
        hvd.barrier()
        tf.function(hvd.barrier)()
        if hvd.rank() > 0:
            reduced = hvd.allreduce(tf.ones(3), op=hvd.Sum, name="while rank 0 has joined")
            self.assert_near(reduced, [hvd.size() - 1.0] * 3)
        last = hvd.join()
        self.assertEqual(hvd.allgather_object(int(last)), [int(last)] * hvd.size())

    def test_operations_without_names_match_after_a_join(self):
        for way, join in both_ways(hvd.join).items():
            with self.subTest(way=way):
                for first in range(hvd.size()):
                    for _ in range(3 if hvd.rank() == first else 5):
                        hvd.allreduce(tf.ones(1))
                    join()
                self.assertEqual(hvd.allgather(tf.constant([hvd.rank()])).numpy().tolist(), list(range(hvd.size())))
                self.assert_near(hvd.allreduce(tf.ones(1), op=hvd.Sum), [hvd.size()])

    def test_rank_and_size_within_a_graph(self):
        graph = tf.function(lambda: [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op()])
        self.assertEqual([int(each) for each in graph()],
                         [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()])


if __name__ == "__main__":
    unittest.main()
