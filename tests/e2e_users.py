"""Jobs of an ordinary user, with a sandbox and without one, behave like those of root."""

import os
import pwd
import re
import shutil
import subprocess
import unittest

from muster_harness import DIGITS, DOCUMENTS_MPIRUN, MUSTER, ROOT, MusterTest, main
from own_accounts import make_account

SAY_WHO = "echo rank $OMPI_COMM_WORLD_RANK by $(id -un) on $(hostname) with $NCCL_DEBUG $GREETING"


class OrdinaryUser(MusterTest):
    """If root runs the tests, they run as a new user; otherwise as the current user."""

    def setUp(self):
        if os.geteuid() != 0:
            self.user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
            self.muster = self.new_muster()
            return
        self.user = f"muster-{os.getpid()}"
        home = f"/tmp/{self.user}"
        self.addCleanup(shutil.rmtree, home)
        made = make_account(self, self.user, "--create-home", "--home-dir", home, "--shell", "/bin/sh")
        uid, gid = made.pw_uid, made.pw_gid
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        self.muster = self.new_muster(prefix=become, uid=uid, binary=self.copy_of_programs())
        self.muster.environment |= {"USER": self.user, "LOGNAME": self.user}

    def copy_of_programs(self):
        """A copy of the programs and their data that every user may read: the clone may be in a folder of root."""
        folder = f"/tmp/{self.user}-programs-{os.getpid()}"
        os.mkdir(folder, 0o755)
        self.addCleanup(shutil.rmtree, folder)
        for program in (MUSTER, MUSTER.with_name("muster-shim"), DIGITS):
            if program.exists():
                shutil.copy(program, folder)
        shutil.copytree(ROOT / "examples" / "data" / "digits", os.path.join(folder, "data"))
        return os.path.join(folder, MUSTER.name)

    def documents_job(self, *flags):
        return self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "-e",
                               "GREETING=hello", *flags, "--", *DOCUMENTS_MPIRUN, "sh", "-c", SAY_WHO)

    def assert_each_rank_said_who(self, ran, hostname):
        said = sorted(re.findall(r"rank .*", ran.stdout))
        self.assertEqual(said, [f"rank {rank} by {self.user} on {hostname.format(rank)} with INFO hello"
                                for rank in (0, 1)], ran.stdout)
        self.assertRegex(ran.stderr, r"dist +Succeeded +0 ")

    def test_the_documents_command_runs_each_rank_on_a_worker_of_its_own(self):
        self.assert_each_rank_said_who(self.documents_job(), "dist-worker-{}")

    def test_the_documents_command_runs_without_a_sandbox_too(self):
        self.assert_each_rank_said_who(self.documents_job("--sandbox", "none"), os.uname().nodename)

    def test_it_trains_on_real_digits(self):
        self.assertTrue(DIGITS.exists(), f"{DIGITS} is not built")
        digits = self.muster.binary.with_name("digits")

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                              *DOCUMENTS_MPIRUN, digits, "--data", digits.with_name("data"))

        self.assertRegex(ran.stdout, r"test accuracy\D*9[6-9]")

    def test_single_jobs_run_as_the_user_and_cannot_become_root(self):
        ran = self.muster.run("run", "--no-prefix", "--", "sh", "-c", "id -un; touch /root/x; touch made")

        self.assertEqual(ran.stdout.splitlines()[0], self.user)
        self.assertEqual((self.muster.work / "made").owner(), self.user)
        self.assertFalse(os.path.exists("/root/x"))


@unittest.skipIf(os.geteuid() != 0, "only root becomes another account")
class Nobody(MusterTest):
    """A server with the account nobody. systemd reports this account as locked, and sshd refuses locked accounts."""

    copy_of_programs = OrdinaryUser.copy_of_programs

    def test_an_mpi_job_of_the_account_nobody_runs_over_ssh(self):
        self.user = "nobody"
        account = pwd.getpwnam(self.user)
        become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        self.muster = self.new_muster(prefix=become, uid=account.pw_uid, binary=self.copy_of_programs())
        self.muster.environment |= {"USER": self.user, "LOGNAME": self.user}

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--launch", "ssh", "--follow", "--",
                              *DOCUMENTS_MPIRUN, "sh", "-c", "id -un")

        self.assertEqual(len(re.findall(r"^\[\d@dist-worker-\d\] nobody$", ran.stdout, re.MULTILINE)), 2, ran.stdout)


class WithoutSandbox(MusterTest):

    def test_the_documents_command_runs_each_rank_on_a_worker_of_its_own(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--sandbox", "none", "--follow",
                              "--", *DOCUMENTS_MPIRUN, "sh", "-c", "echo said $MUSTER_TASK in $(pwd)")

        self.assertEqual(sorted(re.findall(r"^\[\d@.*said.*", ran.stdout, re.MULTILINE)), [
            f"[{rank}@dist-worker-{rank}] said worker-{rank} in {self.muster.work}" for rank in (0, 1)])
        self.assertFalse(os.path.exists("/generated"))

    def test_a_stopped_program_leaves_no_children(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--sandbox", "none", "--follow", "--",
                                    "sh", "-c", f"setsid sh -c '{gate.wait}' & setsid -f sh -c '{gate.wait}';"
                                    f" echo ready; {gate.wait}")
        follow.until("ready")

        self.muster.run("stop", "--now", "job")

        follow.finish()
        self.assertEqual(self.muster.job("job")["phase"], "Stopped")

    def test_a_missing_bubblewrap_is_reported_with_a_remedy(self):
        self.muster.environment["PATH"] = str(self.muster.folder)

        ran = self.muster.run("submit", "single", "job", "--follow", "--", "/bin/true", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("bubblewrap (bwrap) is not installed", ran.stderr)
        self.assertIn("apt install bubblewrap", ran.stderr)
        self.assertIn("--sandbox none", ran.stderr)
        self.assertEqual(self.muster.job("job")["phase"], "Failed")
        self.muster.run("run", "--sandbox", "none", "--", "/bin/true")

    def test_forbidden_namespaces_are_reported_with_a_remedy(self):
        # The error of bwrap if the kernel does not allow user namespaces.
        self.muster.script("bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\n"
                           "exit 1\n")
        self.muster.environment["PATH"] = f"{self.muster.work}:{os.environ['PATH']}"

        for kind in (("single",), ("mpi", "--workers", 2)):
            with self.subTest(kind[0]):
                ran = self.muster.run("submit", *kind[:1], kind[0], *kind[1:], "--follow", "--", "true",
                                      code=1)

                self.assertIn("No permissions to create new namespace", ran.stderr)
                self.assertIn("allow user namespaces", ran.stderr)
                self.assertIn("--sandbox none", ran.stderr)


class Sandbox(MusterTest):

    def test_each_task_has_a_host_name_a_process_tree_and_a_generated_folder_of_its_own(self):
        ran = self.muster.run("run", "--name", "job", "--no-prefix", "--", "sh", "-c",
                              "hostname; ps -e -o comm= | sort -u | tr '\\n' ' '; echo; ls -a /generated;"
                              " touch /generated/mine; ls /dev/shm | wc -l")

        lines = ran.stdout.splitlines()
        self.assertEqual(lines[0], "job-main")
        self.assertLessEqual(set(lines[1].split()), {"muster-shim", "ps", "sh", "sort", "tr"})
        self.assertEqual(lines[-1], "0")
        self.assertFalse(os.path.exists("/generated"))


if __name__ == "__main__":
    main()
