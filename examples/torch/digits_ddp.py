#!/usr/bin/env python3
"""Trains on handwritten digits with PyTorch, data-parallel on CPUs: DistributedDataParallel over gloo, or
over muster (--backend muster).

    muster submit torch digits --workers 1 -- torchrun digits_ddp.py     # a master and a worker, with torchrun
    muster submit torch digits --workers 1 -- python3 digits_ddp.py      # the same without torchrun
    python3 digits_ddp.py                                                # alone

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT define the world. With --checkpoint FILE, on storage that all tasks
share, training continues after the last epoch: with the remaining workers after a loss, and also in another job.
"""

import argparse
import os
import sys
import zlib
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
import digits_data


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="gloo", choices=["gloo", "muster"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images per step of all ranks together")
    parser.add_argument("--checkpoint", type=Path, help="file that is written after each epoch and read at the start")
    parser.add_argument("--data", default=digits_data.FOLDER, help="folder with the four files, named as in MNIST")
    return parser.parse_args()


def say(line):
    """Prints a line in one piece. torchrun runs Python with -u, where print() writes the newline separately, and the
    ranks of a task share one pipe."""
    print(line + "\n", end="", flush=True)


def dataset(part, folder):
    images, labels = digits_data.load(part, folder)
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))


def network(inputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, digits_data.CLASSES))


def train_epoch(model, optimizer, batches):
    """Returns the mean loss of this rank's batches."""
    total = 0.0
    for images, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def resume(path, model, optimizer):
    """Restores the checkpoint. Returns the number of completed epochs."""
    if not path or not path.exists():
        return 0
    # A pickle may contain code, and other users may be able to write to the folder.
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(optimizer.state_dict() | {"state": saved["momentum"]})
    return saved["epochs"]


def save(path, model, optimizer, epochs):
    """Replaces the checkpoint atomically: a process that is killed meanwhile leaves the last one unchanged."""
    unfinished = path.with_suffix(".unfinished")
    # Tensors and whole numbers only: torch 1.13 reads other types only with code.
    torch.save({"model": model.state_dict(), "momentum": optimizer.state_dict()["state"], "epochs": epochs}, unfinished)
    unfinished.replace(path)


def checksum(model):
    """A checksum of the weights, which are equal on all ranks."""
    return zlib.crc32(b"".join(weights.detach().numpy().tobytes() for weights in model.parameters()))


def main():
    options = arguments()
    if options.backend == "muster":
        import muster.torch  # noqa: F401  (adds the backend)
    if "RANK" in os.environ:
        dist.init_process_group(options.backend)
    else:
        dist.init_process_group(options.backend, store=dist.HashStore(), rank=0, world_size=1)
    rank, world = dist.get_rank(), dist.get_world_size()
    say(f"rank {rank} of {world}")

    torch.manual_seed(1)
    training = dataset("train", options.data)
    sampler = DistributedSampler(training, seed=1)
    batches = DataLoader(training, batch_size=max(1, options.batch // world), sampler=sampler)
    model = torch.nn.parallel.DistributedDataParallel(network(len(training[0][0])))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    start = resume(options.checkpoint, model.module, optimizer)
    if start and rank == 0:
        print(f"continues after epoch {start}", flush=True)
    for epoch in range(start, options.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, optimizer, batches)
        if rank == 0:
            # Muster reads metrics from such lines: docs/metrics.md.
            print(f"::metrics epoch={epoch + 1} epochs={options.epochs} loss={loss:.4f}", flush=True)
            if options.checkpoint:
                save(options.checkpoint, model.module, optimizer, epoch + 1)

    if rank == 0:
        images, labels = dataset("t10k", options.data).tensors
        right = (model.module(images).argmax(dim=1) == labels).float().mean().item()
        print(f"::metrics accuracy={right:.4f}\ntest accuracy: {right:.2%} on {world} ranks", flush=True)
    say(f"weights checksum: {checksum(model):#010x} on rank {rank}")
    # The job ends with its master, so the master waits until all ranks have printed.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
