"""The server with many clients: submits, listings, watchers, memory, and the time to recover from kill -9.

    bench/api.py [--only submits|arrays|listing|memory|watchers|kill] [--rounds N]

submits   16 clients on kept-alive connections, each of which waits until its job is on disk. The
          jobs wait for a GPU, so that only submitting is measured.
arrays    an array of 10,000 members with a line each, which wait for a GPU: the time until all are committed, the
          time of a listing with it, and the server's memory for a member that waits.
listing   100,000 jobs in the store; pages of the list, filtered and sorted, and single jobs by name.
memory    100,000 ended jobs, 1,000 running jobs, 200 open streams: the server's resident memory.
watchers  1,000 connections follow the log of one job while it prints 10 MB/s for some seconds. Each must
          receive every line once and in order; one thread reads all of them as fast as it can.
kill      kill -9 with 1,000 running jobs: the time until a new server's socket opens, which happens when
          all jobs are adopted.

Prints one row for each figure. A row with an aim ends in `ok` or `short`.
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from measure import BUILD, MUSTER, print_table, row, verdict

LOAD = BUILD / "bench" / "api" / "bench_api"
JOBS = 100_000
MEMBERS = 10_000
RUNNING = 1_000
STREAMS = 200
WATCHERS = 1_000
LOG_SECONDS = 2

AIM_SUBMITS = 5000
AIM_SUBMIT_P99_MS = 20
AIM_LIST_P99_MS = 50
AIM_ARRAY_S = 2
AIM_MEMBER_KIB = 2
AIM_MEMORY_MIB = 1024
AIM_ADOPT_S = 2


class OwnServer:
    """A server that is a child of this benchmark, with a state folder on a disk, beside the build."""

    def __init__(self, *flags):
        self.folder = tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD)
        self.flags = flags
        self.environment = dict(os.environ, MUSTER_STATE_DIR=self.folder.name)
        self.socket = pathlib.Path(self.folder.name) / "muster.sock"
        self.process = None

    def __enter__(self):
        return self

    def start(self):
        """Starts the server and returns once its socket is open."""
        reader, writer = os.pipe()
        log = open(pathlib.Path(self.folder.name) / "server.log", "ab")
        self.process = subprocess.Popen(
            [MUSTER, "server", "--ready-fd", str(writer), *self.flags], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer])
        os.close(writer)
        log.close()
        with os.fdopen(reader, "rb") as ready:
            if ready.read(1) != b"r":
                raise SystemExit("the server did not start:\n" + self.log())
        return self

    def log(self):
        return (pathlib.Path(self.folder.name) / "server.log").read_text()[-2000:]

    def load(self, mode, *words):
        done = subprocess.run([LOAD, mode, *map(str, words)], check=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None

    def muster(self, *words):
        return subprocess.run([MUSTER, *words], env=self.environment, check=True, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout

    def jobs(self, *words):
        return json.loads(self.muster("list", "--output", "json", *words))["jobs"]

    def start_jobs(self, count):
        """Starts `count` jobs that run until they are stopped."""
        self.load("submit", self.socket, 16, count, 0, "exec sleep 100000")
        while True:
            running = self.jobs("--phase", "Running")
            if len(running) == count:
                return running
            time.sleep(0.2)  # not measured; polling without a pause would only slow down the start

    def rss_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise SystemExit("no VmRSS")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end_jobs(self):
        """Stops all running jobs. Waiting jobs are removed with the folder, and must not start meanwhile."""
        for node in json.loads(self.muster("node", "list", "--output", "json"))["nodes"]:
            self.muster("node", "cordon", node["name"])
        while running := [job["id"] for job in self.jobs() if job["phase"] in ("Starting", "Running")]:
            self.muster("stop", "--now", *running)

    def __exit__(self, *ignored):
        if self.process and self.process.poll() is not None:
            self.start()
        if self.process:
            self.end_jobs()
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        self.folder.cleanup()


def aimed(line, text, holds):
    line[5] = f"{text}  " + verdict(holds)
    return line


def submits(rounds):
    figures = []
    for _ in range(rounds):
        with OwnServer("--declare-gpus", "1") as server:
            server.start()
            figures.append(server.load("submit", server.socket, 16, 20_000, 1, "sleep 100000"))
    rate = row("durable submits, 16 clients", [figure["rate"] for figure in figures], "jobs/s")
    slow = row("  one submit, p99", [figure["p99_ms"] for figure in figures], "ms", 2)
    return [aimed(rate, f"at least {AIM_SUBMITS} (Slurm publishes 500 jobs/s end to end)",
                  float(rate[1]) >= AIM_SUBMITS),
            aimed(slow, f"at most {AIM_SUBMIT_P99_MS}", float(slow[1]) <= AIM_SUBMIT_P99_MS),
            row("  one submit, p50", [figure["p50_ms"] for figure in figures], "ms", 2)]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def answer(self, method, path, body=None):
        """The document of the answer, if it has one, and the time in seconds."""
        text = None if body is None else json.dumps(body)
        began = time.monotonic()
        self.request(method, path, text, {"content-type": "application/json"} if text else {})
        answer = self.getresponse()
        document = answer.read()
        took = time.monotonic() - began
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {document.decode()}")
        return json.loads(document) if document else None, took


def arrays(rounds):
    """The server's state folder is new in each round, so that memory is compared with an empty server's."""
    submit, listing, member = [], [], []
    for _ in range(rounds):
        with OwnServer("--declare-gpus", "1") as server:
            server.start()
            connection = UnixConnection(server.socket)
            connection.answer("GET", "/v1/list?top=true&limit=50")
            empty = server.rss_mib()
            lines = [json.dumps({"lr": index / MEMBERS, "seed": index}) for index in range(MEMBERS)]
            made, took = connection.answer("POST", "/v1/jobs", {
                "name": "train", "kind": "single", "project": "default", "command": ["sleep", "100000"], "folder": "/",
                "resources": {"gpus": 1}, "array": {"lines": lines}})
            submit.append(took)
            times = sorted(connection.answer("GET", "/v1/list?top=true&limit=50")[1] * 1000 for _ in range(200))
            listing.append(times[197])
            found, _ = connection.answer("GET", "/v1/arrays/train")
            if found["counts"]["queued"] < MEMBERS - 1 or made["id"] != found["id"]:
                raise SystemExit(f"not all members wait: {found['counts']}")
            member.append((server.rss_mib() - empty) * 1024 / MEMBERS)
            connection.answer("POST", "/v1/arrays/train/stop?now=true", {})
    one = row(f"array of {MEMBERS:,}: submit to all committed", submit, "s", 3)
    two = row("  list with it, p99", listing, "ms", 2)
    three = row("  memory for a waiting member", member, "KiB", 2)
    return [aimed(one, f"at most {AIM_ARRAY_S}", float(one[1]) <= AIM_ARRAY_S),
            aimed(two, f"at most {AIM_LIST_P99_MS}", float(two[1]) <= AIM_LIST_P99_MS),
            aimed(three, f"at most {AIM_MEMBER_KIB}", float(three[1]) <= AIM_MEMBER_KIB)]


def filled(*flags):
    server = OwnServer(*flags)
    subprocess.run([LOAD, "fill", pathlib.Path(server.folder.name) / "muster.db", str(JOBS)], check=True)
    return server


def listing(rounds):
    with filled() as server:
        before = time.monotonic()
        server.start()
        start = time.monotonic() - before
        figures = [server.load("list", server.socket, JOBS, 600) for _ in range(rounds)]
        rows = [row(f"start with {JOBS:,} jobs in the store", [start], "s", 2)]
        for what in ("list", "rows", "get"):
            line = row(f"{what} of {JOBS:,} jobs, p99", [figure[f"{what}_p99_ms"] for figure in figures],
                       "ms", 2)
            rows.append(aimed(line, f"at most {AIM_LIST_P99_MS}", float(line[1]) <= AIM_LIST_P99_MS))
    return rows


def memory(_rounds):
    with filled("--task-slots", str(RUNNING)) as server:
        server.start()
        only_jobs = server.rss_mib()
        running = server.start_jobs(RUNNING)
        holder = subprocess.Popen([LOAD, "hold", server.socket, running[0]["id"], str(STREAMS)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holder.stdout.readline()
        all_of_it = server.rss_mib()
        holder.stdin.close()
        holder.wait()
    line = row(f"memory: {JOBS:,} jobs, {RUNNING:,} running, {STREAMS} watchers", [all_of_it], "MiB")
    return [row(f"memory: {JOBS:,} jobs", [only_jobs], "MiB"),
            aimed(line, f"at most {AIM_MEMORY_MIB}", all_of_it <= AIM_MEMORY_MIB)]


def watchers(_rounds):
    with OwnServer("--connections", str(2 * WATCHERS)) as server:
        server.start()
        # The job starts to print when this file exists: all readers are connected by then.
        gate = pathlib.Path(server.folder.name) / "gate"
        command = (f'while [ ! -e "{gate}" ]; do sleep 0.05; done; '
                   f'exec "{LOAD}" write-log 10 {LOG_SECONDS}')
        server.muster("submit", "single", "writer", "--sandbox", "none", "--", "sh", "-c", command)
        reader = subprocess.Popen([LOAD, "watch-log", server.socket, "writer", str(WATCHERS)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        reader.stdout.readline()
        cpu, began = server.cpu_seconds(), time.monotonic()
        gate.touch()
        figure = json.loads(reader.stdout.readline())
        reader.wait()
        cores = (server.cpu_seconds() - cpu) / (time.monotonic() - began)
        rss = server.rss_mib()
    lines = LOG_SECONDS * 100_000
    whole = figure["faults"] == 0 and figure["least_lines"] == figure["most_lines"] == lines
    return [["lines that a reader lost, of all readers", str(lines - figure["least_lines"]), "", "", "",
             "0  " + verdict(whole)],
            aimed(row("  the server's cores meanwhile", [cores], "", 2), "below 1", cores < 1),
            row("  until the last reader had all", [figure["seconds"]], "s", 1),
            row("  sent", [figure["bytes"] / figure["seconds"] / 1e6], "MB/s"),
            row("  the server's memory after it", [rss], "MiB")]


def kill(rounds):
    times, lost, doubled = [], 0, 0
    with OwnServer("--task-slots", str(RUNNING)) as server:
        server.start()
        before = {job["id"]: job["attempt"] for job in server.start_jobs(RUNNING)}
        for _ in range(rounds):
            server.kill()
            began = time.monotonic()
            server.start()
            times.append(time.monotonic() - began)
            after = {job["id"]: job for job in server.jobs()}
            lost += sum(1 for name in before if after[name]["phase"] != "Running")
            doubled += sum(1 for name in before if after[name]["attempt"] != before[name])
    line = row(f"kill -9 with {RUNNING:,} running jobs, to all adopted", times, "s", 2)
    return [aimed(line, f"at most {AIM_ADOPT_S}", statistics.median(times) <= AIM_ADOPT_S),
            ["  jobs lost, and jobs started twice", f"{lost}, {doubled}", "", "", "",
             "0, 0  " + verdict(lost == doubled == 0)]]


def main():
    parts = {"submits": submits, "arrays": arrays, "listing": listing, "memory": memory, "watchers": watchers, "kill": kill}
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=parts)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for name, part in parts.items():
        if options.only in (None, name):
            rows += part(options.rounds)
    print_table(rows)


if __name__ == "__main__":
    main()
