"""What one tenant's hostile job costs another tenant's job, and the server, on one machine.

A shared server runs a victim: a job of one project that claims one CPU and counts its steps. A step computes hashes in
memory, and sometimes writes a checkpoint into the scratch folder. A job of another project, which also claims one CPU,
attacks: it forks, fills memory, fills its scratch folder, floods its log, uses CPU time, or does all of this at once.
Each round measures the victim's speed alone, with the attack, and alone again. The victim's share is its speed with the
attack divided by the mean of the two speeds alone. On a machine with two CPUs or more, both claims fit, so the victim
should keep all of its speed. Aim: it keeps 90 %.

During the attack, requests are sent to the server over its socket and by `muster list`, which starts a process for
each. Aim: 99 of 100 answers arrive within 100 ms.

    python3 bench/tenants.py [--rounds N] [--seconds S] [--account NAME [--no-groups]] [ATTACK...]

The server runs as root, or with --account under an ordinary account, to which root hands over a subtree of control
groups. With --no-groups there are no control groups; then only the kernel's autogroups divide CPU time, between
sessions, if sched_autogroup_enabled is set. Run the benchmark on an idle machine: other work affects all figures,
although the benchmark is in a control group of high weight. The load is printed first, and the last row counts the
rounds in which the two speeds alone differ by more than a tenth.
"""

import argparse
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from measure import MUSTER, percentile, print_table, row, verdict

AIM_SHARE = 0.9
AIM_MS = 100
PATIENCE = 300

VICTIM = r'''
import hashlib, mmap, os, struct, sys
with open(sys.argv[1], "r+b") as file:
    count = mmap.mmap(file.fileno(), 8)
block, checkpoint = bytes(1 << 20), bytes(4 << 20)
path = os.environ["TMPDIR"] + "/checkpoint"
for step in range(1 << 40):
    hashlib.blake2b(block).digest()
    if step % 500 == 0:
        with open(path, "wb") as file:
            file.write(checkpoint)
    struct.pack_into("<q", count, 0, step + 1)
'''

ATTACKER = r'''
import os, signal, sys, time
def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass
def memory_hog():
    while True:
        if os.fork() == 0:
            held = []
            while True:
                held.append(os.urandom(1) * (16 << 20))
        os.wait()
def disk_filler():
    block = bytes(1 << 20)
    while True:
        with open(os.environ["TMPDIR"] + "/filler", "wb", buffering=0) as file:
            for _ in range(256):
                file.write(block)
            os.fdatasync(file.fileno())
def log_flooder():
    line = (b"x" * 99 + b"\n") * 1000
    while True:
        os.write(1, line)
def cpu_burner():
    for _ in range(15):
        if os.fork() == 0:
            break
    while True:
        pass
def all_at_once():
    for attack in (fork_bomb, memory_hog, disk_filler, log_flooder):
        if os.fork() == 0:
            attack()
    cpu_burner()
print("attacks", flush=True)
globals()[sys.argv[1]]()
'''

ATTACKS = ("fork_bomb", "memory_hog", "disk_filler", "log_flooder", "cpu_burner", "all_at_once")


class OwnGroups:
    """Control groups of version 1 for this benchmark and its children. The group for CPU time has the weight of eight
    busy processes on each CPU, so that other work on the machine gets less. With a higher weight, the attacks would
    starve kernel threads, which are outside of the group: those of RCU for minutes, in which no process of the machine
    can start or end, and those that complete writes to disk. `account`: an ordinary account that may create groups in
    them."""

    ROOT = pathlib.Path("/sys/fs/cgroup")
    SHARES = 8 * 1024 * os.cpu_count()

    def __init__(self, account):
        self.account = account
        self.groups = {}

    def __enter__(self):
        own = {controller: line.split(":", 2)[2]
               for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
               for controller in line.split(":")[1].split(",")}
        for controller in ("cpu", "memory", "pids") if self.account else ("cpu",):
            home = self.ROOT / controller / own.get(controller, "/").lstrip("/")
            if not (home / "tasks").exists():
                continue
            group = home / f"muster-bench-{os.getpid()}"
            group.mkdir()
            self.groups[group] = home
            if controller == "cpu":
                (group / "cpu.shares").write_text(str(self.SHARES))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            if self.account:
                for path in (group, group / "cgroup.procs", group / "tasks"):
                    os.chown(path, self.account.pw_uid, self.account.pw_gid)
        return self

    def __exit__(self, *ignored):
        for group, home in self.groups.items():
            (home / "cgroup.procs").write_text(str(os.getpid()))
            for folder in sorted(group.rglob("*/"), key=lambda path: -len(path.parts)):
                if folder.is_dir():
                    folder.rmdir()
            group.rmdir()


