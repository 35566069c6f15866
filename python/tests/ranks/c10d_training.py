"""What PyTorch builds on a group, on the backend "muster": DistributedDataParallel with its hooks, sharded optimizers
and models, meshes and checkpoints. FSDP, meshes and distributed checkpoints are those of PyTorch 2."""

import os
import unittest

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from ranks.c10d_world import RANK, SIZE, Case

IS_2 = int(torch.__version__.split(".")[0]) >= 2
STEPS = 4


def model_of(seed=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(6, 10, generator=generator)


def train(wrap, make_optimizer=lambda model: torch.optim.SGD(model.parameters(), 0.05), steps=STEPS):
    model = wrap(model_of())
    optimizer = make_optimizer(model)
    for step in range(steps):
        optimizer.zero_grad()
        model(batch(step, RANK)).square().mean().backward()
        optimizer.step()
    return model


def alone(make_optimizer=lambda model: torch.optim.SGD(model.parameters(), 0.05)):
    """The parameters that one process computes from the batches of all ranks."""
    model = model_of()
    optimizer = make_optimizer(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = sum(model(batch(step, rank)).square().mean() for rank in range(SIZE)) / SIZE
        loss.backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


class Training(Case):
    def assert_near(self, parameters, expected, tolerance=1e-5):
        for parameter, right in zip(parameters, expected):
            self.assertTrue(torch.allclose(parameter.detach(), right, atol=tolerance), (parameter, right))

    def assert_equal_on_all_ranks(self, model):
        mine = [parameter.detach().tolist() for parameter in model.parameters()]
        gathered = [None] * SIZE
        dist.all_gather_object(gathered, mine)
        for other in gathered:
            self.assertEqual(other, mine)

    def test_ddp_trains_as_one_process(self):
        for options in ({}, {"bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True, "static_graph": True}):
            model = train(lambda model, options=options: DistributedDataParallel(model, **options))
            self.assert_near(model.parameters(), alone())
            self.assert_equal_on_all_ranks(model)

    def test_hooks_that_compress(self):
        hooks = [(None, default_hooks.fp16_compress_hook),
                 (powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2),
                  powerSGD_hook.powerSGD_hook)]
        if IS_2:  # PyTorch 1.13 refuses it without a GPU
            hooks.append((None, default_hooks.bf16_compress_hook))
        for state, hook in hooks:
            with self.subTest(hook.__name__):
                def wrap(model, state=state, hook=hook):
                    wrapped = DistributedDataParallel(model)
                    wrapped.register_comm_hook(state, hook)
                    return wrapped

                model = train(wrap)
                self.assert_near(model.parameters(), alone(), 0.05)
                self.assert_equal_on_all_ranks(model)

    def test_uneven_inputs(self):
        model = DistributedDataParallel(model_of())
        with model.join():
            for step in range(2 + RANK):
                model(batch(step, RANK)).sum().backward()
        self.assert_equal_on_all_ranks(model)

    def test_zero_redundancy_optimizer(self):
        def sharded(model):
            return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)

        model = train(DistributedDataParallel, sharded)
        self.assert_near(model.parameters(), alone(lambda model: torch.optim.Adam(model.parameters(), lr=0.01)))
        self.assert_equal_on_all_ranks(model)

    @unittest.skipUnless(IS_2, "FSDP of PyTorch 1.13 needs a GPU")
    def test_fsdp_trains_as_one_process(self):
        from torch.distributed.fsdp import FullyShardedDataParallel

        model = train(lambda model: FullyShardedDataParallel(model, device_id=torch.device("cpu")))
        with FullyShardedDataParallel.summon_full_params(model):
            self.assert_near(model.parameters(), alone())

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no fully_shard()")
    def test_fsdp2_trains_as_one_process_and_resumes_from_a_checkpoint(self):
        import torch.distributed.checkpoint as checkpoint
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (SIZE,))

        def shard(model):
            for layer in model:
                if isinstance(layer, nn.Linear):
                    fully_shard(layer, mesh=mesh)
            return fully_shard(model, mesh=mesh)

        model = train(shard)
        self.assert_near([parameter.full_tensor() for parameter in model.parameters()], alone())
        folder = os.path.join(os.environ["TMPDIR"], "checkpoint")
        checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
        state = {"model": shard(model_of(seed=9)).state_dict()}
        checkpoint.load(state, checkpoint_id=folder)
        self.assert_near([parameter.full_tensor() for parameter in state["model"].values()], alone())

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no meshes")
    def test_meshes_and_distributed_tensors(self):
        from torch.distributed._functional_collectives import all_gather_tensor, all_reduce
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        mesh = init_device_mesh("cpu", (SIZE,))
        whole = torch.arange(float(SIZE * 2 * SIZE)).view(2 * SIZE, SIZE)
        tensor = distribute_tensor(whole, mesh, [Shard(0)])
        self.assertTrue(torch.equal(tensor.full_tensor(), whole))
        self.assertTrue(torch.equal(tensor.redistribute(mesh, [Shard(1)]).to_local(), whole[:, RANK:RANK + 1]))
        self.assertTrue(torch.equal(tensor.redistribute(mesh, [Replicate()]).to_local(), whole))
        reduced = all_reduce(torch.ones(3), "sum", dist.group.WORLD)
        self.assertEqual(reduced.tolist(), [float(SIZE)] * 3)
        gathered = all_gather_tensor(torch.tensor([RANK]), 0, dist.group.WORLD)
        self.assertEqual(gathered.tolist(), list(range(SIZE)))
        if SIZE == 4:
            square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
            total = all_reduce(torch.tensor([float(RANK)]), "sum", square["shard"])
            self.assertEqual(total.item(), 1.0 if RANK < 2 else 5.0)
