"""Helpers of the tests of muster.tensorflow: the world, each rank's inputs, and comparisons."""

import unittest

import numpy
import tensorflow as tf

# One thread for the operations of a graph: an operation that waited on it would block all others.
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)

import muster.tensorflow as hvd  # noqa: E402  (the threads come first)

FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]
INTEGERS = [tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.uint32, tf.int64, tf.uint64]

hvd.init()


def data(rank, shape, dtype, seed=0):
    """The input of `rank`, computable on every rank: small whole numbers, so that no type overflows."""
    values = numpy.random.default_rng([rank, seed, len(shape)]).integers(1, 4, shape)
    return values.astype(tf.as_dtype(dtype).as_numpy_dtype)


def own(shape, dtype, seed=0):
    return tf.constant(data(hvd.rank(), shape, dtype, seed), dtype)


def inputs(shape, dtype, seed=0):
    """The inputs of all ranks, in double precision."""
    return [data(rank, shape, dtype, seed).astype(numpy.float64) for rank in range(hvd.size())]


def both_ways(function):
    """`function` itself, and as a graph without known shapes."""
    graph = tf.function(function, reduce_retracing=True)
    return {"eager": function, "graph": graph}


class Case(unittest.TestCase):
    maxDiff = None

    def assert_near(self, tensor, expected, dtype=None):
        """Compares within a few units of the type's last place."""
        dtype = tf.as_dtype(dtype or tensor.dtype)
        if dtype.is_floating:
            tolerance = (4 + hvd.size()) * float(tf.experimental.numpy.finfo(dtype.as_numpy_dtype).eps
                                                 if dtype != tf.bfloat16 else 2.0 ** -7)
        else:
            tolerance = 0
        actual = numpy.asarray(tensor.numpy()).astype(numpy.float64)
        self.assertEqual(actual.shape, numpy.shape(expected))
        numpy.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)

    def assert_same_bits(self, tensor, name):
        """On all ranks."""
        everyone = hvd.allgather_object(numpy.asarray(tensor).tobytes(), name=name)
        self.assertEqual([each == everyone[0] for each in everyone], [True] * hvd.size())
