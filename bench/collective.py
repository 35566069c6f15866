"""All-reduce of libmuster_collective, compared with Open MPI, MPICH, Gloo and torch.distributed, and with
the limits of the machine.

  pair      two ranks on two cores of one host: blocking calls, in the program's own buffers and in the
            shared arena
  crowded   four ranks on two cores
  network   two ranks in two network namespaces, joined by a veth pair (needs root)
  session   the gradients of ResNet-50, 148 tensors, handed over one by one; and one tensor of 4 bytes
  idle      the cost of an initialised process that does nothing
  servers   push and pull of a parameter server, against plain gRPC streaming of the same bytes
  digits    the example under ring all-reduce and a parameter server, with 1, 2 and 4 workers

In the all-reduces our library and its peers take turns, in the same loop (bench/collective/core.h): buffers
are rewritten before each call, and every byte of the result is verified after it; the distance of the cores is
probed before and after each burst of calls; samples that other processes disturbed are dropped. The peers run
with the settings of their packages, except for the allocator, which is tuned for them from 64 MB on. Peers over
TCP run with the system's congestion control and with cubic; our library runs with the system's. No process has
special priority.

  --quick          one round of few sizes, two minutes
  --only SECTION   may be given several times
  --rounds N       default: 3
  --plot FILE      draws the pair's figures (SVG)
  --plot-digits FILE  draws accuracy over time and images/s of the digits section (SVG)
  --keep-disturbed also counts disturbed samples: to try the benchmark on a busy machine
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "collective"))

import aims  # noqa: E402
import launching  # noqa: E402
import plot  # noqa: E402
import servers  # noqa: E402
import strategies  # noqa: E402
from figures import Figures  # noqa: E402
from launching import Failed, Run  # noqa: E402
from measure import BUILD, print_table, verdict  # noqa: E402
from namespaces import Namespaces, system_congestion_control  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SIZES = [4, 64, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]
QUICK_SIZES = [4, 64 * KIB, 4 * MIB, 64 * MIB]
CORES = 2
SECTIONS = ["pair", "crowded", "network", "session", "idle", "servers", "digits"]
# ResNet-50 without its classifier: bench/collective/resnet50.h. For torch in buckets of 25 MB, as in
# DistributedDataParallel, but without its copies.
GRADIENTS = 4 * 23_507_328
BUCKET = 25 << 20


class Subject:
    """A subject of the measurement. `start(run)` launches it; `types` are the types that it supports."""

    def __init__(self, name, start, types=("float32",), places=("in", "out"), sizes=None,
                 cubic=None):
        self.name = name
        self.start = start
        self.types = types
        self.places = places
        self.sizes = sizes
        self.cubic = cubic  # None: with either


class Bench:
    def __init__(self, options):
        self.options = options
        self.figures = Figures(options.keep_disturbed)
        self.rounds = 1 if options.quick else options.rounds
        self.sizes = QUICK_SIZES if options.quick else SIZES
        self.burst = 30 if options.quick else 50
        self.network = None  # Namespaces, if there are any

    def run(self, section, subject, round_, ranks, network=None, sizes=None):
        """One turn of a subject: one start for each type, and one for the sizes for which the allocator is
        tuned."""
        loopback = None
        if subject.cubic is not None and self.network:
            self.network.use_congestion_control("cubic" if subject.cubic
                                                else system_congestion_control())
            loopback = None if network else self.network.loopback
        sizes = subject.sizes or sizes or self.sizes
        small = [size for size in sizes if size < launching.TUNED_MALLOC_FROM]
        large = [size for size in sizes if size >= launching.TUNED_MALLOC_FROM]
        for type_ in subject.types:
            # These types have half the bytes per element; measuring them in place is sufficient.
            places = subject.places if type_ == "float32" else ["in"]
            for part in (small, large):
                if part:
                    plan = {"sizes": ",".join(map(str, part)), "places": ",".join(places),
                            "type": type_, "burst": self.burst, "cores": CORES}
                    tuned = part is large and not subject.name.startswith("ours")
                    with Run(plan, ranks, network, loopback, tuned) as run:
                        self.take(section, subject, round_, run)

    def take(self, section, subject, round_, run):
        try:
            bursts, note = launching.take(subject.start(run), patience=180)
        except (Failed, OSError) as error:
            self.figures.note(f"{section}: {subject.name} failed: {error}")
            return
        self.figures.add(section, subject.name, round_, bursts)
        if note:
            self.figures.note(f"{section}: {subject.name}: {note}")

    def in_turns(self, section, subjects, ranks, network=None, sizes=None):
        for round_ in range(self.rounds):
            for subject in subjects:
                start = time.monotonic()
                self.run(section, subject, round_, ranks, network, sizes)
                progress(f"{section}, round {round_ + 1} of {self.rounds}: {subject.name}, "
                         f"{time.monotonic() - start:.0f} s")


def progress(words):
    print(words, file=sys.stderr)


def ours(name="ours", types=("float32", "bfloat16"), cubic=None, **words):
    return Subject(name, lambda run: launching.ours(run, **words), types, cubic=cubic)


def tcp_peers(options, both):
    """Peers over TCP, with the system's congestion control and, if `both`, with cubic as well."""
    kinds = {"Open MPI tcp": (lambda run: launching.open_mpi(run, *options), ["float32"]),
             "Gloo ring": (lambda run: launching.gloo(run, "ring"), ["float32", "float16"]),
             "Gloo halving": (lambda run: launching.gloo(run, "halving"), ["float32"]),
             "torch": (launching.torch, ["float32", "float16"])}
    subjects = [Subject(name, start, types, cubic=False) for name, (start, types) in kinds.items()]
    if both:
        subjects += [Subject(f"{name}, cubic", start, ["float32"], cubic=True)
                     for name, (start, _) in kinds.items()]
    return subjects


