"""Shared by the end-to-end tests of containers: a server whose tasks are containers of a private engine
(container_hosts.py), and a check that nothing of them remains there.

    class MyTest(ContainerTest):
        def test_a_sentence_that_holds(self):
            ran = self.muster.run("submit", "single", "hello", "-i", OPEN_MPI, "--follow", "--", "hostname")

All tests of a class share one engine. A container has only the files of its image, so a test sends its programs with
the job: `--workspace self.muster.workspace(OPEN_MPI, digits=True)`.
"""

import shutil
import tempfile
import time
from pathlib import Path

from container_hosts import PodmanService
from engine_machine import run
from muster_harness import BOUND, DIGITS, Muster, MusterTest, ROOT

OPEN_MPI = "localhost/muster-test-openmpi"
OPEN_MPI_WITHOUT_SSHD = "localhost/muster-test-openmpi-nosshd"
MPICH = "localhost/muster-test-mpich"
INTEL_MPI = "localhost/muster-test-impi"

# The compiler for a program that runs on the library of an image; Intel MPI has MPICH's ABI.
COMPILER = {OPEN_MPI: "mpicc.openmpi", OPEN_MPI_WITHOUT_SSHD: "mpicc.openmpi",
            MPICH: "mpicc.mpich", INTEL_MPI: "mpicc.mpich"}

# Documented labels of Muster's containers, networks and volumes.
OWNER = "org.muster.owner"
STORAGE = "volume muster-storage-"


def compile_mpi(folder, image):
    """Compiles tests/mpi_where.c for the MPI of an image, as `folder`/where."""
    run([COMPILER[image], "-O1", "-o", folder / "where", ROOT / "tests" / "mpi_where.c"])


def add_digits(folder):
    """Copies the example `digits` and its data, to be run as ./digits --data data."""
    shutil.copy(DIGITS, folder)
    shutil.copytree(ROOT / "examples" / "data" / "digits", folder / "data")


def hangs_in_finalize(muster, name):
    """Whether Muster has reported that a job of Debian's MPICH hangs in MPI_Finalize (docs/launching.md). The ranks
    have printed all their output before that."""
    job = muster.job(name)
    return job["phase"] == "Failed" and "MPICH hangs in MPI_Finalize" in job["failure"]["cause"]


def left_of(engine):
    """The names of all things of any server in an engine, except the storage of projects, which is kept."""
    left = engine.containers()
    for kind, key in (("networks", None), ("volumes", "Volumes")):
        listed = engine.api("GET", f"/{kind}")[1]
        left += [f"{kind[:-1]} {each['Name']}" for each in (listed[key] if key else listed) or ()
                 if OWNER in (each.get("Labels") or {})]
    return [name for name in left if not name.startswith(STORAGE)]


def _await_none(listed):
    """Waits until all are removed: a server removes containers in the background."""
    deadline = time.monotonic() + BOUND
    while left := listed():
        if time.monotonic() > deadline:
            raise AssertionError("left in the engine:\n  " + "\n  ".join(left))


def assert_no_container(engine):
    """Also checks that no network is left."""
    _await_none(lambda: [name for name in left_of(engine) if not name.startswith("volume ")])


def assert_empty(engine):
    _await_none(lambda: left_of(engine))


class ContainerMuster(Muster):
    """A private Muster that runs containers. At the end only the workspaces of ended jobs may remain, and deleting the
    jobs must remove them."""

    def __init__(self, engines, environment):
        super().__init__()
        self._engines = engines
        self.environment |= {"MUSTER_ENGINE": "container"} | environment

    def close(self):
        try:
            if not self._closed:
                self._leave_nothing()
        finally:
            super().close()

    def _leave_nothing(self):
        self._end_jobs()
        for engine in self._engines:
            assert_no_container(engine)
        self._delete_jobs()
        for engine in self._engines:
            assert_empty(engine)

    def _delete_jobs(self):
        if (self.state / "muster.db").exists():
            for job in self.jobs():
                self.run("delete", job["spec"]["name"])

    def workspace(self, image=None, digits=False):
        """A folder to send with a job."""
        folder = Path(tempfile.mkdtemp(prefix="workspace-", dir=self.work))
        if image:
            compile_mpi(folder, image)
        if digits:
            add_digits(folder)
        return folder


class ContainerTest(MusterTest):
    """One server for each test, one engine for all."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="mt-")
        cls.addClassCleanup(folder.cleanup)
        cls.engine = cls.enterClassContext(PodmanService(Path(folder.name) / "e"))

    def new_muster(self):
        muster = ContainerMuster([self.engine], {"DOCKER_HOST": self.engine.url})
        self.addCleanup(muster.close)
        return muster
