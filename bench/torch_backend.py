"""The backend "muster" of torch.distributed compared with gloo. All ranks are on this host and have one thread each.

  calls        all_reduce of 4 B to 256 MB, blocking and with a future; 2 ranks
  messages     half of the round-trip time of a message, with send and recv; 2 ranks
  ddp          a step of DistributedDataParallel: a ResNet-18 (4 images of 64 x 64 on each rank) and a transformer of 12
               layers and 25 million parameters (2 sequences of 16), with 2 and 4 ranks; the same without communication
  fsdp         a step of fully_shard() of the transformer, with 2 ranks (PyTorch 2)

Both backends are process groups of the same processes and take turns. A sample is the mean of a few calls or steps on
rank 0. The share of communication is the part of gloo's step time by which it exceeds a step without communication.

  --only SECTION   may be given several times
  --rounds N       default: 5
  --python FILE    the interpreter of the ranks, default: that of this program
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
SECTIONS = ["calls", "messages", "ddp", "fsdp"]
SIZES = {4: "4 B", 1 << 10: "1 KB", 1 << 14: "16 KB", 1 << 16: "64 KB", 1 << 20: "1 MB", 25 << 20: "25 MB",
         256 << 20: "256 MB"}
MESSAGES = {4: "4 B", 1 << 16: "64 KB", 16 << 20: "16 MB"}
MODELS = ["ResNet-18", "transformer"]


# --- in a rank ---


class Rank:
    """Takes samples with both groups in turn, and writes them as JSON on rank 0."""

    def __init__(self, rounds):
        import torch
        import torch.distributed as dist

        import muster.torch  # noqa: F401

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.torch, self.dist, self.rounds = torch, dist, rounds
        self.groups = {"muster": dist.new_group(backend="muster"), "gloo": dist.new_group(backend="gloo")}
        self.samples = {}

    def take_turns(self, what, subjects, calls, ways=1):
        """Each subject is a function that is called `calls` times in a row. One call does the measured work `ways`
        times."""
        for round_ in range(self.rounds + 1):
            for name, call in subjects.items():
                self.dist.barrier()
                begun = time.perf_counter()
                for _ in range(calls):
                    call()
                if round_ > 0:
                    self.samples.setdefault(what, {}).setdefault(name, []).append(
                        (time.perf_counter() - begun) / calls / ways)

    def calls(self):
        dist = self.dist
        for size, label in SIZES.items():
            tensor = self.torch.zeros(size // 4)
            count = max(1, min(300, (8 << 20) // size))

            def blocking(group, tensor=tensor):
                return lambda: dist.all_reduce(tensor, group=group)

            def by_future(group, tensor=tensor):
                return lambda: dist.all_reduce(tensor, group=group, async_op=True).get_future().wait()

            for what, make in (("blocking", blocking), ("future", by_future)):
                self.take_turns(f"{what} {label}", {name: make(group) for name, group in self.groups.items()}, count)

    def messages(self):
        dist = self.dist
        other = 1 - dist.get_rank()
        for size, label in MESSAGES.items():
            tensor = self.torch.zeros(size // 4)

            def there_and_back(group, tensor=tensor):
                def first():
                    dist.send(tensor, other, group=group)
                    dist.recv(tensor, other, group=group)

                def second():
                    dist.recv(tensor, other, group=group)
                    dist.send(tensor, other, group=group)

                return first if dist.get_rank() == 0 else second

            count = max(2, min(300, (32 << 20) // size))
            self.take_turns(f"message {label}", {name: there_and_back(group) for name, group in self.groups.items()},
                            count, ways=2)

    def model(self, name):
        """A model and a batch for it."""
        torch = self.torch
        torch.manual_seed(1)
        if name == "ResNet-18":
            sys.path.insert(0, str(FOLDER / "horovod"))
            from models import resnet18

            return resnet18(), torch.randn(4, 3, 64, 64)
        layer = torch.nn.TransformerEncoderLayer(416, 8, 1664, dropout=0, batch_first=True)
        return torch.nn.TransformerEncoder(layer, 12), torch.randn(2, 16, 416)

    @staticmethod
    def step(model, batch):
        def take():
            model.zero_grad()
            model(batch).square().mean().backward()

        return take

    def ddp(self):
        wrap = self.torch.nn.parallel.DistributedDataParallel
        for name in MODELS:
            subjects = {}
            for backend, group in self.groups.items():
                model, batch = self.model(name)
                subjects[backend] = self.step(wrap(model, process_group=group), batch)
            model, batch = self.model(name)
            subjects["alone"] = self.step(model, batch)
            self.take_turns(f"DDP {name}", subjects, 2)

    def fsdp(self):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        subjects = {}
        for backend, group in self.groups.items():
            model, batch = self.model("transformer")
            mesh = DeviceMesh.from_group(group, "cpu")
            for layer in model.layers:
                fully_shard(layer, mesh=mesh)
            subjects[backend] = self.step(fully_shard(model, mesh=mesh), batch)
        self.take_turns("FSDP transformer", subjects, 2)


def run_rank(section, rounds, results):
    rank = Rank(rounds)
    getattr(rank, section)()
    if rank.dist.get_rank() == 0:
        pathlib.Path(results).write_text(json.dumps(rank.samples))
    rank.dist.barrier()
    rank.dist.destroy_process_group()


# --- the launcher of the ranks ---


def run_ranks(python, section, ranks, rounds):
    """Runs a section. Returns its samples, or an empty result if a rank failed."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        results = pathlib.Path(folder) / "results"
        environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20_000 + os.getpid() % 20_000),
                           WORLD_SIZE=str(ranks), OMP_NUM_THREADS="1", PYTHONPATH=str(FOLDER.parent / "python"),
                           TORCH_FR_BUFFER_SIZE="0")
        command = [python, "-W", "ignore", __file__, "--rank", section, "--rounds", str(rounds),
                   "--results", str(results)]
        processes = [subprocess.Popen(command, env=dict(environment, RANK=str(rank)), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        outputs = [process.communicate()[1] for process in processes]
        if not results.exists():
            print(f"{section} with {ranks} ranks failed:\n{outputs[0][-1500:]}", file=sys.stderr)
            return {}
        return json.loads(results.read_text())


def rows_of(samples, ranks):
    from measure import row, verdict

    rows = []
    for what, by_name in samples.items():
        label = f"{what}, {ranks} ranks"
        is_call = not what.startswith(("DDP", "FSDP"))
        unit, scale, digits = ("us", 1e6, 0) if is_call else ("ms", 1e3, 1)
        for name, figures in by_name.items():
            rows.append(row(f"{label}  {name}", [figure * scale for figure in figures], unit, digits))
        medians = {name: statistics.median(figures) for name, figures in by_name.items()}
        ratio = medians["gloo"] / medians["muster"]
        size = what.split(" ", 1)[1]
        is_all_reduce = is_call and not what.startswith("message")
        least = 1 if not is_all_reduce else 1.5 if size == "4 B" else None if size in ("1 KB", "16 KB") else 4
        if "alone" in medians:
            share = max(0.0, 1 - medians["alone"] / medians["gloo"])
            least = 1.3 if share >= 0.5 else 1
            rows.append([f"{label}  communication in gloo's step", f"{100 * share:.0f}", "", "", "%", ""])
        aim = "" if least is None else f"at least {least:g}  {verdict(ratio >= least)}"
        rows.append([f"{label}  gloo / muster", f"{ratio:.2f}", "", "", "ratio", aim])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--results", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        run_rank(options.rank, options.rounds, options.results)
        return
    from measure import print_table

    rows = []
    for section in options.only or SECTIONS:
        for ranks in (2, 4) if section == "ddp" else (2,):
            print(f"{section}, {ranks} ranks", file=sys.stderr)
            rows += rows_of(run_ranks(options.python, section, ranks, options.rounds), ranks)
    print_table(rows)


if __name__ == "__main__":
    main()
