"""An elastic run for tests: a real driver with a discovery script that prints a file, and real workers.

    with ElasticRun(2, "--min-np", "1") as run:
        run.until_trained_with(2)
        run.kill(0)
        run.until_trained_with(1)
        run.finish()
        self.assertEqual(run.code, 0)

The driver treats "localhost", "127.0.0.1" and "::1" as different hosts; all of them are this machine. Each wait has
a bound that only a hang reaches; the output is shown then. At the end all started processes are ended,
and the test fails if a process of the run outlived the driver.
"""

from __future__ import annotations

import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PROGRAM = TESTS / "ranks" / "elastic_training.py"
BOUND = 300

_ENTERED = re.compile(r"entered as (\d+) of (\d+) on (\S+) local (\d+) of (\d+) cross (\d+) of (\d+) at (\d+) "
                      r"worker (\d+) process (\d+)")
_HIDDEN = re.compile(r"(MUSTER|HOROVOD|OMPI|PRTE|PMIX|PMI|SLURM)_|"
                     r"(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT)$")


class Entered:
    """The line by which a worker reports that it trains in a new round."""

    def __init__(self, match):
        (self.rank, self.size, self.local_rank, self.local_size, self.cross_rank, self.cross_size, self.batch) = (
            int(match[each]) for each in (1, 2, 4, 5, 6, 7, 8))
        self.host, self.worker, self.process = match[3], match[9], int(match[10])


