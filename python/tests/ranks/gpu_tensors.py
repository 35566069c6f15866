"""muster.torch with tensors of a GPU. `tests/gpu.py` runs these tests: they need a GPU and a PyTorch with CUDA.

All ranks share GPU 0, or each has a GPU of its own (GPU_FOR_EACH_RANK=1). GPU_TRANSPORT is the transport.
"""

import os
import unittest

import torch

import muster.torch as hvd
from ranks.torch_world import Case

if "GPU_TRANSPORT" in os.environ:
    os.environ["MUSTER_COLLECTIVE_TRANSPORT"] = os.environ["GPU_TRANSPORT"]

#: Long enough that a copy that does not wait for the kernel finds the old values.
CYCLES = 200_000_000


class GpuCase(Case):
    @classmethod
    def setUpClass(cls):
        place = int(os.environ.get("MUSTER_RANK", "0")) if os.environ.get("GPU_FOR_EACH_RANK") else 0
        torch.cuda.set_device(place)
        cls.device = torch.device("cuda", place)
        super().setUpClass()

    def ones(self, *shape, dtype=torch.float32):
        return torch.ones(*shape, dtype=dtype, device=self.device)


class Reductions(GpuCase):
    def test_types_and_shapes(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64,
                      torch.uint8):
            for shape in ((), (1,), (1009,), (300, 7)):
                tensor = self.ones(*shape, dtype=dtype) * (hvd.rank() + 1)
                total = hvd.allreduce(tensor, op=hvd.Sum)
                self.assertEqual(total.device, self.device)
                self.assertTrue(bool((total == sum(range(1, hvd.size() + 1))).all()), f"{dtype} {shape}")

    def test_other_operations(self):
        tensor = self.ones(5, 2) * (hvd.rank() + 1)
        self.assertTrue(bool((hvd.allreduce(tensor, op=hvd.Max) == hvd.size()).all()))
        self.assertTrue(bool((hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5) ==
                              sum(range(1, hvd.size() + 1)) / 2).all()))
        self.assertEqual(hvd.allgather(tensor).shape, (5 * hvd.size(), 2))
        root = hvd.size() - 1
        self.assertTrue(bool((hvd.broadcast(tensor, root) == root + 1).all()))
        hvd.allreduce_(tensor, op=hvd.Sum)
        self.assertEqual(tensor.sum().item(), 10 * sum(range(1, hvd.size() + 1)))
        group = hvd.grouped_allreduce([self.ones(3), self.ones(4, dtype=torch.float64)], op=hvd.Sum)
        self.assertTrue(all(bool((each == hvd.size()).all()) for each in group))


class Streams(GpuCase):
    def test_a_reduction_waits_for_the_kernels_before_it(self):
        for _ in range(5):
            tensor = self.ones(1 << 20)
            torch.cuda._sleep(CYCLES)
            tensor.mul_(hvd.rank() + 2)
            handle = hvd.allreduce_async_(tensor, op=hvd.Sum)
            hvd.synchronize(handle)
            tensor.add_(1)  # must find the sum
            expected = sum(range(2, hvd.size() + 2)) + 1
            self.assertTrue(bool((tensor == expected).all()))

    def test_on_a_stream_of_the_program(self):
        stream = torch.cuda.Stream()
        for _ in range(5):
            with torch.cuda.stream(stream):
                tensor = self.ones(1 << 20)
                torch.cuda._sleep(CYCLES)
                tensor.mul_(hvd.rank() + 2)
                total = hvd.allreduce(tensor, op=hvd.Sum)
                result = total * 2
            stream.synchronize()
            self.assertTrue(bool((result == 2 * sum(range(2, hvd.size() + 2))).all()))

    def test_memory_is_not_used_again_too_early(self):
        """A tensor that the program drops while its values are copied."""
        handles = []
        for number in range(20):
            tensor = self.ones(1 << 18) * (number + 1)
            handles.append(hvd.allreduce_async(tensor, name=f"dropped.{number}", op=hvd.Sum))
            del tensor
            self.ones(1 << 18).fill_(-1)
        for number, handle in enumerate(handles):
            self.assertTrue(bool((hvd.synchronize(handle) == (number + 1) * hvd.size()).all()))


class Training(GpuCase):
    def model(self):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(self.device)

    def train(self, model, optimizer, steps=5):
        generator = torch.Generator().manual_seed(hvd.rank())
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(16, 64, generator=generator).to(self.device)).square().mean().backward()
            optimizer.step()
        for parameter in model.parameters():
            self.assert_same_bits(parameter.cpu())

    def test_optimizers(self):
        for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.int8,
                            hvd.Compression.powersgd(rank=2)):
            model = self.model()
            self.train(model, hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01),
                                                       model.named_parameters(), compression=compression))

    def test_sharded(self):
        for stage in (1, 2):
            model = self.model()
            self.train(model, hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01),
                                                   model.named_parameters(), stage=stage))

    def test_adasum(self):
        model = self.model()
        self.train(model, hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01),
                                                   model.named_parameters(), op=hvd.Adasum))


if __name__ == "__main__":
    unittest.main()
