"""Shared by the end-to-end tests: a private Muster, and a check that it leaves nothing behind.

    class MyTest(MusterTest):
        def test_a_sentence_that_holds(self):
            ran = self.muster.run("submit", "single", "hello", "--follow", "--", "echo", "hi")

Every test has a folder of its own with a server of its own, started by the first command. When it
ends, its jobs and its server are stopped, and then no process, mount, key or shared memory that
belongs to it may be left.

No test sleeps until something has probably happened: it reads a stream until a line comes, waits for a process by its
pidfd, or stops a job at a Gate. Each wait has a limit, which only a hang reaches.
"""

import contextlib
import ctypes
import fcntl
import functools
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD") or ROOT / "build" / "release").resolve()
MUSTER = BUILD / "platform" / "muster"
DIGITS = BUILD / "examples" / "digits" / "digits"

# How long anything may take before it counts as hanging.
BOUND = 90

# The command of the documents, without its program.
DOCUMENTS_MPIRUN = (
    "mpirun --allow-run-as-root -np 2 --hostfile /generated/hostfile -bind-to none -map-by slot "
    "-x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib").split()
# A short command, for tests of other things.
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2"]

FINAL = ("Succeeded", "Failed", "Stopped")

# Variables of the caller that would change the results of the tests.
HIDDEN_VARIABLES = re.compile(r"MUSTER_|XDG_|OMPI_|PRTE_|PMIX_|NCCL_|TMPDIR$")


class Stream:
    """A running command. Its standard output is read as it comes, its standard error afterwards."""

    def __init__(self, argv, environment, stdin=subprocess.DEVNULL, pass_fds=(), cwd=None):
        self.argv = argv
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, env=environment, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=self._errors, pass_fds=pass_fds, cwd=cwd)
        self.text = ""
        self._pending = b""
        self._unread = []

    def line(self, bound=BOUND):
        """Returns the next line without its newline; None at the end."""
        deadline = time.monotonic() + bound
        while not self._unread:
            if not self._read_some(deadline):
                if not self._pending:
                    return None
                self._add(self._pending)
                self._pending = b""
        return self._unread.pop(0)

    def until(self, words, bound=BOUND):
        """Reads until a line holds `words`, and returns it."""
        while (line := self.line(bound)) is not None:
            if words in line:
                return line
        raise AssertionError(f"{self} ended before a line with {words!r}{self._evidence()}")

    def finish(self, bound=BOUND):
        """Reads to the end and waits; returns the exit code."""
        while self.line(bound) is not None:
            pass
        code = self.process.wait(bound)
        self.process.stdout.close()
        return code

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    @property
    def errors(self):
        # With pread, because a seek would also move the position at which the command writes.
        descriptor = self._errors.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._errors.close()

    def _read_some(self, deadline):
        descriptor = self.process.stdout.fileno()
        left = deadline - time.monotonic()
        if not select.select([descriptor], [], [], max(0, left))[0]:
            raise AssertionError(f"{self} said nothing more for a long time{self._evidence()}")
        data = os.read(descriptor, 1 << 16)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._add(line)
        return bool(data)

    def _add(self, line):
        text = line.decode(errors="replace")
        self.text += text + "\n"
        self._unread.append(text)

    def _evidence(self):
        return f"\n--- output:\n{self.text[-4000:]}--- errors:\n{self.errors[-4000:]}"

    def __str__(self):
        return f"`{' '.join(map(str, self.argv[-12:]))}`"


