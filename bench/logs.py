"""The times for which a user of a job waits: the latency and the throughput of its output (log_streams.py describes the
measurement), and the duration of commands.

`list` and `get` are measured as whole processes, in each dialect.

The server has 100 jobs, one of which runs. A process is started, sends a request, prints the answer and ends.
Interleaved, 60 runs each. The peer is the minimal client in Python: an interpreter that imports the modules of an HTTP
request and sends the same request. Aim: below 20 ms.
"""

import os
import subprocess
import sys
import tempfile
import time

import log_streams
from measure import MUSTER, Server, interleaved, print_table, row, verdict

ROUNDS = 60
JOBS = 100
AIM_MS = 20
STREAM_ROUNDS = 5
PROMPT_ROUNDS = 20

PYTHON_CLIENT = """
import http.client, json, socket
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect({socket!r})
connection = Connection("muster")
connection.request("GET", "/v1/jobs")
for job in json.load(connection.getresponse())["jobs"]:
    print(job["spec"]["name"], job["phase"])
"""


def milliseconds_of(command, environment):
    start = time.monotonic()
    ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    took = (time.monotonic() - start) * 1000
    if ran.returncode != 0 or not ran.stdout:
        raise SystemExit(f"{command} failed: {ran.stderr.decode()}")
    return took


def fill(server):
    """Creates a project with one running job and many suspended jobs, like the list of a busy team."""
    server.muster("submit", "mpi", "dist", "--workers", "2", "--", "sleep", "infinity")
    for number in range(1, JOBS):
        server.muster("submit", "single", f"job-{number}", "--hold", "--", "true")


def questions(server):
    """The commands to measure, by name."""
    words = {
        "muster list": ["list"],
        "muster get": ["get", "dist"],
        "gradient experiments list": ["gradient", "experiments", "list", "--limit", str(JOBS)],
        "gradient experiments details": ["gradient", "experiments", "details", "--id", "dist"],
        "runai list": ["runai", "list"],
        "runai get": ["runai", "get", "dist"],
    }
    asked = {name: [MUSTER, *rest] for name, rest in words.items()}
    socket = f"{server.folder.name}/muster.sock"
    asked["python3, the same question"] = ["python3", "-c", PYTHON_CLIENT.format(socket=socket)]
    return asked


def answers():
    """Rows of the commands."""
    with Server() as server:
        fill(server)
        samples = interleaved(
            {name: lambda command=command: milliseconds_of(command, server.environment)
             for name, command in questions(server).items()}, ROUNDS)
        server.muster("stop", "--now", "dist")
    rows = []
    for name, figures in samples.items():
        cells = row(name, figures, "ms")
        if not name.startswith("python3"):
            median = sorted(figures)[len(figures) // 2]
            cells[-1] = f"under {AIM_MS}  {verdict(median < AIM_MS)}"
        rows.append(cells)
    return rows


def aimed(name, samples, unit, aim, holds, digits=0):
    """A row with an aim as text; `holds` judges the median."""
    cells = row(name, samples, unit, digits)
    cells[-1] = f"{aim}  {verdict(holds(float(cells[1])))}"
    return cells


def latencies():
    """Rows of p50 and p99 of each round, in milliseconds."""
    samples = {}
    with Server() as server:
        for count in range(STREAM_ROUNDS):
            taken = {
                "8 tasks to a terminal": log_streams.latency_of_muster(server, f"clocked-{count}"),
                "beside 100 MB/s": log_streams.latency_beside_a_flood(server, f"flood-{count}"),
                "beside 100 MB/s, into a pipe": log_streams.latency_beside_a_flood(
                    server, f"piped-{count}", open_ends=os.pipe),
                "beside 100 MB/s, --task master": log_streams.latency_beside_a_flood(
                    server, f"picked-{count}", ["--task", "master"]),
                "tail -f of 8 files": log_streams.latency_of_tail(server)}
            for name, figures in taken.items():
                for share, figure in zip(("p50", "p99"), log_streams.p50_and_p99(figures)):
                    samples.setdefault(f"{name}, {share}", []).append(figure)
    rows = []
    for name, figures in samples.items():
        if name.startswith("tail"):
            rows.append(row(name, figures, "ms", 2))
            continue
        most = 5 if name.endswith("p50") else 20
        rows.append(aimed(name, figures, "ms", f"at most {most}", lambda took, most=most: took <= most, 2))
    return rows


def throughputs():
    """Rows of MB per second, and of the required memory."""
    rows = []
    with Server() as server:
        for line in (100, 1000):
            name = f"much-{line}"
            log_streams.print_much(server, name, line)
            with tempfile.NamedTemporaryFile(dir=server.folder.name) as plain:
                block = (b"x" * (line - 1) + b"\n") * (log_streams.MIB // line)
                for _ in range(log_streams.BYTES_OF_TASK // len(block)):
                    plain.write(block)
                plain.flush()
                rates = interleaved({
                    f"8 logs, lines of {line} bytes":
                        lambda name=name: log_streams.rate_of_muster(server, name),
                    "cat of the same, plain":
                        lambda path=plain.name: log_streams.rate_of_cat(server, path)}, STREAM_ROUNDS)
            ours, peer = rates.items()
            rows.append(aimed(*ours, "MB/s", "at least 200", lambda rate: rate >= 200))
            rows.append(row(*peer, "MB/s"))
        live = [log_streams.rate_of_follow(server, f"live-{count}") for count in range(STREAM_ROUNDS)]
        rows.append(row("followed while they are printed", live, "MB/s"))
        growth = [log_streams.growth_of_server(server, "much-100") for _ in range(STREAM_ROUNDS)]
        rows.append(aimed("the server's memory grows by", growth, "MiB", "at most 64",
                          lambda grown: grown <= 64))
    return rows


def prompts():
    with Server() as server:
        server.muster("submit", "single", "shell", "--", "sleep", "infinity")
        server.muster("bash", "shell")  # waits until it runs, and ends with its empty input
        figures = interleaved({"exec -t JOB -- bash, to its prompt":
                               lambda: log_streams.time_to_prompt(server, "shell")}, PROMPT_ROUNDS)
        server.muster("stop", "--now", "shell")
    return [aimed(name, taken, "ms", "at most 200", lambda took: took <= 200)
            for name, taken in figures.items()]


PARTS = {"latency": latencies, "throughput": throughputs, "prompt": prompts, "answers": answers}


def main():
    """Runs all parts, or the parts that the arguments name."""
    print_table([cells for part in sys.argv[1:] or PARTS for cells in PARTS[part]()])


if __name__ == "__main__":
    main()
