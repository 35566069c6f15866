"""Large worlds: many ranks, many ended jobs, a long trace.

    bench/scale.py [--only ranks|simulator|server|tasks|soak|stragglers] [--rounds N] [--world RANKS HOSTS]
                   [--jobs N] [--store sqlite|postgres] [--tasks N] [--soak SECONDS] [--rate JOBS] [--kill-every SECONDS]

ranks      256, 512 and 1,024 processes on one host, and 256 and 1,024 on eight hosts that speak TCP over loopback
           (one machine, eight host ids), or --world, each with the collective library alone: the time until the last
           one has joined; memory and sockets of a rank; and the time until every other rank, which waits in a barrier,
           names a rank that was killed.
simulator  `muster simulate` with a generated year of 10,000 GPUs: 1,000,000 jobs with the mix of sizes and the long
           tail of run times that Microsoft's Philly cluster had (Jeon et al., ATC'19). The same mix on 512 GPUs, by
           each policy and by an oracle.
server     200,000 ended jobs (--jobs) in the store (--store, sqlite): start, list, get, submit, memory. `postgres` is
           a PostgreSQL of this machine, which the benchmark starts in a temporary folder.
tasks      10,000 running tasks (--tasks) on one server, which sleep without a sandbox: start, memory, list, get, submit,
           an idle server, a SIGKILL of the server, and the end of all. None may be lost, started twice or left behind.
soak       jobs are submitted at a steady rate (--rate, 20 a second) for --soak seconds (60), while the server is killed
           with SIGKILL at intervals (--kill-every, 15 s); none may be lost, run twice or leave a process behind.
stragglers three hosts, network namespaces whose ports are limited: all equal; one rank that computes twice as long; one
           port that sends at a tenth. Whether rank 0 names the cause, and nothing else. Requires root.

Each section prints a table. A row with an aim ends in `ok` or `short`.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "scale"))

import ranks  # noqa: E402
import server  # noqa: E402
import simulator  # noqa: E402
import soak  # noqa: E402
import stragglers  # noqa: E402
import tasks  # noqa: E402
from measure import print_table  # noqa: E402

SECTIONS = {"ranks": ranks.measure, "simulator": simulator.measure, "server": server.measure,
            "tasks": tasks.measure, "soak": soak.measure, "stragglers": stragglers.measure}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--world", type=int, nargs=2, metavar=("RANKS", "HOSTS"))
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--soak", type=int, default=60, metavar="SECONDS")
    parser.add_argument("--rate", type=int, default=20, metavar="JOBS")
    parser.add_argument("--kill-every", type=int, default=15, metavar="SECONDS")
    chosen = parser.parse_args()
    for name, section in SECTIONS.items():
        if chosen.only in (None, name):
            print_table(section(chosen))
            print(flush=True)


if __name__ == "__main__":
    main()
