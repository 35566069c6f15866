"""The section `soak` of bench/scale.py."""

import http.client
import json
import pathlib
import time

from api import OwnServer, UnixConnection
from measure import row, verdict
from server import aimed
from throughput import processes_of

# What a server may occupy more for each job that it has stored. It is read just before each SIGKILL, when every server
# has run equally long: so what does not depend on the number of stored jobs (the ended jobs that stay whole, SQLite's
# cache) is the same in all of them.
AIM_GROWTH_KIB = 10

MOST_TOLD = 10


class Soak:
    """Submits jobs at a steady rate to a server that is killed at intervals. A request that failed is repeated with
    its key. Each job adds a line to a file of its own, which shows how often it ran."""

    def __init__(self, server, chosen):
        self.server = server
        self.seconds = chosen.soak
        self.rate = chosen.rate  # jobs a second
        self.kill_every = chosen.kill_every  # seconds
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
                time.sleep(0.01)  # the server may be starting again

    def run(self):
        began = time.monotonic()
        next_kill = began + self.kill_every
        while (now := time.monotonic()) < began + self.seconds:
            if now >= next_kill:
                self.memory.append((self.submitted, self.server.rss_mib() * 1024))
                self.server.kill()
                self.server.start()
                self.outages.append(time.monotonic() - now)
                self.kills += 1
                next_kill += self.kill_every
                continue
            if self.submitted >= (now - began) * self.rate:
                time.sleep(1 / self.rate / 4)
                continue
            self.submit(f"soak-{self.submitted}")
            self.submitted += 1

    def growth_kib(self):
        """Of the server's memory, for each job. REQUIRES: two SIGKILLs."""
        (jobs, first), (more, last) = self.memory[0], self.memory[-1]
        return (last - first) / (more - jobs)

    def wait_for_all(self):
        while self.server.jobs("--phase", "active"):
            time.sleep(0.2)  # not measured

    def lost_and_doubled(self):
        """Two lists of names: the lost jobs, and the jobs that ran more than once."""
        phases = {job["spec"]["name"]: job["phase"] for job in self.server.jobs()}
        lost, doubled = [], []
        for number in range(self.submitted):
            name = f"soak-{number}"
            file = self.ran / name
            times = len(file.read_text().splitlines()) if file.exists() else 0
            if times == 0 or phases.get(name) != "Succeeded":
                lost.append(name)
            if times > 1:
                doubled.append(name)
        return lost, doubled

    def tell(self, names):
        """Prints what the server knows of some of these jobs, before all is removed."""
        for name in names[:MOST_TOLD]:
            print(f"--- {name}: {'ran' if (self.ran / name).exists() else 'did not run'}")
            print(self.server.muster("get", name), flush=True)


def measure(chosen):
    if chosen.soak <= 2 * chosen.kill_every:
        raise SystemExit(f"a soak of {chosen.soak} s has no two SIGKILLs: --soak must be more than "
                         f"{2 * chosen.kill_every}")
    with OwnServer() as server:
        server.start()
        run = Soak(server, chosen)
        run.run()
        run.wait_for_all()
        lost, doubled = run.lost_and_doubled()
        run.tell(lost + doubled)
        left = processes_of(server.folder.name)
    return [["soak: jobs, and SIGKILLs of the server", f"{run.submitted}, {run.kills}", "", "", "", ""],
            ["  lost, run twice, processes left", f"{len(lost)}, {len(doubled)}, {left}", "", "", "",
             "0, 0, 0  " + verdict(not lost and not doubled and left == 0)],
            row("  until a killed server answers again", run.outages, "s", 2),
            row("  the server's memory before each SIGKILL", [kib / 1024 for _, kib in run.memory], "MiB", 1),
            aimed(row("  its growth, a job", [run.growth_kib()], "KiB", 1), AIM_GROWTH_KIB)]
