"""Starts the program of a benchmark on several ranks with muster.torch, and returns the measurements of rank 0."""

import json
import os
import pathlib
import subprocess
import tempfile

from measure import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[1]


def python():
    """$TORCH_PYTHON, or Debian's Python, which has Debian's PyTorch."""
    return os.environ.get("TORCH_PYTHON", "/usr/bin/python3")


def run_on_ranks(program, ranks, *arguments, **variables):
    """Runs `program FILE ARGUMENTS...` on each rank, with one thread and with `variables` in its environment. Returns
    the JSON that rank 0 writes to FILE."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("MUSTER_", "HOROVOD_", "OMPI_", "PMI", "SLURM_"))}
    # On a crowded machine a rank may be silent for longer than the default of 0.7 s.
    environment = dict(kept, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", MUSTER_COLLECTIVE_SILENCE="60",
                       PYTHONPATH=f"{ROOT / 'python'}:{ROOT / 'bench'}:{ROOT / 'bench' / 'horovod'}",
                       MUSTER_COLLECTIVE_LIBRARY=str(BUILD / "collective" / "package" / "libmuster_collective.so.0"),
                       **variables)
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        file = pathlib.Path(folder) / "measured"
        ended = subprocess.run([python(), "-m", "muster.runner.launch", "-np", str(ranks), python(), program, str(file),
                                *map(str, arguments)], env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            raise SystemExit(f"{program} {' '.join(map(str, arguments))} ended with {ended.returncode}:\n"
                             f"{ended.stdout}{ended.stderr}")
        return json.loads(file.read_text())


def write(file, rank, measured):
    if rank == 0:
        pathlib.Path(file).write_text(json.dumps(measured))
