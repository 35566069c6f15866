"""The subjects of the comparison, and how their two ranks are started. A failed run is noted and left out."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

from measure import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = pathlib.Path(__file__).parent / "ranks.py"
# Debian's Python, which has Debian's PyTorch, for which Horovod was compiled.
PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")
HOROVOD = pathlib.Path(os.environ.get("HOROVOD_ENVIRONMENT", ROOT / "build" / "horovod")) / "bin"
COUNT = 2


class Failed(Exception):
    pass


def plain_environment():
    """The environment of this process without variables of other jobs, with one thread per rank."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("MUSTER_", "HOROVOD_", "OMPI_", "PMI", "SLURM_"))}
    return dict(kept, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")


class Muster:
    package, python = "muster", PYTHON

    def launcher(self):
        return [PYTHON, "-m", "muster.runner.launch", "-np", str(COUNT)]

    def environment(self, folder):
        return {"PYTHONPATH": str(ROOT / "python"),
                "MUSTER_COLLECTIVE_LIBRARY": str(BUILD / "collective" / "package" / "libmuster_collective.so.0")}


class Horovod:
    package, python = "horovod", str(HOROVOD / "python")

    def __init__(self, *options, **settings):
        self.options = options
        self.settings = settings

    def launcher(self):
        return [str(HOROVOD / "horovodrun"), "-np", str(COUNT), *self.options]

    def environment(self, folder):
        # Variables for Horovod's mpirun.
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **self.settings,
                "PATH": f"{HOROVOD}:{os.environ['PATH']}"}


class Gloo:
    """torch.distributed, with torchrun's variables and a file."""

    package, python = "gloo", PYTHON

    def launcher(self):
        # A shell that starts both processes is all that a launcher has to do on one host.
        starts = "; ".join(f'RANK={rank} WORLD_SIZE={COUNT} "$@" & p{rank}=$!' for rank in range(COUNT))
        waits = " && ".join(f"wait $p{rank}" for rank in range(COUNT))
        return ["sh", "-c", f"{starts}; {waits}", "sh"]

    def environment(self, folder):
        return {"BENCH_STORE": f"{folder}/store", "GLOO_SOCKET_IFNAME": "lo"}


MPI = ("--mpi", "--mpi-args=--bind-to none --oversubscribe")
OURS, HOROVOD_DEFAULT, DDP = "ours", "Horovod", "DDP, gloo"
SUBJECTS = {
    OURS: Muster(),
    HOROVOD_DEFAULT: Horovod("--gloo"),
    "Horovod, cycle 0": Horovod("--gloo", HOROVOD_CYCLE_TIME="0"),
    "Horovod, MPI": Horovod(*MPI),
    "Horovod, MPI, cycle 0.1": Horovod(*MPI, HOROVOD_CYCLE_TIME="0.1"),
    DDP: Gloo(),
}


def started(subject, command, folder, patience):
    """Runs `command` on the ranks of a subject. Returns its output. Ends all processes that it started if it fails."""
    environment = {**plain_environment(), **subject.environment(folder)}
    with subprocess.Popen([*subject.launcher(), *command], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"took more than {patience} s") from None
    if process.returncode != 0:
        raise Failed(f"ended with {process.returncode}: " + " | ".join(output.strip().splitlines()[-3:]))
    return output


def measured(subject, part, *words, patience=300):
    """The measurements of rank 0 of a subject in one part of ranks.py."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        path = pathlib.Path(folder) / "found.json"
        output = started(subject, [subject.python, str(RANKS), subject.package, part, str(path), *words], folder,
                         patience)
        if not path.exists():
            raise Failed("rank 0 wrote no measurements: " + " | ".join(output.strip().splitlines()[-3:]))
        return json.loads(path.read_text())