OPEN_MPI_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]


def pair(bench):
    with_cubic = bench.network is not None and system_congestion_control() != "cubic"
    peers = [Subject("Open MPI", launching.open_mpi),
             # Open MPI's own shared memory without the kernel's help, which is faster for some sizes.
             Subject("Open MPI vader", lambda run: launching.open_mpi(
                 run, "--mca", "pml", "ob1", "--mca", "btl", "vader,self",
                 "--mca", "btl_vader_single_copy_mechanism", "none")),
             Subject("MPICH", launching.mpich), *tcp_peers(OPEN_MPI_TCP, with_cubic)]
    for peer in peers:
        if peer.cubic is not None:
            # Much slower: more places and sizes would not change the result.
            peer.places = ["in"]
            peer.sizes = [size for size in bench.sizes if size <= 64 * MIB]
    limits = [Subject("limit import", lambda run: launching.limit(run, "import"), places=["in"]),
              Subject("limit copy", lambda run: launching.limit(run, "copy"), places=["out"],
                      sizes=[size for size in bench.sizes if size >= 16 * MIB])]
    bench.in_turns("pair", [ours(), ours("ours, arena", arena=1), *limits, *peers], 2)

    def limit(state, bytes_):
        return memory_limit(bench.figures, state, bytes_)

    section = aims.Section(bench.figures, "pair",
                           {"ours": (aims.ordinary, aims.none),
                            "ours, arena": (aims.arena, aims.arena_of_limit)},
                           [peer.name for peer in peers], limit)
    return lambda: (section.print("Two ranks, one host", bench.sizes, ["out", "in"]),
                    section.print("Two ranks, one host", bench.sizes, ["in"], "bfloat16"))


def memory_limit(figures, state, bytes_):
    """The lower bound of any all-reduce of two ranks: while both buffers fit into the last-level cache, each
    rank has to read as many bytes from the other's buffer; beyond, 4 times the bytes move to and from memory."""
    fits = 2 * bytes_ <= last_cache()
    figure = (figures.figure("pair", "limit import", state, bytes_) if fits
              else figures.figure("pair", "limit copy", state, bytes_, "out"))
    return figure and figure.median


def last_cache():
    sizes = [path.read_text().strip() for path in
             pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size.rstrip("K")) * KIB for size in sizes if size.endswith("K")),
               default=32 * MIB)


