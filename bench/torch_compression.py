"""Accuracy and bytes of compressed training: `muster.torch` on two ranks, with each compression of gradients.

  digits     the convolutional network of examples/horovod/torch_digits.py on the handwritten digits of this repository
  resnet20   ResNet-20 on the same digits (8 x 8 pixels, three equal channels)

The aim is a mean accuracy over the seeds of at least that of uncompressed training minus half a point. Each seed has
different initial weights and another order of the images, which are the same for all compressions.

  --only NAME      digits or resnet20
  --seeds N        default: 5
  --epochs N       default: 15 for digits, 20 for resnet20
  --compression C  beside "none", for example int8 or "powersgd 4"; may be given several times (default: all)
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from measure import print_table, verdict
from torch_ranks import ROOT, run_on_ranks, write

COMPRESSIONS = ["none", "fp16", "bf16", "int8", "powersgd 1", "powersgd 2", "powersgd 4"]
EPOCHS = {"digits": 15, "resnet20": 20}
RANKS = 2
BATCH = 32


def network(name):
    import models
    import torch
    if name == "resnet20":
        return models.resnet20()
    return torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
                               torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def train(file, name, compression, seed, epochs):
    """The program of a rank."""
    import torch
    import muster.torch as hvd
    sys.path.append(str(ROOT / "examples" / "data"))
    import digits_data
    hvd.init()
    seed, epochs = int(seed), int(epochs)
    kind, _, rank = compression.partition(" ")
    chosen = getattr(hvd.Compression, kind)
    if rank:
        chosen = chosen(rank=int(rank))
    channels = 3 if name == "resnet20" else 1

    def images_of(part):
        pixels, labels = digits_data.load(part)
        return torch.from_numpy(pixels).reshape(-1, 1, 8, 8).repeat(1, channels, 1, 1), torch.from_numpy(labels)

    images, labels = images_of("train")
    torch.manual_seed(seed)
    model = network(name)
    rate = 0.05
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4),
                                         model.named_parameters(), compression=chosen)
    steps = len(images) // (BATCH * hvd.size())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * steps)
    generator = torch.Generator().manual_seed(seed)
    begin = time.monotonic()
    for _ in range(epochs):
        order = torch.randperm(len(images), generator=generator)[hvd.rank()::hvd.size()]
        for chunk in order[:steps * BATCH].split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[chunk]), labels[chunk]).backward()
            optimizer.step()
            schedule.step()
    took = time.monotonic() - begin
    # Each rank has its own statistics of BatchNorm.
    for key, value in model.state_dict().items():
        if value.is_floating_point():
            hvd.allreduce_(value, name=f"mean.{key}")
    model.eval()
    images, labels = images_of("t10k")
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).double().mean().item()
    write(file, hvd.rank(), {"accuracy": 100 * right, "bytes": optimizer.wire_bytes(),
                             "step": 1e3 * took / (epochs * steps)})


def compare(name, seeds, epochs, compressions):
    found = {compression: [] for compression in compressions}
    for seed in range(seeds):
        for compression in compressions:
            found[compression].append(run_on_ranks(__file__, RANKS, name, compression, seed, epochs))
            print(f"{name}, seed {seed}, {compression}: {found[compression][-1]['accuracy']:.2f} %", file=sys.stderr)
    rows = []
    plain = statistics.mean(each["accuracy"] for each in found["none"])
    for compression, all_of in found.items():
        accuracies = [each["accuracy"] for each in all_of]
        mean, size = statistics.mean(accuracies), all_of[0]["bytes"]
        share = found["none"][0]["bytes"] / size
        goal = "" if compression == "none" else f"at least {plain - 0.5:.2f}  {verdict(mean >= plain - 0.5)}"
        rows.append([f"{name}  {compression}  accuracy, mean of {seeds}", f"{mean:.2f}", f"{min(accuracies):.2f}",
                     f"{max(accuracies):.2f}", "%", goal])
        rows.append([f"{name}  {compression}  sent by each rank in a step", f"{size / 1024:.0f}", "", "",
                     f"KiB, 1/{share:.1f}", ""])
    print(f"\n{name}, {epochs} epochs, {RANKS} ranks (p10 and p90: the lowest and the highest)")
    print_table(rows)


def main():
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        train(*sys.argv[1:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(EPOCHS), action="append")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--compression", action="append", choices=COMPRESSIONS)
    given = parser.parse_args()
    for name in given.only or sorted(EPOCHS):
        chosen = [each for each in COMPRESSIONS
                  if each == "none" or not given.compression or each in given.compression]
        compare(name, given.seeds, given.epochs or EPOCHS[name], chosen)


if __name__ == "__main__":
    main()
