"""Tasks in containers, compared with the same work by hand with Podman's own commands.

  launch     from submit to the first line of rank 0: a launcher and two workers, over ssh and over Muster's own
             agent. By hand: `podman run` of two workers with an sshd, one after the other and both at once, then
             mpirun in a third container; keys, network and settings exist before. Aim: at most 1.2 times the
             faster of the two by hand.
  gang       from submit to the first line of the last of 16 tasks. By hand: `podman run` of 16 containers, one
             after the other, and 8 at once.
  allreduce  MPI_Allreduce across two containers, of a job and by hand. For some seconds or minutes, messages between
             the two cores take two or three times as long, in both alike. Therefore each run is compared with the
             one beside it, and the median of these ratios counts. Aim: at least 0.95 of the speed by hand.

The engine is a Podman of the benchmark's own (tests/container_hosts.py). Image and kind of network are the same for
all. A round removes its containers before the next one begins. The subjects take turns. Requires root. Arguments: the
parts to run; default: all.
"""

import concurrent.futures
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from container_hosts import PodmanService
from containers_by_hand import ByHand
from measure import BUILD, MUSTER, interleaved, print_table, row, verdict

IMAGE = "localhost/muster-test-openmpi"
LAUNCH_ROUNDS = 7
GANG_ROUNDS = 3
ALLREDUCE_ROUNDS = 9
GANG = 16
AT_ONCE = 8
LAUNCH_AIM = 1.2
SPEED_AIM = 0.95
SIZES = {4: "4 B", 64 << 10: "64 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB"}
# Two ranks and their launcher share two cores: a waiting process yields.
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2", "-bind-to", "none", "-map-by", "slot",
          "-mca", "pml", "ob1", "-mca", "btl", "tcp,self", "-mca", "mpi_yield_when_idle", "1"]
BOUND = 120


def first_line_of(process, words):
    """Reads until a line contains `words`. Returns seconds on the monotonic clock."""
    for line in process.stdout:
        if words in line:
            return time.monotonic()
    raise SystemExit(f"{process.args[-6:]} ended before it printed {words!r}")


