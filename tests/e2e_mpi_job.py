"""The MPI job of the documents, as seen by its launcher, workers and ranks."""

import os
import re

from muster_harness import DIGITS, DOCUMENTS_MPIRUN, MPIRUN, MusterTest, main, without_mpirun_warnings


class TheDocumentsCommand(MusterTest):

    def test_it_trains_on_real_digits_and_shows_accuracy_and_a_succeeded_row(self):
        self.assertTrue(DIGITS.exists(), f"{DIGITS} is not built")

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                              *DOCUMENTS_MPIRUN, DIGITS)

        found = re.search(r"^\[0@dist-worker-0\] .*test accuracy\D*([0-9.]+)", ran.stdout, re.MULTILINE)
        self.assertTrue(found, ran.stdout[-2000:])
        self.assertGreaterEqual(float(found[1]), 96)
        self.assertRegex(ran.stdout, "images/s")
        self.assertRegex(ran.stderr, r"NAME +PHASE +EXIT +DURATION\ndist +Succeeded +0 +\d")

    def test_it_runs_each_rank_on_a_worker_of_its_own_by_the_names_in_the_hostfile(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                              *DOCUMENTS_MPIRUN, "sh", "-c",
                              "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"
                              " with $NCCL_DEBUG; cat /generated/hostfile")

        of_ranks = [line for line in ran.stdout.splitlines() if not line.startswith("[launcher]")]
        self.assertEqual(sorted(of_ranks), sorted(
            line for rank in (0, 1) for line in (
                f"[{rank}@dist-worker-{rank}] rank {rank} of 2 on dist-worker-{rank} with INFO",
                f"[{rank}@dist-worker-{rank}] dist-worker-0 slots=1",
                f"[{rank}@dist-worker-{rank}] dist-worker-1 slots=1")))
        self.assertRegex(ran.stderr, r"dist +Succeeded +0 +\d")

    def test_two_mpi_jobs_run_side_by_side(self):
        gate = self.muster.gate()
        follows = {name: self.muster.stream("submit", "mpi", name, "--workers", 2, "--follow", "--",
                                            *DOCUMENTS_MPIRUN, "sh", "-c",
                                            f"echo here on $(hostname); {gate.wait}; echo done")
                   for name in ("one", "two")}
        for name, follow in follows.items():
            seen = {follow.until("here on"), follow.until("here on")}
            self.assertEqual(seen, {f"[{rank}@{name}-worker-{rank}] here on {name}-worker-{rank}"
                                    for rank in (0, 1)})
        self.assertEqual([job["phase"] for job in self.muster.jobs()], ["Running", "Running"])
        self.assertFalse(os.path.exists("/generated"))

        gate.open(times=4)

        for name, follow in follows.items():
            self.assertEqual(follow.finish(), 0, follow.errors)
            self.assertEqual(follow.text.count("done"), 2)
            self.assertEqual(self.muster.job(name)["phase"], "Succeeded")


class WhatTasksSee(MusterTest):

    FLAGS: tuple = ()

    def test_ranks_get_the_environment_of_the_job_without_lists_of_x(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow",
                              "-e", "GREETING=it's \"me\" & you", "-e", "EMPTY=", "--", *MPIRUN,
                              "sh", "-c", 'echo "<$GREETING><${EMPTY-unset}>"; pwd')

        for rank in (0, 1):
            prefix = f"[{rank}@dist-worker-{rank}] "
            self.assertIn(prefix + "<it's \"me\" & you><>\n", ran.stdout)
            self.assertIn(prefix + f"{self.muster.work}\n", ran.stdout)

    def test_the_launcher_finds_the_names_of_open_mpi_4_and_of_5(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, *self.FLAGS, "--follow",
                              "--allow-launcher-only", "--no-prefix", "--", "env")

        variables = dict(line.split("=", 1) for line in ran.stdout.splitlines() if "=" in line)
        for name, value in {
                "OMPI_MCA_orte_default_hostfile": "/generated/hostfile",
                "PRTE_MCA_prte_default_hostfile": "/generated/hostfile",
                "OMPI_MCA_plm_rsh_args": "-F /generated/ssh/config",
                "PRTE_MCA_plm_ssh_args": "-F /generated/ssh/config"}.items():
            self.assertEqual(variables.get(name), value, name)

    def test_the_launcher_alone_runs_the_command(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--allow-launcher-only", "--follow",
                              "--", "hostname")

        self.assertEqual(ran.stdout, "[launcher] dist-launcher\n")
        self.assertIs(self.muster.job("dist")["spec"]["allow_launcher_only"], True)

    def test_a_command_that_runs_nothing_in_a_worker_fails_the_job(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, *self.FLAGS, "--follow", "--",
                              "hostname", code=1)

        self.assertEqual(ran.stdout, "[launcher] dist-launcher\n")
        self.assertIn("job 'dist' failed: the command ran only on the launcher: it started no process on a worker\n  start the program by mpirun (mpirun -np 2 PROGRAM)", ran.stderr)

    def test_a_script_that_reaches_a_worker_in_any_way_succeeds(self):
        for by, shell in (("ssh", "ssh -F /generated/ssh/config"), ("agent", '"$OMPI_MCA_plm_rsh_agent"')):
            for name, command in (("starts-ranks", " ".join(MPIRUN) + " true"),
                                  ("opens-a-shell", f"{shell} $MUSTER_JOB-worker-1 true")):
                with self.subTest(by=by, command=command):
                    job = f"{name}-{by}"
                    self.muster.run("submit", "mpi", job, "--workers", 2, "--launch", by, "--follow", "--",
                                    "sh", "-c", f"echo begin; {command}; echo end")
                    self.assertEqual(self.muster.job(job)["phase"], "Succeeded")

    def test_more_slots_per_worker_put_more_ranks_on_it(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--slots-per-worker", 2,
                              "--follow", "--no-prefix", "--", "mpirun", "--allow-run-as-root",
                              "-np", "4", "hostname")

        # On a busy machine mpirun itself may warn there that a child was quicker than its parent.
        said = without_mpirun_warnings(ran.stdout)
        self.assertEqual(sorted(said), ["dist-worker-0"] * 2 + ["dist-worker-1"] * 2)


# Imitates a rank of MPICH whose MPI_Finalize hangs: it waits for its process manager, and does not read the
# request of another rank. A real program hangs only in some of its runs.
HANGS = """\
import os, socket
listening = socket.create_server(("127.0.0.1", 0))
asks = socket.create_connection(listening.getsockname())
asked, _ = listening.accept()
asks.sendall(bytes(25))
print("waits", flush=True)
os.read(int(os.environ["PMI_FD"]), 1)
"""


class Mpich(MusterTest):

    def test_a_rank_that_hangs_in_mpi_finalize_fails_the_job_within_seconds_and_its_worker_is_named(self):
        script = self.muster.script("hangs.py", HANGS)

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", "mpiexec.hydra", "-n", 2,
                              "python3", script, code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertEqual(self.muster.job("dist")["phase"], "Failed")
        self.assertRegex(ran.stderr, r"job 'dist' failed: MPICH hangs in MPI_Finalize: a rank on worker-[01] waits for "
                                     r"the other ranks, which wait for its answer\n")
        self.assertIn("use Open MPI", ran.stderr)


if __name__ == "__main__":
    main()
