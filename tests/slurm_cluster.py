"""A real Slurm cluster for tests and benchmarks, on this machine's loopback: munged, slurmctld, one slurmd for each
node, and slurmrestd on request, all in the foreground and in one folder.

    with SlurmCluster() as cluster:
        environment |= cluster.environment          # SLURM_CONF, by which Slurm's programs find the cluster
        cluster.run("sbatch", "--parsable", script) # runs a program of Slurm
        cluster.kill_controller(), cluster.start_controller()
        cluster.kill_node("n2"), cluster.start_node("n2")
        cluster.drain("n1", "why"), cluster.undrain("n1")

Nodes n1, n2, ... have CPUs, memory and GPUs that are only counted. There are two partitions, `main` and `urgent`;
`urgent` preempts jobs of `main`, which are requeued. `closed` accepts only the account `chosen`. There is no slurmdbd,
so all other partitions accept any account. Slurm's own waits are as short as possible. Needs root and the packages of
apt-packages-slurm.txt.

At the end everything is removed: jobs, daemons, their processes, files.
"""

import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

from engine_machine import children_of
from muster_harness import ROOT, await_end, descendants, describe, is_zombie, processes_naming, read_bytes
from slurm_commands import SlurmCommands, names_in
from slurm_daemons import ENDING_BOUND, Daemon, hold_ports, steps_of
from slurm_settings import gpu_settings, slurm_settings

# slurmrestd refuses to run as root.
_REST_USER, _REST_GROUP = "nobody", "nogroup"

_MARKER = "saved"


