"""Shared by the end-to-end tests of Slurm: a server whose jobs go to a private cluster (slurm_cluster.py), and a check
that nothing of them remains there.

    class MyTest(SlurmTest):
        CLUSTER = {"nodes": 3, "apart": True}       # one for all tests of the class
        SETTINGS = {"shared": "no"}                 # below `slurm:` of the server's file

        def test_a_sentence_that_holds(self):
            ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", *MPIRUN, "hostname")

A test class of another engine, which inherits from MusterTest, runs on Slurm by
`class OnSlurm(SlurmTest, TheirTests)`.
"""

import json
import tempfile
from pathlib import Path

from muster_harness import Muster, MusterTest
from slurm_cluster import SlurmCluster
from slurm_daemons import ENDING_BOUND


class SlurmMuster(Muster):
    """A private Muster on a cluster. `settings`: keys below `slurm:` of its configuration; `more`: further lines of
    the file."""

    def __init__(self, cluster, settings=None, more=""):
        super().__init__()
        self.cluster = cluster
        self._left_before = set(cluster.left_on_nodes())  # an earlier test, which has failed, left these
        if cluster.is_apart:
            # The server's state is in a folder that no node sees. The home of the users is a folder that all nodes see.
            self.work = Path(tempfile.mkdtemp(prefix="work-", dir=cluster.folder))
            self.home = Path(tempfile.mkdtemp(prefix="home-", dir=cluster.folder))
            self.environment["HOME"] = str(self.home)
        self.environment |= {"MUSTER_ENGINE": "slurm"} | cluster.environment
        lines = [f"  {key}: {json.dumps(value)}" for key, value in (settings or {}).items()]
        if lines or more:
            self.configure("\n".join((["slurm:", *lines] if lines else []) + [more, ""]))

    def close(self):
        try:
            if not self._closed:
                self._end_jobs()
                self.assert_nothing_is_in_slurm()
        finally:
            super().close()

    def assert_nothing_is_in_slurm(self):
        """Checks that no job is left in Slurm, and nothing on its nodes."""
        cluster = self.cluster
        cluster.until(lambda: not [job for job in cluster.jobs_of_muster() if job in cluster.active_jobs()],
                      "no job of Muster's is in the queue", bound=ENDING_BOUND)
        left = [each for each in cluster.left_on_nodes() if each not in self._left_before]
        if self.node_folder and self.node_folder.exists():
            left.append(str(self.node_folder))
        if left:
            raise AssertionError("left on the nodes:\n  " + "\n  ".join(left))

    @property
    def node_folder(self):
        """The folder for tasks on nodes that share this machine's /tmp; None: no server has run."""
        owner = self.state / "jobs" / "container-owner"
        return Path("/tmp") / f"muster-{owner.read_text()}" if owner.exists() else None

    def slurm_job(self, name):
        """The newest Slurm job of a job, as the cluster lists it; None if there is no Slurm job."""
        identity = self.job(name)["id"]
        found = [job for job in self.cluster.jobs_of_muster() if f":{identity}:" in job["comment"]]
        return found[-1] if found else None

    def slurm_jobs(self, name):
        """All Slurm jobs of a job that the controller still lists, leaders only."""
        identity = self.job(name)["id"]
        return [job for job in self.cluster.jobs_of_muster()
                if f":{identity}:" in job["comment"] and job["leader"] in ("N/A", job["id"])]

    def await_phase(self, name, *phases):
        """Waits until the job is in one of these phases and returns it."""
        def there():
            job = self.job(name)
            return job if job["phase"] in phases else None
        return self.cluster.until(there, f"{name} is {' or '.join(phases)}")


class SlurmTest(MusterTest):
    """One server for each test, one cluster for all."""

    CLUSTER: dict = {}
    SETTINGS: dict = {}
    MORE = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cls.enterClassContext(SlurmCluster(**cls.CLUSTER))

    def new_muster(self, **options):
        muster = SlurmMuster(self.cluster, self.settings(), self.MORE, **options)
        self.addCleanup(muster.close)
        return muster

    def settings(self):
        return dict(self.SETTINGS)

    def submit(self, name, script, *flags, kind="single"):
        """Submits a job without following it."""
        self.muster.run("submit", kind, name, *flags, "--", "sh", "-c", script)

    def ends_well(self, name):
        job = self.muster.ended(name)
        self.assertEqual(job["phase"], "Succeeded", json.dumps(job, indent=1)[:2000] + self.muster.logs(name))
        return job

    def at_the_gate(self, name="job", *flags):
        """Starts a job that runs until its gate opens. Returns the gate and the command that follows the log."""
        gate = self.muster.gate(name + ".gate")
        follow = self.muster.stream("submit", "single", name, *flags, "--follow", "--", "sh", "-c",
                                    f"echo begun; {gate.wait}; echo over")
        follow.until("begun")
        return gate, follow

    def fill(self, partition="main"):
        """Submits a Slurm job that occupies all nodes until it is cancelled; returns its id."""
        holder = self.cluster.submit("sleep infinity", "--exclusive", f"--nodes={len(self.cluster.nodes)}",
                                     f"--partition={partition}", "--no-requeue")
        self.cluster.await_state(holder, "RUNNING")
        self.addCleanup(self.cluster.run, "scancel", holder, code=None)
        return holder

    def let_go(self, identity):
        self.cluster.run("scancel", identity)


class CountedTest(SlurmTest):
    """Tests with jobs that must not run twice."""


    def counted(self, name="job", *flags):
        """Starts a job that records each of its starts in a file and runs until its gate opens. Returns the file and
        the gate."""
        starts = self.muster.work / f"{name}.starts"
        gate = self.muster.gate(f"{name}.gate")
        self.submit(name, f"echo $MUSTER_RESTART_COUNT >> {starts}; {gate.wait}; echo over", *flags)
        return starts, gate

    def await_starts(self, starts, count):
        self.cluster.until(lambda: starts.exists() and len(starts.read_text().split()) == count,
                           f"it has started {count} times")
