"""Ranks on other hosts, by a real ssh and sshd."""

import json
import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from launched import BOUND, Launched, Watched, environment, horovodrun, python
from ssh_hosts import SshHosts

SHOW = "import json, os; print(json.dumps(dict(os.environ, folder=os.getcwd())))"
READY_AND_WAIT = "import os, signal; print('pid', os.getpid(), flush=True); signal.pause()"

#: Joins a number of worlds, one after the other; the argument at the rank's position is the number.
MEET = """
import os, sys
from muster.common import basics
for turn in range(int(sys.argv[1 + int(os.environ["HOROVOD_RANK"])])):
    basics.init()
    print(turn, basics.rank(), basics.size())
    basics.shutdown()
"""


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts("alpha", "beta")
        cls.addClassCleanup(cls.hosts.close)

    def horovodrun(self, *words, **more):
        return horovodrun(*words, PATH=self.hosts.path, **more)

    def launched(self, *words, **more):
        run = Launched(*words, PATH=self.hosts.path, **more)
        self.addCleanup(run.__exit__)
        return run

    def watched(self, run, rank):
        process = Watched(run.until(f"[{rank}]<stdout>:pid "))
        self.addCleanup(process.close)
        return process

    def test_ranks_find_their_places_their_folder_and_the_callers_environment(self):
        ran = self.horovodrun("-np", 3, "-H", "alpha:2,beta:2", *python(SHOW), folder="/usr/share", ASKED="öä 'x' $y")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        seen = {}
        for line in ran.stdout.splitlines():
            prefix, _, text = line.partition("<stdout>:")
            seen[prefix] = json.loads(text)
        self.assertEqual(sorted(seen), ["[0]", "[1]", "[2]"])
        for rank, (host, local, cross) in enumerate([("alpha", "0/2", "0/2"), ("alpha", "1/2", "0/1"),
                                                     ("beta", "0/1", "1/2")]):
            here = seen[f"[{rank}]"]
            self.assertEqual(here["folder"], "/usr/share")
            self.assertEqual(here["ASKED"], "öä 'x' $y")
            self.assertEqual((here["HOROVOD_RANK"], here["HOROVOD_SIZE"], here["HOROVOD_HOSTNAME"]),
                             (str(rank), "3", host))
            self.assertEqual(f"{here['HOROVOD_LOCAL_RANK']}/{here['HOROVOD_LOCAL_SIZE']}", local)
            self.assertEqual(f"{here['HOROVOD_CROSS_RANK']}/{here['HOROVOD_CROSS_SIZE']}", cross)
            self.assertEqual(here["MUSTER_RENDEZVOUS_KEY"], seen["[0]"]["MUSTER_RENDEZVOUS_KEY"])
            self.assertNotIn("MUSTER_RENDEZVOUS_FILE", here)
            # An address of this machine only, which other machines cannot reach.
            self.assertTrue(here["MUSTER_ELASTIC_DRIVER"].startswith("127.0.0."), here["MUSTER_ELASTIC_DRIVER"])
        self.assertNotIn(seen["[0]"]["MUSTER_RENDEZVOUS_KEY"], self.hosts.command_lines)
        self.assertNotIn("ASKED", self.hosts.command_lines)

    def test_a_rank_that_fails_ends_those_of_other_hosts_and_its_code_is_the_runs(self):
        run = self.launched("-np", 2, "-H", "alpha,beta", *python(
            "import os, signal, sys\nprint('pid', os.getpid(), flush=True)\n"
            "os.environ['HOROVOD_RANK'] == '0' and signal.pause()\nopen(sys.argv[1]).read()\nsys.exit(7)", self.fifo()))
        survivor = self.watched(run, 0)
        self.watched(run, 1)
        self.open_fifo()
        self.assertEqual(run.finish().code, 7)
        self.assertIn("rank 1 on beta ended with exit code 7", run.errors)
        self.assertTrue(survivor.is_over_within(5))

    def fifo(self):
        self._fifo = str(self.hosts.folder / f"fifo-{self.id()}")
        os.mkfifo(self._fifo)
        return self._fifo

    def open_fifo(self):
        with open(self._fifo, "w"):
            pass

    def test_a_rank_that_is_killed_is_named_with_its_host_and_signal(self):
        run = self.launched("-np", 2, "-H", "alpha,beta", *python(READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in (0, 1)]
        ranks[1].kill()
        self.assertEqual(run.finish().code, 128 + signal.SIGKILL)
        self.assertIn("rank 1 on beta was killed by SIGKILL", run.errors)
        self.assertTrue(ranks[0].is_over_within(5))

    def test_a_host_that_cannot_be_reached_is_named_with_sshs_reason_and_no_rank_starts(self):
        ran = self.horovodrun("-np", 2, "-H", "alpha,no-such-host.invalid", "sh", "-c", "echo started")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertRegex(ran.stderr, "no-such-host.invalid cannot be reached: .*resolve hostname")
        self.assertIn("no rank was started", ran.stderr)

    def test_a_host_whose_key_is_not_known_is_not_trusted(self):
        with SshHosts("alpha") as other:
            (other.folder / "known_hosts").write_text("")
            ran = horovodrun("-np", 1, "-H", "alpha", "echo", "started", PATH=other.path)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("alpha cannot be reached: Host key verification failed.", ran.stderr)

    def test_what_a_login_prints_does_no_harm(self):
        with SshHosts("alpha", login="Welcome to alpha, this is no frame") as other:
            ran = horovodrun("-np", 1, "-H", "alpha", "echo", "started", PATH=other.path)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "[0]<stdout>:started\n", ""))

    def test_a_missing_program_or_folder_is_an_error_that_names_the_host(self):
        ran = self.horovodrun("-np", 1, "-H", "beta", "no-such-program")
        self.assertEqual(ran.returncode, 127)
        self.assertIn("rank 0 on beta could not be started: the program 'no-such-program' cannot be used on beta: "
                      "No such file or directory", ran.stderr)

    def test_ctrl_c_ends_the_ranks_of_all_hosts(self):
        run = self.launched("-np", 2, "-H", "alpha,beta", *python(READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in (0, 1)]
        run.signal(signal.SIGINT)
        self.assertEqual(run.finish().code, 130)
        self.assertTrue(all(rank.is_over_within(5) for rank in ranks))

    def test_the_end_of_the_launcher_leaves_no_rank_on_any_host(self):
        run = self.launched("-np", 3, "-H", "alpha,beta,localhost", *python(READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in (0, 1, 2)]
        run.signal(signal.SIGKILL)
        for rank in ranks:
            self.assertTrue(rank.is_over_within())

    def test_a_host_that_is_gone_ends_the_run_and_is_named(self):
        with SshHosts("alpha", "gone") as hosts:
            with Launched("-np", 2, "-H", "alpha,gone", *python(READY_AND_WAIT), PATH=hosts.path) as run:
                ranks = [self.watched(run, rank) for rank in (0, 1)]
                hosts.cut("gone")
                self.assertEqual(run.finish().code, 1)
                self.assertIn("rank 1 on gone is gone: the connection to it was lost", run.errors)
                self.assertTrue(ranks[0].is_over_within(5))
                self.assertTrue(ranks[1].is_over_within())

    def test_megabytes_of_both_streams_come_whole_from_two_hosts(self):
        program = ("import os, sys\nrank = os.environ['HOROVOD_RANK']\n"
                   "for n in range(20000):\n"
                   "    print('out', rank, n, 'x' * 50)\n    print('err', rank, n, 'y' * 50, file=sys.stderr)\n")
        ran = self.horovodrun("-np", 2, "-H", "alpha,beta", *python(program), PYTHONUNBUFFERED=None)
        self.assertEqual(ran.returncode, 0)
        for name, said, filling in (("out", ran.stdout, "x"), ("err", ran.stderr, "y")):
            lines = said.splitlines()
            for rank in (0, 1):
                stream = {"out": "stdout", "err": "stderr"}[name]
                own = [line for line in lines if line.startswith(f"[{rank}]")]
                self.assertEqual(own, [f"[{rank}]<{stream}>:{name} {rank} {n} {filling * 50}" for n in range(20000)])

    def test_ranks_of_several_hosts_meet_as_often_as_they_like(self):
        for hosts in ("alpha:2,beta:1", "localhost:1,beta:2", "beta:3"):
            with self.subTest(hosts):
                ran = self.horovodrun("-np", 3, "-H", hosts, *python(MEET, "3", "3", "3"))
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(sorted(ran.stdout.splitlines()),
                                 [f"[{rank}]<stdout>:{turn} {rank} 3" for rank in range(3) for turn in range(3)])

    def test_in_a_muster_job_its_remote_shell_reaches_the_hosts_of_its_hostfile(self):
        with tempfile.TemporaryDirectory() as folder:
            # Like muster-rsh, it sets no addresses, and passes the command to a shell.
            shell = Path(folder) / "remote-shell"
            shell.write_text("#!/bin/sh\nshift\nunset SSH_CONNECTION HOROVOD_LOG_LEVEL\n"
                             "OF_TASK=own exec sh -c \"$*\"\n")
            shell.chmod(0o700)
            (Path(folder) / "hostfile").write_text("127.0.0.2 slots=1\n127.0.0.3 slots=1\n")
            job = {"MUSTER_GENERATED": folder, "OMPI_MCA_plm_rsh_agent": str(shell)}
            ran = horovodrun(*python(MEET, "1", "1"), **job)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertEqual(sorted(ran.stdout.splitlines()), ["[0]<stdout>:0 0 2", "[1]<stdout>:0 1 2"])
            seen = horovodrun("-np", 1, *python(SHOW), **job, OF_TASK="the launcher's", HOROVOD_LOG_LEVEL="info")
            here = json.loads(seen.stdout.partition(":")[2])
            self.assertEqual((here["OF_TASK"], here["HOROVOD_LOG_LEVEL"]), ("own", "info"))
            self.assertTrue(here["MUSTER_ELASTIC_DRIVER"].startswith("127.0.0."), here["MUSTER_ELASTIC_DRIVER"])

    def test_a_rank_that_waits_for_an_ended_rank_is_reported(self):
        ran = self.horovodrun("-np", 2, "-H", "alpha,beta", *python(MEET, "1", "2"))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("rank 1 calls init() again, but rank 0 has ended and will not join", ran.stderr)

    def test_run_calls_a_function_on_all_hosts(self):
        program = ("import os, muster.runner\n"
                   "print(muster.runner.run(os.getenv, ('HOROVOD_HOSTNAME',), hosts='alpha:2,beta:1'))\n")
        ran = subprocess.run(python(program), env=environment(PATH=self.hosts.path), capture_output=True, text=True,
                             timeout=BOUND)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "['alpha', 'alpha', 'beta']\n", ""))


if __name__ == "__main__":
    unittest.main()
