"""muster.torch compared with Horovod 0.28.1 and with torch.distributed over gloo: two ranks of one thread each, on this
host, with Debian's PyTorch. `make bench-horovod` compiles Horovod first.

  latency    blocking allreduce_ of 4 B to 64 KB, by name
  bandwidth  the same with 1 MB to 100 MB
  gradients  the 148 gradients of a ResNet-50, 94 MB, started one by one and then waited for
  resnet18   images per second of both ranks together, with 8 synthetic images of 224 x 224 on each rank
  resnet20   seconds per step with 8 images of 32 x 32, compared with the same two processes without communication
  start      horovodrun -np 2 true; the time of init()
  idle       the processor use of an initialised process that does nothing

Horovod is measured with its defaults (over Gloo with a cycle of 1 ms), and tuned: with a cycle of 0, over MPI, and over
MPI with 0.1 ms. All subjects take turns, with one start of each per round. All subjects compute sums. Horovod and our
library agree on names at run time, torch.distributed does not.

  --only SECTION   may be given several times
  --rounds N       default: 3
"""

import argparse
import collections
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "horovod"))

from measure import print_table, row, verdict  # noqa: E402
from subjects import DDP, HOROVOD_DEFAULT, OURS, SUBJECTS, Failed, measured, started  # noqa: E402

SMALL = {"4": "4 B", "1024": "1 KB", "16384": "16 KB", "65536": "64 KB"}
LARGE = {str(1 << 20): "1 MB", str(4 << 20): "4 MB", str(25 << 20): "25 MB", str(100 << 20): "100 MB"}
SECTIONS = ["latency", "bandwidth", "gradients", "resnet18", "resnet20", "start", "idle"]
TRAINED = [OURS, HOROVOD_DEFAULT, "Horovod, cycle 0", DDP]


class Bench:
    """Samples by measurement and subject, and the errors."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.samples = collections.defaultdict(lambda: collections.defaultdict(list))
        self.notes = collections.Counter()

    def take_turns(self, names, take):
        """`take(name, subject)` returns a map from the name of a measurement to its samples."""
        for round_ in range(self.rounds):
            for name in names:
                start = time.monotonic()
                try:
                    for what, samples in take(name, SUBJECTS[name]).items():
                        self.samples[what][name] += samples
                except Failed as error:
                    self.notes[f"{name}: {error}"] += 1
                print(f"round {round_ + 1} of {self.rounds}: {name}, {time.monotonic() - start:.0f} s", file=sys.stderr)

    def median(self, what, name):
        samples = self.samples[what].get(name)
        return statistics.median(samples) if samples else None

    def rows(self, what, label, unit, digits, scale):
        return [row(f"{label}  {name}", [sample * scale for sample in samples], unit, digits)
                for name, samples in self.samples[what].items()]

    def ratio(self, what, label, other, aim=None, inverse=False, name=OURS):
        """The ratio of the medians of another subject and of ours: how many times better ours is."""
        ours, theirs = self.median(what, name), self.median(what, other)
        if ours is None or theirs is None:
            return []
        value = ours / theirs if inverse else theirs / ours
        goal = "" if aim is None else f"at least {aim:g}  {verdict(value >= aim)}"
        words = f"{name} / {other}" if inverse else f"{other} / {name}"
        return [[f"{label}  {words}", f"{value:.2f}", "", "", "ratio", goal]]


def best_tuned(bench, what):
    """The name of the fastest Horovod with changed settings."""
    tuned = [name for name in SUBJECTS if name.startswith(HOROVOD_DEFAULT) and name != HOROVOD_DEFAULT]
    return min(tuned, key=lambda name: bench.median(what, name) or float("inf"))


def operations(bench, sections):
    def take(name, subject):
        found = measured(subject, "operations")
        # The times of init() belong to the section `start`, if it was requested.
        return {**{what: found[what] for what in [*SMALL, *LARGE, "gradients"]}, "init": [found["init"]]}

    bench.take_turns(SUBJECTS, take)
    tables = {"latency": ("allreduce_, small", SMALL, "us", 1, 1e6, 100),
              "bandwidth": ("allreduce_, large", LARGE, "ms", 2, 1e3, 3),
              "gradients": ("148 tensors", {"gradients": "94 MB"}, "ms", 1, 1e3, None)}
    for section in sections:
        title, sizes, unit, digits, scale, aim = tables[section]
        yield title, [line for what, label in sizes.items() for line in [
            *bench.rows(what, label, unit, digits, scale),
            *bench.ratio(what, label, HOROVOD_DEFAULT, aim), *bench.ratio(what, label, best_tuned(bench, what)),
            *bench.ratio(what, label, DDP)]]


def resnet18(bench):
    bench.take_turns(TRAINED, lambda name, subject: {"resnet18": measured(subject, "resnet18")["rates"]})
    yield "ResNet-18, 2 ranks", [
        *bench.rows("resnet18", "", "images/s", 2, 1),
        *bench.ratio("resnet18", "", HOROVOD_DEFAULT, inverse=True),
        *bench.ratio("resnet18", "", DDP, 1, inverse=True)]


def resnet20(bench):
    """The time together / alone in the same process, block by block. Horovod's threads use the cores also during steps
    without communication, so it is compared with the other subjects' steps alone."""
    def take(name, subject):
        found = measured(subject, "resnet20")
        steps = {"resnet20": found["together"]}
        if not name.startswith("Horovod"):
            steps["alone"] = found["alone"]
            steps["slower"] = [together / alone for together, alone in zip(found["together"], found["alone"])]
        return steps

    bench.take_turns(TRAINED, take)
    alone = [sample for samples in bench.samples["alone"].values() for sample in samples]
    rows = [row("alone", [1e3 * sample for sample in alone], "ms", 2)] if alone else []
    rows += bench.rows("resnet20", "", "ms", 2, 1e3)
    for name in TRAINED:
        ratio = bench.median("slower", name)
        together = bench.median("resnet20", name)
        if ratio is None and together is not None and alone:
            ratio = together / statistics.median(alone)
        if ratio is not None:
            goal = f"at most 3  {verdict(ratio <= 1.03)}" if name == OURS else ""
            rows.append([f"{name}, longer than alone", f"{100 * (ratio - 1):.1f}", "", "", "%", goal])
    yield "ResNet-20, a step of 8 images", rows


