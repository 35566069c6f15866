"""The program of every rank of the benchmark:  ranks.py LIBRARY PART FILE [WORDS...]

Rank 0 writes its measurements to FILE, as JSON. Each rank has one thread, as bench/horovod.py has configured torch.
"""

import json
import sys
import time

import torch

import models
from libraries import library

# Calls per start, by bytes: enough for a median, without taking minutes if a call takes a tenth of a second.
CALLS = {4: 300, 1 << 10: 300, 16 << 10: 300, 64 << 10: 300, 1 << 20: 60, 4 << 20: 30, 25 << 20: 12, 100 << 20: 8}
WARM_UP = 3


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def checked(tensor, value, what):
    if not bool((tensor == value).all()):
        raise SystemExit(f"{what}: not {value} everywhere")


def operations(lib):
    """Blocking all-reduces in place, with one name per size, and all gradients of a network at once."""
    took = {}
    ranks_sum = lib.size() * (lib.size() + 1) // 2
    for size, calls in CALLS.items():
        tensor = torch.full((size // 4,), float(lib.rank() + 1))
        lib.reduce(tensor, f"reduce.{size}")
        checked(tensor, ranks_sum, f"{size} bytes")
        # Sums of zeros stay zeros, however often.
        tensor.zero_()
        # The warm-up has as many calls as the measurement: at first a library gets pages of buffers from the system.
        for _ in range(calls):
            lib.reduce(tensor, f"reduce.{size}")
        lib.barrier()
        took[size] = [seconds(lambda: lib.reduce(tensor, f"reduce.{size}")) for _ in range(calls)]
    gradients = models.resnet50_gradients()
    for gradient in gradients:
        gradient.fill_(lib.rank() + 1)
    lib.reduce_all(gradients)
    for gradient in gradients:
        checked(gradient, ranks_sum, "gradients")
        gradient.zero_()
    for _ in range(WARM_UP):
        lib.reduce_all(gradients)
    took["gradients"] = []
    for _ in range(8):
        lib.barrier()
        took["gradients"].append(seconds(lambda: lib.reduce_all(gradients)))
    return took


class Training:
    """A model, its optimizer and a batch of synthetic images. Only the images differ between the ranks."""

    def __init__(self, model, images, classes, rank, lib=None):
        torch.manual_seed(1)
        self.model = model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        if lib is not None:
            self.model, self.optimizer = lib.distributed(self.model, self.optimizer)
        torch.manual_seed(2 + rank)
        self.images = torch.randn(images)
        self.labels = torch.randint(classes, (images[0],))

    def steps(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
            self.optimizer.step()


def resnet18(lib, batch="8", steps="2", blocks="4"):
    """Images per second of all ranks together, for each block of steps."""
    training = Training(models.resnet18, (int(batch), 3, 224, 224), 1000, lib.rank(), lib)
    training.steps(2)
    rates = []
    for _ in range(int(blocks)):
        lib.barrier()
        took = seconds(lambda: (training.steps(int(steps)), lib.barrier()))
        rates.append(int(steps) * int(batch) * lib.size() / took)
    return {"rates": rates}


def resnet20(lib, batch="8", steps="20", blocks="10"):
    """Seconds per step, alone and together in turn. In either case both ranks compute at the same time and wait for
    each other, so that the difference is the communication."""
    shape = (int(batch), 3, 32, 32)
    alone = Training(models.resnet20, shape, 10, lib.rank())
    together = Training(models.resnet20, shape, 10, lib.rank(), lib)
    for training in (alone, together):
        training.steps(int(steps))
    took = {"alone": [], "together": []}
    for _ in range(int(blocks)):
        for name, training in (("alone", alone), ("together", together)):
            lib.barrier()
            block = seconds(lambda: (training.steps(int(steps)), lib.barrier()))
            took[name].append(block / int(steps))
    return took


def idle(lib, length="5"):
    """The percentage of a core that an initialised process uses while it does nothing, including its threads."""
    lib.barrier()
    before, start = time.process_time(), time.monotonic()
    time.sleep(float(length))  # the measured idle time
    return {"percent": 100 * (time.process_time() - before) / (time.monotonic() - start)}


def main():
    name, part, path, *words = sys.argv[1:]
    torch.set_num_threads(1)
    imported = seconds(lambda: library(name))
    lib = library(name)
    ready = seconds(lib.init)
    found = {"import": imported, "init": ready, **globals()[part](lib, *words)}
    rank = lib.rank()
    lib.finish()
    if rank == 0:
        with open(path, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
