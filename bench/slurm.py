"""Jobs on Slurm through Muster, compared with the same jobs by hand, and their cost on Slurm's controller.

  start     from submit to the first line of rank 0 of two ranks on two nodes, one after the other:
              muster              muster submit mpi --launch srun --follow, with a running server
              muster, mpirun      muster submit mpi --follow -- mpirun ...
              srun                srun --mpi=pmix --nodes=2
              sbatch              the same srun in a batch script, whose output is read as it arrives
            Slurm starts batch jobs once per second. Each run begins at a random moment; otherwise each would
            begin right after the end of the previous run, at the same point of Slurm's second.
            Aim: at most 1.3 times the time of srun and of sbatch.
  submits   500 jobs, one after the other, until all of them are in Slurm's queue; no node is free:
              muster              500 commands
              muster, API         500 requests on one connection, as the Python client sends them
              sbatch              500 commands
            Aim: not slower than 500 times sbatch.
  calls     the number of requests to Slurm's controller within a minute in which 1,000 jobs wait and one runs, of
            all that it counts (sdiag). Aim: below 30.
The cluster is Debian's Slurm, started for the benchmark: 4 nodes on this machine. It schedules at least every second
and whenever a job arrives. Requires root.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

from measure import BUILD, MUSTER, Server, interleaved, percentile, print_table, row, verdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from muster_harness import UnixConnection  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

ROUNDS = 20
SUBMITS = 500
SUBMIT_ROUNDS = 3
WAITING = 1000
AIM_RATIO = 1.3
AIM_CALLS = 30
PROGRAM = BUILD / "bench" / "first_line"
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2", "-mca", "pml", "ob1", "-mca", "btl", "^openib"]


class SlurmServer(Server):
    """A Muster server with a Slurm cluster."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._before = {}

    def __enter__(self):
        # Server uses the environment of this process.
        settings = {"MUSTER_ENGINE": "slurm"} | self._cluster.environment
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        return super().__enter__()

    def __exit__(self, *reason):
        super().__exit__(*reason)
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def milliseconds_to_first_line(command, environment, opened=None):
    """`opened`: the file with the first line, if it is not on standard output."""
    start = time.monotonic()
    with subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        took = None
        for line in opened() if opened else process.stdout:
            if took is None and b"first line" in line:
                took = (time.monotonic() - start) * 1000
        process.stdout.read()
    if took is None or process.returncode != 0:
        raise SystemExit(f"{command[0]} failed ({process.returncode})")
    return took


def measure_start(cluster, rounds):
    numbers = itertools.count()
    script = cluster.folder / "start.sh"
    script.write_text(f"#!/bin/sh\nsrun --mpi=pmix {PROGRAM}\n")
    pipe = cluster.folder / "start.out"
    os.mkfifo(pipe)
    environment = cluster.whole_environment()
    chance = random.Random(1)

    def free():
        """Waits until the nodes of the previous job are free, which is not measured."""
        cluster.until(lambda: not cluster.active_jobs(), "the queue is empty")
        time.sleep(chance.random())  # begins at any point of the second after which Slurm starts batch jobs

    with SlurmServer(cluster) as server:
        def muster(*words):
            free()
            return milliseconds_to_first_line(
                [MUSTER, "submit", "mpi", f"start-{next(numbers)}", "--workers", "2", "--cpus", "1", "--memory",
                 "256M", *words], server.environment)

        def srun():
            free()
            return milliseconds_to_first_line(["srun", "--mpi=pmix", "--nodes=2", "--ntasks=2", PROGRAM], environment)

        def sbatch():
            free()
            return milliseconds_to_first_line(
                ["sbatch", "--nodes=2", "--ntasks=2", f"--output={pipe}", script], environment,
                lambda: open(pipe, "rb"))

        samples = interleaved({
            "muster": lambda: muster("--launch", "srun", "--follow", "--", PROGRAM),
            "muster, mpirun": lambda: muster("--follow", "--", *MPIRUN, PROGRAM),
            "srun": srun, "sbatch": sbatch}, rounds)
    medians = {name: statistics.median(figures) for name, figures in samples.items()}
    rows = [row(f"{name}: to the first line", figures, "ms") for name, figures in samples.items()]
    for other in ("srun", "sbatch"):
        ratio = medians["muster"] / medians[other]
        rows.append([f"muster / {other}", f"{ratio:.2f}", "", "", "ratio",
                     f"at most {AIM_RATIO}  {verdict(ratio <= AIM_RATIO)}"])
    return rows


