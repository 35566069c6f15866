"""Runs horovodrun as users do, and waits for output of the program and its ranks.

    with Launched("-np", "2", *python(PROGRAM)) as run:
        run.until("[1]<stdout>:ready")
        run.signal(signal.SIGINT)
        self.assertEqual(run.finish().code, 130)
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
#: Seconds that anything may take before it counts as hanging.
BOUND = 180.0

_OTHERS = ("MUSTER_", "HOROVOD_", "OMPI_", "PRTE_", "PMI", "SLURM_", "LSB_", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def environment(**more):
    """Variables without those of another run, and with `more`; None removes a variable."""
    variables = {name: value for name, value in os.environ.items()
                 if name == "MUSTER_COLLECTIVE_LIBRARY" or not name.startswith(_OTHERS)}
    variables.update({"PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1", **more})
    return {name: value for name, value in variables.items() if value is not None}


def python(program, *arguments):
    """The command line that runs the text of a program."""
    return [sys.executable, "-c", program, *arguments]


def command_line(*words):
    return [sys.executable, "-m", "muster.runner.launch", *map(str, words)]


def horovodrun(*words, folder=None, **more):
    """Runs to the end. Returns the record of subprocess, with text."""
    return subprocess.run(command_line(*words), env=environment(**more), cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=BOUND)


class Launched:
    def __init__(self, *words, folder=None, **more):
        self._process = subprocess.Popen(command_line(*words), env=environment(**more), cwd=folder, bufsize=0,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         start_new_session=True)
        self.pid = self._process.pid
        self._texts = {self._process.stdout: b"", self._process.stderr: b""}
        self._open = set(self._texts)

    @property
    def output(self):
        return self._texts[self._process.stdout].decode()

    @property
    def errors(self):
        return self._texts[self._process.stderr].decode()

    def until(self, *texts):
        """Waits until all texts have been written, on either stream. Returns the rest of the line after the first
        text."""
        deadline = time.monotonic() + BOUND
        while not all(text in self.output or text in self.errors for text in texts):
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{texts} did not appear; the output:\n{self.output}\n{self.errors}")
        for said in (self.output, self.errors):
            if texts[0] in said:
                return said.partition(texts[0])[2].partition("\n")[0]

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self):
        """Reads to the end, and waits."""
        deadline = time.monotonic() + BOUND
        while self._open and self._read(deadline - time.monotonic()):
            pass
        self.code = self._process.wait(max(1.0, deadline - time.monotonic()))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _read(self, seconds):
        ready = select.select(list(self._open), [], [], max(0.0, seconds))[0]
        for stream in ready:
            received = os.read(stream.fileno(), 1 << 16)
            self._texts[stream] += received
            if not received:
                self._open.discard(stream)
        return bool(ready)


class Watched:
    """Observes the end of a process that is not a child of this one, by its process id."""

    def __init__(self, pid):
        try:
            self._descriptor = os.pidfd_open(int(pid))
        except ProcessLookupError:
            self._descriptor = os.open(os.devnull, os.O_RDONLY)  # it has ended: always readable

    def is_over_within(self, seconds=BOUND):
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def kill(self, number=signal.SIGKILL):
        signal.pidfd_send_signal(self._descriptor, number)

    def close(self):
        os.close(self._descriptor)
