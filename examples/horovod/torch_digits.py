#!/usr/bin/env python3
"""Trains on handwritten digits like scripts for Horovod: a convolutional network on PyTorch, averaged over all ranks.

    python3 torch_digits.py                                    # alone
    horovodrun -np 2 python3 torch_digits.py                   # on two ranks
    muster submit mpi digits --workers 2 -- mpirun -np 2 python3 torch_digits.py
"""

import argparse
import sys
import zlib
from pathlib import Path

import torch
import horovod.torch as hvd
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images per step on each rank")
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate for one rank")
    parser.add_argument("--fp16", action="store_true", help="send gradients with 16 bits")
    parser.add_argument("--adasum", action="store_true", help="add gradients with Adasum")
    parser.add_argument("--predivide", type=float, default=1.0, help="divide gradients by this before the sum")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def dataset(part, folder):
    pixels, labels = digits_data.load(part, folder)
    side = int(len(pixels[0]) ** 0.5)
    return TensorDataset(torch.from_numpy(pixels).reshape(-1, 1, side, side), torch.from_numpy(labels))


class Network(torch.nn.Module):

    def __init__(self, side):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.second = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = torch.nn.Linear(32 * (side // 2) ** 2, 64)
        self.out = torch.nn.Linear(64, digits_data.CLASSES)

    def forward(self, images):
        found = functional.relu(self.first(images))
        found = functional.max_pool2d(functional.relu(self.second(found)), 2)
        return self.out(functional.relu(self.hidden(found.flatten(1))))


def train_epoch(model, optimizer, batches):
    """The mean loss of this rank's batches."""
    total = 0.0
    for images, labels in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def mean_over_ranks(value, name):
    return hvd.allreduce(torch.tensor(value, dtype=torch.float64), name=name).item()


def accuracy(model, part):
    """The accuracy on each rank's share of the images, averaged over all ranks."""
    images, labels = (tensor[hvd.rank()::hvd.size()] for tensor in part.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum().item()
    right_of_all = hvd.allreduce(torch.tensor(right), name="right", op=hvd.Sum).item()
    return right_of_all / len(part)


def checksum(model):
    """A checksum of the weights, which are equal on all ranks."""
    return zlib.crc32(b"".join(weights.detach().numpy().tobytes() for weights in model.parameters()))


def main():
    options = arguments()
    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    training = dataset("train", options.data)
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank(), seed=1)
    batches = DataLoader(training, batch_size=options.batch, sampler=sampler)
    model = Network(training[0][0].shape[-1])

    # A larger batch allows a larger step. Adasum needs no larger step.
    rate = options.rate * (1 if options.adasum else hvd.size())
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if options.fp16 else hvd.Compression.none,
        op=hvd.Adasum if options.adasum else hvd.Average, gradient_predivide_factor=options.predivide)

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        loss = mean_over_ranks(train_epoch(model, optimizer, batches), "loss")
        if hvd.rank() == 0:
            # Muster reads metrics from such lines: docs/metrics.md.
            print(f"::metrics epoch={epoch + 1} epochs={options.epochs} loss={loss:.4f}", flush=True)

    right = accuracy(model, dataset("t10k", options.data))
    if hvd.rank() == 0:
        print(f"::metrics accuracy={right:.4f}\ntest accuracy: {right:.2%} on {hvd.size()} ranks", flush=True)
    print(f"weights checksum: {checksum(model):#010x} on rank {hvd.rank()}", flush=True)


if __name__ == "__main__":
    main()
