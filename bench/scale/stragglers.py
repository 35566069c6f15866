"""The section `stragglers` of bench/scale.py: whether the collective library names what slows a job down."""

import os
import pathlib
import re
import secrets
import subprocess
import sys
import textwrap

from collective_model import Network, run
from measure import BUILD, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = BUILD / "collective" / "package" / "libmuster_collective.so"
WINDOW_S = 5
HOSTS = 3
MBIT = 400
# Longer than the first two windows of rank 0, which is one and a half windows long at first.
SECONDS = 4 * WINDOW_S
SLOW_PORT = 1
SLOW_RANK = 2

PROGRAM = textwrap.dedent("""
    import ctypes, sys, time
    from muster.common import basics, operations
    from muster.common.process_sets import global_process_set as everybody
    from muster.common.reduce_ops import Sum
    pause, count, seconds = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    basics.init()
    memory, flag = (ctypes.c_float * count)(), (ctypes.c_float * 1)()

    def add(name, values):
        at = ctypes.addressof(values)
        operations.submit("all_reduce", name, process_set=everybody, type="float32", op=Sum,
                          buffers=[(at, at, len(values))], keep=values).wait()

    end = time.monotonic() + seconds
    while flag[0] == 0:
        time.sleep(pause)
        add("gradient", memory)
        flag[0] = time.monotonic() > end
        add("over", flag)
""")


def limit(network, host, mbit):
    run("tc", "-n", network.places[host], "qdisc", "replace", "dev", "cable", "root", "tbf", "rate", f"{mbit}mbit",
        "burst", "20000", "limit", "400000")


def train(network, count, pause_of):
    """Trains for some windows with `count` elements a step, and returns what rank 0 printed."""
    key = secrets.token_hex(32)
    ranks = []
    for rank, place in enumerate(network.places):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        environment |= {"MUSTER_RANK": str(rank), "MUSTER_WORLD_SIZE": str(HOSTS),
                        "MUSTER_RENDEZVOUS": f"{network.address(0)}:23457", "MUSTER_RENDEZVOUS_KEY": key,
                        "MUSTER_COLLECTIVE_HOST_ID": f"host-{rank}", "MUSTER_COLLECTIVE_SLOW_SECONDS": str(WINDOW_S),
                        "MUSTER_COLLECTIVE_LIBRARY": str(LIBRARY), "PYTHONPATH": str(ROOT / "python")}
        ranks.append(subprocess.Popen(["ip", "netns", "exec", place, "/usr/bin/python3", "-c", PROGRAM,
                                       str(pause_of(rank)), str(count), str(SECONDS)], env=environment,
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    outputs = [rank.communicate()[1] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit("".join(outputs))
    return outputs[0]


def cases():
    """The title, what must be named, and the output of rank 0."""
    with Network(HOSTS, MBIT) as network:
        yield f"{HOSTS} equal hosts", None, train(network, 250_000, lambda rank: 0.05)
        yield (f"rank {SLOW_RANK} computes twice as long", f"rank {SLOW_RANK} on host",
               train(network, 2_500, lambda rank: 0.1 if rank == SLOW_RANK else 0.05))
        limit(network, SLOW_PORT, MBIT // 10)
        yield (f"host {SLOW_PORT} sends at a tenth", f"the link from rank {SLOW_PORT} ",
               train(network, 250_000, lambda rank: 0.05))


def measure(_chosen):
    if os.geteuid() != 0:
        print("stragglers: left out, since network namespaces require root", file=sys.stderr)
        return []
    rows = []
    for title, expected, output in cases():
        named = re.findall(r"^muster: (.*) is slow: (.*)$", output, re.MULTILINE)
        print("\n".join(f"{title}: {who} is slow: {evidence}" for who, evidence in named), flush=True)
        right = [who for who, _ in named if expected and f"{who} ".startswith(expected)]
        rows.append([f"{title}: named rightly, wrongly", f"{len(right) > 0:d}, {len(named) - len(right)}", "", "", "",
                     f"{1 if expected else 0}, 0  " + verdict(bool(right) == bool(expected) and len(named) == len(right))])
    return rows