def start(bench):
    launched = [name for name in SUBJECTS if name != DDP and "cycle" not in name]

    def take(name, subject):
        with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
            begin = time.monotonic()
            started(subject, ["true"], folder, 60)
            return {"start": [time.monotonic() - begin]}

    bench.take_turns(launched, take)
    if not bench.samples["init"]:
        bench.take_turns(SUBJECTS, lambda name, subject: {"init": [measured(subject, "idle", "0.1")["init"]]})
    median = bench.median("start", OURS)
    rows = [*bench.rows("start", "horovodrun -np 2 true ", "s", 3, 1),
            *bench.ratio("start", "", HOROVOD_DEFAULT), *bench.rows("init", "init() ", "s", 3, 1)]
    if median is not None:
        rows.append([f"{OURS}, horovodrun -np 2 true", f"{median:.3f}", "", "", "s",
                     f"below 0.3  {verdict(median < 0.3)}"])
    yield "start", rows


def idle(bench):
    bench.take_turns(SUBJECTS, lambda name, subject: {"idle": [measured(subject, "idle")["percent"]]})
    median = bench.median("idle", OURS)
    rows = bench.rows("idle", "", "% of a core", 3, 1)
    if median is not None:
        # Reading the clock every second costs a hundredth of a percent.
        rows.append([f"{OURS}, idle", f"{median:.3f}", "", "", "% of a core", f"below 0.01  {verdict(median < 0.01)}"])
    yield "idle", rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    wanted = options.only or SECTIONS
    bench = Bench(options.rounds)
    tables = []
    calls = [section for section in ("latency", "bandwidth", "gradients") if section in wanted]
    if calls:
        tables += operations(bench, calls)
    for section in (resnet18, resnet20, start, idle):
        if section.__name__ in wanted:
            tables += section(bench)
    for title, rows in tables:
        print(f"\n{title}")
        print_table([[line[0].strip(), *line[1:]] for line in rows])
    for note, count in bench.notes.items():
        print(f"\nleft out, {count} of {options.rounds} rounds: {note}")


if __name__ == "__main__":
    main()
