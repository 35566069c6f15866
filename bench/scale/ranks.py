"""The section `ranks` of bench/scale.py."""

import json
import subprocess

from measure import BUILD, row, verdict

PROGRAM = BUILD / "bench" / "scale" / "ranks"

# Ranks and hosts.
WORLDS = ((256, 1), (512, 1), (1024, 1), (256, 8), (1024, 8))

AIM_JOIN_S = 5
AIM_RANK_KIB = 1024
AIM_NAMED_S = 2


def most_sockets(ranks):
    """What a rank may have: grows with the logarithm of the world."""
    return 4 * (ranks - 1).bit_length()


def figures_of(ranks, hosts):
    done = subprocess.run([PROGRAM, str(ranks), str(hosts)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(done.stderr.strip())
        return None
    return json.loads(done.stdout)


def aimed(line, most):
    line[5] = f"at most {most}  " + verdict(float(line[1]) <= most)
    return line


def rows_of(ranks, hosts, rounds):
    title = f"{ranks:,} ranks on {hosts} host" + ("s" if hosts > 1 else "")
    runs = [run for run in (figures_of(ranks, hosts) for _ in range(rounds)) if run]
    if len(runs) < rounds:
        return [[title + ": worlds that formed", str(len(runs)), "", "", "", f"{rounds}  " + verdict(False)]]

    def values(name):
        return [run[name] for run in runs]

    memory = [run["grown_kib"] + run["kernel_kib"] + run["shared_kib"] for run in runs]
    named = min(values("named"))
    return [aimed(row(title + ": join", values("join_s"), "s", 2), AIM_JOIN_S),
            aimed(row("  memory of a rank", memory, "KiB"), AIM_RANK_KIB),
            row("    of it shared between ranks", values("shared_kib"), "KiB"),
            row("    of it in the kernel", values("kernel_kib"), "KiB"),
            aimed(row("  sockets of a rank, mean", values("sockets"), ""), most_sockets(ranks)),
            row("  sockets of a rank, most", values("most_sockets"), ""),
            aimed(row("  a killed rank named by all others after", values("named_s"), "s", 3), AIM_NAMED_S),
            ["  ranks that named it", str(named), "", "", "", f"{ranks - 1}  " + verdict(named == ranks - 1)]]


def measure(chosen):
    worlds = [tuple(chosen.world)] if chosen.world else WORLDS
    return [line for ranks, hosts in worlds for line in rows_of(ranks, hosts, chosen.rounds)]
