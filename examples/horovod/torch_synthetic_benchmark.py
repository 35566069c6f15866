#!/usr/bin/env python3
"""Measures the images per second of a convolutional network on synthetic images, which shows the cost of scaling.

    horovodrun -np 2 python3 torch_synthetic_benchmark.py --batch-size 8 --num-iters 5
"""

import argparse
import statistics
import time

import torch
import horovod.torch as hvd
from torch.nn import functional


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=32, help="images per step on each rank")
    parser.add_argument("--image-size", type=int, default=64, help="pixels per side")
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer")
    parser.add_argument("--num-warmup-batches", type=int, default=10)
    parser.add_argument("--num-batches-per-iter", type=int, default=10)
    parser.add_argument("--num-iters", type=int, default=10)
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients with 16 bits")
    parser.add_argument("--use-adasum", action="store_true", help="add gradients with Adasum")
    return parser.parse_args()


def network(width):
    layers, channels = [], 3
    for out in (width, 2 * width, 4 * width, 8 * width):
        layers += [torch.nn.Conv2d(channels, out, 3, stride=2, padding=1, bias=False),
                   torch.nn.BatchNorm2d(out), torch.nn.ReLU()]
        channels = out
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(channels, 1000))


def say(text):
    if hvd.rank() == 0:
        print(text, flush=True)


def spread(values):
    return f"{statistics.mean(values):.1f} +-{1.96 * statistics.pstdev(values):.1f}"


def main():
    options = arguments()
    hvd.init()
    torch.manual_seed(1 + hvd.rank())
    torch.set_num_threads(1)

    model = network(options.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * (1 if options.use_adasum else hvd.size()))
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if options.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if options.use_adasum else hvd.Average)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    images = torch.randn(options.batch_size, 3, options.image_size, options.image_size)
    labels = torch.randint(1000, (options.batch_size,))

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    say(f"{options.batch_size} images per step on each of {hvd.size()} ranks")
    for _ in range(options.num_warmup_batches):
        step()
    rates = []
    for number in range(options.num_iters):
        begun = time.perf_counter()
        for _ in range(options.num_batches_per_iter):
            step()
        rates.append(options.batch_size * options.num_batches_per_iter / (time.perf_counter() - begun))
        say(f"Iter #{number}: {rates[-1]:.1f} img/sec on one rank")

    say(f"Img/sec on one rank: {spread(rates)}")
    of_all = hvd.allreduce(torch.tensor(rates, dtype=torch.float64), name="rates", op=hvd.Sum).tolist()
    say(f"Total img/sec on {hvd.size()} ranks: {spread(of_all)}")


if __name__ == "__main__":
    main()
