"""The web page: its size, its first paint, memory and frames with many jobs, long logs, and the server's work for a
viewer.

    bench/web.py [--only weight|jobs|log|viewer]

weight  the bytes of web/dist with gzip, which a browser loads before a shell is opened
jobs    100,000 jobs in the store, in headless Chromium: first paint, the JavaScript heap, the times between frames while
        the list scrolls, and the time from the server's answer to a filter until its rows are painted
log     a log of 1 GB: the first request, which reads the whole log, then requests for parts of it, and a search; and a
        page that scrolls through it
viewer  200 running jobs and a stream of short jobs: processor time of the server with and without a page that shows
        them, and the page's frames

Prints one row for each figure. A row with an aim ends in `ok` or `short`.
"""

import argparse
import gzip
import http.client
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

from api import OwnServer, aimed, filled
from measure import print_table, row

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "web" / "dist"
MEASURE = ROOT / "web" / "e2e" / "measure.mjs"

AIM_WEIGHT_KB = 400
AIM_PAINT_MS = 300
AIM_HEAP_MB = 50
AIM_FRAME_MS = 50
AIM_FILTER_MS = 100
AIM_WINDOW_MS = 50

LOG_BYTES = 1 << 30
LIVE = 200
SHORT_JOBS = 60


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("muster")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def ask(server, path):
    """The answer and the milliseconds that it took."""
    connection = UnixConnection(server.socket)
    begun = time.monotonic()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    took = (time.monotonic() - begun) * 1000
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body.decode()}")
    return json.loads(body), took


def weight():
    sizes = {file: len(gzip.compress(file.read_bytes(), 9)) for file in DIST.rglob("*") if file.is_file()}
    shell = sum(size for file, size in sizes.items() if "terminal-" in file.name)
    page = sum(sizes.values()) - shell
    line = row("weight before a shell is opened, with gzip", [page / 1000], "kB", 1)
    return [aimed(line, f"at most {AIM_WEIGHT_KB}", page <= AIM_WEIGHT_KB * 1000),
            row("  what a shell adds", [shell / 1000], "kB", 1)]


def address(server):
    return server.muster("ui", "--no-open").strip()


def in_browser(server, *what):
    run = subprocess.run(["node", MEASURE, address(server), *what], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def jobs():
    with filled() as server:
        server.start()
        seen = in_browser(server, "jobs")
    paint = row("first paint of the list", [each["first"] for each in seen["paints"]], "ms")
    rows = row("  first rows of the list, 100,000 jobs", [each["rows"] for each in seen["paints"]], "ms")
    heap = max(seen["heap"], seen["heap_after"]) / 1e6
    heaps = row("JavaScript heap after scrolling through 100,000 jobs", [heap], "MB", 1)
    frames = row("frames while it scrolls through all rows", seen["frames"], "ms", 1)
    filters = row("filter: from the server's answer to the rows", [each["page"] for each in seen["filters"]], "ms")
    return [paint,
            aimed(rows, f"at most {AIM_PAINT_MS}", float(rows[1]) <= AIM_PAINT_MS),
            aimed(heaps, f"at most {AIM_HEAP_MB}", heap <= AIM_HEAP_MB),
            aimed(frames, f"p90 at most {AIM_FRAME_MS}", float(frames[3]) <= AIM_FRAME_MS),
            aimed(filters, f"at most {AIM_FILTER_MS}", float(filters[1]) <= AIM_FILTER_MS),
            row("  the server's answer to the filter", [each["server"] for each in seen["filters"]], "ms")]


def log():
    line = "step 123456 loss 0.123456789 accuracy 0.98765 learning rate 0.001 tokens 123456789"
    with OwnServer("--log-quota", "2Gi") as server:
        server.start()
        server.muster("submit", "single", "writer", "--sandbox", "none", "--", "sh", "-c",
                      f"yes '{line}' | head -c {LOG_BYTES}; printf '\\nthe end\\n'")
        server.muster("logs", "-f", "--tail", "1", "writer")
        before = server.rss_mib()
        window = "/v1/jobs/writer/log-window?lines=100"
        begun = time.monotonic()
        answer, _ = ask(server, window)
        while not answer["complete"]:
            answer, _ = ask(server, window)
        first = time.monotonic() - begun
        lines = answer["lines"]
        assert answer["records"][-1]["text"] == "the end", answer["records"][-1]
        choose = random.Random(1)
        times = [ask(server, f"{window}&line={choose.randrange(lines)}")[1] for _ in range(200)]
        begun = time.monotonic()
        found, _ = ask(server, "/v1/jobs/writer/log-search?q=the+end")
        while "next" in found and not any(record.get("hit") for record in found["records"]):
            found, _ = ask(server, f"/v1/jobs/writer/log-search?q=the+end&line={found['next']}")
        search = time.monotonic() - begun
        assert found["records"][-1]["line"] == lines - 1, found
        memory = server.rss_mib() - before
        page = in_browser(server, "log", "writer")
    windows = row(f"100 lines from anywhere in a log of 1 GiB ({lines:,} lines)", times, "ms", 1)
    heap = page["heap"] / 1e6
    heaps = row("  heap of the page after scrolling through it", [heap], "MB", 1)
    frames = row("  frames while the page scrolls through it", page["frames"], "ms", 1)
    return [row("log of 1 GiB: first window, which reads all of it", [first], "s", 2),
            row("  its last lines in the page, from the navigation on", [page["shown"]], "ms"),
            aimed(heaps, f"at most {AIM_HEAP_MB}", heap <= AIM_HEAP_MB),
            aimed(frames, f"p90 at most {AIM_FRAME_MS}", float(frames[3]) <= AIM_FRAME_MS),
            aimed(windows, f"p90 at most {AIM_WINDOW_MS}", float(windows[3]) <= AIM_WINDOW_MS),
            row("  a search through all of it", [search], "s", 2),
            row("  memory of the server for it", [memory], "MiB", 1)]


def viewer():
    """Processor time of the server for one page that shows the list while jobs come and go."""
    used, seen = [], None
    with OwnServer("--task-slots", str(LIVE + 8)) as server:
        server.start()
        server.start_jobs(LIVE)
        for is_watched in (False, True):
            page = None
            if is_watched:
                page = subprocess.Popen(["node", MEASURE, address(server), "view"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                assert page.stdout.readline() == "open\n"
            before = server.cpu_seconds()
            begun = time.monotonic()
            for number in range(SHORT_JOBS):
                server.muster("submit", "single", f"short-{int(is_watched)}-{number}", "--sandbox", "none", "--", "true")
            took = time.monotonic() - begun
            used.append((server.cpu_seconds() - before) / took * 100)
            if page:
                seen = json.loads(page.communicate()[0].splitlines()[-1])
    frames = row("  its frames meanwhile", seen["frames"], "ms", 1)
    return [row(f"server's processor, {LIVE} jobs run, others come and go", [used[0]], "% of a core", 1),
            row("  with a page that shows them", [used[1]], "% of a core", 1),
            aimed(frames, f"p90 at most {AIM_FRAME_MS}", float(frames[3]) <= AIM_FRAME_MS)]


def main():
    parts = {"weight": weight, "jobs": jobs, "log": log, "viewer": viewer}
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=parts)
    options = parser.parse_args()
    rows = []
    for name, part in parts.items():
        if options.only in (None, name):
            rows += part()
            print(f"measured: {name}", file=sys.stderr)
    print_table(rows)


if __name__ == "__main__":
    main()
