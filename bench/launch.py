"""From submit to the first line of rank 0, compared with mpirun alone.

  muster        muster submit mpi ... --follow, with a running server and no workers: keys, two sandboxes,
                two sshds, hostfile, mpirun, merged log
  mpirun (ssh)  mpirun over two sshds that were set up before and already run
  mpirun        mpirun on this host alone, without ssh

The subjects take turns, with 20 runs each. Aims: at most 150 ms more than mpirun (ssh), and at most 0.6 of its time.
"""

import itertools
import statistics
import subprocess
import time

from measure import BUILD, MUSTER, Server, interleaved, print_table, row, verdict
from two_hosts import TwoHosts

ROUNDS = 20
AIM_MS = 150
AIM_RATIO = 0.6
PROGRAM = BUILD / "bench" / "first_line"


def milliseconds_to_first_line(command, environment=None):
    start = time.monotonic()
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        took = None
        # mpirun may print a warning of its own first.
        for line in process.stdout:
            if took is None and b"first line" in line:
                took = (time.monotonic() - start) * 1000
    if took is None or process.returncode != 0:
        raise SystemExit(f"{command[0]} failed ({process.returncode})")
    return took


def main():
    numbers = itertools.count()
    with Server() as server, TwoHosts() as hosts:
        def muster():
            return milliseconds_to_first_line(
                [MUSTER, "submit", "mpi", f"launch-{next(numbers)}", "--workers", "2", "--follow",
                 "--", "mpirun", "--allow-run-as-root", "-np", "2", "--hostfile",
                 "/generated/hostfile", "-bind-to", "none", "-map-by", "slot", "-mca", "pml",
                 "ob1", "-mca", "btl", "^openib", PROGRAM], server.environment)

        def mpirun_over_ssh():
            command, environment = hosts.mpirun(PROGRAM)
            return milliseconds_to_first_line(hosts.inside(command), environment)

        def mpirun_here():
            return milliseconds_to_first_line(
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", str(PROGRAM)])

        samples = interleaved({"muster": muster, "mpirun (ssh)": mpirun_over_ssh,
                               "mpirun": mpirun_here}, ROUNDS)
    medians = {name: statistics.median(figures) for name, figures in samples.items()}
    over = medians["muster"] - medians["mpirun (ssh)"]
    rows = [row(name, figures, "ms") for name, figures in samples.items()]
    rows.append(["muster over mpirun (ssh)", f"{over:.0f}", "", "", "ms",
                 f"at most {AIM_MS}  {verdict(over <= AIM_MS)}"])
    ratio = medians["muster"] / medians["mpirun (ssh)"]
    rows.append(["muster / mpirun (ssh)", f"{ratio:.2f}", "", "", "ratio",
                 f"at most {AIM_RATIO}  {verdict(ratio <= AIM_RATIO)}"])
    print_table(rows)


if __name__ == "__main__":
    main()
