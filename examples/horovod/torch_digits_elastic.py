#!/usr/bin/env python3
"""Trains on handwritten digits while hosts come and go: after a loss the other ranks continue from the last commit.

    horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python3 torch_digits_elastic.py
    muster submit mpi digits --workers 2 --min-workers 1 --max-workers 4 -- \\
        horovodrun --min-np 1 --max-np 4 --host-discovery-script /generated/discover_hosts.sh python3
        torch_digits_elastic.py
"""

import argparse

import torch
import horovod.torch as hvd
from torch.utils.data import DataLoader

from torch_digits import Network, accuracy, checksum, dataset, digits_data, functional, mean_over_ranks


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images per step on each rank")
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate for one rank")
    parser.add_argument("--batches-per-commit", type=int, default=5, help="batches that a loss costs at most")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def main():
    options = arguments()
    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    training = dataset("train", options.data)
    testing = dataset("t10k", options.data)
    # The sampler records the processed images of the epoch, and divides the others anew when ranks come or go.
    sampler = hvd.elastic.ElasticSampler(training, shuffle=True, seed=1)
    batches = DataLoader(training, batch_size=options.batch, sampler=sampler)
    model = Network(training[0][0].shape[-1])
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=options.rate * hvd.size(), momentum=0.9),
        named_parameters=model.named_parameters())

    @hvd.elastic.run
    def train(state):
        print(f"rank {hvd.rank()} of {hvd.size()} begins in epoch {state.epoch + 1} at batch {state.batch}", flush=True)
        while state.epoch < options.epochs:
            total, begun = 0.0, state.batch
            for images, labels in batches:
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.item()
                state.sampler.record_batch(state.batch - begun, options.batch)
                state.batch += 1
                if state.batch % options.batches_per_commit == 0:
                    state.commit()
            loss = mean_over_ranks(total / max(1, state.batch - begun), "loss")
            state.epoch += 1
            if hvd.rank() == 0:
                print(f"::metrics epoch={state.epoch} epochs={options.epochs} batches={state.batch} loss={loss:.4f}",
                      flush=True)
            state.batch = 0
            # Not at the beginning of an epoch: after a loss this function is called again in the middle of one.
            state.sampler.set_epoch(state.epoch)
            state.commit()

    def rate_of_the_new_size():
        for group in optimizer.param_groups:
            group["lr"] = options.rate * hvd.size()

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)
    state.register_reset_callbacks([rate_of_the_new_size])
    train(state)

    right = accuracy(model, testing)
    if hvd.rank() == 0:
        print(f"::metrics accuracy={right:.4f}\ntest accuracy: {right:.2%} on {hvd.size()} ranks", flush=True)
    print(f"weights checksum: {checksum(model):#010x} on rank {hvd.rank()}", flush=True)


if __name__ == "__main__":
    main()
