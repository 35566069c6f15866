"""The section `server` of bench/scale.py."""

import contextlib
import json
import pathlib
import subprocess
import sys
import time

from api import LOAD, OwnServer
from measure import row, verdict

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests"))

from postgres_harness import Postgres  # noqa: E402

AIM_ANSWER_P99_MS = 50
AIM_START_S = 10
AIM_MEMORY_MIB = 2560


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


def measure(chosen):
    count = chosen.jobs
    with contextlib.ExitStack() as stack:
        flags, database = [], None
        if chosen.store == "postgres":
            database = stack.enter_context(Postgres(durable=True)).new_url()
            flags = ["--store", database]
        server = stack.enter_context(FullServer("--declare-gpus", "1", *flags))
        began = time.monotonic()
        subprocess.run([LOAD, "fill", database or pathlib.Path(server.folder.name) / "muster.db", str(count)],
                       check=True)
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
    rows = [row(f"{count:,} ended jobs: writing them to {chosen.store}", [filled], "s", 1),
            aimed(row("  start of the server", [start], "s", 2), AIM_START_S),
            aimed(row("  start after SIGKILL", [again], "s", 2), AIM_START_S),
            aimed(row("  memory", [memory], "MiB"), AIM_MEMORY_MIB)]
    for what, title in (("list", "list, a page"), ("rows", "list, rows sorted, searched and counted"), ("get", "get")):
        rows.append(row(f"  {title}, p50", [answers[f"{what}_p50_ms"]], "ms", 2))
        rows.append(aimed(row(f"  {title}, p99", [answers[f"{what}_p99_ms"]], "ms", 2), AIM_ANSWER_P99_MS))
    rows.append(row("  durable submits, 16 clients", [submits["rate"]], "jobs/s"))
    rows.append(aimed(row("  one submit, p99", [submits["p99_ms"]], "ms", 2), AIM_ANSWER_P99_MS))
    return rows
