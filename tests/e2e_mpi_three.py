"""The documents' MPI commands in images: Open MPI and MPICH in containers, with ranks started by ssh and by Muster's
own remote shell. (Intel MPI: e2e_intel_mpi.py.)"""

import re

from containers_harness import ContainerTest, MPICH, OPEN_MPI, OPEN_MPI_WITHOUT_SSHD, hangs_in_finalize
from gradient_harness import GradientTest
from muster_harness import DOCUMENTS_MPIRUN, MPIRUN, Muster, main

LIBRARY = {OPEN_MPI: "Open MPI v4.1.4", MPICH: "MPICH Version: 4.0.2"}
MPI = {OPEN_MPI: "Open MPI 4.1.4", MPICH: "MPICH 4.0.2"}
# Without the documents' flags, which MPICH does not support.
TWO_RANKS = {OPEN_MPI: MPIRUN, MPICH: ["mpirun", "-np", "2"]}

# Debian's MPICH uses UCX, whose MPI_Finalize sometimes hangs if ranks share a worker. This test checks only
# the places of the ranks, which needs no MPI_Finalize.
PLACE = ('echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} of ${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE} '
         'on $(hostname)"')

TRAIN = ["./digits", "--data", "data"]
WAYS = [(image, by) for image in (OPEN_MPI, MPICH) for by in ("ssh", "agent")]


def ranks_in(text):
    """The lines of tests/mpi_where.c in `text`, in the order of the ranks, without the task names before them. With
    MPICH that name is always the launcher's, which prints the output of all ranks."""
    return sorted(re.findall(r"rank \d+ of \d+ on \S+ by .*", text))


def two_ranks(image):
    return [f"rank {rank} of 2 on dist-worker-{rank} by {LIBRARY[image]}" for rank in (0, 1)]


def outcome(text):
    """The result of digits: its accuracy, and the checksum of its weights."""
    return (re.search(r"test accuracy: [\d.]+ %", text)[0],
            re.search(r"weights checksum: \w+ on all 2 ranks", text)[0])


class BothMpis(ContainerTest):

    def submit(self, image, by, workspace, *command):
        ran = self.muster.run(
            "submit", "mpi", "dist", "--workers", 2, "-i", image, "--launch", by,
            "--workspace", workspace, "--follow", "--", *command, code=None)
        if image != MPICH or not hangs_in_finalize(self.muster, "dist"):
            self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def test_an_mpi_program_has_a_rank_on_each_worker_however_ranks_are_started(self):
        for image, by in WAYS:
            with self.subTest(image=image, by=by):
                workspace = self.muster.workspace(image)

                ran = self.submit(image, by, workspace, *TWO_RANKS[image], "./where")

                self.assertEqual(ranks_in(ran.stdout), two_ranks(image))
                launch = self.muster.job("dist")["launch"]
                self.assertEqual((launch["by"], launch["mpi"]), (by, MPI[image]))
                self.muster.run("delete", "dist")

    def test_training_in_containers_gives_the_same_weights_as_in_processes(self):
        workspace = self.muster.workspace(digits=True)
        processes = Muster()
        self.addCleanup(processes.close)
        trained = processes.run("submit", "mpi", "dist", "--workers", 2, "--workspace", workspace,
                                "--follow", "--", *MPIRUN, *TRAIN).stdout
        self.assertGreaterEqual(float(outcome(trained)[0].split()[2]), 96)

        for image, by in WAYS:
            with self.subTest(image=image, by=by):
                ran = self.submit(image, by, workspace, *TWO_RANKS[image], *TRAIN)

                self.assertEqual(outcome(ran.stdout), outcome(trained))
                self.assertEqual(ran.stdout.count("719 training images"), 1)
                self.muster.run("delete", "dist")

    def test_without_sshd_in_the_image_muster_starts_the_ranks_and_explains_it(self):
        workspace = self.muster.workspace(OPEN_MPI_WITHOUT_SSHD)

        ran = self.submit(OPEN_MPI_WITHOUT_SSHD, "auto", workspace, *DOCUMENTS_MPIRUN, "./where")

        self.assertEqual(ranks_in(ran.stdout), two_ranks(OPEN_MPI))
        launch = self.muster.job("dist")["launch"]
        self.assertEqual(launch["by"], "agent")
        self.assertIn("sshd", launch["why"])

    def test_slots_put_several_ranks_on_a_worker(self):
        for image, by in WAYS:
            with self.subTest(image=image, by=by):
                flags = ["--allow-run-as-root"] if image == OPEN_MPI else []

                ran = self.muster.run(
                    "submit", "mpi", "dist", "--workers", 2, "--slots-per-worker", 2, "-i", image,
                    "--launch", by, "--follow", "--no-prefix", "--",
                    "mpirun", *flags, "-np", 4, "sh", "-c", PLACE)

                self.assertEqual(sorted(re.findall(r"rank \d of 4 on \S+", ran.stdout)), [
                    f"rank {rank} of 4 on dist-worker-{rank // 2}" for rank in range(4)])
                self.muster.run("delete", "dist")


class TheDocumentsCommands(ContainerTest, GradientTest):
    def test_gradient_runs_a_multinode_experiment_in_its_containers(self):
        workspace = self.muster.workspace(OPEN_MPI, digits=True)
        command = " ".join(DOCUMENTS_MPIRUN)

        lines = self.run_to_its_end(
            "--name", "dist", "--experimentType", "MPI",
            "--workerContainer", OPEN_MPI, "--workerMachineType", "p2.xlarge", "--workerCount", 2,
            "--masterContainer", OPEN_MPI, "--masterMachineType", "C3", "--masterCount", 1,
            "--masterCommand", f"{command} ./where && {command} {' '.join(TRAIN)}",
            "--workspace", workspace, kind="multinode")

        self.assertEqual(ranks_in("\n".join(lines)), two_ranks(OPEN_MPI))
        self.assertRegex("\n".join(lines), r"test accuracy: 9[6-9]\.\d+ %")
        self.assertIn(OPEN_MPI, self.experiments("details", "--id", "dist").stdout)

    def test_run_ai_submits_an_mpi_job_with_an_image(self):
        for image in (OPEN_MPI, MPICH):
            with self.subTest(image=image):
                workspace = self.muster.workspace(image, digits=True)

                self.muster.run("runai", "submit-mpi", "dist", "--processes=2", "-g", 1, "-i", image,
                                "-v", f"{workspace}:/job:ro", "--working-dir", "/job", "--",
                                "sh", "-c", f"{' '.join(TWO_RANKS[image])} ./where && "
                                f"{' '.join(TWO_RANKS[image])} {' '.join(TRAIN)}")

                phase = self.muster.ended("dist")["phase"]
                said = self.muster.logs("dist")
                self.assertEqual(ranks_in(said), two_ranks(image))
                if image != MPICH or not hangs_in_finalize(self.muster, "dist"):
                    self.assertEqual(phase, "Succeeded", said)
                    self.assertRegex(said, r"test accuracy: 9[6-9]\.\d+ %")
                self.muster.run("runai", "delete", "dist")


if __name__ == "__main__":
    main()
