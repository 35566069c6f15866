"""Helpers of the tests of the backend "muster" of torch.distributed: a world on every rank, and inputs that every rank
can compute for all ranks."""

import os
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

import muster.torch  # noqa: F401  (registers the backend)

RANK, SIZE = (int(os.environ[name]) for name in ("MUSTER_RANK", "MUSTER_WORLD_SIZE"))

#: Every type that gloo takes, bfloat16, and the other types of the library.
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
         torch.int64, torch.bool]
COMPLEX = [torch.complex64, torch.complex128]


def data(rank, shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype.is_complex:
        return torch.view_as_complex(torch.randn((*shape, 2), generator=generator, dtype=torch.float64)).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    # Sums and products over four ranks fit into eight bits.
    return torch.randint(0, 4, shape, generator=generator).to(dtype)


def own(shape, dtype, seed=0):
    return data(RANK, shape, dtype, seed)


def everyone(shape, dtype, seed=0):
    return [data(rank, shape, dtype, seed) for rank in range(SIZE)]


class Case(unittest.TestCase):
    """A test that every rank runs at the same time, in one world."""

    longMessage = True
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not dist.is_initialized():
            os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
            dist.init_process_group("muster", init_method=f"file://{os.environ['TMPDIR']}/store", rank=RANK,
                                    world_size=SIZE, timeout=timedelta(seconds=60))

    def assert_equal(self, tensor, expected):
        self.assertEqual(tensor.shape, expected.shape)
        self.assertEqual(tensor.dtype, expected.dtype)
        self.assertTrue(torch.equal(tensor, expected), f"{tensor} is not {expected}")
