"""The section `simulator` of bench/scale.py."""

import csv
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading

from measure import BUILD, MUSTER, row, verdict

YEAR_S = 365 * 24 * 3600
JOBS = 1_000_000
NODES = 1_250
GPUS_PER_NODE = 8
PROJECTS = 15
SMALL_NODES = 64
SMALL_JOBS = 2_000
SMALL_SPAN_S = 15 * 24 * 3600
LIMIT_S = 120  # of one simulation
AIM_S = 60

# GPUs of a job, and how often. One GPU is most frequent, as in Philly.
SIZES = ((1, 500), (2, 150), (4, 120), (8, 140), (16, 45), (32, 25), (64, 13), (128, 5), (256, 2))
# The run time is log-normal with this spread: the mean is twelve times the median, as in Philly.
SIGMA = 2.25
LONGEST_S = 30 * 24 * 3600
# The load: the GPU hours of all jobs divided by those that the cluster offers.
LOAD = 0.85


def write_trace(file, jobs, span_s, gpus, seed):
    """A list of jobs that arrive over `span_s`."""
    dice = random.Random(seed)
    sizes = [size for size, _ in SIZES if size <= gpus // 2]
    weights = [weight for size, weight in SIZES if size <= gpus // 2]
    drawn = []
    for _ in range(jobs):
        # By hour of the day: a working day has three times the jobs of a night.
        submit = dice.uniform(0, span_s)
        while dice.random() > 0.65 + 0.35 * math.sin(2 * math.pi * submit / 86400):
            submit = dice.uniform(0, span_s)
        drawn.append((submit, dice.choices(sizes, weights)[0], dice.lognormvariate(0, SIGMA), dice.randrange(PROJECTS)))
    drawn.sort()
    wanted = LOAD * gpus * span_s
    scale = wanted / sum(size * length for _, size, length, _ in drawn)
    for _ in range(8):  # the longest are cut off, which the others make up for
        asked = sum(size * min(LONGEST_S, length * scale) for _, size, length, _ in drawn)
        scale *= wanted / asked
    with open(file, "w") as out:
        out.write("submit_s,duration_s,gpus,project\n")
        for submit, size, length, project in drawn:
            out.write(f"{submit:.0f},{max(1, min(LONGEST_S, length * scale)):.0f},{size},team-{project}\n")


def oracle_completion_h(file, gpus):
    """The mean completion in hours under a policy that no scheduler can have: it knows the run times, runs those jobs
    that need the fewest GPU seconds until their end, and stops and continues jobs at no cost. GPUs have no nodes."""
    jobs = []
    with open(file) as lines:
        for line in csv.DictReader(lines):
            jobs.append([float(line["submit_s"]), float(line["duration_s"]), int(line["gpus"])])
    jobs.sort()
    now, arrived, active, total = 0.0, 0, [], 0.0
    while arrived < len(jobs) or active:
        active.sort(key=lambda job: job[1] * job[2])
        free, running = gpus, []
        for job in active:
            if job[2] <= free:
                free -= job[2]
                running.append(job)
        until = jobs[arrived][0] if arrived < len(jobs) else math.inf
        until = min([until] + [now + job[1] for job in running])
        for job in running:
            job[1] -= until - now
        now = until
        total += sum(now - job[0] for job in running if job[1] <= 1e-6)
        active = [job for job in active if job[1] > 1e-6]
        while arrived < len(jobs) and jobs[arrived][0] <= now:
            active.append(jobs[arrived])
            arrived += 1
    return total / len(jobs) / 3600


def simulate(file, nodes, *flags):
    """The report, the CPU time in seconds, and the memory in MiB; nothing if it did not end within LIMIT_S."""
    command = [MUSTER, "simulate", "--trace", file, "--nodes", str(nodes), "--gpus-per-node", str(GPUS_PER_NODE),
               "--output", "json", *flags]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output)
        alarm = threading.Timer(LIMIT_S, process.kill)
        alarm.start()
        _, status, used = os.wait4(process.pid, 0)
        alarm.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == -signal.SIGKILL:
            return None
        if process.returncode != 0:
            raise SystemExit(f"{command} ended with {process.returncode}")
        output.seek(0)
        return json.loads(output.read()), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def unfinished(name):
    return [name, "", "", "", "", f"did not end within {LIMIT_S} s  " + verdict(False)]


def year(folder):
    file = pathlib.Path(folder) / "year.csv"
    write_trace(file, JOBS, YEAR_S, NODES * GPUS_PER_NODE, 1)
    rows = []
    for policy in ("fifo", "fair"):
        name = f"a year of {NODES * GPUS_PER_NODE:,} GPUs, {JOBS:,} jobs, {policy}: CPU time"
        done = simulate(file, NODES, "--policy", policy)
        if done is None:
            rows.append(unfinished(name))
            continue
        report, seconds, memory = done
        line = row(name, [seconds], "s", 1)
        line[5] = f"at most {AIM_S}  " + verdict(seconds <= AIM_S)
        rows += [line,
                 row("  memory", [memory], "MiB"),
                 ["  jobs that ended", f"{report['jobs']:,}", "", "", "",
                  f"{JOBS:,}  " + verdict(report["jobs"] == JOBS)],
                 row("  utilisation of the GPUs", [100 * report["utilisation"]], "%", 1),
                 row("  mean wait", [report["waiting_s"]["mean"] / 3600], "h", 2)]
    return rows


def policies(folder):
    plain = pathlib.Path(folder) / "small.csv"
    gpus = SMALL_NODES * GPUS_PER_NODE
    write_trace(plain, SMALL_JOBS, SMALL_SPAN_S, gpus, 2)
    title = f"{gpus} GPUs, {SMALL_JOBS:,} jobs, mean completion: "
    rows = [row(title + "oracle", [oracle_completion_h(plain, gpus)], "h", 2)]
    for name, flags in (("fifo", ("--policy", "fifo")), ("backfill (greedy, ends unknown)", ("--policy", "backfill")),
                        ("fair, as on a server", ("--policy", "fair")),
                        ("fair, evicted jobs continue", ("--policy", "fair", "--checkpoint"))):
        done = simulate(plain, SMALL_NODES, *flags)
        rows.append(row(title + name, [done[0]["completion_s"]["mean"] / 3600], "h", 2) if done
                    else unfinished(title + name))
    return rows


def measure(_chosen):
    # Beside the build, since /tmp may not be on a disk.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        return year(folder) + policies(folder)
