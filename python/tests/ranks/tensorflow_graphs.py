"""Properties of graphs: order, gradients, sessions of TensorFlow 1, XLA."""

import unittest

import numpy
import tensorflow as tf

import muster.tensorflow as hvd
from ranks.tensorflow_world import Case, both_ways, inputs, own


class Order(Case):
    def test_independent_operations_in_another_order_on_each_rank(self):
        # One thread runs the graph (tensorflow_world): an operation that waited on it would wait for ever.
        count = 8
        order = numpy.random.default_rng(hvd.rank()).permutation(count)

        @tf.function
        def graph(*tensors):
            reduced = {}
            for index in order:
                reduced[index] = hvd.allreduce(tensors[index], op=hvd.Sum, name=f"number {index}")
            return [reduced[index] for index in range(count)]

        for step in range(5):
            reduced = graph(*[own((9,), tf.float32, seed=index + step) for index in range(count)])
            for index, tensor in enumerate(reduced):
                self.assert_near(tensor, numpy.sum(inputs((9,), tf.float32, seed=index + step), 0))

    def test_operations_that_need_each_other(self):
        @tf.function
        def graph(tensor):
            for _ in range(10):
                tensor = hvd.allreduce(hvd.allreduce(tensor, op=hvd.Sum), op=hvd.Average)
            return tensor

        self.assert_near(graph(tf.ones(2)), [float(hvd.size()) ** 10] * 2)

    def test_loops_and_branches(self):
        @tf.function
        def graph(count):
            total = tf.constant(0.0)
            for step in tf.range(count):
                if step % 2 == 0:
                    total += hvd.allreduce(tf.cast(step, tf.float32), op=hvd.Sum)
                else:
                    total -= hvd.broadcast(tf.cast(step, tf.float32), 0)
            return total

        size = hvd.size()
        self.assert_near(graph(tf.constant(6)), size * (0 + 2 + 4) - (1 + 3 + 5.0))

    def test_values_that_are_not_fetched(self):
        @tf.function
        def graph(tensor):
            hvd.allreduce(tensor, name="not fetched")
            return tensor

        for _ in range(3):
            graph(tf.ones(2))
        self.assert_near(hvd.allreduce(tf.ones(2), op=hvd.Sum), [hvd.size()] * 2)

    def test_a_join_follows_the_list_of_several_types_that_was_begun_before(self):
        @tf.function
        def graph(first, second):
            reduced = hvd.grouped_allreduce([first, second], op=hvd.Sum, name="before a join")
            return reduced, hvd.join()

        for _ in range(3):
            reduced, last = graph(tf.ones(2), tf.ones(3, tf.float64))
            self.assert_near(reduced[0], [hvd.size()] * 2)
            self.assert_near(reduced[1], [hvd.size()] * 3)
            self.assertIn(int(last), range(hvd.size()))