class ElasticRun:
    def __init__(self, slots, *arguments, program=(), command=None, hosts=None, script=None, environment=None):
        """`slots`: on localhost; or `hosts`, the text of the discovery file. `program`: more arguments of the training;
        or `command`, in its place. All is started in a
        folder of the run's own, `folder`, where there is a pipe `fifo`."""
        self.folder = Path(tempfile.mkdtemp(prefix="elastic-"))
        self.log = self.folder / "log"
        self.log.mkdir()
        self.fifo = self.folder / "fifo"
        os.mkfifo(self.fifo)
        self.hosts(hosts if hosts is not None else f"localhost:{slots}")
        self.lines = []
        self.code = None
        #: The latest such line of each worker.
        self.entered = {}
        self._queue = queue.Queue()
        command = command or [sys.executable, str(PROGRAM), "--log", str(self.log), "--finish",
                              str(self.folder / "finish"), "--fifo", str(self.fifo), *map(str, program)]
        variables = {name: value for name, value in os.environ.items()
                     if not _HIDDEN.match(name) or name == "MUSTER_COLLECTIVE_LIBRARY"}
        variables.update(PYTHONPATH=os.pathsep.join([str(TESTS.parent), str(TESTS)]), OMP_NUM_THREADS="1",
                         PYTHONUNBUFFERED="1", ELASTIC_TEST=str(self.folder), TMPDIR=str(self.folder),
                         **(environment or {}))
        script = script or f"cat {self.folder}/hosts"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "muster.runner.launch", "--host-discovery-script", script, *arguments, *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=variables,
            stdin=subprocess.DEVNULL, cwd=self.folder)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._deadline = time.monotonic() + BOUND

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(BOUND)
        left = self._left_processes()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if left and kind is None:
            raise AssertionError(f"processes of the run outlived it: {left}")

    # --- actions ---

    def hosts(self, text):
        """Sets the output of the discovery script from now on."""
        draft = self.folder / "hosts.new"
        draft.write_text(text.replace(" ", "\n") + "\n")
        draft.rename(self.folder / "hosts")

    def kill(self, *ranks):
        """Kills the workers that have these ranks now."""
        for process in [self.process_of(rank) for rank in ranks]:
            self.kill_process(process)

    def kill_process(self, process):
        """Kills a process of this run. False if it is gone: process ids are reused, so the run's mark is checked."""
        try:
            pidfd = os.pidfd_open(process)
        except OSError:
            return False
        try:
            if not self._is_ours(process):
                return False
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            return True
        finally:
            os.close(pidfd)

    def _is_ours(self, process):
        """Whether the process has this run's mark in its environment. A process that has ended has no environment."""
        try:
            variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"ELASTIC_TEST={self.folder}".encode() in variables

    def process_of(self, rank):
        return next(each.process for each in self.current() if each.rank == rank)

    def current(self):
        """The workers of the newest round, by rank, as far as they have reported."""
        newest = list(self.entered.values())[-1].size
        last = {}
        for each in self.entered.values():
            last[each.rank] = each
        return [last[rank] for rank in sorted(last) if rank < newest]

    def end_training(self):
        """Lets the workers end regularly."""
        (self.folder / "finish").touch()

    def finish(self):
        """Ends the training, and waits for the end of the run."""
        self.end_training()
        return self.wait()

    def wait(self):
        """Waits for the end of the run; returns all that was printed."""
        while self.next_line() is not None:
            pass
        self.code = self.process.wait()
        return self.text

    # --- observations ---

    @property
    def text(self):
        return "\n".join(self.lines)

    def until(self, words, count=1):
        """Reads lines up to the `count`th match of `words` (a regular expression), which it returns."""
        while True:
            line = self.next_line()
            if line is None:
                raise AssertionError(f"the run ended without {words!r}; it printed:\n{self.text}")
            found = re.search(words, line)
            count -= bool(found)
            if not count:
                return found

    def until_all_entered(self, size):
        """Waits until a round of `size` ranks has begun on all of them. Returns its workers by rank."""
        waiting = {}
        while len(waiting) < size:
            found = Entered(self.until(_ENTERED.pattern))
            if found.size == size:
                waiting[found.rank] = found
            else:
                waiting.clear()
        return [waiting[rank] for rank in range(size)]

    def until_trained_with(self, size):
        """Waits until a worker has trained on a batch in a world of this size."""
        self.until(rf"trained \d+ with {size} worker ")

    def logs(self):
        """The actions of each worker, by its name: pairs of a word and a batch."""
        return {file.name: [(line.split()[0], int(line.split()[1])) for line in file.read_text().splitlines()]
                for file in sorted(self.log.iterdir())}

    def assert_every_batch_counted_once(self, test):
        """Checks that no batch was omitted or trained twice beyond the last commit, and that all weights are equal."""
        ends = re.findall(r"done as (\d+) of (\d+) at (\d+) exact (\w+)", self.text)
        test.assertEqual({each[1:] for each in ends}, {(str(len(ends)), ends[0][2], "True")}, self.text)
        for worker, steps in self.logs().items():
            committed, following = 0, None
            for what, batch in steps:
                if what == "enter":
                    # A survivor continues from its last commit, or from a newer one of another worker; a new worker
                    # continues from theirs.
                    test.assertGreaterEqual(batch, committed, f"worker {worker} went back too far")
                    following = committed = batch  # synchronizing saves, too
                elif what == "trained":
                    test.assertEqual(batch, following, f"worker {worker} left out a batch, or repeated one")
                    following += 1
                else:
                    committed = batch

    def next_line(self):
        """The next printed line; None at the end."""
        try:
            line = self._queue.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"no more output within the time limit; the output so far:\n{self.text}") from None
        if line is not None:
            self.lines.append(line)
            found = _ENTERED.search(line)
            if found:
                self.entered.pop(found[9], None)  # so that the newest are the last
                self.entered[found[9]] = Entered(found)
        return line

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def _left_processes(self):
        """Processes with this run's mark in their environment, after a time for those that are ending."""
        left = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if not self._is_ours(folder.name):
                    continue
                pidfd = os.pidfd_open(int(folder.name))
            except (OSError, ValueError):
                continue
            try:
                if not _ends_within(pidfd, 20):
                    left.append((int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            except OSError:  # it has ended just now
                continue
            finally:
                os.close(pidfd)
        return left


def _ends_within(pidfd, seconds):
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(1000 * seconds))
