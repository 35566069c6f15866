"""Intel MPI, whose mpirun and library come from PyPI: in containers, and in sandboxes of this machine.

`make test-intel-mpi` runs it. The programs are compiled here for MPICH's ABI, which Intel's is."""

import os
import re

from containers_harness import ContainerTest, INTEL_MPI, add_digits, compile_mpi
from engine_machine import run
from muster_harness import MusterTest, ROOT, main

LIBRARY = "Intel(R) MPI Library 2021.13 for Linux* OS"
TWO_RANKS = ["mpirun", "-np", "2"]
TRAIN = ["./digits", "--data", "data"]

# How long a job may take before it counts as hanging. Ranks of Intel MPI spin while they wait for a message. If other
# programs use the cores, each message of the training waits until the kernel runs the other rank.
JOB_BOUND = 600


def ranks_in(text):
    """The lines of tests/mpi_where.c in `text`, in the order of the ranks."""
    return sorted(re.findall(r"rank \d+ of \d+ on .*", text))


def two_ranks():
    return [f"rank {rank} of 2 on dist-worker-{rank} by {LIBRARY}" for rank in (0, 1)]


class InContainers(ContainerTest):

    def submit(self, workspace, *words, code=0):
        return self.muster.run("submit", "mpi", "dist", "-i", INTEL_MPI, "--workspace", workspace,
                               "--follow", *words, code=code, bound=JOB_BOUND)

    def test_intel_mpi_runs_a_rank_on_each_worker_and_is_named(self):
        workspace = self.muster.workspace(INTEL_MPI)
        for by in ("ssh", "agent"):
            with self.subTest(by=by):
                ran = self.submit(workspace, "-n", 2, "--launch", by, "--", *TWO_RANKS, "./where")

                self.assertEqual(ranks_in(ran.stdout), two_ranks())
                launch = self.muster.job("dist")["launch"]
                self.assertEqual((launch["by"], launch["mpi"]), (by, "Intel MPI 2021.13"))
                self.assertRegex(self.muster.run("get", "dist").stdout,
                                 rf"LAUNCH +by {by}: .*; Intel MPI 2021\.13")
                self.muster.run("delete", "dist")

    def test_digits_trains_to_the_same_weights_as_on_other_mpis(self):
        workspace = self.muster.workspace(digits=True)
        checksums = set()
        for by in ("ssh", "agent"):
            with self.subTest(by=by):
                ran = self.submit(workspace, "-n", 2, "--launch", by, "--", *TWO_RANKS, *TRAIN)

                self.assertRegex(ran.stdout, r"test accuracy: 9[6-9]\.\d+ %")
                checksums.add(re.search(r"checksum: (\w+) on all 2 ranks", ran.stdout)[1])
                self.muster.run("delete", "dist")
        bare = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", 2, *TRAIN], cwd=workspace,
                   bound=JOB_BOUND)
        self.assertEqual(checksums, {re.search(r"checksum: (\w+)", bare)[1]})

    def test_the_hostfile_has_the_format_of_intel_mpi_under_the_documents_name(self):
        ran = self.submit(self.muster.workspace(), "-n", 2, "--slots-per-worker", 3, "--no-prefix",
                          "--allow-launcher-only", "--", "sh", "-c", "cat /generated/hostfile; cmp /generated/hostfile "
                          "/etc/mpi/hostfile && echo the same")

        self.assertEqual(ran.stdout, "dist-worker-0:3\ndist-worker-1:3\nthe same\n")

    def test_slots_are_kept_where_workers_have_several(self):
        workspace = self.muster.workspace(INTEL_MPI)
        for by in ("ssh", "agent"):
            with self.subTest(by=by):
                ran = self.submit(workspace, "-n", 2, "--slots-per-worker", 2, "--no-prefix",
                                  "--launch", by, "--", "mpirun", "-np", 4, "./where")

                self.assertEqual(ranks_in(ran.stdout), [
                    f"rank {rank} of 4 on dist-worker-{rank // 2} by {LIBRARY}" for rank in range(4)])
                self.muster.run("delete", "dist")

    def test_uneven_slots_are_kept_by_machinefile(self):
        workspace = self.muster.workspace(INTEL_MPI)
        (workspace / "job.yaml").write_text(f"""
name: dist
kind: mpi
workers: 2
slots_per_worker: 2
leader_slots: 1
image: {INTEL_MPI}
volumes: [{{kind: host_path, source: {workspace}, target: /job, read_only: true}}]
folder: /job
command: [mpirun, -np, "5", -machinefile, /generated/hostfile, ./where]
""")

        ran = self.muster.run("submit", "-f", workspace / "job.yaml", "--follow", "--no-prefix", bound=JOB_BOUND)

        hosts = ["dist-worker-0"] * 2 + ["dist-worker-1"] * 2 + ["dist-launcher"]
        self.assertEqual(ranks_in(ran.stdout), [
            f"rank {rank} of 5 on {host} by {LIBRARY}" for rank, host in enumerate(hosts)])


class InSandboxes(MusterTest):
    """Uses the wheel in a Python environment, as `pip install impi-rt` installs it; the job's PATH leads to it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run([ROOT / "scripts" / "impi_env.sh"])
        cls.prefix = ROOT / "build" / "impi"

    def setUp(self):
        super().setUp()
        # The same ABI under the name that mpicc.mpich links.
        os.symlink(self.prefix / "lib" / "libmpi.so.12", self.muster.work / "libmpich.so.12")
        compile_mpi(self.muster.work, INTEL_MPI)
        add_digits(self.muster.work)
        self.flags = [
            "-e", f"PATH={self.prefix}/bin:/usr/bin:/bin",
            "-e", f"LD_LIBRARY_PATH={self.muster.work}:{self.prefix}/lib:{self.prefix}/lib/libfabric",
            "-e", f"FI_PROVIDER_PATH={self.prefix}/lib/libfabric/prov"]

    def submit(self, *words, **options):
        return self.muster.run("submit", "mpi", "dist", *self.flags, "--follow", *words, bound=JOB_BOUND, **options)

    def test_the_mpirun_on_the_path_of_the_task_is_detected_and_named(self):
        for by in ("ssh", "agent"):
            with self.subTest(by=by):
                ran = self.submit("-n", 2, "--launch", by, "--", *TWO_RANKS, "./where")

                self.assertEqual(ranks_in(ran.stdout), two_ranks())
                launch = self.muster.job("dist")["launch"]
                self.assertEqual((launch["by"], launch["mpi"]), (by, "Intel MPI 2021.13"))
                self.muster.run("delete", "dist")

    def test_digits_trains_on_it(self):
        ran = self.submit("-n", 2, "--", *TWO_RANKS, *TRAIN)

        self.assertRegex(ran.stdout, r"test accuracy: 9[6-9]\.\d+ %")
        self.assertRegex(ran.stdout, r"checksum: \w+ on all 2 ranks")


if __name__ == "__main__":
    main()