class SlurmCluster(SlurmCommands):
    """`gpus`: the number of GPUs of each node. They are character devices, so that Slurm sets CUDA_VISIBLE_DEVICES;
    with `counted_gpus` they are plain files, which Slurm only counts. `apart`: each node has its own /tmp and
    processes, like a separate machine (requires `unshare`). `settings`: further lines of slurm.conf, which take
    precedence."""

    def __init__(self, nodes=4, cpus=16, memory_mb=16000, gpus=4, counted_gpus=False, rest=False,
                 apart=False, settings=""):
        super().__init__(Path(tempfile.mkdtemp(prefix="slurm-")), [f"n{number + 1}" for number in range(nodes)])
        self.folder.chmod(0o755)
        self.is_apart = apart
        self._controller = None
        self._munged = None
        self._slurmds = {}
        self._rest = None
        self._held = []
        try:
            self._held = hold_ports(2 + nodes)
            ports = [each.getsockname()[1] for each in self._held]
            self.rest_url = f"http://127.0.0.1:{ports[1]}"
            self.rest_socket = self.folder / "rest" / "socket"
            self._make_folders()
            self._make_gpus(gpus, counted_gpus)
            (self.folder / "slurm.conf").write_text(slurm_settings(
                self.folder, ports[0], dict(zip(self.nodes, ports[2:])), cpus, memory_mb, gpus) + settings)
            self._start_munged()
            self.start_controller()
            for node in self.nodes:
                self._spawn_slurmd(node)
            self.await_nodes("idle")
            if rest:
                self._start_rest()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- faults

    def kill_controller(self, saved=True):
        """Kills the controller, like a crash. The controller saves its state every few seconds and forgets newer
        changes, even that a job runs, unless its state is `saved` first."""
        if saved:
            self._await_save()
        self._controller.end(signal.SIGKILL)

    def start_controller(self):
        self._controller = self._spawn("slurmctld", ["slurmctld", "-D"])
        self._controller.await_line("Running as primary controller")
        self.until(lambda: "is UP" in self.run("scontrol", "ping", code=None), "the controller answers")
        # The saved state may contain the job of _await_save() without its end.
        self.run("scancel", f"--name={_MARKER}", code=None)

    def freeze_controller(self):
        self._controller.freeze()

    def thaw_controller(self):
        self._controller.thaw()

    def kill_node(self, node):
        """Kills all processes of a node that is `apart`, like a power failure. On another node it kills only the
        slurmd, and the tasks continue. The controller detects the failure by itself."""
        self._end_slurmd(node, signal.SIGKILL)

    def start_node(self, node):
        self._spawn_slurmd(node)
        self.await_nodes("idle", "mixed", "allocated", "completing", nodes=[node])

    def suspend(self, job):
        """Returns when the muster-nodes of the job have stopped. Slurm lists a job as suspended before it stops the
        processes. A resume that is sent in between may overtake the suspension, and the job stays stopped."""
        self.run("scontrol", "suspend", job)
        self.until(lambda: _are_stopped(_muster_nodes_of(job)), f"the muster-nodes of job {job} are stopped")

    def _shared_in_tmp(self):
        """Folders in /tmp that every node sees although it has its own /tmp: the cluster's folder and, if it is there,
        the clone with the programs. Outside of /tmp, nodes share the file system."""
        return [path for path in (self.folder, ROOT) if path.is_relative_to("/tmp")]

    def tmp_of(self, node):
        """The folder that is the /tmp of a node that is `apart`."""
        return self.folder / "tmp" / node

    def left_on_nodes(self):
        """Descriptions of files and processes that jobs have left on nodes that are `apart`."""
        left = []
        for node in self._slurmds if self.is_apart else []:
            shared = {path.relative_to("/tmp").parts[0] for path in self._shared_in_tmp()}
            left += [str(path) for path in self.tmp_of(node).iterdir() if path.name not in shared]
            left += [f"{node}: process {describe(pid)}" for pid in _descendants_but_slurm(self._slurmds[node].pid)]
        return left

    def log(self, name):
        """The log of "slurmctld", "munged", "slurmrestd" or a node."""
        paths = [self.folder / "log" / f"{name}.out", self.folder / "log" / f"{name}.log"]
        return "".join(path.read_text(errors="replace") for path in paths if path.exists())

    # --- the end

    def close(self):
        try:
            if self._controller and self._controller.is_running():
                self._controller.thaw()
                self._end_jobs()
        finally:
            for node in list(self._slurmds):
                self._end_slurmd(node, signal.SIGTERM)
            for daemon in (self._rest, self._controller, self._munged):
                if daemon:
                    daemon.end()
            for pid in {*processes_naming(str(self.folder)),
                        *(pid for node in self.nodes for pid in self._processes_on(node))}:
                _kill(pid)
            for each in self._held:
                each.close()
            shutil.rmtree(self.folder)

    def _end_jobs(self):
        if self.active_jobs():
            self.run("scancel", "--signal=KILL", *{job["id"] for job in self.active_jobs()}, code=None)
            self.run("scancel", *{job["id"] for job in self.active_jobs()}, code=None)
            # A killed node does not answer: its jobs end when its daemon is started again, or never.
            alive = set(self._slurmds)
            self.until(lambda: not [job for job in self.active_jobs()
                                    if job["state"] != "COMPLETING" or names_in(job["nodes"]) <= alive],
                       "every job has ended", bound=ENDING_BOUND)

    # --- parts

    def _make_folders(self):
        for name, mode in (("log", 0o755), ("munge", 0o755), ("state", 0o700), ("rest", 0o755), ("gpu", 0o755)):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(mode)
        for node in self.nodes:
            for name in ("spool", "tmp", "session"):
                (self.folder / name / node).mkdir(parents=True)
                (self.folder / name / node).chmod(0o1777 if name != "spool" else 0o755)
        for key in (self.folder / "munge" / "key", self.folder / "state" / "jwt.key"):
            key.touch(0o600)
            key.write_bytes(secrets.token_bytes(64))
        os.chown(self.folder / "rest", pwd.getpwnam(_REST_USER).pw_uid, -1)

    def _make_gpus(self, count, counted):
        for number in range(count):
            path = self.folder / "gpu" / f"nvidia{number}"
            if counted:
                path.touch()
            else:
                os.mknod(path, 0o020666, os.makedev(1, 3))  # another /dev/null
        (self.folder / "gres.conf").write_text(gpu_settings(self.folder, self.nodes, count))

    def _spawn(self, name, argv, environment=None):
        return Daemon(name, argv, self.whole_environment() | (environment or {}), self.folder / "log" / f"{name}.out")

    def _start_munged(self):
        place = self.folder / "munge"
        self._munged = self._spawn("munged", [
            "munged", "--foreground", f"--socket={place}/socket", f"--key-file={place}/key", "--num-threads=4",
            f"--pid-file={place}/pid", f"--seed-file={place}/seed", f"--log-file={place}/log"])
        self._munged.await_line("Created 4 work threads")

    def _spawn_slurmd(self, node):
        place = []
        if self.is_apart:
            own = self.tmp_of(node)
            mounts = []
            for path in self._shared_in_tmp():
                there = own / path.relative_to("/tmp")
                there.mkdir(parents=True, exist_ok=True)
                mounts.append(shlex.join(["mount", "--rbind", str(path), str(there)]))
            mounts.append(shlex.join(["mount", "--rbind", str(own), "/tmp"]))
            place = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                     # The shell stays: as the first process of the namespace it must reap orphans.
                     " && ".join([*mounts, '"$@"; exit']), "sh"]
        self._slurmds[node] = self._spawn(node, [*place, "slurmd", "-D", "-N", node])
        self._slurmds[node].await_line("slurmd started on")

    def _end_slurmd(self, node, number):
        slurmd = self._slurmds.pop(node)
        if not self.is_apart:
            return slurmd.end(number)
        inside = children_of(slurmd.pid)
        slurmd.end(signal.SIGKILL)
        for pid in inside:
            await_end(pid)

    def _start_rest(self):
        self._rest = self._spawn(
            "slurmrestd",
            ["slurmrestd", "-v", "-a", "rest_auth/jwt", "-u", _REST_USER, "-g", _REST_GROUP,
             # With the plugins of the accounting database, slurmrestd ends if there is no such database.
             "-s", "openapi/v0.0.36,openapi/v0.0.37,openapi/v0.0.38",
             f"unix:{self.rest_socket}", self.rest_url.removeprefix("http://")],
            {"SLURM_JWT": "daemon"})
        self.until(lambda: _listens(self.rest_socket), "slurmrestd listens")

    def _await_save(self):
        state = self.folder / "state" / "job_state"
        # A job on hold is a change, which makes the controller save its state.
        before = time.time_ns()
        marker = self.submit("true", "--hold", f"--job-name={_MARKER}")
        self.until(lambda: state.exists() and state.stat().st_mtime_ns > before, "the controller saves its state")
        self.run("scancel", marker)

    def _processes_on(self, node):
        """The processes of a node; on a node that is `apart`, all end with the namespace of its slurmd."""
        if self.is_apart:
            return []
        return steps_of(self.folder / "log" / f"{node}.log")


def _descendants_but_slurm(pid):
    own = (b"slurmd", b"slurmstepd")
    # The first process is the shell, the parent of the node's other processes.
    return [each for each in descendants(pid)[1:]
            if not is_zombie(each) and read_bytes(f"/proc/{each}/comm").strip() not in own]


def _muster_nodes_of(job):
    variable = f"SLURM_JOB_ID={job}".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and read_bytes(entry / "comm").strip() == b"muster-node"
            and variable in read_bytes(entry / "environ").split(b"\0")]


def _are_stopped(pids):
    """Whether all are stopped, and there is at least one."""
    states = [read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] for pid in pids]
    return bool(states) and all(state == [b"T"] for state in states)


def _listens(path):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    if not await_end(pid):
        raise RuntimeError(f"process {pid} outlived SIGKILL")
