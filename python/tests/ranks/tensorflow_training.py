"""Training with muster.tensorflow equals training in one process on the concatenated batches of all ranks."""

import unittest

import numpy
import tensorflow as tf

import muster.tensorflow as hvd
from ranks.tensorflow_world import Case

STEPS, ROWS, WIDTH = 6, 4, 5


def batch(rank, step):
    generator = numpy.random.default_rng([rank, step])
    return generator.normal(size=(ROWS, WIDTH)), generator.normal(size=(ROWS, 2))


def whole_batch(step):
    parts = [batch(rank, step) for rank in range(hvd.size())]
    return tuple(numpy.concatenate([part[i] for part in parts]) for i in range(2))


def model(seed):
    """Weights of a small network in double precision."""
    generator = numpy.random.default_rng(seed)
    return [tf.Variable(generator.normal(size=shape), dtype=tf.float64)
            for shape in ((WIDTH, 7), (7,), (7, 2), (2,))]


def loss_of(weights, features, targets):
    hidden = tf.tanh(tf.matmul(features, weights[0]) + weights[1])
    return tf.reduce_mean(tf.square(tf.matmul(hidden, weights[2]) + weights[3] - targets))


def trained_alone():
    """Gradient descent by numpy's rules on the concatenated batches."""
    weights = model(0)
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            loss = loss_of(weights, *map(tf.constant, whole_batch(step)))
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.1 * gradient)
    return [weight.numpy() for weight in weights]


class Tape(Case):
    def check(self, **options):
        for way in ("eager", "graph"):
            with self.subTest(way=way, **options):
                weights = model(hvd.rank())
                hvd.broadcast_variables(weights, root_rank=0)

                def step(features, targets):
                    with tf.GradientTape() as tape:
                        loss = loss_of(weights, features, targets)
                    tape = hvd.DistributedGradientTape(tape, **options)
                    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                        weight.assign_sub(0.1 * gradient)

                run = step if way == "eager" else tf.function(step)
                for number in range(STEPS):
                    run(*map(tf.constant, batch(hvd.rank(), number)))
                for weight, expected in zip(weights, trained_alone()):
                    numpy.testing.assert_allclose(weight.numpy(), expected, rtol=0, atol=1e-12)
                    self.assert_same_bits(weight, "weights of a tape")

    def test_is_training_alone_on_the_concatenated_batch(self):
        self.check()

    def test_with_a_part_of_the_average_before_the_sum(self):
        self.check(gradient_predivide_factor=2.0)

    def test_in_groups(self):
        self.check(groups=2)
        self.check(groups=0)

    def test_compressed_gradients_are_near(self):
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            weight = tf.Variable(tf.ones((3,)))
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(weight * float(hvd.rank() + 1))
            tape = hvd.DistributedGradientTape(tape, compression=compression)
            gradient = tape.gradient(loss, [weight])[0]
            self.assertEqual(gradient.dtype, tf.float32)
            self.assert_near(gradient, [(hvd.size() + 1) / 2] * 3, tf.bfloat16)

    def test_one_source_nested_sources_and_none(self):
        first, second, third = (tf.Variable(float(i)) for i in range(3))
        with tf.GradientTape(persistent=True) as tape:
            loss = first * 2.0 * (hvd.rank() + 1) + second
        tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        total = sum(range(1, hvd.size() + 1))
        self.assertEqual(float(tape.gradient(loss, first)), 2.0 * total)
        found = tape.gradient(loss, {"a": first, "b": [second, third]})
        self.assertEqual(float(found["a"]), 2.0 * total)
        self.assertEqual(float(found["b"][0]), hvd.size())
        self.assertIsNone(found["b"][1])

    def test_sparse_gradients(self):
        table = tf.Variable(tf.zeros((4, 2)))
        for is_dense in (False, True):
            with self.subTest(is_dense=is_dense):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.gather(table, [hvd.rank(), 0]))
                tape = hvd.DistributedGradientTape(tape, sparse_as_dense=is_dense)
                gradient = tape.gradient(loss, table)
                self.assertEqual(isinstance(gradient, tf.IndexedSlices), not is_dense)
                expected = numpy.zeros((4, 2))
                expected[0] += 1
                for rank in range(hvd.size()):
                    expected[rank] += 1 / hvd.size()
                self.assert_near(tf.convert_to_tensor(gradient), expected)

    def test_local_sources_are_scaled_and_not_reduced(self):
        shared, local = tf.Variable(1.0), tf.Variable(1.0)
        for is_scaled in (True, False):
            with tf.GradientTape() as tape:
                loss = (shared + local) * float(hvd.rank() + 1)
            tape = hvd.PartialDistributedGradientTape(tape, scale_local_gradients=is_scaled)
            tape.register_local_source(local)
            of_shared, of_local = tape.gradient(loss, [shared, local])
            self.assert_near(of_shared, (hvd.size() + 1) / 2)
            self.assert_near(of_local, (hvd.rank() + 1) / (hvd.size() if is_scaled else 1))

    def test_local_and_global_gradients_are_listed_apart(self):
        shared, local = tf.Variable(1.0), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            loss = (shared + local) * float(hvd.rank() + 1)
        tape = hvd.PartialDistributedGradientTape(tape)
        tape.register_local_source(local)
        ((of_local, local_gradient),), ((of_shared, shared_gradient),) = \
            tape.get_local_and_global_gradients(loss, [shared, local])
        self.assertEqual((of_local is local, of_shared is shared), (True, True))
        self.assert_near(local_gradient, (hvd.rank() + 1) / hvd.size())
        self.assert_near(shared_gradient, (hvd.size() + 1) / 2)

    def test_arguments_that_do_not_go_together(self):
        tape = tf.GradientTape()
        with self.assertRaisesRegex(ValueError, "op=Average"):
            hvd.DistributedGradientTape(tape, op=hvd.Sum, gradient_predivide_factor=2.0)
        with self.assertRaisesRegex(ValueError, "groups is -1"):
            hvd.DistributedGradientTape(tape, groups=-1)
        with self.assertRaisesRegex(ValueError, "not a Keras layer"):
            hvd.PartialDistributedGradientTape(tape, local_layers=[3])


