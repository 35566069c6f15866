#!/usr/bin/env python3
"""Everything that needs a real GPU, in one command on a bare machine with an NVIDIA GPU: `make test-gpu`.

  nccl            the NCCL plug-in with one rank: all collectives on host buffers and on device memory
  host-memory     two ranks that share the first GPU: muster.torch through pinned host memory
  stream-order    the same two ranks: kernels before and after a reduction, on several streams
  nccl-torch      muster.torch with MUSTER_COLLECTIVE_TRANSPORT=nccl, one rank for each GPU
  visibility      jobs see exactly the GPUs that they were given, and none without --gpus
  claims          a job that requests one GPU more than the machine has is refused with the reason
  sampling        `muster metrics` has the utilisation and the memory of a job's GPU, from NVML
  out-of-memory   a job that needs too much GPU memory fails with that reason

It ends with a table and the line "N passed, N failed". Exit code: 0 if no check failed, 1 if one did, 77 if there is
no GPU.

  --only NAME     may be given several times
  --list          prints the names
  --machine       prints the GPUs, and checks nothing

Checks with PyTorch require a PyTorch with CUDA, in $TORCH_PYTHON, build/torch/bin/python (scripts/python_env.sh torch)
or /usr/bin/python3.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build" / "release")).resolve()
MUSTER = BUILD / "platform" / "muster"
NO_GPU = 77
SECONDS = 300

#: A program of a job: keeps the GPU busy, and holds memory.
BUSY = """
import time, torch
size = torch.randn(4096, 4096, device="cuda")
print("started", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    size = (size @ size).clamp_(-1, 1)
    torch.cuda.synchronize()
"""

TOO_MUCH = """
import torch
torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
"""


class Failed(Exception):
    """A check has failed; the text is the reason."""


class Skipped(Exception):
    """A check cannot run here; the text is the reason."""


# --- The machine ---


def count_of_gpus(library="libnvidia-ml.so.1"):
    """The number of NVIDIA GPUs, and a text about them. Without a driver: 0 and the reason."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError as error:
        return 0, f"NVIDIA's driver is not installed ({error})"
    code = nvml.nvmlInit_v2()
    if code != 0:
        return 0, f"NVIDIA's driver does not answer (nvmlInit: {code})"
    try:
        count = ctypes.c_uint()
        code = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        if code != 0 or count.value == 0:
            return 0, f"NVIDIA's driver reports no GPU (code {code})"
        handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
        nvml.nvmlDeviceGetName(handle, name, len(name))
        return count.value, f"{count.value} x {name.value.decode(errors='replace')}"
    finally:
        nvml.nvmlShutdown()


def torch_python(candidates=None):
    """The first Python whose PyTorch can use the GPU. Raises Skipped."""
    if candidates is None:
        candidates = [os.environ.get("TORCH_PYTHON"), ROOT / "build" / "torch" / "bin" / "python", "/usr/bin/python3"]
    seen = []
    for python in filter(None, candidates):
        try:
            done = subprocess.run([python, "-c", "import torch; print(torch.cuda.is_available(), torch.__version__)"],
                                  capture_output=True, text=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            seen.append(f"{python}: {error}")
            continue
        if done.stdout.startswith("True"):
            return str(python)
        seen.append(f"{python}: {done.stdout.strip() or done.stderr.strip().splitlines()[-1:]}")
    raise Skipped(f"no PyTorch with CUDA ({'; '.join(seen)})")


def run(argv, check=True, cwd=None, **variables):
    """Runs a program and returns its output. Raises Failed if the exit code is not 0."""
    done = subprocess.run([str(each) for each in argv], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                          cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, argv))} ended with {done.returncode}: {done.stdout.strip()[-2000:]}")
    return done


# --- Checks of the library ---


def check_nccl(machine):
    program = next(BUILD.glob("**/collective_nccl_check"), None)
    if program is None:
        raise Failed("collective_nccl_check is not built")
    done = run([program], check=False, MUSTER_COLLECTIVE_TRANSPORT="nccl", **with_nccl())
    if done.returncode == NO_GPU:
        raise Skipped(done.stdout.strip())
    if done.returncode != 0:
        raise Failed(done.stdout.strip()[-2000:])
    return "one rank, all collectives"


def with_nccl():
    """The variable that makes the loader find the NCCL of PyTorch's packages, if there is one."""
    try:
        done = run([torch_python(), "-c", "import nvidia.nccl as n; print(list(n.__path__)[0])"], check=False)
    except Skipped:
        return {}
    folder = pathlib.Path(done.stdout.strip()) / "lib"
    if done.returncode != 0 or not folder.is_dir():
        return {}
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))}


def run_ranks(classes, ranks, **variables):
    done = run([torch_python(), "-B", "run_on_ranks.py", "--sizes", str(ranks), "--launchers", "plain",
                *[f"ranks.gpu_tensors.{name}" for name in classes]], check=False, cwd=ROOT / "python" / "tests",
               PYTHONPATH=str(ROOT / "python"), MUSTER_BUILD=str(BUILD),
               MUSTER_COLLECTIVE_LIBRARY=str(BUILD / "collective" / "package" / "libmuster_collective.so.0"),
               **variables)
    if done.returncode != 0:
        raise Failed(done.stdout.strip()[-4000:])
    return done.stdout.strip().splitlines()[-1]


def check_host_memory(machine):
    return run_ranks(["Reductions", "Training"], 2)


def check_stream_order(machine):
    return run_ranks(["Streams"], 2)


def check_nccl_torch(machine):
    return run_ranks(["Reductions", "Streams", "Training"], machine.gpus, GPU_TRANSPORT="nccl",
                     GPU_FOR_EACH_RANK="1", **with_nccl())


