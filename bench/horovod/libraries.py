"""Our library, Horovod and torch.distributed behind one interface. Each process of a run imports one of them."""

import os

import torch


class Hvd:
    """muster.torch or Horovod, which have the same calls."""

    def __init__(self, module):
        self.hvd = module

    def init(self):
        self.hvd.init()

    def finish(self):
        self.hvd.shutdown()

    def rank(self):
        return self.hvd.rank()

    def size(self):
        return self.hvd.size()

    def barrier(self):
        self.hvd.barrier()

    def reduce(self, tensor, name):
        self.hvd.allreduce_(tensor, name=name, op=self.hvd.Sum)

    def reduce_all(self, tensors):
        begun = [self.hvd.allreduce_async_(tensor, name=str(number), op=self.hvd.Sum)
                 for number, tensor in enumerate(tensors)]
        for handle in begun:
            self.hvd.synchronize(handle)

    def distributed(self, model, optimizer):
        """Returns the model and the optimizer of a data-parallel training."""
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, self.hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())


class Gloo:
    """torch.distributed over gloo, with DistributedDataParallel. The ranks connect through the file $BENCH_STORE."""

    def init(self):
        import torch.distributed
        self.distributed_module = torch.distributed
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{os.environ['BENCH_STORE']}", rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]))

    def finish(self):
        self.distributed_module.destroy_process_group()

    def rank(self):
        return self.distributed_module.get_rank()

    def size(self):
        return self.distributed_module.get_world_size()

    def barrier(self):
        self.distributed_module.barrier()

    def reduce(self, tensor, name):
        self.distributed_module.all_reduce(tensor)

    def reduce_all(self, tensors):
        for work in [self.distributed_module.all_reduce(tensor, async_op=True) for tensor in tensors]:
            work.wait()

    def distributed(self, model, optimizer):
        return torch.nn.parallel.DistributedDataParallel(model), optimizer


def library(name):
    if name == "muster":
        import muster.torch
        return Hvd(muster.torch)
    if name == "horovod":
        import horovod.torch
        return Hvd(horovod.torch)
    return Gloo()