def end_descendants():
    """Kills all children of this process, including orphans that it has adopted as their subreaper."""
    while True:
        parents = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                after = path.read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            parents[int(path.parent.name)] = int(after[1])
        ours = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in ours and pid not in ours}:
            ours |= more
        ours.remove(os.getpid())
        if not ours:
            return
        for pid in ours:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


class TeamServer:
    """A shared server with two projects. At the end the server, its jobs and its files are removed."""

    def __init__(self, account, processes):
        self.processes = processes
        self.prefix = []
        self.account = account
        if self.account:
            self.prefix = ["setpriv", f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}",
                           "--clear-groups"]

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.work = self.folder / "work"
        self.programs = MUSTER.parent
        for folder in (self.work, self.folder / "home", self.folder / "state"):
            folder.mkdir()
        # Tasks may have ids of their own.
        os.chmod(self.folder, 0o755)
        os.chmod(self.work, 0o755)
        if self.account:
            # Their own copy: the account may not be allowed to read the build.
            self.programs = self.folder / "programs"
            self.programs.mkdir(mode=0o755)
            for program in ("muster", "muster-shim", "muster-helper"):
                shutil.copy(MUSTER.with_name(program), self.programs)
            for folder in (self.work, self.folder / "home", self.folder / "state"):
                os.chown(folder, self.account.pw_uid, self.account.pw_gid)
        self.environment = dict(os.environ, MUSTER_STATE_DIR=str(self.folder / "state"),
                                HOME=str(self.folder / "home"), MUSTER_TASK_INTERNET="false")
        if self.account:
            self.environment |= {"USER": self.account.pw_name, "LOGNAME": self.account.pw_name}
        (self.work / "victim.py").write_text(VICTIM)
        (self.work / "attacker.py").write_text(ATTACKER)
        self.log = open(self.folder / "server.log", "wb")
        reading, writing = os.pipe()
        self.process = subprocess.Popen(
            self.argv("server", "--listen", "127.0.0.1:0", "--trust-each-other", "true", "--task-scratch", "1G",
                      *(("--task-processes", self.processes) if self.processes else ()),
                      "--shared-folder", f"{self.work},{self.programs}", "--ready-fd", writing),
            env=self.environment, cwd=self.work, pass_fds=(writing,), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        os.close(writing)
        with os.fdopen(reading, "rb") as ready:
            if ready.read(1) != b"r":
                raise SystemExit((self.folder / "server.log").read_text())
        for team in ("victims", "attackers"):
            self.muster("project", "create", team)
        return self

    def __exit__(self, *ignored):
        try:
            for name in self.muster("list", "-o", "names").split():
                self.muster("stop", "--now", name)
            self.muster("server", "--stop")
            self.process.wait(PATIENCE)
        finally:
            end_descendants()
            self.log.close()
            shutil.rmtree(self.folder)

    def argv(self, *words):
        return [*self.prefix, str(self.programs / "muster"), *map(str, words)]

    def muster(self, *words):
        ran = subprocess.run(self.argv(*words), env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False, timeout=PATIENCE)
        if ran.returncode != 0:
            raise SystemExit(f"muster {' '.join(map(str, words))}: {ran.stderr}{ran.stdout}")
        return ran.stdout

    def submit(self, project, name, *words):
        self.muster("submit", "single", name, "--project", project, *words)
        deadline = time.monotonic() + PATIENCE
        while (phase := json.loads(self.muster("get", name, "-o", "json"))["phase"]) != "Running":
            if time.monotonic() > deadline or phase in ("Failed", "Succeeded"):
                raise SystemExit(f"{name} is {phase}: " + self.muster("get", name))
            time.sleep(0.05)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("muster", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def milliseconds_of(action):
    start = time.monotonic()
    action()
    return (time.monotonic() - start) * 1000


class Questions:
    """Sends requests to the server, in two threads, until the end of the block. `answers` and `lists` are the times of
    the answers in milliseconds. The end of the block fails if a request failed."""

    def __init__(self, server):
        self.server = server
        self.answers, self.lists = [], []
        self.failure = None

    def _get(self):
        connection = UnixConnection(str(self.server.folder / "state" / "muster.sock"))
        connection.request("GET", "/v1/jobs")
        connection.getresponse().read()
        connection.close()

    def _keep_asking(self, action, into, pause):
        try:
            while not self.over.is_set():
                into.append(milliseconds_of(action))
                self.over.wait(pause)
        except (SystemExit, Exception) as error:  # a thread would only end, without a trace in the figures
            self.failure = error

    def __enter__(self):
        self.over = threading.Event()
        self.threads = [
            threading.Thread(target=self._keep_asking, args=(self._get, self.answers, 0.04)),
            threading.Thread(target=self._keep_asking,
                             args=(lambda: self.server.muster("list"), self.lists, 0.2))]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, raised, *ignored):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.failure and not raised:
            raise SystemExit(f"a request to the server failed: {self.failure}")


class Victim:
    def __init__(self, server):
        self.path = server.work / "steps"
        self.path.write_bytes(bytes(8))
        os.chmod(self.path, 0o666)
        if server.account:
            os.chown(self.path, server.account.pw_uid, -1)
        server.submit("victims", "victim", "--cpus", "1", "--memory", "512M", "--", "python3",
                      server.work / "victim.py", self.path)

    def steps(self):
        return struct.unpack("<q", self.path.read_bytes())[0]

    def speed(self, seconds):
        """Steps a second, measured over `seconds`."""
        first, start = self.steps(), time.monotonic()
        time.sleep(seconds)
        return (self.steps() - first) / (time.monotonic() - start)


def attacked(server, victim, attack, name, seconds):
    """Measures the victim's speed during an attack, and the times of the server's answers."""
    server.submit("attackers", name, "--cpus", "1", "--memory", "512M", "--retries", "1000", "--", "python3",
                  server.work / "attacker.py", attack)
    time.sleep(seconds / 4)
    with Questions(server) as asked:
        speed = victim.speed(seconds)
    server.muster("stop", "--now", name)
    return speed, asked.answers, asked.lists


def aimed(name, samples, unit, aim, holds, digits):
    cells = row(name, samples, unit, digits)
    cells[-1] = f"{aim}  {verdict(holds)}"
    return cells


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--seconds", type=float, default=4)
    words.add_argument("--account")
    words.add_argument("--processes", type=int, help="tasks.processes of the server (default: the server's default)")
    words.add_argument("--no-groups", action="store_true")
    words.add_argument("attacks", nargs="*", metavar="ATTACK", choices=[*ATTACKS, []], default=[])
    chosen = words.parse_args()
    attacks = chosen.attacks or ATTACKS
    print(f"{os.cpu_count()} CPUs; load {os.getloadavg()[0]:.2f} before; as {chosen.account or 'root'}, "
          f"{'without' if chosen.no_groups else 'with'} control groups", flush=True)
    account = pwd.getpwnam(chosen.account) if chosen.account else None
    groups = contextlib.nullcontext() if chosen.no_groups else OwnGroups(account)
    # Orphans of a server that had to be killed become children of this process.
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    shares, answers, lists, drifts = ({attack: [] for attack in attacks} for _ in range(4))
    with groups, TeamServer(account, chosen.processes) as server:
        victim = Victim(server)
        victim.speed(1)
        with Questions(server) as idle:
            alone = victim.speed(chosen.seconds)
        for count in range(chosen.rounds):
            for attack in attacks:
                # The same requests are sent while the victim is alone, so that they slow down both measurements alike.
                with Questions(server):
                    before = victim.speed(chosen.seconds)
                speed, took, listed = attacked(server, victim, attack, f"{attack.replace('_', '-')}-{count}",
                                               chosen.seconds)
                with Questions(server):
                    after = victim.speed(chosen.seconds)
                shares[attack].append(2 * speed / (before + after))
                drifts[attack].append(abs(before - after) / max(before, after, 1))
                answers[attack] += took
                lists[attack] += listed
                print(f"{attack} {count}: {before:.0f} {speed:.0f} {after:.0f} steps/s", file=sys.stderr, flush=True)
    rows = [row("the victim alone", [alone], "steps/s"), row("GET /v1/jobs, no attack", idle.answers, "ms", 1)]
    for attack in attacks:
        name = attack.replace("_", " ")
        share = statistics.median(shares[attack])
        rows.append(aimed(f"{name}: the victim's share", shares[attack], "of 1", f"at least {AIM_SHARE}",
                          share >= AIM_SHARE, 2))
        for what, taken in (("GET /v1/jobs", answers[attack]), ("muster list", lists[attack])):
            late = percentile(taken, 0.99)
            rows.append(aimed(f"{name}: {what}", taken, "ms", f"p99 {late:.0f}, at most {AIM_MS}", late <= AIM_MS, 1))
    unsteady = sum(drift > 0.1 for taken in drifts.values() for drift in taken)
    rows.append(row("rounds in which the machine was not steady", [unsteady], "rounds"))
    print_table(rows)


if __name__ == "__main__":
    main()