class Gradients(Case):
    """Compares gradients with numpy's; the loss weighs every element differently."""

    def check(self, operation, expected, shape=None):
        weights = numpy.arange(1.0, 200.0)
        shape = shape or (2 * hvd.size(), 3)

        def gradient(tensor):
            with tf.GradientTape() as tape:
                tape.watch(tensor)
                output = tf.reshape(operation(tensor), (-1,))
                loss = tf.reduce_sum(output * tf.cast(weights[:output.shape[0]] if output.shape[0] else
                                                      tf.constant(weights)[:tf.shape(output)[0]], tf.float64))
            return tape.gradient(loss, tensor)

        for way, run in both_ways(gradient).items():
            with self.subTest(way=way):
                self.assert_near(run(own(shape, tf.float64)), expected(shape, weights))

    def test_allreduce(self):
        for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
            self.check(lambda x: hvd.allreduce(x, op=op, prescale_factor=0.5),
                       lambda shape, w: factor * 0.5 * w[:numpy.prod(shape)].reshape(shape))

    def test_allgather(self):
        def expected(shape, w):
            count = numpy.prod(shape)
            return w[hvd.rank() * count:(hvd.rank() + 1) * count].reshape(shape)
        self.check(hvd.allgather, expected)

    def test_broadcast(self):
        self.check(lambda x: hvd.broadcast(x, 1),
                   lambda shape, w: (hvd.rank() == 1) * w[:numpy.prod(shape)].reshape(shape))

    def test_reducescatter(self):
        # All ranks weigh their rows equally.
        def expected(shape, w):
            rows = w[:6].reshape(2, 3)
            return numpy.concatenate([rows] * hvd.size())
        self.check(lambda x: hvd.reducescatter(x, op=hvd.Average), expected)
        self.check(lambda x: hvd.reducescatter(x, op=hvd.Sum), lambda *given: hvd.size() * expected(*given))

    def test_alltoall(self):
        # The two rows from this rank come to rank i in place 2 * rank, with the weights of that place.
        def expected(shape, w):
            rows = w[:numpy.prod(shape)].reshape(shape)[2 * hvd.rank():2 * hvd.rank() + 2]
            return numpy.concatenate([rows] * hvd.size())
        self.check(hvd.alltoall, expected)
        self.check(lambda x: hvd.alltoall(x, splits=[2] * hvd.size())[0], expected)

    def test_gradients_of_gradients(self):
        tensor = tf.constant([2.0, 3.0], tf.float64)
        with tf.GradientTape() as outer:
            outer.watch(tensor)
            with tf.GradientTape() as inner:
                inner.watch(tensor)
                loss = tf.reduce_sum(hvd.allreduce(tensor ** 3, op=hvd.Average))
            first = inner.gradient(loss, tensor)
            total = tf.reduce_sum(first)
        self.assert_near(outer.gradient(total, tensor), [12.0, 18.0])


class TensorFlow1(Case):
    def test_operations_and_gradients_in_a_session(self):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tensor = tf.compat.v1.placeholder(tf.float32, [None, 2])
            reduced = hvd.allreduce(tensor, op=hvd.Sum)
            gathered = hvd.allgather(tensor)
            (gradient,) = tf.gradients(reduced, tensor)
            mine = own((3, 2), tf.float32)
        with tf.compat.v1.Session(graph=tensor.graph) as session:
            for fetched, expected in (
                    (reduced, numpy.sum(inputs((3, 2), tf.float32), 0)),
                    (gathered, numpy.concatenate(inputs((3, 2), tf.float32))),
                    (gradient, numpy.full((3, 2), float(hvd.size())))):
                value = session.run(fetched, {tensor: data_of(mine)})
                numpy.testing.assert_allclose(value, expected)

    def test_training_with_a_monitored_session(self):
        graph = tf.Graph()
        with graph.as_default():
            weight = tf.compat.v1.get_variable("w", initializer=float(hvd.rank() + 1), use_resource=True)
            step = tf.compat.v1.train.get_or_create_global_step()
            loss = tf.square(weight - float(hvd.rank()))
            optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.MomentumOptimizer(0.1, 0.9))
            train = optimizer.minimize(loss, global_step=step)
            with tf.compat.v1.train.MonitoredTrainingSession(
                    hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
                for _ in range(4):
                    session.run(train)
                value = session.run(weight)
        # The same on one rank, with the average of the gradients.
        expected, velocity, target = 1.0, 0.0, numpy.mean(range(hvd.size()))
        for _ in range(4):
            velocity = 0.9 * velocity + 2 * (expected - target)
            expected -= 0.1 * velocity
        numpy.testing.assert_allclose(value, expected, rtol=1e-5)
        self.assert_same_bits(value, "weight of a session")

    def test_several_passes_before_a_step(self):
        graph = tf.Graph()
        with graph.as_default():
            weight = tf.compat.v1.get_variable("w", initializer=0.0, use_resource=True)
            given = tf.compat.v1.placeholder(tf.float32, [])
            optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0),
                                                 backward_passes_per_step=2)
            train = optimizer.minimize(weight * given)
            with tf.compat.v1.Session() as session:
                session.run(tf.compat.v1.global_variables_initializer())
                seen = []
                for value in (1.0, 2.0, 3.0, 4.0):
                    session.run(train, {given: value * (hvd.rank() + 1)})
                    seen.append(float(session.run(weight)))
        mean = numpy.mean([rank + 1 for rank in range(hvd.size())])
        numpy.testing.assert_allclose(seen, [0, -3 * mean, -3 * mean, -10 * mean], rtol=1e-6)


