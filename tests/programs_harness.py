"""Shared by the end-to-end tests of programs without the platform. A test starts each program in an environment of its
own, and at the end checks that the programs leave nothing behind."""

import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from muster_harness import (BOUND, HIDDEN_VARIABLES, Stream, all_below, await_no_process, own_shared_memory,
                            shared_memory, unused)

# The key of a job, and the key of another job.
KEY = "000102030405060708090a0b0c0d0e0f"
OTHER_KEY = "ff0102030405060708090a0b0c0d0eff"
# A loopback address of this process alone, so that no other test can use its ports.
OWN_ADDRESS = f"127.{96 + os.getpid() // 256 % 32}.{os.getpid() % 256}.2"

# Variables of launchers. If a launcher runs the tests, they are set, and the programs under test would read them.
LAUNCHER_VARIABLES = re.compile(
    r"SLURM_|PMI_|MPI_LOCAL|RANK$|WORLD_SIZE$|LOCAL_|MASTER_|TORCHELASTIC_|TF_CONFIG$")


class ProgramsTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-programs-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # The folder through which the ranks of one host connect to each other. It is private to the test.
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.environment = {name: value for name, value in os.environ.items()
                            if not HIDDEN_VARIABLES.match(name)
                            and not LAUNCHER_VARIABLES.match(name)}
        self.environment["XDG_RUNTIME_DIR"] = str(self.runtime)
        own_shared_memory()
        shared_before = shared_memory()
        self.addCleanup(self.assert_nothing_is_left, shared_before)

    def assert_nothing_is_left(self, shared_before):
        await_no_process(str(self.folder), BOUND)
        self.assertEqual(unused(shared_memory() - shared_before), [])
        self.assertEqual([path for path in all_below(self.runtime) if not path.is_dir()], [])

    def start(self, argv, environment=None):
        stream = Stream([str(word) for word in argv], self.environment | (environment or {}),
                        cwd=self.folder)
        self.addCleanup(stream.close)
        return stream

    def finish(self, *streams):
        """Waits until all commands have succeeded. Returns their outputs."""
        for stream in streams:
            self.assertEqual(stream.finish(), 0, f"{stream}\n{stream.text}{stream.errors}")
        return "".join(stream.text for stream in streams)
