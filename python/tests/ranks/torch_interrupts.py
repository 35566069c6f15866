"""Ctrl-C while an optimizer waits for the other ranks: step() is called again, and goes on where it stopped."""

import copy
import threading
import unittest
from unittest import mock

import torch

import muster.torch as hvd
from muster.common import operations
from ranks.torch_world import Case

STEPS = 3


def model_of():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.Tanh(), torch.nn.Linear(30, 20), torch.nn.Tanh(),
                               torch.nn.Linear(20, 3))


def distributed(model, **arguments):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                    model.named_parameters(), **arguments)


def sharded(model):
    return hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model.named_parameters(),
                                bucket_bytes=2048)


class Doubling:
    """A compression of the program, which is applied to each tensor by itself."""

    @staticmethod
    def compress(tensor):
        return tensor * 2, None

    @staticmethod
    def decompress(tensor, context):
        return tensor / 2


class Interrupted:
    """Every wait of this rank in step() is interrupted once before it begins."""

    def __init__(self):
        self.count = 0
        self._wait = operations.Pending.wait
        self._met = set()

    def __call__(self, pending):
        ticket = pending._ticket
        if threading.current_thread() is threading.main_thread() and ticket not in self._met:
            self._met.add(ticket)
            self.count += 1
            raise KeyboardInterrupt
        return self._wait(pending)


def step_of(optimizer, interrupted):
    wait = operations.Pending.wait if interrupted is None else lambda pending: interrupted(pending)
    with mock.patch.object(operations.Pending, "wait", wait):
        while True:
            try:
                return optimizer.step()
            except KeyboardInterrupt:
                pass


def train(model, optimizer, steps, interrupted=None):
    for step in steps:
        optimizer.zero_grad()
        inputs = torch.randn(8, 40, generator=torch.Generator().manual_seed(100 * step + hvd.rank()))
        model(inputs).square().mean().backward()
        step_of(optimizer, interrupted)


class Interrupts(Case):
    def check(self, make, first=0):
        """Compares two trainings. From step `first` on, each wait of the second one is interrupted."""
        models = [model_of(), model_of()]
        train(models[0], make(models[0]), range(STEPS))
        optimizer = make(models[1])
        train(models[1], optimizer, range(first))
        interrupted = Interrupted()
        train(models[1], optimizer, range(first, STEPS), interrupted)
        if hvd.size() > 1:
            self.assertGreaterEqual(interrupted.count, STEPS - first)
        for left, right in zip(*(model.parameters() for model in models)):
            self.assertTrue(torch.equal(left, right))
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_gradients(self):
        self.check(lambda model: distributed(model, groups=3))

    def test_int8(self):
        self.check(lambda model: distributed(model, groups=3, compression=hvd.Compression.int8))

    def test_powersgd(self):
        self.check(lambda model: distributed(model, groups=3, compression=hvd.Compression.powersgd(rank=2)))

    def test_a_compression_of_the_program(self):
        self.check(lambda model: distributed(model, groups=3, compression=Doubling))

    def test_a_sharded_optimizer(self):
        self.check(sharded)

    def test_adasum(self):
        self.check(lambda model: distributed(model, op=hvd.Adasum), first=1)

    def test_sparse_gradients(self):
        torch.manual_seed(1)
        first = torch.nn.Embedding(10, 4, sparse=True)
        tables = [first, copy.deepcopy(first)]
        interrupted = Interrupted()
        for table, each in zip(tables, (None, interrupted)):
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=0.1), table.named_parameters())
            for step in range(STEPS):
                optimizer.zero_grad()
                table(torch.tensor([step, hvd.rank() + step])).sum().backward()
                step_of(optimizer, each)
        if hvd.size() > 1:
            self.assertGreaterEqual(interrupted.count, 2 * STEPS)
        self.assertTrue(torch.equal(tables[0].weight, tables[1].weight))


if __name__ == "__main__":
    unittest.main()
