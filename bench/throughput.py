"""The number of small jobs that run per second, and the number of processes that remain.

Four shells submit 200 jobs of `true` at the same time, with one `muster submit` per job as in a user's loop. The
measured time is that from the first submit to the end of the last job. Aims: 50 jobs/s, 0 leaked processes.
"""

import calendar
import json
import os
import pathlib
import subprocess
import time

from measure import MUSTER, Server, print_table, row, verdict

JOBS = 200
SHELLS = 4
ROUNDS = 5
AIM_JOBS_PER_SECOND = 50


def submit_all(server):
    """Runs one shell loop for each share of the names."""
    loops = []
    for share in range(SHELLS):
        names = " ".join(f"job-{number}" for number in range(share, JOBS, SHELLS))
        script = f'for name in {names}; do "{MUSTER}" submit single "$name" -- true; done'
        loops.append(subprocess.Popen(["sh", "-ec", script], env=server.environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL))
    for loop in loops:
        if loop.wait() != 0:
            raise SystemExit("a submit failed")


def wait_for_all(server):
    """Follows each job to its end, which most have reached by then. Returns the jobs."""
    for number in range(JOBS):
        server.muster("logs", "-f", f"job-{number}")
    return json.loads(server.muster("list", "--output", "json"))["jobs"]


def jobs_per_second():
    with Server() as server:
        start = time.time()
        submit_all(server)
        jobs = wait_for_all(server)
        unfinished = [job["spec"]["name"] for job in jobs if job["phase"] != "Succeeded"]
        if unfinished:
            raise SystemExit(f"did not succeed: {unfinished[:5]} {len(unfinished)} in total")
        leaked = processes_of(server.folder.name)
        # RFC 3339 in UTC with nanoseconds, which sort as text.
        last = max(job["ended"] for job in jobs)
    whole, fraction = last.rstrip("Z").split(".")
    ended = calendar_seconds(whole) + float("0." + fraction)
    return JOBS / (ended - start), leaked


def calendar_seconds(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def processes_of(folder):
    """The live processes whose command lines contain the state folder, except the server itself."""
    count = 0
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if folder.encode() in words + environment and b"\0server\0" not in words:
            count += 1
    return count


def main():
    rates, leaks = [], []
    for _ in range(ROUNDS):
        rate, leaked = jobs_per_second()
        rates.append(rate)
        leaks.append(leaked)
    rate = row("200 jobs of true", rates, "jobs/s")
    rate[5] = f"at least {AIM_JOBS_PER_SECOND}  " + verdict(float(rate[1]) >= AIM_JOBS_PER_SECOND)
    print_table([rate, ["leaked processes", str(max(leaks)), "", "", "", "0  " +
                        verdict(max(leaks) == 0)]])


if __name__ == "__main__":
    main()
