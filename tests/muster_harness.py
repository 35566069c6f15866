"""Shared by the end-to-end tests: a private Muster, and a check that it leaves nothing behind. Tests also import the
names of machine_state.py and running_commands.py from here.

    class MyTest(MusterTest):
        def test_a_sentence_that_holds(self):
            ran = self.muster.run("submit", "single", "hello", "--follow", "--", "echo", "hi")

Every test has its own folder and its own server, which the first command starts. When a test ends, its jobs and its
server are stopped. After that, none of its processes, mounts, private keys or shared memory may be left.

Tests wait for events instead of sleeping for a fixed time: a test reads a stream until a line arrives, waits for a
process by its pidfd, or holds a job at a Gate. Each wait has a time limit, which only a hang reaches.
"""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from machine_state import (BOUND, all_below, all_pids, await_end, await_no_mount, await_no_process, describe,
                           descendants, is_zombie, kill_and_wait, matching, mode_of, own_shared_memory, places_of_control_groups,
                           processes_naming, read_bytes, remove_control_group, shared_memory, unused)
from running_commands import Gate, Stream, Typed, UnixConnection, without_mpirun_warnings

__all__ = ["BOUND", "BUILD", "DIGITS", "DOCUMENTS_MPIRUN", "FINAL", "Gate", "HIDDEN_VARIABLES", "MPIRUN", "MUSTER",
           "Muster", "MusterTest", "ROOT", "Stream", "Typed", "UnixConnection", "all_below", "all_pids",
           "await_end", "await_no_mount", "await_no_process", "closed_port", "describe", "descendants", "is_zombie", "kill_and_wait", "main",
           "matching", "mode_of", "own_shared_memory", "processes_naming", "read_bytes", "shared_memory", "tls_port", "unused",
           "without_mpirun_warnings"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD") or ROOT / "build" / "release").resolve()
MUSTER = BUILD / "platform" / "muster"
DIGITS = BUILD / "examples" / "digits" / "digits"

# The command of the documents, without its program.
DOCUMENTS_MPIRUN = (
    "mpirun --allow-run-as-root -np 2 --hostfile /generated/hostfile -bind-to none -map-by slot "
    "-x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib").split()
# A shorter command, for tests in which the options of mpirun do not matter.
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2"]

FINAL = ("Succeeded", "Failed", "Stopped")

# Variables of the caller that would change the results of the tests.
HIDDEN_VARIABLES = re.compile(r"MUSTER_|XDG_|OMPI_|PRTE_|PMIX_|NCCL_|TMPDIR$")


class Muster:
    """A state folder, the commands that use it, and the processes that they start."""

    def __init__(self, binary=MUSTER, prefix=(), uid=None):
        self.binary, self.prefix = Path(binary), list(prefix)
        self.folder = Path(tempfile.mkdtemp(prefix="muster-"))
        self.state = self.folder / "state"
        self.work = self.folder / "work"
        self.home = self.folder / "home"
        for path in (self.work, self.home):
            path.mkdir()
        if uid is not None:
            for path in (self.folder, self.work, self.home):
                os.chown(path, uid, -1)
        self.environment = {name: value for name, value in os.environ.items()
                            if not HIDDEN_VARIABLES.match(name)}
        # Tests change nothing in the network of the machine: tenants_network.py has a machine of its own.
        self.environment |= {"MUSTER_STATE_DIR": str(self.state), "HOME": str(self.home),
                             "MUSTER_TASK_INTERNET": "false"}
        own_shared_memory()
        self._shared_before = shared_memory()
        self._closers = []
        self._commands = []
        self._closed = False

    # --- commands

    def argv(self, *words):
        return [*self.prefix, str(self.binary), *map(str, words)]

    def run(self, *words, code=0, text=True, input=None, environment=None, bound=BOUND):
        """Runs a command to its end. `code`: the required exit code, or None for any."""
        ran = subprocess.run(self.argv(*words), env=self.environment | (environment or {}),
                             input=input, stdin=subprocess.DEVNULL if input is None else None,
                             capture_output=True, text=text, errors="replace" if text else None,
                             timeout=bound, cwd=self.work)
        if code is not None and ran.returncode != code:
            raise AssertionError(
                f"`muster {' '.join(map(str, words))}` ended with {ran.returncode}, not {code}\n"
                f"--- output:\n{ran.stdout[-4000:]}\n--- errors:\n{ran.stderr[-4000:]}")
        return ran

    def stream(self, *words, **options):
        """Starts a command that runs while the test continues."""
        stream = self.stream_of(self.argv(*words), **options)
        if words[0] != "server":
            self._commands.append(stream)
        return stream

    def stream_of(self, argv, environment=None, **options):
        stream = Stream(argv, self.environment | (environment or {}), cwd=self.work, **options)
        self._closers.append(stream.close)
        return stream

    def start_server(self, *words, prefix=(), environment=None, trusting=True):
        """Starts a server in the foreground and waits for its socket. If the server listens on a port, its tasks see
        only the programs and the folders of these tests in /tmp and in the account's home. `trusting`: the server
        accepts jobs of several projects although it may run as root."""
        reading, writing = os.pipe()
        # In most tests, tasks read and write files of this account.
        accounts = () if "--task-accounts" in words else ("--task-accounts", "shared")
        server = self.stream_of([*prefix, *self.argv("server"), *words, *accounts, "--ready-fd", str(writing),
                                 "--shared-folder", f"{self.work},{ROOT}",
                                 *(["--trust-each-other", "true"] if trusting else [])],
                                environment, pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading, "rb") as ready:
            if not select.select([ready], [], [], BOUND)[0] or ready.read(1) != b"r":
                raise AssertionError(f"the server did not get ready: {server.errors}")
        return server

    def configure(self, text):
        """Writes the default configuration file, which every later server reads."""
        folder = self.home / ".config" / "muster"
        folder.mkdir(parents=True)
        (folder / "server.yaml").write_text(text)

    def gate(self, name="gate"):
        gate = Gate(self.work / name)
        self._closers.append(gate.close)
        return gate

    def script(self, name, text, mode=0o755):
        path = self.work / name
        path.write_text(text)
        path.chmod(mode)
        return path

    # --- jobs

    def job(self, name):
        return json.loads(self.run("get", name, "-o", "json").stdout)

    def jobs(self):
        return json.loads(self.run("list", "--sort", "submitted", "-o", "json").stdout)["jobs"]

    def ended(self, name):
        """Waits until the job has ended and returns it."""
        self.run("logs", name, "-f", "--tail", "0")
        job = self.job(name)
        if job["phase"] not in FINAL:
            raise AssertionError(f"the logs of {name} ended while it was {job['phase']}")
        return job

    def logs(self, name, *flags):
        return self.run("logs", name, *flags).stdout

    def task_folder(self, job, task):
        return self.state / "jobs" / job["id"] / str(job["attempt"]) / task

    def job_folders(self):
        """The folders of all jobs that were started and not deleted."""
        others = ("trees", "storage", "homes", "project-homes")
        return [path for path in (self.state / "jobs").iterdir()
                if path.is_dir() and path.name not in others and not path.name.startswith(".")]

    def shim_of(self, job, task):
        """The pid of the process that holds a task."""
        folder = str(self.task_folder(job, task))
        for pid in processes_naming(folder):
            words = read_bytes(f"/proc/{pid}/cmdline").split(b"\0")
            if words[0].endswith(b"muster-shim") and words[1:2] == [folder.encode()]:
                return pid
        raise AssertionError(f"no shim holds {task} of {job['spec']['name']}")

    def kill_program(self, job, task):
        """Kills all processes of a task, like a failure of its machine."""
        for pid in descendants(self.shim_of(job, task)):
            with contextlib.suppress(ProcessLookupError):  # it ended together with another process
                kill_and_wait(pid)

    def server_pid(self):
        return json.loads(self.run("version", "-o", "json").stdout)["server"]["pid"]

    def post(self, path, body):
        """Sends a request to the server, which may die before it answers. Returns the bytes of the answer so far."""
        connection = socket.socket(socket.AF_UNIX)
        with connection:
            connection.settimeout(BOUND)
            connection.connect(str(self.state / "muster.sock"))
            text = json.dumps(body)
            connection.sendall(f"POST {path} HTTP/1.1\r\nhost: muster\r\nconnection: close\r\n"
                               f"content-type: application/json\r\ncontent-length: {len(text)}\r\n"
                               f"\r\n{text}".encode())
            answer = b""
            try:
                while more := connection.recv(1 << 16):
                    answer += more
            except ConnectionResetError:
                pass
        return answer

    def kill_server(self):
        pid = self.server_pid()
        kill_and_wait(pid)
        return pid

    def starts_of_server(self):
        """The number of servers that commands have started."""
        return (self.state / "server.log").read_text().count("serves on")

    # --- the end

    def close(self):
        """Ends everything, and checks that nothing remains. Removes the folder in any case."""
        if self._closed:
            return
        self._closed = True
        try:
            self._end_jobs()
            for command in self._commands:  # a command that reconnects later would start another server
                command.close()
            self.run("server", "--stop", code=None)
            for close in self._closers:
                close()
            self.assert_nothing_is_left()
        finally:
            for pid in processes_naming(str(self.folder)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for group in self.control_groups():
                remove_control_group(group)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end_jobs(self):
        if not (self.state / "muster.db").exists():
            return
        # No command starts a server in place of one for a team (or with --config) that a test has ended.
        origin = self.state / "server.origin"
        if origin.exists() and "no server is running" in self.run("version").stdout:
            origin.unlink()
        running = [job["spec"]["name"] for job in self.jobs() if job["phase"] not in FINAL]
        for name in running:
            self.run("stop", "--now", name)
        for name in running:
            self.ended(name)

    def assert_nothing_is_left(self):
        await_no_process(str(self.folder), BOUND)
        left = [f"mount: {line}" for line in await_no_mount(str(self.folder), BOUND)]
        left += [f"shared memory: {name}" for name in unused(shared_memory() - self._shared_before)]
        left += [f"private key: {path}" for path in self.private_keys()]
        left += [f"control group: {path}" for path in self.control_groups()]
        if left:
            raise AssertionError("left behind:\n  " + "\n  ".join(left))

    def control_groups(self):
        """The control groups of the tasks of all jobs that were not deleted."""
        jobs = {path.name for path in self.job_folders()} if (self.state / "jobs").exists() else set()
        return [group for place in places_of_control_groups() for group in matching(place, "*-*-*")
                if group.name.split("-")[0] in jobs]

    def private_keys(self, below=None):
        """The files of the state folder that contain a private key, except the server's own."""
        return [path for path in all_below(below or self.state)
                if path.is_file() and not path.is_symlink() and path.parent != self.state / "tls"
                and b"PRIVATE KEY" in read_bytes(path, 1 << 20)]


class MusterTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.muster = self.new_muster()

    def new_muster(self, **options):
        muster = Muster(**options)
        self.addCleanup(muster.close)
        return muster


def programs_below(home):
    """The names that a task finds in its home in any case: that of the folder with Muster's programs, if they are
    somewhere below the home of the account."""
    return [BUILD.relative_to(home).parts[0]] if BUILD.is_relative_to(home) else []


def closed_port(test):
    """A port of 127.0.0.1 that is reserved for the test: the system gives it to no other program. It refuses connections
    until a program with SO_REUSEADDR listens on it, for example a server; several may do so one after the other."""
    held = socket.socket()
    test.addCleanup(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held.getsockname()[1]


def tls_port(server):
    """The TLS port of a server that is ready: its log contains it."""
    return int(re.search(r"serves on https://127\.0\.0\.1:(\d+)", server.errors).group(1))


def main():
    if not MUSTER.exists():
        sys.exit(f"{MUSTER} does not exist: run make build, or set MUSTER_BUILD")
    # Background commands of a shell without job control ignore Ctrl-C, and children inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