def hold_all(cluster):
    holder = cluster.submit("sleep infinity", "--exclusive", f"--nodes={len(cluster.nodes)}")
    cluster.await_state(holder, "RUNNING")
    return holder


def empty(cluster):
    cluster.run("scancel", "--user=root")
    cluster.until(lambda: not cluster.active_jobs(), "the queue is empty", bound=300)


def queued(cluster):
    return int(cluster.run("sh", "-c", "squeue --noheader --states=PENDING | wc -l"))


def submit_by_command(server, count):
    for number in range(count):
        server.muster("submit", "single", f"wait-{number}", "--", "true")


def submit_by_request(server, count):
    connection = UnixConnection(pathlib.Path(server.folder.name) / "muster.sock")
    for number in range(count):
        spec = {"name": f"wait-{number}", "kind": "single", "command": ["true"], "folder": "/"}
        connection.request("POST", "/v1/jobs", json.dumps(spec), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status not in (200, 201):
            raise SystemExit(f"the server refused a job: {said.decode()}")
    connection.close()


def await_queue(cluster, count):
    cluster.until(lambda: queued(cluster) >= count, f"all {count} are in the queue", bound=600)


def measure_submits(cluster, rounds):
    script = cluster.folder / "wait.sh"
    script.write_text("#!/bin/sh\ntrue\n")

    def muster(submit):
        with SlurmServer(cluster) as server:
            hold_all(cluster)
            start = time.monotonic()
            submit(server, SUBMITS)
            await_queue(cluster, SUBMITS)
            took = time.monotonic() - start
            for number in range(SUBMITS):
                server.muster("stop", "--now", f"wait-{number}")
            empty(cluster)
        return took

    def sbatch():
        hold_all(cluster)
        environment = cluster.whole_environment()
        start = time.monotonic()
        for _ in range(SUBMITS):
            subprocess.run(["sbatch", "--output=/dev/null", script], env=environment, check=True,
                           stdin=subprocess.DEVNULL, capture_output=True)
        await_queue(cluster, SUBMITS)
        took = time.monotonic() - start
        empty(cluster)
        return took

    samples = interleaved({"muster": lambda: muster(submit_by_command),
                           "muster, API": lambda: muster(submit_by_request), "sbatch": sbatch}, rounds)
    rows = [row(f"{name}: {SUBMITS} jobs", figures, "s", 1) for name, figures in samples.items()]
    for name in ("muster", "muster, API"):
        ratio = statistics.median(samples[name]) / statistics.median(samples["sbatch"])
        rows.append([f"{name} / sbatch", f"{ratio:.2f}", "", "", "ratio", f"at most 1  {verdict(ratio <= 1)}"])
    return rows


def measure_calls(cluster, _rounds):
    with SlurmServer(cluster) as server:
        server.muster("submit", "single", "runs", "--", "sleep", "infinity")
        cluster.until(lambda: any(job["state"] == "RUNNING" for job in cluster.jobs_of_muster()), "one job runs")
        # The remaining nodes are held by hand, so that all other jobs wait.
        for node in cluster.nodes:
            cluster.drain(node, "held for the benchmark")
        submit_by_request(server, WAITING)
        await_queue(cluster, WAITING)
        figures, kinds = [], {}
        for _ in range(3):
            cluster.reset_calls()
            time.sleep(60)  # the measurement: calls within a minute
            kinds = cluster.calls()
            figures.append(sum(kinds.values()))
        for node in cluster.nodes:
            cluster.undrain(node)
        for number in range(WAITING):
            server.muster("stop", "--now", f"wait-{number}")
        server.muster("stop", "--now", "runs")
        empty(cluster)
    print("calls in the last minute:", ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())))
    median = statistics.median(figures)
    return [[f"calls with {WAITING} jobs", f"{median:.0f}", f"{percentile(figures, 0.1):.0f}",
             f"{percentile(figures, 0.9):.0f}", "a minute", f"under {AIM_CALLS}  {verdict(median < AIM_CALLS)}"]]


SECTIONS = {"start": measure_start, "submits": measure_submits, "calls": measure_calls}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append")
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    rows = []
    for name in options.only or SECTIONS:
        rounds = options.rounds or {"start": ROUNDS, "submits": SUBMIT_ROUNDS}.get(name, 1)
        # The controller forgets ended jobs soon, so that their number does not affect later figures.
        with SlurmCluster(settings="MinJobAge=2\n") as cluster:
            rows += SECTIONS[name](cluster, rounds)
    print_table(rows)


if __name__ == "__main__":
    main()
