"""Push and pull of a parameter server, compared with plain gRPC streaming: the same bytes in the same direction over TLS
with the same certificates, in turns. Plain gRPC only copies the bytes. The server also checks a push for NaN and
applies it, and returns parameters that other workers may change meanwhile."""

import secrets
import statistics

import aims
import launching
from measure import percentile

MIB = 1 << 20
SIZES = [MIB, 16 * MIB, 128 * MIB]
QUICK_SIZES = [16 * MIB]
PROGRAMS = {"ours": "ours_server", "plain gRPC": "peer_grpc"}
DIRECTIONS = ["push", "pull"]
AIM = 0.8  # share of plain gRPC's bandwidth


def start(program, sizes):
    words = [launching.program(program), f"--address=127.0.0.1:{launching.free_port()}",
             f"--sizes={','.join(map(str, sizes))}"]
    environment = launching.environment(MUSTER_RENDEZVOUS_KEY=secrets.token_hex(32))
    return [([str(word) for word in [*words, f"--role={role}"]], environment)
            for role in ("server", "worker")]


def measure(bench, progress):
    """Returns a function that prints the table."""
    sizes = QUICK_SIZES if bench.options.quick else SIZES
    samples = {}  # (subject, direction, bytes) -> microseconds

    def turn(subject):
        try:
            lines, _ = launching.take(start(PROGRAMS[subject], sizes), patience=120)
        except (launching.Failed, OSError) as error:
            bench.figures.note(f"servers: {subject} failed: {error}")
            return
        for line in lines:
            bench.figures.bursts.append({"section": "servers", "subject": subject, **line})
            samples.setdefault((subject, line["direction"], line["bytes"]), []).extend(line["us"])

    for round_ in range(bench.rounds):
        for subject in PROGRAMS:
            turn(subject)
            progress(f"servers, round {round_ + 1} of {bench.rounds}: {subject}")
    return lambda: show(samples, sizes)


def show(samples, sizes):
    print("\n  A parameter server and a worker on one host, against plain gRPC streams; GB/s\n")
    rows = [["bytes", "", "median", "p10", "p90", "plain gRPC", "p10", "p90", "ratio", "aim", ""]]
    for bytes_ in sizes:
        for direction in DIRECTIONS:
            ours, plain = (samples.get((subject, direction, bytes_)) for subject in PROGRAMS)
            if not ours:
                continue
            ratio = statistics.median(plain) / statistics.median(ours) if plain else None
            rows.append([aims.size_text(bytes_), direction, *bandwidths(bytes_, ours),
                         *(bandwidths(bytes_, plain) if plain else ["-"] * 3),
                         *aims.judged(ratio, AIM)])
    aims.print_columns(rows, left=2)


def bandwidths(bytes_, microseconds):
    """Median, 10th and 90th percentile."""
    speeds = [bytes_ / sample / 1000 for sample in microseconds]
    return [f"{value:.2f}" for value in (statistics.median(speeds), percentile(speeds, 0.1),
                                         percentile(speeds, 0.9))]
