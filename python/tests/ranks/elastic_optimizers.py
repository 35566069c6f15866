"""An elastic training with PyTorch, for tests of optimizers in worlds that follow each other: it ends after a few steps
in a world of --size workers, and may lose a worker of the first world."""

import argparse
import hashlib
import os
import signal

import torch

import muster.torch as hvd

STEPS = 3
OPTIMIZERS = {"adasum": {"op": hvd.Adasum}, "int8": {"compression": hvd.Compression.int8, "groups": 3},
              "powersgd": {"compression": hvd.Compression.powersgd(rank=1), "groups": 3}}

parser = argparse.ArgumentParser()
parser.add_argument("optimizer", choices=OPTIMIZERS)
parser.add_argument("--size", type=int, required=True)
parser.add_argument("--lose", choices=["between steps", "in the backward pass"],
                    help="where rank 1 of the first world kills itself, after the first steps")
options = parser.parse_args()

hvd.init()
torch.manual_seed(7)
begin = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 6), torch.nn.Tanh())
end = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
model = torch.nn.Sequential(begin, end)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), **OPTIMIZERS[options.optimizer])
state = hvd.elastic.TorchState(model, optimizer, step=0)


@hvd.elastic.run
def train(state):
    print(f"entered as {hvd.rank()} of {hvd.size()} on localhost local {hvd.local_rank()} of {hvd.local_size()} "
          f"cross 0 of 1 at {state.step} worker {os.environ['MUSTER_ELASTIC_WORKER']} process {os.getpid()}",
          flush=True)
    is_first = state.step == 0
    steps = 0
    while steps < STEPS or hvd.size() < options.size or (is_first and options.lose):
        step(state.step, is_first and options.lose == "in the backward pass" and steps == STEPS)
        state.step += 1
        steps += 1
        if is_first and options.lose == "between steps" and steps == STEPS and hvd.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if steps == STEPS:
            print(f"trained {STEPS} steps with {hvd.size()} workers", flush=True)
        state.commit()


def step(number, loses):
    generator = torch.Generator().manual_seed(100 * number + hvd.rank())
    optimizer.zero_grad()
    hidden = begin(torch.randn(4, 6, generator=generator))
    if loses:
        hidden.register_hook(lambda _: lose())
    end(hidden).square().mean().backward()
    optimizer.step()


def lose():
    """Called when some of the gradients are on their way. The other rank goes on when it has noticed the loss."""
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        hvd.barrier()
    except hvd.HorovodInternalError:
        print("lost in the backward pass", flush=True)


train(state)
weights = hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()
print(f"done as {hvd.rank()} of {hvd.size()} weights {weights[:16]}", flush=True)
