"""Starts the ranks of one run, of our library, a peer or a limit, and collects the output of rank 0."""

import json
import os
import pathlib
import secrets
import select
import signal
import socket
import subprocess
import tempfile
import time

from measure import BUILD
from namespaces import ADDRESSES

SOURCES = pathlib.Path(__file__).parent
PROGRAMS = BUILD / "bench" / "collective"
PAGE_BYTES = 8192

# From this size on the baseline keeps the memory of temporaries that it allocates in every call. Otherwise the
# peers would be 1.3 to 2 times slower because of page faults.
TUNED_MALLOC_FROM = 64 << 20
TUNED_MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 42)}


class Failed(Exception):
    pass


def environment(**variables):
    """The environment of a program with `variables` and without variables of other jobs."""
    others = ("MUSTER_", "TF_CONFIG")
    return {name: value for name, value in os.environ.items()
            if not name.startswith(others)} | variables


class Run:
    """One start of the ranks. `plan`: arguments of the programs, see core.h. `network`: None, or Namespaces with
    one rank in each. `loopback`: the name of a namespace to run in, or None."""

    def __init__(self, plan, ranks=2, network=None, loopback=None, tuned_malloc=False):
        self.plan = dict(plan, ranks=ranks)
        self.ranks = ranks
        self.network = network
        self.loopback = loopback
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.tuned = list(TUNED_MALLOC) if tuned_malloc else []
        if tuned_malloc:
            self.environment.update(TUNED_MALLOC)

    def __enter__(self):
        # The folder is in memory, since the barrier is built on this page.
        self.folder = tempfile.TemporaryDirectory(prefix="muster-bench-", dir="/dev/shm")
        page = pathlib.Path(self.folder.name) / "page"
        page.write_bytes(bytes(PAGE_BYTES))
        self.plan["page"] = page
        return self

    def __exit__(self, *ignored):
        self.folder.cleanup()

    def words(self, **more):
        return [f"--{name}={value}" for name, value in {**self.plan, **more}.items()]

    def address(self, rank):
        return ADDRESSES[rank] if self.network else "127.0.0.1"

    def inside(self, rank, command):
        if self.network:
            return self.network.inside(rank, command)
        if self.loopback:
            return ["ip", "netns", "exec", self.loopback, *command]
        return command

    def each_rank(self, command_of, environment_of=lambda rank: {}):
        """The command and the environment of each rank, in the order of the ranks."""
        return [(self.inside(rank, [str(word) for word in command_of(rank)]),
                 dict(self.environment, **environment_of(rank))) for rank in range(self.ranks)]

    def launcher(self, command):
        """The command and the environment of a launcher, which starts the ranks itself."""
        return [(self.inside(0, [str(word) for word in command]), self.environment)]


def program(name):
    path = PROGRAMS / name
    if not path.exists():
        raise Failed(f"{path} was not built: is its library installed?")
    return path


def ours(run, **words):
    port = 23456 if run.network else free_port()
    world = {"MUSTER_WORLD_SIZE": str(run.ranks),
             "MUSTER_RENDEZVOUS": f"{run.address(0)}:{port}",
             "MUSTER_RENDEZVOUS_KEY": secrets.token_hex(32)}
    return run.each_rank(lambda rank: [program("ours"), *run.words(rank=rank, **words)],
                         lambda rank: dict(world, MUSTER_RANK=str(rank)))


def open_mpi(run, *options):
    # The number of slots is the number of ranks: with fewer slots Open MPI would yield the processor.
    where = ["--host", f"localhost:{run.ranks}", "--mca", "btl_tcp_if_include", "lo"]
    if run.network:
        where = ["--host", ",".join(f"{address}:1" for address in ADDRESSES),
                 "--mca", "plm_rsh_agent", run.network.agent,
                 "--mca", "oob_tcp_if_include", run.network.interface,
                 "--mca", "btl_tcp_if_include", run.network.interface]
    exports = [word for name in run.tuned for word in ("-x", name)]
    return run.launcher(["mpirun.openmpi", "--bind-to", "none", *where, *exports, *options,
                         "-np", run.ranks, program("peer_openmpi"), *run.words()])


def mpich(run):
    where = []
    if run.network:
        # The ranks use the addresses of the hosts, and no shared memory between the two.
        where = ["-launcher", "ssh", "-launcher-exec", run.network.agent,
                 "-hosts", ",".join(ADDRESSES), "-ppn", "1", "-iface", run.network.interface,
                 "-env", "UCX_NET_DEVICES", run.network.interface, "-env", "UCX_TLS", "tcp,self",
                 "-env", "MPIR_CVAR_NOLOCAL", "1"]
    return run.launcher(["mpiexec.mpich", "-bind-to", "none", *where, "-n", run.ranks,
                         program("peer_mpich"), *run.words()])


def gloo(run, algorithm):
    store = pathlib.Path(run.folder.name) / "store"
    store.mkdir()
    return run.each_rank(lambda rank: [
        program("peer_gloo"),
        *run.words(rank=rank, algorithm=algorithm, address=run.address(rank), store=store,
                   threads=1)])


def torch(run, **words):
    if run.network:
        words["interface"] = run.network.interface
    store = pathlib.Path(run.folder.name) / "torch-store"
    # Debian's python3, to which the package belongs; another python3 may precede it in PATH.
    return run.each_rank(lambda rank: [
        "/usr/bin/python3", SOURCES / "peer_torch.py",
        *run.words(rank=rank, core=program("libbench_torch_core.so"), store=store, threads=1,
                   **words)])


def limit(run, kind, **words):
    return run.each_rank(lambda rank: [
        program("limit"), *run.words(rank=rank, limit=kind, address=run.address(rank),
                                       peer=run.address(0), **words)])


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def take(processes, patience):
    """Runs the (command, environment) pairs at once. Returns the lines of JSON that they print, and None or a
    remark. Processes that still run after `patience` seconds are killed: MPICH sometimes hangs after its last
    line."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=output, stderr=errors, start_new_session=True)
                   for command, environment in processes]
        late = wait_for(started, patience)
        output.seek(0)
        blocks = [json.loads(line) for line in output
                  if line.startswith("{") and line.endswith("}\n")]
        if late and blocks:
            return blocks, f"killed after {patience} s"
        if late or any(process.returncode != 0 for process in started):
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip("- ")]
            raise Failed("it did not end in time" if late else (lines or [""])[0] or "failed without output")
        return blocks, None


def wait_for(started, patience):
    """Waits until all have ended, one has failed, or the time is up. Returns whether the time was up."""
    end = time.monotonic() + patience
    running = {os.pidfd_open(process.pid): process for process in started}
    ends = select.poll()
    for descriptor in running:
        ends.register(descriptor, select.POLLIN)
    try:
        while running:
            ended = ends.poll(max(0, end - time.monotonic()) * 1000)
            if not ended:
                return True
            for descriptor, _ in ended:
                ends.unregister(descriptor)
                os.close(descriptor)
                if running.pop(descriptor).wait() != 0:
                    return False
        return False
    finally:
        for descriptor in running:
            os.close(descriptor)
        for process in started:
            end_group(process)


def end_group(process):
    """Sends SIGTERM first: an mpirun that is killed leaves its ranks behind."""
    for word in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, word)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