def crowded(bench):
    peers = [Subject("Open MPI yield", lambda run: launching.open_mpi(
                 run, "--mca", "mpi_yield_when_idle", "1")),
             Subject("Open MPI", lambda run: launching.open_mpi(
                 run, "--mca", "mpi_yield_when_idle", "0")),
             Subject("MPICH", launching.mpich), *tcp_peers(
                 [*OPEN_MPI_TCP, "--mca", "mpi_yield_when_idle", "1"], False)]
    subjects = [ours(types=["float32"]), ours("ours, arena", types=["float32"], arena=1), *peers]
    for subject in subjects:
        subject.places = ["out"]
        subject.types = ["float32"]
    bench.in_turns("crowded", subjects, 4)
    section = aims.Section(bench.figures, "crowded",
                           {name: (aims.crowded, aims.none) for name in ("ours", "ours, arena")},
                           [peer.name for peer in peers])
    return lambda: section.print("Four ranks on two cores", bench.sizes, ["out"])


def network(bench):
    if not bench.network:
        return lambda: print("\n  Two network namespaces: left out, because creating them requires root")
    sizes = [size for size in bench.sizes if size >= 64 * KIB or size == 4]
    both = system_congestion_control() != "cubic"
    peers = tcp_peers(OPEN_MPI_TCP, both)
    peers.append(Subject("MPICH", launching.mpich, cubic=False))
    if both:
        peers.append(Subject("MPICH, cubic", launching.mpich, cubic=True))
    sockets = {f"{count} x {control}": dict(streams=count, congestion=control)
               for count in (1, 2) for control in {system_congestion_control(), "cubic"}}
    limits = [Subject(f"limit {name}",
                      lambda run, words=words: launching.limit(run, "socket", **words),
                      sizes=[size for size in sizes if size >= 64 * KIB])
              for name, words in sockets.items()]
    # Also sums the values, which every all-reduce has to do: shows how much of the distance to the limit is the sum.
    by_hand = {"by hand, a socket": 1, "by hand, 2 sockets": 2}
    sums = [Subject(name, lambda run, count=count: launching.limit(run, "sum", streams=count, congestion="cubic"),
                    sizes=[size for size in sizes if size >= 64 * KIB])
            for name, count in by_hand.items()]
    subjects = [ours(cubic=False), *limits, *sums, *peers]
    for subject in subjects:
        subject.places = ["in"]
        subject.types = ["float32"]
    bench.in_turns("network", subjects, 2, bench.network, sizes)

    def limit(state, bytes_):
        found = [bench.figures.figure("network", f"limit {name}", state, bytes_)
                 for name in sockets]
        return min((figure.median for figure in found if figure), default=None)

    section = aims.Section(bench.figures, "network",
                           {"ours": (aims.network, aims.network_of_limit),
                            **{name: (aims.none, aims.none) for name in by_hand}},
                           [peer.name for peer in peers], limit)
    return lambda: section.print("Two network namespaces; limit: plain sockets", sizes, ["in"])


