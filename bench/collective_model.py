"""The simulator (muster-collective-bench --simulate) compared with real all-reduces over limited networks.

Hosts are network namespaces. The port of each is limited by tc tbf, in both directions: to a bridge (section
`bridge`), or to bench/collective/delay_switch.cc, which also delays each frame (section `delay`). Each algorithm is
measured by muster-collective-bench in several sizes, and compared with the simulated time on a network with the
configured rate and delay. One figure is measured for that: the latency of a message of 4 bytes between two ranks
over the network of the section. It contains the delay and the work of the system.

The aim holds if the prediction is within 15 % of the median. The 10th percentile shows how much of a difference is
due to other programs: the processors of the machine are shared by all ranks. Requires root.

  --quick          the smallest and the largest size only
  --only SECTION   bridge or delay; may be given several times
  --hosts N        only the cases with N hosts
"""

import argparse
import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "collective"))

from measure import BUILD, verdict  # noqa: E402

BENCH = BUILD / "collective" / "tools" / "muster-collective-bench"
DELAY_SWITCH = BUILD / "bench" / "collective" / "delay_switch"
SIZES = [128 << 10, 512 << 10, 2 << 20]
WITHIN = 0.15
# The share of a port that carries data: without the headers of Ethernet, IP, and TCP with time stamps, and without the
# acknowledgements, 66 bytes for two frames of the other direction.
MTU = 1500
PAYLOAD = (MTU - 52) / (MTU + 14 + 66 / 2)
# Bytes that a port may send at once after a pause. With a smaller bucket, tokens are lost when a processor is busy.
BURST = 20_000
LATENCY_CALLS = 200


