"""Helpers of the tests of muster.torch: inputs that every rank can compute for all ranks, and numpy's
results in double precision."""

import unittest

import numpy
import torch

import muster.torch as hvd

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]

#: Relative error of one rounding.
PRECISION = {torch.float64: 2.0 ** -52, torch.float32: 2.0 ** -23, torch.float16: 2.0 ** -10,
             torch.bfloat16: 2.0 ** -7}


def data(rank, shape, dtype, seed=0):
    """The input of `rank`, computable on every rank. Integers are small, so that no sum or product wraps."""
    generator = numpy.random.RandomState(1000 * seed + rank)
    if dtype == torch.bool:
        return torch.from_numpy(numpy.asarray(generator.rand(*shape) < 0.5))
    if dtype.is_floating_point:
        return torch.from_numpy(numpy.asarray(generator.randn(*shape))).to(dtype)
    # The product over four ranks fits into eight bits.
    low = 0 if dtype == torch.uint8 else -3
    return torch.from_numpy(numpy.asarray(generator.randint(low, 4, shape))).to(dtype)


def inputs(shape, dtype, seed=0, ranks=None):
    """The inputs of all ranks, in double precision as numpy arrays."""
    return [data(rank, shape, dtype, seed).double().numpy()
            for rank in (range(hvd.size()) if ranks is None else ranks)]


def own(shape, dtype, seed=0):
    return data(hvd.rank(), shape, dtype, seed)


def digest_of(tensor):
    """The bits of a tensor."""
    return tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


class Case(unittest.TestCase):
    """A test that every rank runs at the same time."""

    longMessage = True

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def assert_near(self, tensor, expected, roundings=4):
        """Compares within `roundings` roundings of the largest value, for the tensor's type; integers exactly."""
        expected = numpy.asarray(expected, dtype=numpy.float64)
        self.assertEqual(tuple(tensor.shape), expected.shape)
        if not tensor.numel():
            return
        difference = numpy.abs(tensor.detach().double().numpy() - expected).max()
        bound = roundings * PRECISION.get(tensor.dtype, 0.0) * max(numpy.abs(expected).max(), 1.0)
        self.assertLessEqual(difference, bound, f"{tensor.dtype} {tuple(tensor.shape)}")

    def assert_same_bits(self, tensor):
        """On all ranks."""
        self.assertEqual(set(hvd.allgather_object(digest_of(tensor))), {digest_of(tensor)})

    def refused_everywhere(self, kind, call, *words):
        """Checks that `call` raises `kind` on every rank, with these words in the message, and that the world still
        works."""
        with self.assertRaises(kind) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())