class Gate:
    """A place where a job waits for the test. In the job: `gate.wait`, a piece of shell."""

    def __init__(self, path):
        self._path = path
        os.mkfifo(path, 0o666)
        os.chmod(path, 0o666)
        self.wait = f"head -c 1 {path} > /dev/null"
        # Open for both, so that neither side ever waits for the other to open it.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def open(self, times=1):
        os.write(self._descriptor, b"x" * times)

    def tell(self, times=1):
        """A piece of shell by which a job opens the gate."""
        return f"printf {'x' * times} > {self._path}"

    def close(self):
        os.close(self._descriptor)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket of a server."""

    def __init__(self, path):
        super().__init__("muster", timeout=BOUND)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(BOUND)
        self.sock.connect(self.path)


def without_mpirun_warnings(text):
    """`text` without the lines in which Open MPI 4 warns about a harmless race in setpgid():
    docs/troubleshooting.md."""
    return [line for line in text.splitlines() if "plm:rsh: Warning: setpgid" not in line]


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Typed:
    """A command on a terminal of its own, to which the test types. `argv`: another program."""

    def __init__(self, muster, *words, rows=24, columns=80, argv=None, environment=None):
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            set_size(0, rows, columns)
            os.chdir(muster.work)
            argv = argv or muster.argv(*words)
            os.execvpe(argv[0], argv, environment or muster.environment)
        self.text = b""

    def resize(self, rows, columns):
        set_size(self._terminal, rows, columns)

    def type(self, text):
        os.write(self._terminal, text)

    def until(self, words):
        deadline = time.monotonic() + BOUND
        while words not in self.text:
            left = max(0, deadline - time.monotonic())
            if not select.select([self._terminal], [], [], left)[0] or not self._read():
                raise AssertionError(f"no {words!r} came, but {self.text!r}")

    def echoes(self):
        """Whether the terminal echoes typed text, as it does before and after the command."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def finish(self):
        pieces = [self.text]
        while more := self._take():
            pieces.append(more)
        self.text = b"".join(pieces)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def close(self):
        os.close(self._terminal)

    def hang_up(self):
        """Closes the terminal of the command; returns the command's exit code."""
        self.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self):
        more = self._take()
        self.text += more
        return bool(more)

    def _take(self):
        try:
            return os.read(self._terminal, 1 << 16)
        except OSError:  # its other end is closed
            return b""


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
        """Runs a command to its end; `code`: how it must end, or None."""
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
        """Starts a server in the foreground and waits for its socket. Tasks of a listening server see of /tmp and of
        the account's home only the programs and the folders of these tests. `trusting`: the server takes jobs of
        several projects although it may run as root."""
        reading, writing = os.pipe()
        # Tasks of most tests read and write what belongs to this account.
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
        """Writes the default configuration file, for every later server, also for one that a command starts."""
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
        """Kills all processes of a task, like a machine that fails."""
        for pid in descendants(self.shim_of(job, task)):
            with contextlib.suppress(ProcessLookupError):  # it ended together with another process
                kill_and_wait(pid)

    def server_pid(self):
        return json.loads(self.run("version", "-o", "json").stdout)["server"]["pid"]

    def post(self, path, body):
        """Sends a request to the server, which may well die over it."""
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
            for command in self._commands:  # a command that asks again later would start another server
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
        """Those of the tasks of all jobs that were not deleted."""
        jobs = {path.name for path in self.job_folders()} if (self.state / "jobs").exists() else set()
        return [group for place in places_of_control_groups() for group in place.glob("*-*-*")
                if group.name.split("-")[0] in jobs]

    def private_keys(self, below=None):
        """The files of the state folder that contain a private key, except the server's own."""
        return [path for path in (below or self.state).rglob("*")
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


# --- facts of the machine


def places_of_control_groups():
    """The folders of the control groups of tasks, wherever a server on this machine may make them."""
    tops = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")]
    return [Path(folder) for top in tops if (top / "cgroup.procs").exists()
            for folder, below, _ in os.walk(top) if os.path.basename(folder) == "muster"]


def remove_control_group(group):
    """Of a test that has failed. The kernel removes a group only when its last process has ended."""
    for folder in (group / "task", group, group.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def read_bytes(path, most=-1):
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def tls_port(server):
    """The TLS port of a server that is ready: its log contains it."""
    return int(re.search(r"serves on https://127\.0\.0\.1:(\d+)", server.errors).group(1))


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def is_zombie(pid):
    status = read_bytes(f"/proc/{pid}/stat")
    return not status or status[status.rfind(b")") + 2:][:1] in (b"Z", b"X")


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def processes_naming(words):
    """The other processes whose command line or environment contains `words`."""
    wanted = words.encode()
    return [pid for pid in all_pids() if pid != os.getpid()
            and (wanted in read_bytes(f"/proc/{pid}/cmdline")
                 or wanted in read_bytes(f"/proc/{pid}/environ"))
            and not is_zombie(pid)]


def descendants(pid):
    children = {}
    for other in all_pids():
        status = read_bytes(f"/proc/{other}/stat")
        if status:
            children.setdefault(int(status[status.rfind(b")") + 2:].split()[1]), []).append(other)
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def describe(pid):
    words = read_bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
    return f"{pid} {words[:300]}"


def await_end(pid, bound=BOUND):
    """Waits until a process has ended; False if it has not ended in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(max(0, bound) * 1000))
    finally:
        os.close(descriptor)


def await_no_process(words, bound):
    """Waits until no process names `words`, at most `bound` seconds."""
    deadline = time.monotonic() + bound
    while left := processes_naming(words):
        for pid in left:
            if not await_end(pid, deadline - time.monotonic()):
                raise AssertionError("still there:\n  " + "\n  ".join(map(describe, left)))


def kill_and_wait(pid):
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    if not await_end(pid):
        raise AssertionError(f"{describe(pid)} outlived SIGKILL")


def mounts_naming(words):
    """The lines of any mount namespace on this machine that contain `words`, by a process in each."""
    seen, lines = set(), {}
    for pid in all_pids():
        try:
            namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        except OSError:
            continue
        if namespace not in seen:
            seen.add(namespace)
            text = read_bytes(f"/proc/{pid}/mountinfo").decode(errors="replace")
            if found := [line for line in text.splitlines() if words in line]:
                lines[pid] = found
    return lines


def await_no_mount(words, bound):
    """Waits, at most `bound` seconds, until no mount names `words`; returns the lines that are left. A process
    that is ending has no command line any more, but still has its mounts."""
    deadline = time.monotonic() + bound
    while left := mounts_naming(words):
        for pid in left:
            if not await_end(pid, deadline - time.monotonic()):
                return sorted({line for lines in left.values() for line in lines})
    return []


@functools.cache
def own_shared_memory():
    """Gives this process, and all that it starts from now on, a /dev/shm of its own, so that the files of
    other programs are never counted as left behind. Only root may; another account uses the machine's."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private, ms_nosuid_nodev = 0x20000, 0x4000, 1 << 18, 0x6
    if os.geteuid() != 0 or not os.path.isdir("/dev/shm") or libc.unshare(clone_newns) != 0:
        return
    for source, target, kind, flags, options in (
            (b"none", b"/", None, ms_rec | ms_private, None),
            (b"tmpfs", b"/dev/shm", b"tmpfs", ms_nosuid_nodev, b"mode=1777")):
        if libc.mount(source, target, kind, flags, options) != 0:
            raise OSError(ctypes.get_errno(), f"mount {target.decode()}: {os.strerror(ctypes.get_errno())}")


def shared_memory():
    return {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()


def unused(names):
    """Those of `names` that no living process maps or has open: the process that created them has left them behind."""
    used = set()
    for pid in all_pids() if names else []:
        used.update(name for name in names if name.encode() in read_bytes(f"/proc/{pid}/maps"))
    return sorted(name for name in names - used if os.path.exists(name))


def main():
    if not MUSTER.exists():
        sys.exit(f"{MUSTER} is not there: build first (make build), or set MUSTER_BUILD")
    # Background commands of a shell without job control ignore Ctrl-C, and children inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
