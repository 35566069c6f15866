"""An elastic training with PyTorch, for tests: two epochs over numbers, each batch gathered from all ranks into the
state, so that the state itself lists the samples of the training."""

import argparse
import hashlib
import os

import torch

import muster.torch as hvd

SAMPLES, BATCH, EPOCHS = 120, 2, 2

parser = argparse.ArgumentParser()
parser.add_argument("--gate", help="after the fifth batch of the first round, rank 0 reads this fifo")
options = parser.parse_args()

hvd.init()
torch.manual_seed(7)
data = torch.arange(SAMPLES, dtype=torch.float64)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(data)
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, steps=0, share_outs=0,
                               seen=[[] for _ in range(EPOCHS)])
entered = 0


@hvd.elastic.run
def train(state):
    global entered
    entered += 1
    print(f"entered as {hvd.rank()} of {hvd.size()} on localhost local {hvd.local_rank()} of {hvd.local_size()} "
          f"cross 0 of 1 at {state.steps} worker {os.environ['MUSTER_ELASTIC_WORKER']} process {os.getpid()}",
          flush=True)
    while state.epoch < EPOCHS:
        state.share_outs += 1
        for number in range(-(-len(sampler) // BATCH)):
            step(number)
            if options.gate and entered == 1 and hvd.rank() == 0 and state.steps == 5:
                with open(options.gate) as gate:
                    gate.read()
            state.commit()
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


def step(number):
    indices = torch.tensor(sampler.get_indices(number, BATCH))
    inputs = data[indices].reshape(-1, 1) / SAMPLES
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), torch.sin(inputs)).backward()
    optimizer.step()
    state.seen[state.epoch] += hvd.allgather(indices, name="indices").tolist()
    sampler.record_batch(number, BATCH)
    state.steps += 1


train(state)
weights = hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()
momenta = hashlib.sha256(b"".join(each["momentum_buffer"].numpy().tobytes()
                                  for each in optimizer.state.values())).hexdigest()
for epoch, seen in enumerate(state.seen):
    print(f"epoch {epoch} saw {len(set(seen))} samples, {len(seen) - len(set(seen))} twice, shared out "
          f"{state.share_outs} times", flush=True)
print(f"done as {hvd.rank()} of {hvd.size()} weights {weights[:16]} momenta {momenta[:16]}", flush=True)
