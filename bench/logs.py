"""How long a person waits for an answer: `list` and `get` as whole processes, in each dialect.

The server has 100 jobs, one of which runs; a process is started, asks, prints and ends. Interleaved,
60 runs each. The peer is the least that any client written in Python does: an interpreter that
imports what an HTTP request needs and asks the same question. Aim: under 20 ms.
"""

import subprocess
import time

from measure import MUSTER, Server, interleaved, print_table, row, verdict

ROUNDS = 60
JOBS = 100
AIM_MS = 20

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
    """A project with one job that runs and the others held, as a busy team's page has them."""
    server.muster("submit", "mpi", "dist", "--workers", "2", "--", "sleep", "infinity")
    for number in range(1, JOBS):
        server.muster("submit", "single", f"job-{number}", "--hold", "--", "true")


def questions(server):
    """What is asked, by name."""
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


def main():
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
    print_table(rows)


if __name__ == "__main__":
    main()
