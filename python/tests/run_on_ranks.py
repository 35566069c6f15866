"""Runs tests, or any program, on several ranks at once, started by common launchers.

From a shell, for each size and launcher, the same unittest modules on every rank in the same order:

    run_on_ranks.py --sizes 2,3,4 --launchers plain,mpirun,horovodrun ranks.reductions ranks.process_sets
    run_on_ranks.py --sizes 2 --program some_program.py its arguments

It ends with 0 if every rank did. Otherwise it prints the output of the ranks that failed. A rank that fails ends
the others; a rank that takes longer than --bound seconds is ended with a dump of all of its threads.

From a test that kills ranks or presses Ctrl-C:

    with Ranks([sys.executable, "-c", PROGRAM], size=3) as ranks:     # ended at the end of the block, whatever happens
        ranks.until(1, "ready")                 # rank 1 has written a line with this in it; returns the line
        ranks.signal(2, signal.SIGKILL)
        outcomes = ranks.finish()               # waits for all; by rank: .code (-9 for SIGKILL), .output
        self.assertIn("rank 2", outcomes[0].output)

Standard output and error of a rank are one stream, in the order of writing (python is run unbuffered). Each wait has a
bound, which only a hang reaches. The ranks' environment has no variables of the caller's launchers, PYTHONPATH with the
sources of this clone and this folder, OMP_NUM_THREADS=1, and a private XDG_RUNTIME_DIR and TMPDIR that are removed at
the end. `environment` adds to it; a value of None removes a variable.

Launchers: "plain" (MUSTER_RANK ... set by hand), "mpirun", "horovodrun" (python -m muster.runner.launch), and the
variables of others set by hand: "horovod" (its own launcher's), "torchrun", "srun". Below mpirun and horovodrun each
rank is the child of this file run as a keeper, which reports its output, process id and exit code to the program that
started the launcher. So the launcher does not end the others when a rank dies.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent.parent
#: Seconds that anything may take before it counts as hanging.
BOUND = 300
#: Seconds in which ranks have to end by themselves once one of them has failed.
GRACE = 20

LAUNCHERS = ("plain", "mpirun", "horovodrun", "horovod", "torchrun", "srun")
_HIDDEN = re.compile(r"(MUSTER|HOROVOD|OMPI|PRTE|PMIX|PMI|SLURM|TORCHELASTIC|GROUP|ROLE)_"
                     r"|(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT)$")
_KEPT = ("MUSTER_COLLECTIVE_LIBRARY",)
_KEEPER = "RUN_ON_RANKS_SOCKET"


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str


class _Rank:
    """A rank that runs: its process id, and a thread that reads what it writes."""

    def __init__(self, pid, output, wait):
        self.pid = pid
        self.wait = wait  # () -> exit code; called once
        self.code = None
        self.text = ""
        self.lines = queue.Queue()
        self._output = output
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with os.fdopen(self._output, "r", errors="replace") as stream:
            for line in stream:
                self.text += line
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def ended(self, code):
        self._reader.join(BOUND)
        self.code = code


class Ranks:
    def __init__(self, argv, size, launcher="plain", environment=None, bound=BOUND, cwd=None):
        if launcher not in LAUNCHERS:
            raise ValueError(f"unknown launcher {launcher!r}; the launchers are {', '.join(LAUNCHERS)}")
        self.size = size
        self._deadline = time.monotonic() + bound
        self._bound = bound
        self._folder = Path(tempfile.mkdtemp(prefix="ranks-"))
        self._launcher = None
        self._ranks = {}
        self._keepers = []
        self._ended = queue.Queue()
        #: The output of the launcher itself.
        self.launcher_output = ""
        try:
            base = self._environment(environment or {})
            if launcher in ("mpirun", "horovodrun"):
                self._start_below(launcher, argv, base, cwd)
            else:
                self._start_by_hand(launcher, argv, base, cwd)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def pid(self, rank):
        return self._ranks[rank].pid

    def line(self, rank):
        """The next line of a rank; None when it has ended."""
        try:
            return self._ranks[rank].lines.get(timeout=self._left())
        except queue.Empty:
            self._hangs(f"rank {rank} wrote no line")

    def until(self, rank, words):
        """Reads lines of a rank up to one with `words` in it, which it returns."""
        seen = []
        while True:
            line = self.line(rank)
            if line is None:
                raise AssertionError(f"rank {rank} ended without {words!r}; it wrote:\n" + "\n".join(seen))
            seen.append(line)
            if words in line:
                return line

    def signal(self, rank, number):
        """Sends a signal to a rank that has not been waited for."""
        os.kill(self._ranks[rank].pid, number)

    def ends_next(self):
        """Waits for another rank to end. Returns its number."""
        try:
            rank, code = self._ended.get(timeout=self._left())
        except queue.Empty:
            self._hangs("there are ranks that did not end")
        self._ranks[rank].ended(code)
        return rank

    def finish(self):
        """Waits for all ranks. Returns their outcomes by rank."""
        while any(each.code is None for each in self._ranks.values()):
            self.ends_next()
        self._end_launcher()
        return [Outcome(self._ranks[rank].code, self._ranks[rank].text) for rank in range(self.size)]

    def outputs(self):
        return [self._ranks[rank].text if rank in self._ranks else "(did not start)" for rank in range(self.size)]

    def shorten(self, seconds):
        """Reduces the time limit of later waits to `seconds`."""
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def close(self):
        """Ends all processes that still run."""
        for each in self._ranks.values():
            if each.code is None:
                _kill(each.pid, signal.SIGKILL)
        for each in self._ranks.values():
            if each.code is None:
                self.shorten(10)
                try:
                    rank, code = self._ended.get(timeout=self._left())
                    self._ranks[rank].code = code
                except queue.Empty:
                    break
        self._end_launcher()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _left(self):
        return max(self._deadline - time.monotonic(), 0.001)

    def _hangs(self, what):
        # Python was started with its fault handler: this makes it print the stack of each thread.
        for each in self._ranks.values():
            if each.code is None:
                _kill(each.pid, signal.SIGABRT)
        self._deadline = time.monotonic() + 10
        while any(each.code is None for each in self._ranks.values()):
            try:
                rank, code = self._ended.get(timeout=self._left())
            except queue.Empty:
                break
            self._ranks[rank].ended(code)
        said = "\n".join(f"--- rank {rank}:\n{text}" for rank, text in enumerate(self.outputs()))
        raise AssertionError(f"{what} within {self._bound} s (or {GRACE} s after another had failed)\n{said}"
                             f"\n--- the launcher:\n{self.launcher_output}")

    def _environment(self, added):
        runtime = self._folder / "run"
        runtime.mkdir(mode=0o700)
        environment = {name: value for name, value in os.environ.items()
                       if name in _KEPT or not _HIDDEN.match(name)}
        path = [str(ROOT / "python"), str(TESTS), *filter(None, [environment.get("PYTHONPATH")])]
        environment.update({"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1",
                            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                            "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(self._folder)})
        environment.update(added)
        return {name: value for name, value in environment.items() if value is not None}

    def _start_by_hand(self, launcher, argv, base, cwd):
        for rank in range(self.size):
            environment = {**base, **_place(launcher, rank, self.size, self._folder)}
            process = subprocess.Popen(argv, env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            descriptor = os.dup(process.stdout.fileno())
            process.stdout.close()
            self._watch(rank, _Rank(process.pid, descriptor, process.wait))

    def _start_below(self, launcher, argv, base, cwd):
        base[_KEEPER] = str(self._folder / "keepers")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(base[_KEEPER])
            listener.listen(self.size)
            start = {"mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(self.size)],
                     "horovodrun": [sys.executable, "-m", "muster.runner.launch", "-np", str(self.size)]}[launcher]
            self._launcher = subprocess.Popen([*start, sys.executable, __file__, *argv], env=base, cwd=cwd,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, start_new_session=True)
            self._launcher_reader = threading.Thread(target=self._read_launcher, daemon=True)
            self._launcher_reader.start()
            for _ in range(self.size):
                self._meet_keeper(listener)

    def _read_launcher(self):
        for line in self._launcher.stdout:
            self.launcher_output += line.decode(errors="replace")

    def _meet_keeper(self, listener):
        ended = os.pidfd_open(self._launcher.pid)
        try:
            ready, _, _ = select.select([listener, ended], [], [], self._left())
        finally:
            os.close(ended)
        if listener not in ready:
            self._end_launcher()
            raise AssertionError(f"the launcher did not start all of {self.size} ranks:\n{self.launcher_output}")
        keeper, _ = listener.accept()
        data, descriptors, _, _ = socket.recv_fds(keeper, 4096, 1)
        said = json.loads(data)

        self._keepers.append(keeper)

        def wait():
            told = keeper.makefile().readline()
            return json.loads(told)["code"] if told else -signal.SIGKILL

        self._watch(said["rank"], _Rank(said["pid"], descriptors[0], wait))

    def _watch(self, number, rank):
        self._ranks[number] = rank
        threading.Thread(target=lambda: self._ended.put((number, rank.wait())), daemon=True).start()

    def _end_launcher(self):
        for keeper in self._keepers:
            keeper.close()
        self._keepers.clear()
        if self._launcher is None:
            return
        try:
            self._launcher.wait(min(self._left(), 10))
        except subprocess.TimeoutExpired:
            # It is in its own session, with only the processes that it started.
            os.killpg(self._launcher.pid, signal.SIGKILL)
            self._launcher.wait()
        self._launcher_reader.join(10)
        self._launcher.stdout.close()
        self._launcher = None


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _place(launcher, rank, size, folder):
    """The variables that a launcher would set for rank `rank` of `size` on one host."""
    local = {f"HOROVOD_{name}": str(value) for name, value in
             (("RANK", rank), ("SIZE", size), ("LOCAL_RANK", rank), ("LOCAL_SIZE", size), ("CROSS_RANK", 0),
              ("CROSS_SIZE", 1), ("CONTROLLER", "gloo"), ("CPU_OPERATIONS", "gloo"))}
    if launcher == "plain":
        return {"MUSTER_RANK": str(rank), "MUSTER_WORLD_SIZE": str(size),
                "MUSTER_RENDEZVOUS_FILE": str(folder / "run" / "world"), **local}
    if launcher == "horovod":
        return {**local, "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "1",
                "HOROVOD_GLOO_IFACE": "lo", "HOROVOD_HOSTNAME": "localhost"}
    if launcher == "torchrun":
        return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": folder.name}
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_NNODES": "1", "SLURM_JOB_ID": folder.name,
            "SLURM_STEP_ID": "0"}


def _own_rank():
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MUSTER_RANK", "HOROVOD_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    raise SystemExit("run_on_ranks.py: the launcher sets no rank")


def keep(argv):
    """Runs between a launcher and a rank: starts the rank, reports on it, and ends it when the caller is gone."""
    keeper = socket.socket(socket.AF_UNIX)
    keeper.connect(os.environ.pop(_KEEPER))
    out, into = os.pipe()
    prctl = ctypes.CDLL(None).prctl

    def die_with_keeper():
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=into, stderr=into, preexec_fn=die_with_keeper)
    os.close(into)
    socket.send_fds(keeper, [json.dumps({"rank": _own_rank(), "pid": process.pid}).encode() + b"\n"], [out])
    os.close(out)
    ended = os.pidfd_open(process.pid)
    ready, _, _ = select.select([ended, keeper], [], [])
    if ended not in ready:
        process.kill()
    # Its process id is not reused until it is reaped, which happens after the last signal to it.
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    code = state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
    try:
        keeper.sendall(json.dumps({"code": code}).encode() + b"\n")
        keeper.recv(1)
    except OSError:
        pass  # the caller is gone
    process.wait()
    return 0


def run_once(argv, size, launcher, bound):
    """Runs a program on ranks. Returns whether all ended with 0; prints the output of the other ranks."""
    with Ranks(argv, size, launcher, bound=bound) as ranks:
        try:
            for _ in range(size):
                rank = ranks.ends_next()
                if ranks._ranks[rank].code != 0:
                    ranks.shorten(GRACE)
            outcomes = ranks.finish()
        except AssertionError as error:
            print(error, flush=True)
            return False
    for rank, outcome in enumerate(outcomes):
        if outcome.code != 0:
            print(f"--- rank {rank} of {size} ({launcher}) ended with {outcome.code}:\n{outcome.output}", flush=True)
    last = outcomes[0].output.strip().splitlines()
    count = next((line for line in reversed(last) if line.startswith("Ran ")), "ended with 0")
    is_good = all(outcome.code == 0 for outcome in outcomes)
    print(f"{launcher} {size}: {count if is_good else 'FAILED'}", flush=True)
    return is_good


def main(argv):
    parser = argparse.ArgumentParser(description="Runs unittest modules, or a program, on several ranks.")
    parser.add_argument("--sizes", default="2,3,4", help="numbers of ranks (2,3,4)")
    parser.add_argument("--launchers", default="plain", help=f"of {', '.join(LAUNCHERS)} (plain)")
    parser.add_argument("--bound", type=float, default=600, help="seconds for each run before it hangs (600)")
    parser.add_argument("--program", action="store_true", help="the arguments are a Python program, not modules")
    parser.add_argument("what", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    if not given.what:
        parser.error("nothing to run")
    python = [sys.executable, "-B"]
    program = [*python, *given.what] if given.program else [*python, "-m", "unittest", "-f", *given.what]
    good = [run_once(program, int(size), launcher, given.bound)
            for launcher in given.launchers.split(",") for size in given.sizes.split(",")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    if _KEEPER in os.environ:
        sys.exit(keep(sys.argv[1:]))
    sys.exit(main(sys.argv[1:]))
