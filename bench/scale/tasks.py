"""The section `tasks` of bench/scale.py."""

import concurrent.futures
import json
import os
import pathlib
import resource
import threading
import time

from api import OwnServer, UnixConnection
from measure import percentile, row, verdict
from server import AIM_ANSWER_P99_MS, AIM_MEMORY_MIB, aimed
from throughput import processes_of

AIM_TAKEOVER_S = 10
CLIENTS = 8
IDLE_SECONDS = 30
LONGEST_IDLE_S = 20
ANSWERS = 400
SUBMITS = 200

# A wait that takes longer is a failure: 10,000 tasks start and end within minutes, also beside other work.
LONGEST_WAIT_S = 1800

# Of a task without a sandbox: the two halves of its supervisor, and its program. Processes that measure a task live for
# some milliseconds, and so do those of the benchmark.
PROCESSES_OF_TASK = 3
OTHER_PROCESSES = 1000

# Of the server: one for each task, and its connections, files and database.
OTHER_DESCRIPTORS = 200

# Rows as the web page and `muster list` request them, and a page of whole jobs.
PAGES = ["/v1/list?limit=50&sort=-submitted&top=true", "/v1/list?limit=50&sort=-duration&phase=running&count=true",
         "/v1/list?limit=50&sort=name&count=true", "/v1/list?limit=50&text=light-99&count=true",
         "/v1/jobs?limit=100&sort=-submitted"]


def number_in(path, none):
    """The limit in a file of the kernel; `none`: there is no such limit."""
    try:
        return int(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return none


def limit_of_group(none):
    """The most processes that the control groups of this process may have, and those that they have."""
    try:
        path = pathlib.Path("/proc/self/cgroup").read_text().split("::")[1].strip()
    except (OSError, IndexError):
        return none, 0
    room, had = none, 0
    group = pathlib.Path("/sys/fs/cgroup") / path.lstrip("/")
    while group != pathlib.Path("/sys/fs/cgroup").parent:
        most, has = number_in(group / "pids.max", none), number_in(group / "pids.current", 0)
        if most - has < room - had:
            room, had = most, has
        group = group.parent
    return room, had


def check_limits(count):
    """Beyond a limit, the kernel refuses processes and descriptors in the middle of the run."""
    processes = count * PROCESSES_OF_TASK + OTHER_PROCESSES
    running = int(pathlib.Path("/proc/loadavg").read_text().split()[3].split("/")[1])  # "0.1 0.1 0.1 2/300 99"
    unlimited = 1 << 62
    group, in_group = limit_of_group(unlimited)
    lacks = []
    for limit, most, has, advice in (
            ("kernel.pid_max", number_in("/proc/sys/kernel/pid_max", unlimited), running,
             "sysctl kernel.pid_max={}"),
            ("kernel.threads-max", number_in("/proc/sys/kernel/threads-max", unlimited), running,
             "sysctl kernel.threads-max={}"),
            ("pids.max of the control group", group, in_group, "run it in a group with pids.max of {} or more")):
        if most - has < processes:
            lacks.append(f"{limit} is {most}, and {has} threads run: {advice.format(has + processes)}")
    own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.getuid() != 0 and own != resource.RLIM_INFINITY and own < processes:
        lacks.append(f"an account may have {own} processes: ulimit -u {processes}")
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = count + OTHER_DESCRIPTORS
    if most_files != resource.RLIM_INFINITY and most_files < descriptors:
        lacks.append(f"a process may open {most_files} files: ulimit -n {descriptors}")
    elif files != resource.RLIM_INFINITY and files < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, most_files))  # the server inherits it
    if lacks:
        raise SystemExit(f"{count:,} tasks have {processes:,} processes; a limit is too low:\n  " + "\n  ".join(lacks))