class FewThreads(Case):
    """Sessions of TensorFlow 1 with fewer threads than operations that wait."""

    def in_a_session(self, threads, build):
        """The values that a session with `threads` inter-op threads fetches for build(), 3 times."""
        config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=threads, intra_op_parallelism_threads=1,
                                          use_per_session_threads=True)
        with tf.Graph().as_default():
            fetches = build()
            with tf.compat.v1.Session(config=config) as session:
                return [session.run(fetches) for _ in range(3)]

    def test_independent_operations_become_ready_in_another_order_on_each_rank(self):
        count = 16
        order = numpy.random.default_rng(hvd.rank()).permutation(count)

        def build():
            reduced = {}
            previous = []
            for index in order:
                # This rank's order: an operation is ready only when the one before it has been handed over.
                with tf.control_dependencies(previous):
                    value = tf.numpy_function(lambda given: given, [tf.constant([index], tf.float64)], tf.float64)
                    value.set_shape((1,))
                reduced[index] = hvd.allreduce(value, op=hvd.Sum, name=f"of a session {index}")
                previous = [value]
            return [reduced[index] for index in range(count)]

        for threads in (1, 2):
            with self.subTest(threads=threads):
                for values in self.in_a_session(threads, build):
                    numpy.testing.assert_array_equal(numpy.ravel(values), hvd.size() * numpy.arange(float(count)))

    def test_every_kind_of_operation_waits_beside_the_others(self):
        kinds = {
            "allreduce": lambda x: hvd.allreduce(x, op=hvd.Sum, name="beside allreduce"),
            "grouped": lambda x: hvd.grouped_allreduce([x, x], op=hvd.Sum, name="beside grouped")[1],
            "allgather": lambda x: tf.reduce_sum(hvd.allgather(x, name="beside allgather"), keepdims=True),
            "broadcast": lambda x: hvd.broadcast(x, 0, name="beside broadcast"),
            "alltoall": lambda x: hvd.alltoall(tf.tile(x, [hvd.size()]), name="beside alltoall")[:1],
            "reducescatter": lambda x: hvd.reducescatter(tf.tile(x, [hvd.size()]), op=hvd.Sum, name="beside scatter")}
        names = sorted(kinds)
        numpy.random.default_rng(hvd.rank() + 7).shuffle(names)

        def build():
            made = {name: kinds[name](tf.ones(1)) for name in names}
            return [made[name] for name in sorted(names)]

        size = hvd.size()
        for values in self.in_a_session(1, build):
            self.assertEqual(list(map(float, numpy.ravel(values))), [size, size, 1, 1, size, size])

    def test_a_rank_that_has_joined_holds_no_thread(self):
        with tf.Graph().as_default():
            joined = hvd.join() if hvd.rank() == 0 else None
            reduced = hvd.allreduce(tf.ones(1), op=hvd.Sum, name="with a rank that has joined")
            if joined is None:
                with tf.control_dependencies([reduced]):
                    joined = hvd.join()
            self.assertIn("MusterPark", [each.type for each in joined.graph.get_operations()])
            config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
            with tf.compat.v1.Session(config=config) as session:
                if hvd.rank() == 0:
                    last = session.run(joined)
                else:
                    last, value = session.run([joined, reduced])
                    numpy.testing.assert_array_equal(value, [hvd.size() - 1])
        self.assertGreaterEqual(last, 0)

    def test_without_asynchronous_kernels_a_warning_names_the_consequence(self):
        from unittest import mock
        from muster.tensorflow import parking

        parking.warn_of_held_threads.cache_clear()
        with mock.patch.object(parking, "is_available", lambda: False):
            with self.assertWarnsRegex(RuntimeWarning, "more inter-op threads"):
                (values, *_) = self.in_a_session(
                    8, lambda: [hvd.allreduce(tf.ones(1), op=hvd.Sum, name=f"held {index}") for index in range(3)])
            graph = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="of a queue"))
            self.assert_near(graph(tf.ones(1)), [hvd.size()])
        numpy.testing.assert_array_equal(numpy.ravel(values), [hvd.size()] * 3)

    def test_with_another_c_library_the_kernel_waits_on_its_thread(self):
        from unittest import mock
        from muster.tensorflow import parking

        parking.warn_of_held_threads.cache_clear()
        # The call comes from TensorFlow's threads, whose warnings do not reach assertWarns.
        with mock.patch.object(parking, "_is_in_library", lambda address: False), \
                mock.patch.object(parking, "warn_of_held_threads") as warned:
            (values, *_) = self.in_a_session(
                8, lambda: [hvd.allreduce(tf.ones(1), op=hvd.Sum, name=f"here {index}") for index in range(3)])
        numpy.testing.assert_array_equal(numpy.ravel(values), [hvd.size()] * 3)
        self.assertTrue(warned.called)


