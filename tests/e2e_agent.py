"""--launch agent: Muster's own remote shell starts the ranks of each MPI."""

import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from muster_harness import MPIRUN, MusterTest, main

# A C program whose ranks compute a sum by MPI.
PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char** words) {
  int rank = 0, size = 0, sum = 0;
  char host[256];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int own = rank + 1;
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s: sum %d\n", rank, size, host, sum);
  for (int line = 0; count > 2 && line < atoi(words[2]); ++line) {
    printf("%d line %d of much\n", rank, line);
  }
  fflush(stdout);
  if (count > 1 && strcmp(words[1], "die") == 0) rank == 1 ? raise(9) : pause();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""

HYDRA = ["mpiexec.hydra", "-np", "2"]

# Debian's MPICH uses UCX, whose MPI_Finalize sometimes hangs. If a run must succeed, its ranks read their
# number from Hydra's variables and do not use MPI.
HYDRA_RANK = ("sh", "-c", 'echo "rank $PMI_RANK of $PMI_SIZE on $(hostname): sum 3"; i=0; '
              'while [ $i -lt ${2:-0} ]; do echo "$PMI_RANK line $i of much"; i=$((i + 1)); done', "rank")


class ByAgent(MusterTest):

    @classmethod
    def setUpClass(cls):
        cls.programs = Path(tempfile.mkdtemp(prefix="muster-mpi-"))
        cls.addClassCleanup(shutil.rmtree, cls.programs)
        (cls.programs / "sum.c").write_text(PROGRAM)
        for compiler in ("mpicc.openmpi", "mpicc.mpich"):
            subprocess.run([compiler, "-o", cls.programs / compiler.removeprefix("mpicc."),
                            cls.programs / "sum.c"], check=True)

    def submit(self, *words, code=0, flags=()):
        return self.muster.run("submit", "mpi", "dist", "--workers", 2, "--launch", "agent",
                               *flags, "--follow", "--no-prefix", "--", *words, code=code)

    def both(self):
        return (("openmpi", MPIRUN, (self.programs / "openmpi",)), ("mpich", HYDRA, HYDRA_RANK))

    def launch_facts(self):
        return json.loads(self.muster.run("get", "dist", "--output", "json").stdout)["launch"]

    def assert_one_rank_on_each_worker(self, output):
        self.assertEqual(sorted(line for line in output.splitlines() if "sum" in line),
                         [f"rank {rank} of 2 on dist-worker-{rank}: sum 3" for rank in (0, 1)])

    def test_open_mpi_starts_a_rank_on_each_worker_without_ssh(self):
        ran = self.submit("sh", "-c", f"ls /generated; exec {' '.join(MPIRUN)} {self.programs}/openmpi")

        self.assert_one_rank_on_each_worker(ran.stdout)
        self.assertIn("rsh", ran.stdout.split())
        self.assertNotIn("ssh", ran.stdout.split())
        facts = self.launch_facts()
        self.assertEqual(facts["by"], "agent")
        self.assertRegex(facts["mpi"], r"^Open MPI 4\.")

    def test_mpich_starts_a_rank_on_each_worker_without_ssh(self):
        ran = self.submit(*HYDRA, *HYDRA_RANK)

        self.assert_one_rank_on_each_worker(ran.stdout)
        facts = self.launch_facts()
        self.assertEqual(facts["by"], "agent")
        self.assertRegex(facts["mpi"], r"^MPICH 4\.")

    def test_open_mpi_and_mpich_run_without_a_sandbox(self):
        for name, launcher, rank in self.both():
            ran = self.submit(*launcher, *rank, flags=["--sandbox", "none"])
            self.assertEqual(len(re.findall(r"rank \d of 2 on .*: sum 3", ran.stdout)), 2, name)
            self.muster.run("delete", "dist")

    def test_a_rank_that_is_killed_fails_the_job_and_is_named(self):
        for name, launcher in (("openmpi", MPIRUN), ("mpich", HYDRA)):
            self.submit(*launcher, self.programs / name, "die", code=None)
            self.assertEqual(self.muster.ended("dist")["phase"], "Failed", name)
            self.assertIn("signal 9", self.muster.run("get", "dist").stdout, name)
            self.muster.run("delete", "dist")

    def test_every_line_of_much_output_arrives(self):
        for name, launcher, program in self.both():
            followed = self.submit(*launcher, *program, "live", 20000).stdout
            # A follow shows the beginning of a line whose end is late, and begins a new line if another
            # rank prints meanwhile. The log of an ended job has whole lines.
            log = self.muster.run("logs", "dist", "--no-prefix").stdout
            self.assertEqual(Counter(followed.replace("\n", "")), Counter(log.replace("\n", "")), name)
            for rank in (0, 1):
                lines = re.findall(rf"^{rank} line (\d+) of much$", log, re.MULTILINE)
                self.assertTrue(lines == [str(line) for line in range(20000)],
                                f"{name}, rank {rank}: {len(lines)} lines")
            self.muster.run("delete", "dist")

    def test_a_shell_in_a_task_reaches_the_others_by_rsh(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "mpi", "dist", "--workers", 2, "--launch", "agent",
                                    "--follow", "--", "sh", "-c", f"echo up; {gate.wait}")
        follow.until("up")

        ran = self.muster.run("bash", "dist",
                              input="echo 'from here' | rsh dist-worker-1 'hostname; cat'\n")
        lost = self.muster.run("bash", "dist", input="exec rsh dist-worker-7 true\n", code=255)

        self.assertEqual(ran.stdout, "dist-worker-1\nfrom here\n")
        self.assertIn("this job has no host 'dist-worker-7'; its hosts are dist-worker-0, dist-worker-1",
                      lost.stderr)
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)


if __name__ == "__main__":
    main()