class Tasks:
    """Light tasks without a sandbox. Each adds a line to a file of its own, which shows how often it ran."""

    def __init__(self, server, count):
        self.server = server
        self.count = count
        self.ran = pathlib.Path(server.folder.name) / "ran"
        self.ran.mkdir()
        self.connections = threading.local()

    def request(self, method, path, body=None):
        """The document of the answer and its time in seconds, over a connection of this thread. The server closes a
        connection that is idle for 30 s."""
        mine = self.connections
        now = time.monotonic()
        if getattr(mine, "of", None) != self.server.process.pid or now > mine.used + LONGEST_IDLE_S:
            mine.of = self.server.process.pid
            mine.open = UnixConnection(self.server.socket)
        answer = mine.open.answer(method, path, body)
        mine.used = time.monotonic()
        return answer

    def each(self, requests):
        """Sends all requests over some connections, in any order; returns the answers in the order of the requests."""
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            return list(clients.map(lambda request: self.request(*request), requests))

    def spec(self, name):
        return {"name": name, "kind": "single", "project": "default", "folder": str(self.ran), "sandbox": "none",
                "command": ["sh", "-c", f"echo ran >> {name}; exec sleep 100000"]}

    def start(self):
        """Returns the ids of the jobs, in the order of their numbers."""
        answers = self.each([("POST", "/v1/jobs", self.spec(f"light-{number}")) for number in range(self.count)])
        self.wait_for("running", self.count)
        return [job["id"] for job, _ in answers]

    def wait_for(self, phase, count):
        deadline = time.monotonic() + LONGEST_WAIT_S
        while (counts := self.request("GET", "/v1/list?limit=1&count=true")[0]["counts"])[phase] != count:
            if time.monotonic() > deadline:
                raise SystemExit(f"{counts} after {LONGEST_WAIT_S} s, and not {count} {phase}:\n{self.server.log()}")
            time.sleep(0.2)  # not measured

    def list_ms(self):
        return [self.request("GET", PAGES[number % len(PAGES)])[1] * 1000 for number in range(ANSWERS)]

    def get_ms(self, jobs):
        return [self.request("GET", f"/v1/jobs/{jobs[number * 7919 % len(jobs)]}")[1] * 1000
                for number in range(ANSWERS)]

    def submit_ms(self):
        """Of jobs that wait, since the tasks have all slots. Removes them."""
        answers = [self.request("POST", "/v1/jobs", self.spec(f"waits-{number}")) for number in range(SUBMITS)]
        self.each([("POST", f"/v1/jobs/{job['id']}/stop?now=true") for job, _ in answers])
        self.each([("DELETE", f"/v1/jobs/{job['id']}") for job, _ in answers])
        return [took * 1000 for _, took in answers]

    def idle_cpus(self, jobs):
        """CPUs that the server and the supervisors use while nothing is asked of the server."""
        supervisors = [pid for job in jobs for pid in self.supervisor_of(job)]
        began = time.monotonic()
        before = self.server.cpu_seconds(), sum(map(cpu_seconds, supervisors))
        time.sleep(IDLE_SECONDS)
        after = self.server.cpu_seconds(), sum(map(cpu_seconds, supervisors))
        passed = time.monotonic() - began
        return [(now - then) / passed for now, then in zip(after, before)]

    def supervisor_of(self, job):
        """The processes of a task's supervisor."""
        record = pathlib.Path(self.server.folder.name) / "jobs" / job / "1" / "main" / "running"
        outer = json.loads(record.read_text())["pid"]
        return [outer, *children_of(outer)]

    def processes_of(self, job):
        supervisor = self.supervisor_of(job)
        return len(supervisor) + sum(len(children_of(pid)) for pid in supervisor[1:])

    def private_kib(self, job):
        """The memory of a task's supervisor."""
        kib = 0
        for pid in self.supervisor_of(job):
            lines = text_of_process(pid, "smaps_rollup").splitlines()
            kib += sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
        return kib

    def attempts(self):
        """The attempt of each running job, by its id."""
        found, after = {}, ""
        while True:
            page, _ = self.request("GET", f"/v1/jobs?limit=500&phase=Running{after}")
            found.update((job["id"], job["attempt"]) for job in page["jobs"])
            if not page.get("next"):
                return found
            after = f"&cursor={page['next']}"

    def doubled(self):
        return sum(len((self.ran / f"light-{number}").read_text().splitlines()) != 1 for number in range(self.count))

    def end(self, jobs):
        """The seconds until no task runs, and until all jobs are deleted."""
        began = time.monotonic()
        self.each([("POST", f"/v1/jobs/{job}/stop?now=true") for job in jobs])
        self.wait_for("running", 0)
        stopped = time.monotonic() - began
        self.each([("DELETE", f"/v1/jobs/{job}") for job in jobs])
        return stopped, time.monotonic() - began - stopped