class Network:
    """`hosts` namespaces whose ports carry `mbit` Mbit/s in each direction, `delay_us` apart from each other."""

    count = 0

    def __init__(self, hosts, mbit, delay_us=0):
        self.mbit, self.delay_us = mbit, delay_us
        Network.count += 1
        own = f"muster-model-{os.getpid()}-{Network.count}"
        self.places = [f"{own}-{host + 1}" for host in range(hosts)]
        self.bridge = f"{own}-bridge"
        self.switch = None

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *ignored):
        if self.switch:
            self.switch.stdin.close()
            self.switch.wait()
        for name in [*self.places, self.bridge]:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)

    def address(self, host):
        return f"198.18.78.{host + 1}"

    def _make(self):
        for place in [*self.places, self.bridge]:
            run("ip", "netns", "add", place)
            run("ip", "-n", place, "link", "set", "lo", "up")
        if self.delay_us:
            self._join_by_delay_switch()
        else:
            self._join_by_bridge()
        for host, place in enumerate(self.places):
            run("ip", "-n", place, "link", "set", "cable", "mtu", str(MTU), "up")
            run("ip", "-n", place, "address", "add", f"{self.address(host)}/24", "dev", "cable")
            self._limit(place, "cable")
            for other in range(len(self.places)):
                if other != host:
                    run("ip", "-n", place, "neighbour", "replace", self.address(other), "lladdr",
                        hardware_address(other), "dev", "cable", "nud", "permanent")
            # The simulator has no congestion control. Reno is in every kernel, and grows until packets are lost,
            # which does not happen here.
            for setting in ["tcp_congestion_control=reno", "tcp_slow_start_after_idle=0"]:
                run("ip", "netns", "exec", place, "sysctl", "-qw", f"net.ipv4.{setting}")

    def _join_by_bridge(self):
        run("ip", "-n", self.bridge, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.bridge, "link", "set", "bridge", "mtu", str(MTU), "up")
        for host, place in enumerate(self.places):
            run("ip", "-n", place, "link", "add", "cable", "address", hardware_address(host), "type", "veth",
                "peer", "name", f"port{host}", "netns", self.bridge)
            run("ip", "-n", self.bridge, "link", "set", f"port{host}", "mtu", str(MTU), "master", "bridge", "up")
            self._limit(self.bridge, f"port{host}")

    def _join_by_delay_switch(self):
        self.switch = subprocess.Popen([DELAY_SWITCH, "--mbit", str(self.mbit), "--burst", str(BURST), "--delay-us",
                                        str(self.delay_us), *self.places], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.switch.stdout.readline() != "ready\n":
            raise SystemExit("delay_switch did not start")

    def _limit(self, place, device):
        # Room for all that the ranks send, so that nothing is lost.
        run("tc", "-n", place, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{self.mbit}mbit",
            "burst", str(BURST), "limit", str(64 << 20))


def hardware_address(host):
    return f"02:00:00:00:00:{host + 1:02x}"


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def measure(network, width, algorithm, arguments):
    """Runs the benchmark with `width` ranks on each host. Returns its lines."""
    hosts = len(network.places)
    key = secrets.token_hex(32)
    ranks = []
    for rank in range(hosts * width):
        host = rank // width
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        environment |= {"MUSTER_RANK": str(rank), "MUSTER_WORLD_SIZE": str(hosts * width),
                        "MUSTER_RENDEZVOUS": f"{network.address(0)}:23457", "MUSTER_RENDEZVOUS_KEY": key,
                        "MUSTER_COLLECTIVE_HOST_ID": f"host-{host}", "MUSTER_COLLECTIVE_ALGORITHM": algorithm}
        ranks.append(subprocess.Popen(["ip", "netns", "exec", network.places[host], BENCH, "--json", *arguments],
                                      env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{algorithm} failed")
    return [json.loads(line) for line in outputs[0].splitlines()]


def latency_of(network, width):
    """Half of the time that 4 bytes take to another rank and back. The ranks are on hosts of their own."""
    with contextlib.ExitStack() as stack:
        pair = network
        if len(network.places) > 2 or width > 1:
            pair = stack.enter_context(Network(2, network.mbit, network.delay_us))
        lines = measure(pair, 1, "auto", ["--op", "send_receive", "--sizes", "4", "--iterations",
                                          str(LATENCY_CALLS)])
    return lines[0]["median_us"] / 2


def simulate(network, width, latency_us, sizes):
    gbit = network.mbit / 1000 * PAYLOAD
    command = [BENCH, "--simulate", "--json", "--ranks", str(len(network.places) * width), "--gbit", f"{gbit:.6f}",
               "--sizes", f"{sizes[0]}:{sizes[-1]}:{sizes[1] // sizes[0]}",
               "--network", f"ranks_per_host={width},latency_us={latency_us:.1f},message_us=0,"
               f"burst={BURST * PAYLOAD:.0f}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line for line in map(json.loads, output.splitlines()) if "bytes" in line]


def compare(network, width, algorithms, sizes):
    hosts = len(network.places)
    latency = latency_of(network, width)
    print(f"\n{hosts} hosts with {width} ranks each, {network.mbit} Mbit/s, delay {network.delay_us} us; "
          f"latency of a message {latency:.0f} us")
    print(f"{'algorithm':14} {'bytes':>9} {'median ms':>10} {'p10 ms':>8} {'simulated':>10} {'/median':>8} {'/p10':>6}")
    predictions = simulate(network, width, latency, sizes)
    ratios = []
    for algorithm in algorithms:
        for size, prediction in zip(sizes, predictions):
            predicted = prediction.get(f"{algorithm}_us")
            if predicted is None:
                continue
            # As many calls as fit in about a second.
            calls = max(5, min(50, int(1e6 / predicted)))
            # The library chooses exchange for two ranks, and the hierarchy for several ranks on each host.
            forced = "auto" if algorithm in ("exchange", "hierarchy") else algorithm
            line, = measure(network, width, forced,
                            ["--sizes", str(size), "--in-place", "--iterations", str(calls), "--warmup", "3"])
            ratio = predicted / line["median_us"]
            ratios.append(ratio)
            print(f"{algorithm:14} {size:9} {line['median_us'] / 1000:10.2f} {line['p10_us'] / 1000:8.2f} "
                  f"{predicted / 1000:10.2f} {ratio:8.2f} {predicted / line['p10_us']:6.2f}  "
                  f"{verdict(abs(ratio - 1) <= WITHIN)}", flush=True)
    return ratios


FLAT = ["direct", "doubling", "rabenseifner", "ring"]
# Section, hosts, ranks on each, Mbit/s, delay, algorithms. All ranks and the switch share the processors of this
# machine, and the simulator gives each rank its own: the sum of the rates must be small.
CASES = [
    ("bridge", 2, 1, 100, 0, ["exchange", "doubling", "rabenseifner", "ring"]),
    ("bridge", 4, 1, 100, 0, FLAT),
    ("bridge", 8, 1, 25, 0, FLAT),
    ("bridge", 2, 2, 100, 0, ["hierarchy"]),
    ("delay", 2, 1, 100, 2000, ["exchange", "doubling", "rabenseifner", "ring"]),
    ("delay", 4, 1, 100, 2000, FLAT),
    ("delay", 8, 1, 25, 2000, FLAT),
    ("delay", 2, 2, 100, 2000, ["hierarchy"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=["bridge", "delay"])
    parser.add_argument("--hosts", type=int)
    options = parser.parse_args()
    sizes = [SIZES[0], SIZES[-1]] if options.quick else SIZES
    ratios = []
    for section, hosts, width, mbit, delay_us, algorithms in CASES:
        if options.only and section not in options.only or options.hosts not in (None, hosts):
            continue
        with Network(hosts, mbit, delay_us) as network:
            ratios += compare(network, width, algorithms, sizes if mbit >= 100 else sizes[:2])
    close = sum(abs(ratio - 1) <= WITHIN for ratio in ratios)
    print(f"\n{close} of {len(ratios)} within {WITHIN:.0%}; simulated/measured from {min(ratios):.2f} to "
          f"{max(ratios):.2f}")


if __name__ == "__main__":
    main()