class Server:
    """Muster, with tasks in containers of `engine`."""

    def __init__(self, engine):
        self._engine = engine

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self.work = Path(self._folder.name) / "work"
        self.work.mkdir()
        for program in ("first_line", "allreduce"):
            shutil.copy(BUILD / "bench" / program, self.work)
        self.environment = os.environ | {
            "MUSTER_STATE_DIR": f"{self._folder.name}/state", "MUSTER_ENGINE": "container",
            "DOCKER_HOST": self._engine.url}
        self.muster("list")
        return self

    def __exit__(self, *ignored):
        self.muster("server", "--stop")
        self._folder.cleanup()

    def muster(self, *words):
        return subprocess.run([MUSTER, *map(str, words)], env=self.environment, check=True, timeout=BOUND,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout

    def follow(self, *words):
        return subprocess.Popen([MUSTER, "submit", *map(str, words)], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)

    def remove(self, name):
        """Removes the job, and waits until the engine has none of its containers."""
        self.muster("delete", "--force", name)
        for container in self._engine.containers():
            # 404: it was gone before the engine could be asked.
            status, answer = self._engine.api("POST", f"/containers/{container}/wait?condition=removed")
            if status not in (200, 404):
                raise SystemExit(f"cannot wait for the removal of {container}: {status} {answer}")

            # 404: the container was removed before this request.
class Measurements:
    def __init__(self, engine, server, hand):
        self._engine, self._server, self._hand = engine, server, hand
        self._numbers = itertools.count()

    def _job(self, kind, name, *words):
        return self._server.follow(kind, name, "-i", IMAGE, "-v", f"{self._server.work}:/job:ro",
                                   "--follow", *words)

    def launch_of_muster(self, by):
        name = f"launch-{next(self._numbers)}"
        start = time.monotonic()
        with self._job("mpi", name, "-n", 2, "--launch", by, "--", *MPIRUN, "/job/first_line") as follow:
            took = first_line_of(follow, b"first line") - start
            follow.stdout.read()
        self._server.remove(name)
        return took * 1000

    def launch_by_hand(self, at_once):
        start = time.monotonic()
        try:
            self._hand.start_workers(at_once)
            with self._hand.mpirun(MPIRUN, "/job/first_line") as launcher:
                took = first_line_of(launcher, b"first line") - start
                launcher.stdout.read()
        finally:
            self._hand.remove()
        return took * 1000

    def gang_of_muster(self):
        name = f"gang-{next(self._numbers)}"
        start = time.monotonic()
        with self._job("torch", name, "-n", GANG - 1, "--no-prefix", "--", "sh", "-c",
                       "echo it is up; exec sleep infinity") as follow:
            for _ in range(GANG):
                took = first_line_of(follow, b"it is up") - start
            self._server.muster("stop", "--now", name)
            follow.stdout.read()
        self._server.remove(name)
        return took

    def gang_by_hand(self, at_once):
        def run(number):
            process = self._hand.run(f"gang-{number}", "sh", "-c", "echo it is up; exec sleep infinity")
            first_line_of(process, b"it is up")
            return process

        start = time.monotonic()
        try:
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                started = list(pool.map(run, range(GANG)))
            took = time.monotonic() - start
        finally:
            self._hand.remove()
        for process in started:
            process.stdout.close()
            process.wait(BOUND)
        return took

    def allreduce_of_muster(self):
        name = f"allreduce-{next(self._numbers)}"
        with self._job("mpi", name, "-n", 2, "--no-prefix", "--", *MPIRUN, "/job/allreduce",
                       *SIZES) as follow:
            figures = self._figures(follow)
        self._server.remove(name)
        return figures

    def allreduce_by_hand(self):
        try:
            self._hand.start_workers(2)
            with self._hand.mpirun(MPIRUN, "/job/allreduce", *SIZES) as launcher:
                return self._figures(launcher)
        finally:
            self._hand.remove()

    @staticmethod
    def _figures(process):
        words = [line.split() for line in process.stdout if line.startswith(b"allreduce ")]
        if len(words) != len(SIZES):
            raise SystemExit(f"{process.args[-6:]} failed")
        return {int(size): float(median) for _, size, median in words}


def launch(measure):
    samples = interleaved({
        "muster, --launch ssh": lambda: measure.launch_of_muster("ssh"),
        "muster, --launch agent": lambda: measure.launch_of_muster("agent"),
        "podman run, one after the other": lambda: measure.launch_by_hand(1),
        "podman run, both at once": lambda: measure.launch_by_hand(2)}, LAUNCH_ROUNDS)
    medians = {name: statistics.median(figures) for name, figures in samples.items()}
    quicker = min(median for name, median in medians.items() if name.startswith("podman"))
    rows = [row(name, figures, "ms") for name, figures in samples.items()]
    for by in ("ssh", "agent"):
        ratio = medians[f"muster, --launch {by}"] / quicker
        rows.append([f"{by} / the quicker by hand", f"{ratio:.2f}", "", "", "ratio",
                     f"at most {LAUNCH_AIM}  {verdict(ratio <= LAUNCH_AIM)}"])
    return rows


def gang(measure):
    samples = interleaved({
        f"muster, a gang of {GANG}": measure.gang_of_muster,
        f"podman run of {GANG}, one after the other": lambda: measure.gang_by_hand(1),
        f"podman run of {GANG}, {AT_ONCE} at once": lambda: measure.gang_by_hand(AT_ONCE)}, GANG_ROUNDS)
    return [row(name, figures, "s", 2) for name, figures in samples.items()]


def allreduce(measure):
    samples = interleaved({"muster": measure.allreduce_of_muster, "by hand": measure.allreduce_by_hand},
                          ALLREDUCE_ROUNDS)
    rows = []
    for size, text in SIZES.items():
        ours, theirs = ([figures[size] for figures in samples[name]] for name in ("muster", "by hand"))
        rows.append(row(f"all-reduce of {text}, muster", ours, "us", 1))
        rows.append(row(f"all-reduce of {text}, by hand", theirs, "us", 1))
        speeds = [by_hand / of_muster for of_muster, by_hand in zip(ours, theirs)]
        rows.append(row(f"  speed to that by hand, {text}", speeds, "ratio", 2))
        rows[-1][-1] = f"at least {SPEED_AIM}  {verdict(statistics.median(speeds) >= SPEED_AIM)}"
    return rows


PARTS = {"launch": launch, "gang": gang, "allreduce": allreduce}


def main():
    parts = [PARTS[name] for name in sys.argv[1:] or PARTS]
    with tempfile.TemporaryDirectory(prefix="mt-") as folder, \
            PodmanService(Path(folder) / "e") as engine, Server(engine) as server, \
            ByHand(engine, IMAGE, Path(folder) / "hand", server.work) as hand:
        measure = Measurements(engine, server, hand)
        print_table([cells for part in parts for cells in part(measure)])


if __name__ == "__main__":
    main()