def text_of_process(pid, name):
    """Empty: the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def children_of(pid):
    return [int(child) for child in text_of_process(pid, f"task/{pid}/children").split()]


def cpu_seconds(pid):
    """Of a process, and of the children that it has reaped, which the kernel prints in ticks of 10 ms. 0: it has
    ended."""
    own, stat = text_of_process(pid, "schedstat"), text_of_process(pid, "stat")
    if not own or not stat:
        return 0
    reaped = sum(map(int, stat.rsplit(")", 1)[1].split()[13:15])) / os.sysconf("SC_CLK_TCK")
    return int(own.split()[0]) / 1e9 + reaped


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def measure(chosen):
    count = chosen.tasks
    check_limits(count)
    with OwnServer("--task-slots", str(count)) as server:
        server.start()
        tasks = Tasks(server, count)
        began = time.monotonic()
        jobs = tasks.start()
        started = time.monotonic() - began
        start_cpu = server.cpu_seconds()
        memory, open_files = server.rss_mib(), descriptors(server)
        cpu = server.cpu_seconds()
        lists = tasks.list_ms()
        list_cpu = (server.cpu_seconds() - cpu) * 1000 / len(lists)
        gets, submits = tasks.get_ms(jobs), tasks.submit_ms()
        idle, measuring = tasks.idle_cpus(jobs)
        processes, supervisor = tasks.processes_of(jobs[count // 2]), tasks.private_kib(jobs[count // 2])
        before = tasks.attempts()
        server.kill()
        began = time.monotonic()
        server.start()
        taken_over = time.monotonic() - began
        takeover_cpu, files_after = server.cpu_seconds(), descriptors(server)
        after = tasks.attempts()
        lost = sum(job not in after for job in jobs)
        doubled = tasks.doubled() + sum(attempt != before[job] for job, attempt in after.items())
        cpu = server.cpu_seconds()
        stopped, deleted = tasks.end(jobs)
        end_cpu = server.cpu_seconds() - cpu
        left = processes_of(server.folder.name)
    rows = [row(f"{count:,} running tasks: until all run", [started], "s", 1),
            row("  the server's CPU time for it", [start_cpu], "s", 1),
            aimed(row("  the server's memory", [memory], "MiB"), AIM_MEMORY_MIB),
            row("  processes of a task", [processes], ""),
            row("  private memory of a supervisor", [supervisor], "KiB"),
            row("  open descriptors of the server", [open_files], ""),
            row("  list, a page, p50", [percentile(lists, 0.5)], "ms", 2),
            aimed(row("  list, a page, p99", [percentile(lists, 0.99)], "ms", 2), AIM_ANSWER_P99_MS),
            row("  list, a page, the server's CPU time", [list_cpu], "ms", 2),
            row("  get, p50", [percentile(gets, 0.5)], "ms", 2),
            aimed(row("  get, p99", [percentile(gets, 0.99)], "ms", 2), AIM_ANSWER_P99_MS),
            row("  one submit, p50", [percentile(submits, 0.5)], "ms", 2),
            aimed(row("  one submit, p99", [percentile(submits, 0.99)], "ms", 2), AIM_ANSWER_P99_MS),
            row("  CPU of the idle server", [idle * 100], "%", 2),
            row("  CPU of all supervisors", [measuring * 100], "%", 2),
            aimed(row("  SIGKILL: until a new server has taken over all", [taken_over], "s", 2), AIM_TAKEOVER_S),
            row("  the new server's CPU time for it", [takeover_cpu], "s", 2),
            row("  open descriptors of the new server", [files_after], ""),
            ["  lost, started twice", f"{lost}, {doubled}", "", "", "", "0, 0  " + verdict(lost == doubled == 0)],
            row("  stop of all: until none runs", [stopped], "s", 1),
            row("  deletion of all", [deleted], "s", 1),
            row("  the server's CPU time for both", [end_cpu], "s", 1),
            ["  processes left", str(left), "", "", "", "0  " + verdict(left == 0)]]
    return rows