class Variables(Case):
    def test_broadcast_variables_refuses_different_ones(self):
        with self.assertRaises(hvd.MismatchError):
            hvd.broadcast_variables([tf.Variable(tf.zeros(2 + (hvd.rank() == 0)))], 0)

    def test_global_variables_are_of_graphs(self):
        with self.assertRaisesRegex(RuntimeError, "broadcast_variables"):
            hvd.broadcast_global_variables(0)


class ElasticState(Case):
    def test_variables_and_objects_are_saved_restored_and_synchronized(self):
        rank = hvd.rank()
        variables = [tf.Variable([float(rank), 1.0])]
        state = hvd.elastic.TensorFlowState(variables, epoch=rank, seen=[rank])
        state.sync()
        self.assertEqual((variables[0].numpy().tolist(), state.epoch, state.seen), ([0.0, 1.0], 0, [0]))
        variables[0].assign([5.0, 6.0])
        state.epoch = 7
        state.restore()
        self.assertEqual((variables[0].numpy().tolist(), state.epoch), ([0.0, 1.0], 0))
        variables[0].assign([5.0, 6.0])
        state.epoch = 7
        state.commit()
        variables[0].assign([0.0, 0.0])
        state.restore()
        self.assertEqual((variables[0].numpy().tolist(), state.epoch), ([5.0, 6.0], 7))

    def test_a_failure_within_a_graph_is_a_failure_of_the_world(self):
        from muster.common.exceptions import HorovodInternalError

        def fail():
            raise HorovodInternalError("rank 1 on host-a was killed")

        @tf.function
        def graph():
            return tf.numpy_function(fail, [], tf.float32)

        seen = []

        class State(hvd.elastic.ObjectState):
            def restore(self):
                seen.append("restored")

        @hvd.elastic.run
        def train(state):
            if not seen:
                graph()
            return "done"

        self.assertEqual(train(State(epoch=0)), "done")
        self.assertEqual(seen, ["restored"])


if __name__ == "__main__":
    unittest.main()
