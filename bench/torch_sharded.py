"""ShardedOptimizer compared with DistributedOptimizer, both with Adam: peak memory of a rank, and the time of a step.

By default, the model has 8 layers of 1,024 x 1,024 with biases (8.4 million parameters). Peak memory is the largest
resident set of rank 0 (VmHWM) minus the resident set before the model was created. Gradients in memory that the ranks
share count in each rank. Memory is measured with MALLOC_MMAP_THRESHOLD_=1048576, so that freed memory does not count,
and time without this setting. The variants take turns.

  --ranks N      default: 2
  --rounds N     default: 3
  --layers N     default: 8
  --width N      default: 1024
"""

import argparse
import sys
import time

from measure import print_table, row
from torch_ranks import run_on_ranks, write

STEPS = 8
VARIANTS = ["DistributedOptimizer", "ShardedOptimizer, stage 1", "ShardedOptimizer, stage 2"]


def memory_of(field):
    """A field of this process's /proc/self/status, in bytes."""
    for line in open("/proc/self/status", encoding="ascii"):
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise SystemExit(f"/proc/self/status has no {field}")


def train(file, variant, layers, width):
    """The program of a rank."""
    import torch
    import muster.torch as hvd
    hvd.init()
    layers, width = int(layers), int(width)
    # The first backward pass and step load code and start threads.
    warm = torch.nn.Linear(4, 4)
    warm_optimizer = torch.optim.Adam(warm.parameters())
    warm(torch.ones(1, 4)).sum().backward()
    warm_optimizer.step()
    hvd.allreduce(torch.zeros(1 << 20), name="warm")
    before = memory_of("VmRSS")
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())
                                  for _ in range(layers)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    if variant == VARIANTS[0]:
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    else:
        optimizer = hvd.ShardedOptimizer(optimizer, model.named_parameters(), stage=int(variant[-1]))
    inputs = torch.randn(8, width, generator=torch.Generator().manual_seed(hvd.rank()))
    steps = []
    for _ in range(STEPS + 2):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()
        steps.append(time.perf_counter() - begin)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    write(file, hvd.rank(), {"steps": steps[2:], "memory": memory_of("VmHWM") - before, "parameters": parameters})


def main():
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        train(*sys.argv[1:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--ranks", 2), ("--rounds", 3), ("--layers", 8), ("--width", 1024)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()
    steps = {variant: [] for variant in VARIANTS}
    memory = {variant: [] for variant in VARIANTS}
    parameters = 1
    for _ in range(given.rounds):
        for variant in VARIANTS:
            found = run_on_ranks(__file__, given.ranks, variant, given.layers, given.width)
            steps[variant] += [1e3 * each for each in found["steps"]]
            found = run_on_ranks(__file__, given.ranks, variant, given.layers, given.width,
                                 MALLOC_MMAP_THRESHOLD_="1048576")
            memory[variant].append(found["memory"])
            parameters = found["parameters"]
    print(f"\nSharded optimizer: {parameters / 1e6:.1f} M parameters, Adam, {given.ranks} ranks")
    print_table([*(row(f"peak memory of a rank  {variant}", [each / 2**20 for each in samples], "MiB")
                   for variant, samples in memory.items()),
                 *(row(f"bytes for each parameter  {variant}", [each / parameters for each in samples], "B", 1)
                   for variant, samples in memory.items()),
                 *(row(f"step  {variant}", samples, "ms", 1) for variant, samples in steps.items())])


if __name__ == "__main__":
    main()