class Errors(Case):
    """Errors have the types that programs written for Horovod catch."""

    def ways(self, operation):
        """Eagerly, in a tf.function, in a session."""
        def in_a_session():
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                session.run(operation())
        return {"eager": operation, "graph": tf.function(operation), "session": in_a_session}

    def check(self, kind, words, operation):
        for way, run in self.ways(operation).items():
            with self.subTest(way=way):
                with self.assertRaisesRegex(kind, words) as caught:
                    run()
                self.assertIsInstance(caught.exception, kind)

    def test_ranks_that_disagree(self):
        self.check(tf.errors.FailedPreconditionError, "float32\\[",
                   lambda: hvd.allreduce(tf.ones([2 + hvd.rank()]), name="another shape"))

    def test_the_error_is_also_the_packages_own(self):
        from muster.tensorflow.errors import as_own
        operation = lambda: hvd.broadcast(tf.ones(2), hvd.rank(), name="another root")  # noqa: E731
        with self.assertRaises(hvd.MismatchError):
            operation()
        with self.assertRaises(tf.errors.FailedPreconditionError) as caught:
            tf.function(operation)()
        self.assertIsInstance(as_own(caught.exception), hvd.MismatchError)

    def test_splits_that_do_not_add_up(self):
        self.check(tf.errors.InvalidArgumentError, "adds up to",
                   lambda: hvd.alltoall(tf.ones([hvd.size()]), splits=[2] * hvd.size(), name="bad splits")[0])

    def test_splits_that_do_not_add_up_are_a_value_error_eagerly(self):
        with self.assertRaises(ValueError):
            hvd.alltoall(tf.ones([hvd.size()]), splits=[2] * hvd.size(), name="bad splits")


class Xla(Case):
    def test_a_function_for_xla_is_refused_with_advice(self):
        compiled = tf.function(lambda x: hvd.allreduce(x), jit_compile=True)
        with self.assertRaisesRegex(NotImplementedError, "jit_compile"):
            compiled(tf.ones(2))

    def test_functions_between_operations_may_be_compiled(self):
        square = tf.function(lambda x: x * x, jit_compile=True)
        graph = tf.function(lambda x: hvd.allreduce(square(x), op=hvd.Sum))
        self.assert_near(graph(tf.fill((2,), 3.0)), [9.0 * hvd.size()] * 2)


def data_of(tensor):
    """The values of a constant, outside of graphs."""
    return tf.get_static_value(tensor)


if __name__ == "__main__":
    unittest.main()
