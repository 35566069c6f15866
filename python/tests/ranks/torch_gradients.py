"""Gradients of muster.torch's operations against finite differences, across the ranks.

Rank r's loss is sum(w_r * f(x)_r), with weights of its own, and the loss of the world is the sum of all of them. Its
derivative by each element of each rank's input is measured by moving that element. backward() must return
it times the factor that programs written for Horovod expect.
"""

import unittest

import torch

import muster.torch as hvd
from ranks.torch_world import Case, data, own

STEP = 1e-5


class Gradients(Case):
    def measured(self, run, shape):
        """The derivative of the world's loss by this rank's input, by moving one element of one rank at a time."""
        gradient = torch.zeros(shape, dtype=torch.float64)
        lengths = hvd.allgather_object(gradient.numel())
        for rank, length in enumerate(lengths):
            for place in range(length):
                losses = []
                for step in (STEP, -STEP):
                    moved = own(shape, torch.float64)
                    if rank == hvd.rank():
                        moved.view(-1)[place] += step
                    losses.append(hvd.allreduce(self.loss(run(moved)), op=hvd.Sum))
                if rank == hvd.rank():
                    gradient.view(-1)[place] = (losses[0] - losses[1]) / (2 * STEP)
        return gradient

    def loss(self, outputs):
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return sum((output * data(hvd.rank() + 7, tuple(output.shape), torch.float64, seed=i)).sum()
                   for i, output in enumerate(outputs))

    def check(self, run, shape, factor=1.0):
        tensor = own(shape, torch.float64).requires_grad_()
        self.loss(run(tensor)).backward()
        expected = self.measured(run, shape) * factor
        self.assertLessEqual((tensor.grad - expected).abs().max().item(), 1e-7)

    def test_allreduce(self):
        for shape in ((3, 2), ()):
            self.check(lambda x: hvd.allreduce(x), shape)
            self.check(lambda x: hvd.allreduce(x, op=hvd.Sum, name="named"), shape)
            self.check(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0), shape)
            self.check(lambda x: hvd.allreduce(x, op=hvd.Average, prescale_factor=0.5), shape)

    def test_grouped_allreduce(self):
        self.check(lambda x: hvd.grouped_allreduce([x, x * x, x.sum()], op=hvd.Sum), (2, 2))

    def test_allgather_is_of_the_average_of_losses(self):
        shape = (hvd.rank() + 1, 2)
        self.check(lambda x: hvd.allgather(x), shape, 1 / hvd.size())
        self.check(lambda x: hvd.grouped_allgather([x, 2 * x]), shape, 1 / hvd.size())
        self.check(lambda x: hvd.allgather(x.sum()), shape, 1 / hvd.size())

    def test_broadcast_is_of_the_average_of_losses(self):
        for root in range(hvd.size()):
            self.check(lambda x: hvd.broadcast(x, root), (2, 3), 1 / hvd.size())

    def test_alltoall(self):
        self.check(lambda x: hvd.alltoall(x), (hvd.size(), 2))
        splits = [(hvd.rank() + other) % 3 + 1 for other in range(hvd.size())]
        self.check(lambda x: hvd.alltoall(x, splits)[0], (sum(splits), 2))

    def test_reducescatter_is_times_the_number_of_ranks(self):
        shape = (hvd.size() + 1, 2)
        self.check(lambda x: hvd.reducescatter(x), shape, hvd.size())
        self.check(lambda x: hvd.reducescatter(x, op=hvd.Sum), shape, hvd.size())
        self.check(lambda x: hvd.reducescatter(x, prescale_factor=0.5, postscale_factor=3.0), shape, hvd.size())
        self.check(lambda x: hvd.grouped_reducescatter([x, x * x]), shape, hvd.size())

    def test_through_compression(self):
        tensor = own((4,), torch.float32).requires_grad_()
        hvd.allreduce(tensor, op=hvd.Sum, compression=hvd.Compression.fp16).sum().backward()
        self.assertEqual(tensor.grad.tolist(), [hvd.size()] * 4)

    def test_gradients_of_gradients(self):
        tensor = own((3,), torch.float64).requires_grad_()
        first, = torch.autograd.grad((hvd.allreduce(tensor, op=hvd.Sum) ** 2).sum(), tensor, create_graph=True)
        second, = torch.autograd.grad(first.sum(), tensor)
        # d/dx of size * sum over ranks of 2 * size * x, seen from every rank.
        self.assertTrue(torch.allclose(second, torch.full((3,), 2.0 * hvd.size() ** 2, dtype=torch.float64)))

    def test_gradients_that_are_expanded_are_made_contiguous(self):
        tensor = own((3, 3), torch.float64).requires_grad_()
        hvd.allreduce(tensor).sum().backward()
        self.assertTrue(torch.allclose(tensor.grad, torch.ones_like(tensor)))

    def test_backward_passes_in_different_order(self):
        tensors = [own((2,), torch.float64, seed=i).requires_grad_() for i in range(3)]
        handles = [hvd.allreduce(tensor, op=hvd.Sum, name=f"order.{i}").sum() for i, tensor in enumerate(tensors)]
        # Each rank waits in the backward pass of another one; only one rank at a time does not wait, so two
        # threads are needed for the progress of the others.
        import threading
        order = range(3) if hvd.rank() % 2 else reversed(range(3))
        threads = [threading.Thread(target=handles[i].backward) for i in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for tensor in tensors:
            self.assertEqual(tensor.grad.tolist(), [float(hvd.size())] * 2)

    def test_nothing_is_recorded_without_requires_grad(self):
        self.assertIsNone(hvd.allreduce(own((2,), torch.float64)).grad_fn)
        with torch.no_grad():
            tensor = own((hvd.size(),), torch.float64).requires_grad_()
            for output in (hvd.allreduce(tensor), hvd.allgather(tensor), hvd.broadcast(tensor, 0),
                           hvd.alltoall(tensor), hvd.reducescatter(tensor), hvd.grouped_allreduce([tensor])[0]):
                self.assertFalse(output.requires_grad)


if __name__ == "__main__":
    unittest.main()
