"""The section `server` of bench/scale.py."""

import http.client
import json
import pathlib
import subprocess
import time

from api import LOAD, OwnServer, UnixConnection
from measure import row, verdict
from throughput import processes_of

AIM_ANSWER_P99_MS = 50
AIM_START_S = 10
AIM_MEMORY_MIB = 2560

RATE = 20  # jobs a second of the soak
KILL_EVERY_S = 15
# What a server may occupy more for each job that it has stored. It is read just before each SIGKILL, when every server
# has run equally long: so what does not depend on the number of stored jobs (the ended jobs that stay whole, SQLite's
# cache) is the same in all of them.
AIM_GROWTH_KIB = 10


def aimed(line, most):
    line[5] = f"at most {most:,}  " + verdict(float(line[1]) <= most)
    return line


class FullServer(OwnServer):
    """Its nodes are cordoned, so that submitted jobs wait and none has to be stopped: a list of all jobs, as the end of
    OwnServer makes, takes minutes here."""

    def cordon(self):
        for node in json.loads(self.muster("node", "list", "--output", "json"))["nodes"]:
            self.muster("node", "cordon", node["name"])

    def end_jobs(self):
        pass


def ended_jobs(count):
    with FullServer("--declare-gpus", "1") as server:
        began = time.monotonic()
        subprocess.run([LOAD, "fill", pathlib.Path(server.folder.name) / "muster.db", str(count)], check=True)
        filled = time.monotonic() - began
        began = time.monotonic()
        server.start()
        start = time.monotonic() - began
        memory = server.rss_mib()
        server.cordon()
        answers = server.load("list", server.socket, count, 300)
        submits = server.load("submit", server.socket, 16, 2_000, 1, "sleep 100000")
        server.kill()
        began = time.monotonic()
        server.start()
        again = time.monotonic() - began
    rows = [row(f"{count:,} ended jobs: writing them to the store", [filled], "s", 1),
            aimed(row("  start of the server", [start], "s", 2), AIM_START_S),
            aimed(row("  start after SIGKILL", [again], "s", 2), AIM_START_S),
            aimed(row("  memory", [memory], "MiB"), AIM_MEMORY_MIB)]
    for what, title in (("list", "list, a page"), ("rows", "list, rows sorted, searched and counted"), ("get", "get")):
        rows.append(row(f"  {title}, p50", [answers[f"{what}_p50_ms"]], "ms", 2))
        rows.append(aimed(row(f"  {title}, p99", [answers[f"{what}_p99_ms"]], "ms", 2), AIM_ANSWER_P99_MS))
    rows.append(row("  durable submits, 16 clients", [submits["rate"]], "jobs/s"))
    rows.append(aimed(row("  one submit, p99", [submits["p99_ms"]], "ms", 2), AIM_ANSWER_P99_MS))
    return rows


class Soak:
    """Submits jobs at a steady rate to a server that is killed at intervals. A request that failed is repeated with
    its key. Each job adds a line to a file of its own, which shows how often it ran."""

    def __init__(self, server, seconds):
        self.server = server
        self.seconds = seconds
        self.ran = pathlib.Path(server.folder.name) / "ran"
        self.ran.mkdir()
        self.submitted = 0
        self.kills = 0
        self.outages = []
        self.memory = []  # (jobs, KiB)
        self.connection = None

    def submit(self, name):
        body = json.dumps({"name": name, "kind": "single", "project": "default", "folder": str(self.ran),
                           "command": ["sh", "-c", f"echo ran >> {name}"]})
        headers = {"content-type": "application/json", "idempotency-key": name}
        while True:
            try:
                if self.connection is None:
                    self.connection = UnixConnection(self.server.socket)
                self.connection.request("POST", "/v1/jobs", body, headers)
                answer = self.connection.getresponse()
                text = answer.read()
                if answer.status < 300:
                    return
                raise SystemExit(f"submit {name}: {text.decode()}")
            except (OSError, http.client.HTTPException):
                self.connection = None
                time.sleep(0.01)

    def run(self):
        began = time.monotonic()
        next_kill = began + KILL_EVERY_S
        while (now := time.monotonic()) < began + self.seconds:
            if now >= next_kill:
                self.memory.append((self.submitted, self.server.rss_mib() * 1024))
                self.server.kill()
                self.server.start()
                self.outages.append(time.monotonic() - now)
                self.kills += 1
                next_kill += KILL_EVERY_S
                continue
            if self.submitted >= (now - began) * RATE:
                time.sleep(1 / RATE / 4)
                continue
            self.submit(f"soak-{self.submitted}")
            self.submitted += 1

    def growth_kib(self):
        """Of the server's memory, for each job. REQUIRES: two SIGKILLs."""
        (jobs, first), (more, last) = self.memory[0], self.memory[-1]
        return (last - first) / (more - jobs)

    def wait_for_all(self):
        while any(job["phase"] in ("Queued", "Starting", "Running") for job in self.server.jobs()):
            time.sleep(0.2)  # not measured

    def counts(self):
        """How many jobs are lost, how many ran more than once."""
        phases = {job["spec"]["name"]: job["phase"] for job in self.server.jobs()}
        lost = doubled = 0
        for number in range(self.submitted):
            name = f"soak-{number}"
            file = self.ran / name
            times = len(file.read_text().splitlines()) if file.exists() else 0
            lost += times == 0 or phases.get(name) != "Succeeded"
            doubled += times > 1
        return lost, doubled


def soak(seconds):
    with OwnServer() as server:
        server.start()
        run = Soak(server, seconds)
        run.run()
        run.wait_for_all()
        lost, doubled = run.counts()
        left = processes_of(server.folder.name)
    if run.kills < 2:
        raise SystemExit(f"a soak of {seconds} s has no two SIGKILLs: --soak needs more than {2 * KILL_EVERY_S}")
    return [["soak: jobs, and SIGKILLs of the server", f"{run.submitted}, {run.kills}", "", "", "", ""],
            ["  lost, run twice, processes left", f"{lost}, {doubled}, {left}", "", "", "",
             "0, 0, 0  " + verdict(lost == doubled == left == 0)],
            row("  until a killed server answers again", run.outages, "s", 2),
            row("  the server's memory before each SIGKILL", [kib / 1024 for _, kib in run.memory], "MiB", 1),
            aimed(row("  its growth, a job", [run.growth_kib()], "KiB", 1), AIM_GROWTH_KIB)]


def measure(chosen):
    return ended_jobs(chosen.jobs) + soak(chosen.soak)
