"""The limits of tasks, as root (control groups) and as an ordinary account (measured by the shim)."""

import os
import re
import shutil
import subprocess
import unittest

from muster_harness import MUSTER, MusterTest, main

# Allocates memory in pieces of 10 MiB and reports each piece.
HOG = "\n".join((
    "import sys",
    "held = []",
    "for piece in range(1, 60):",
    "    held.append(b'x' * (10 << 20))",
    "    print('holds', piece * 10, 'MiB', flush=True)",
    "print('was not stopped')"))

FORKS = "\n".join((
    "import os, time",
    "made = 0",
    "try:",
    "    for _ in range(300):",
    "        if os.fork() == 0:",
    "            time.sleep(60)",
    "            os._exit(0)",
    "        made += 1",
    "except OSError as error:",
    "    print('refused after', made, 'processes:', error.strerror, flush=True)",
    "else:",
    "    time.sleep(30)",
    "    print('was not stopped')"))


class Limits:
    """The tests, for each kind of account."""

    def configured(self, text):
        self.muster.configure(text)
        if hasattr(self, "uid"):
            subprocess.run(["chown", "-R", str(self.uid), self.muster.home], check=True)

    def follow(self, *words, code=None):
        return self.muster.run("submit", "single", "job", "--follow", *words, code=code)

    def test_a_task_that_takes_more_memory_than_it_claims_is_killed_with_limit_and_peak(self):
        ran = self.follow("--memory", "100Mi", "--", "python3", "-c", HOG)

        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("was not stopped", ran.stdout)
        self.assertRegex(ran.stderr, r"its memory limit is 100Mi, its peak was [\d.]+[MG]i\b")
        end = self.muster.job("job")["tasks"][0]["exit"]
        self.assertTrue(end["out_of_memory"])
        self.assertIn("memory", ran.stderr)

    def test_a_task_within_its_claim_runs(self):
        ran = self.follow("--memory", "300Mi", "--", "python3", "-c", "held = b'x' * (50 << 20); print('fine')",
                          code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_task_gets_no_more_processes_than_it_may_have(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", FORKS)

        self.assertNotIn("was not stopped", ran.stdout)
        self.assertRegex(ran.stdout + ran.stderr, r"refused after \d\d processes|processes and threads; the limit is 40")

    def test_a_program_beside_the_tasks_own_is_within_its_limits(self):
        self.configured("tasks: {processes: 40}\n")
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo up; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("up")

        ran = self.muster.run("exec", "job", "--", "python3", "-c", FORKS, code=None)

        self.assertNotIn("was not stopped", ran.stdout)
        self.assertTrue("refused after" in ran.stdout or ran.returncode == 137, ran.stdout + ran.stderr)

    def test_a_task_writes_no_larger_file_and_opens_no_more_files_than_it_may(self):
        self.configured("tasks: {file_size: 1Mi, open_files: 50}\n")

        ran = self.follow("--", "sh", "-c", "head -c 5000000 /dev/zero > $TMPDIR/big; wc -c < $TMPDIR/big; ulimit -n",
                          code=0)

        self.assertEqual(re.findall(r"\d+$", ran.stdout, re.MULTILINE), [str(1 << 20), "50"])

    def test_a_task_that_fills_the_disk_is_killed_with_the_reason(self):
        self.configured("tasks: {scratch: 20Mi}\n")

        ran = self.follow("--", "sh", "-c", "while true; do head -c 10000000 /dev/zero >> $TMPDIR/big; sleep 0.1; done")

        self.assertNotEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr, r"its scratch folders held [\d.]+Mi; the limit is 20Mi")
        self.assertIn("tasks.scratch", ran.stderr)


class AsThisAccount(Limits, MusterTest):

    def test_no_control_group_of_a_task_is_left(self):
        self.follow("--memory", "100Mi", "--", "true", code=0)

        left = subprocess.run(["find", "/sys/fs/cgroup", "-path", "*/muster/*", "-type", "d", "-name",
                               self.muster.job("job")["id"] + "*"], capture_output=True, text=True).stdout
        self.assertEqual(left, "")


@unittest.skipIf(os.geteuid() != 0, "only root can become another account")
class AsAnOrdinaryAccount(Limits, MusterTest):

    def setUp(self):
        self.user = f"muster-l{os.getpid()}"
        home = f"/tmp/{self.user}"
        self.addCleanup(shutil.rmtree, home)
        subprocess.run(["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", self.user],
                       check=True)
        self.addCleanup(subprocess.run, ["userdel", self.user], check=True, capture_output=True)
        self.uid, gid = (int(subprocess.run(["id", flag, self.user], capture_output=True, text=True).stdout)
                         for flag in ("-u", "-g"))
        programs = f"/tmp/{self.user}-programs"
        os.mkdir(programs, 0o755)
        self.addCleanup(shutil.rmtree, programs)
        for program in (MUSTER, MUSTER.with_name("muster-shim")):
            shutil.copy(program, programs)
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={gid}", "--clear-groups"]
        self.muster = self.new_muster(prefix=become, uid=self.uid, binary=f"{programs}/{MUSTER.name}")
        self.muster.environment |= {"USER": self.user, "LOGNAME": self.user}


if __name__ == "__main__":
    main()