def buckets():
    whole, rest = divmod(GRADIENTS, BUCKET)
    return ",".join(str(size // 4) for size in [*[BUCKET] * whole, rest] if size)


def session(bench):
    def in_buckets(run):
        return launching.torch(run, buckets=buckets())

    subjects = [ours(session=1), ours("ours, arena", session=1, arena=1),
                Subject("torch, 25 MB buckets", in_buckets, cubic=False),
                Subject("torch, one call", launching.torch, cubic=False)]
    if bench.network and system_congestion_control() != "cubic":
        subjects.insert(3, Subject("torch, 25 MB buckets, cubic", in_buckets, cubic=True))
    for subject in subjects:
        subject.places, subject.types, subject.sizes = ["in"], ["float32"], [GRADIENTS]
    tiny = ours("ours, 4 B", types=["float32"], session=1)
    tiny.places, tiny.sizes = ["in"], [4]
    bench.in_turns("session", [*subjects, tiny], 2)
    return lambda: print_session(bench.figures, [subject.name for subject in subjects])


def print_session(figures, names):
    section = aims.Section(figures, "session", {}, [name for name in names if "buckets" in name])
    goals = {"ours": 2, "ours, arena": 4}
    for state in figures.states("session"):
        print(f"\n  Two ranks, asynchronous, 148 tensors of {GRADIENTS / 1e6:.0f} MB in all, "
              f"cores {state}\n")
        peer = section.best_peer(state, GRADIENTS, "in", "float32")
        rows = [["", "median", "p10", "unit", "to buckets", "aim", ""]]
        for name in names:
            figure = figures.figure("session", name, state, GRADIENTS)
            if figure:
                rows.append([name, f"{figure.median / 1000:.1f}", f"{figure.p10 / 1000:.1f}", "ms",
                             *aims.judged(peer and peer[0] / figure.median, goals.get(name))])
        figure = figures.figure("session", "ours, 4 B", state, 4)
        if figure:
            rows.append(["ours, 4 B, submit to done", aims.time_text(figure.median),
                         aims.time_text(figure.p10), "us", "", "at most 20 us",
                         verdict(figure.median <= 20)])
        aims.print_columns(rows)


def idle(bench):
    shares = []
    for _ in range(bench.rounds):
        with Run({"sizes": "4"}) as run:
            try:
                blocks, _ = launching.take(launching.ours(run, idle=3), patience=60)
                shares += [block["idle"] * 100 for block in blocks]
            except (Failed, OSError) as error:
                bench.figures.note(f"idle: ours failed: {error}")
    bench.figures.bursts.append({"section": "idle", "subject": "ours", "percent": shares})

    def show():
        if shares:
            most = statistics.median(shares)
            print("\n  An initialised process that does nothing\n")
            # A hundredth of a percent of a core is the cost of reading the clock every second.
            print_table([["ours", f"{most:.3f}", f"{min(shares):.3f}", f"{max(shares):.3f}",
                          "% of a core", f"below 0.01  {verdict(most < 0.01)}"]])
    return show


def draw(bench, path):
    """Draws the state of the cores with more figures, out of place, which all subjects have."""
    figures = bench.figures

    def line(subject, state, place="out"):
        found = [(size, figures.figure("pair", subject, state, size, place))
                 for size in bench.sizes]
        return [(size, figure.median) for size, figure in found if figure]

    states = figures.states("pair")
    if not states:
        progress("nothing to draw")
        return
    state = max(states, key=lambda state: len(line("Open MPI", state)))
    limit = [(size, memory_limit(figures, state, size)) for size in bench.sizes]
    lines = [("Muster", line("ours", state)), ("Muster, arena", line("ours, arena", state)),
             ("Open MPI", line("Open MPI", state)), ("MPICH", line("MPICH", state)),
             ("Open MPI tcp (in place)", line("Open MPI tcp", state, "in")),
             ("Gloo ring (in place)", line("Gloo ring", state, "in")),
             ("torch, gloo (in place)", line("torch", state, "in")),
             ("limit of the machine", [(size, time) for size, time in limit if time])]
    path.parent.mkdir(parents=True, exist_ok=True)
    title = f"All-reduce, float32, out of place, 2 ranks on 2 cores of one host ({state})"
    path.write_text(plot.svg(title, lines))


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--plot-digits", type=pathlib.Path)
    parser.add_argument("--keep-disturbed", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    if os.sched_getscheduler(0) != os.SCHED_OTHER or os.nice(0) != 0:
        raise SystemExit("bench-collective: run it under normal scheduling, as users do")
    bench = Bench(options)
    sections = {"pair": pair, "crowded": crowded, "network": network, "session": session,
                "idle": idle, "servers": lambda bench: servers.measure(bench, progress),
                "digits": lambda bench: strategies.measure(bench, progress)}
    wanted = options.only or SECTIONS

    def measure_all():
        return [sections[name](bench) for name in SECTIONS if name in wanted]

    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder, \
                Namespaces(folder) as bench.network:
            tables = measure_all()
    else:
        tables = measure_all()
    bench.figures.finish()
    for table in tables:
        table()
    for reason, count in bench.figures.left_out.items():
        if count:
            print(f"\n  left out: {count} of {len(bench.figures.bursts)} bursts, {reason}")
    for note, count in bench.figures.notes.items():
        print(f"\n  {note}" + (f" ({count} times)" if count > 1 else ""))
    bench.figures.save(BUILD.parent / "bench" / "collective.json")
    if options.plot:
        draw(bench, options.plot)


if __name__ == "__main__":
    main()
