"""All-reduce of CUDA tensors by `muster.torch`, by torch.distributed over Gloo, and over NCCL: `make bench-gpu`.

On a machine with one GPU, two ranks share it, and both Muster and Gloo copy through host memory. NCCL requires one GPU
for each rank, so NCCL itself and Muster over NCCL are measured only on a machine with two or more. The subjects take
turns.

Exit code 77 if there is no GPU.

  --rounds N     default: 3
"""

import argparse
import importlib.util
import os
import pathlib
import sys
import tempfile
import time

from measure import print_table, row
from torch_ranks import ROOT, run_on_ranks, write

SIZES = {4: "4 B", 64 << 10: "64 KB", 1 << 20: "1 MB", 25 << 20: "25 MB", 256 << 20: "256 MB"}
CALLS = {4: 200, 64 << 10: 200, 1 << 20: 50, 25 << 20: 10, 256 << 20: 4}


def subjects_of(gpus):
    """Name of a subject -> its backend and its number of ranks."""
    subjects = {"ours, host memory": ("ours", 2), "gloo": ("gloo", 2)}
    if gpus >= 2:
        subjects.update({"ours, NCCL": ("ours-nccl", 2), "NCCL": ("nccl", 2)})
    return subjects


def measure(file, backend, store):
    """The program of a rank."""
    import torch
    rank = int(os.environ.get("HOROVOD_RANK", os.environ.get("MUSTER_RANK", "0")))
    size = int(os.environ.get("HOROVOD_SIZE", os.environ.get("MUSTER_WORLD_SIZE", "1")))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    if backend.startswith("ours"):
        if backend == "ours-nccl":
            os.environ["MUSTER_COLLECTIVE_TRANSPORT"] = "nccl"
        import muster.torch as hvd
        hvd.init()

        def reduce(tensor):
            hvd.allreduce_(tensor, name=f"reduce.{tensor.numel()}", op=hvd.Sum)
    else:
        import torch.distributed
        torch.distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size)

        def reduce(tensor):
            torch.distributed.all_reduce(tensor)
    took = {}
    for bytes_, calls in CALLS.items():
        tensor = torch.full((bytes_ // 4,), float(rank + 1), device="cuda")
        reduce(tensor)
        if not bool((tensor == size * (size + 1) / 2).all()):
            raise SystemExit(f"{backend}: wrong sum of {bytes_} bytes")
        tensor.zero_()
        took[bytes_] = []
        for _ in range(calls):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            reduce(tensor)
            torch.cuda.synchronize()
            took[bytes_].append(time.perf_counter() - begin)
    write(file, rank, took)
    if not backend.startswith("ours"):
        torch.distributed.destroy_process_group()


def checks():
    """tests/gpu.py as a module, whose functions examine the machine."""
    spec = importlib.util.spec_from_file_location("gpu_checks", ROOT / "tests" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments=None, gpus_of=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    module = checks()
    gpus, text = (gpus_of or module.count_of_gpus)()
    if gpus == 0:
        print(f"no NVIDIA GPU: {text}")
        return module.NO_GPU
    try:
        os.environ["TORCH_PYTHON"] = module.torch_python()
    except module.Skipped as reason:
        print(reason)
        return module.NO_GPU
    samples = {name: {size: [] for size in SIZES} for name in subjects_of(gpus)}
    for _ in range(given.rounds):
        for name, (backend, ranks) in subjects_of(gpus).items():
            with tempfile.TemporaryDirectory(prefix="muster-gpu-") as folder:
                found = run_on_ranks(__file__, ranks, backend, pathlib.Path(folder) / "store",
                                     **module.with_nccl())
            for size in SIZES:
                samples[name][size] += [1e3 * each for each in found[str(size)]]
    print(text)
    print_table([row(f"all_reduce {label}  {name}", samples[name][size], "ms", 3)
                 for size, label in SIZES.items() for name in samples])
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        measure(*sys.argv[1:])
    else:
        sys.exit(main())