# --- Checks of jobs ---


class Server:
    """A server with a state folder of its own, removed at the end with all jobs."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="muster-gpu-")
        self._variables = {"MUSTER_STATE_DIR": self._folder.name}
        return self

    def __exit__(self, *_):
        self.muster("server", "--stop", check=False)
        self._folder.cleanup()

    def muster(self, *arguments, check=True):
        return run([MUSTER, *arguments], check=check, **self._variables)


SEES = ["sh", "-c", "nvidia-smi -L | wc -l; echo devices=$CUDA_VISIBLE_DEVICES"]


def check_visibility(machine):
    with Server() as server:
        for wanted in (1, machine.gpus):
            seen = server.muster("run", "--gpus", wanted, "--", *SEES).stdout.split()
            devices = next(word for word in seen if word.startswith("devices=")).partition("=")[2]
            if str(wanted) not in seen or len(devices.split(",")) != wanted:
                raise Failed(f"a job with --gpus {wanted} sees {' '.join(seen)}")
        seen = server.muster("run", "--", *SEES, check=False).stdout.split()
        if "devices=" not in seen or (seen and seen[0] not in ("0", "No")):
            raise Failed(f"a job without --gpus sees {' '.join(seen)}")
    return f"1, {machine.gpus} and no GPU"


def check_claims(machine):
    with Server() as server:
        refused = server.muster("submit", "single", "wide", "--gpus", machine.gpus + 1, "--", "true", check=False)
        if refused.returncode == 0:
            reason = server.muster("explain", "wide").stdout
            if "GPU" not in reason:
                raise Failed(f"the reason of a job with too many GPUs names no GPU: {reason}")
            return reason.strip().splitlines()[-1]
        return refused.stdout.strip().splitlines()[0]


def check_sampling(machine):
    python = torch_python()
    with Server() as server:
        server.muster("submit", "single", "busy", "--gpus", "1", "--", python, "-c", BUSY)
        found = {}
        end = time.monotonic() + 60
        while time.monotonic() < end and len(found) < 2:
            for name in ("gpu_percent", "gpu_memory_bytes"):
                done = server.muster("metrics", "busy", name, "--output", "json", check=False)
                values = list(numbers_of(done.stdout))
                if done.returncode == 0 and any(value > 0 for value in values):
                    found[name] = max(values)
            time.sleep(1)
        if len(found) < 2:
            raise Failed(f"after a minute of work there are only {found or 'no values'}")
    return ", ".join(f"{name} {value:g}" for name, value in found.items())


_VALUES = ("value", "values", "points", "series", "max", "last", "metrics", "tasks")


def numbers_of(text):
    """All values in the output of `muster metrics --output json`."""
    try:
        stack = [json.loads(text)]
    except ValueError:
        return
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += [each for key, each in value.items() if key in _VALUES]
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value


def check_out_of_memory(machine):
    python = torch_python()
    with Server() as server:
        done = server.muster("run", "--gpus", "1", "--", python, "-c", TOO_MUCH, check=False)
        if done.returncode == 0:
            raise Failed("a petabyte of GPU memory was allocated")
        line = next((line for line in done.stdout.splitlines() if "GPU" in line and "memory" in line
                     and "torch" not in line), None)
        if line is None:
            raise Failed(f"the reason names no GPU memory: {done.stdout.strip()[-1000:]}")
    return line.strip()


CHECKS = {"nccl": check_nccl, "host-memory": check_host_memory, "stream-order": check_stream_order,
          "nccl-torch": check_nccl_torch, "visibility": check_visibility, "claims": check_claims,
          "sampling": check_sampling, "out-of-memory": check_out_of_memory}


# --- The run ---


class Machine:
    def __init__(self, gpus):
        self.gpus = gpus


def run_checks(checks, machine):
    """A row for each check: name, result, seconds, detail."""
    rows = []
    for name, check in checks.items():
        begin = time.monotonic()
        try:
            result, detail = "passed", check(machine)
        except Skipped as reason:
            result, detail = "skipped", str(reason)
        except Failed as fault:
            result, detail = "FAILED", str(fault)
        except Exception as error:  # noqa: B902  (the other checks run nevertheless)
            result, detail = "FAILED", f"{type(error).__name__}: {error}"
        rows.append([name, result, f"{time.monotonic() - begin:.1f}", detail or ""])
        print(f"{name}: {result}", file=sys.stderr, flush=True)
    return rows


def table_of(rows):
    """The table with the first line of each detail; the whole details of failures follow it."""
    shown = [["check", "result", "s", ""], *[[*row[:3], (row[3].splitlines() or [""])[0][:100]] for row in rows]]
    widths = [max(len(row[column]) for row in shown) for column in range(3)]
    lines = [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in shown]
    for name, result, _, detail in rows:
        if result == "FAILED":
            lines += ["", f"{name}:", *[f"  {line}" for line in detail.splitlines()]]
    return "\n".join(lines)


def main(arguments=None, gpus_of=count_of_gpus, checks=None):
    checks = CHECKS if checks is None else checks
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(checks), metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--machine", action="store_true")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(checks))
        return 0
    gpus, text = gpus_of()
    if gpus == 0:
        print(f"no NVIDIA GPU: {text}")
        return NO_GPU
    print(text)
    if given.machine:
        return 0
    rows = run_checks({name: check for name, check in checks.items() if not given.only or name in given.only},
                      Machine(gpus))
    results = [row[1] for row in rows]
    print(table_of(rows))
    print(f"{results.count('passed')} passed, {results.count('FAILED')} failed")
    return 1 if "FAILED" in results else 0


if __name__ == "__main__":
    sys.exit(main())
