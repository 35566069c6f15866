"""Runs on this host: the environment of ranks, the output, and the ends of runs."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from muster.runner.endings import lost_rank_in

from launched import BOUND, Launched, Watched, command_line, environment, horovodrun, python

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
READY_AND_WAIT = "import os, signal; print('pid', os.getpid(), flush=True); signal.pause()"


class Local(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def launched(self, *words, **more):
        run = Launched(*words, **more)
        self.addCleanup(run.__exit__)
        return run

    def watched(self, run, rank, word="pid"):
        process = Watched(run.until(f"[{rank}]<stdout>:{word} "))
        self.addCleanup(process.close)
        return process


class Environment(Local):
    def test_each_rank_finds_its_place_by_both_names_and_one_key_for_all(self):
        ran = horovodrun("-np", 3, *python(SHOW), TMPDIR=str(self.folder), XDG_RUNTIME_DIR=None)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        seen = {line[:3]: json.loads(line.partition(":")[2]) for line in ran.stdout.splitlines()}
        for rank in range(3):
            here = seen[f"[{rank}]"]
            expected = {"MUSTER_RANK": rank, "MUSTER_WORLD_SIZE": 3, "HOROVOD_RANK": rank, "HOROVOD_SIZE": 3,
                        "HOROVOD_LOCAL_RANK": rank, "HOROVOD_LOCAL_SIZE": 3, "HOROVOD_CROSS_RANK": 0,
                        "HOROVOD_CROSS_SIZE": 1, "HOROVOD_HOSTNAME": "localhost", "HOROVOD_CONTROLLER": "gloo",
                        "HOROVOD_CPU_OPERATIONS": "gloo"}
            self.assertEqual({name: here.get(name) for name in expected},
                             {name: str(value) for name, value in expected.items()})
            self.assertRegex(here["MUSTER_RENDEZVOUS_KEY"], "^[0-9a-f]{64}$")
            self.assertEqual(here["HOROVOD_SECRET_KEY"], here["MUSTER_RENDEZVOUS_KEY"])
            self.assertEqual(Path(here["MUSTER_RENDEZVOUS_FILE"]).parent.parent, self.folder)
            self.assertNotIn("HOROVOD_ELASTIC", here)
        self.assertEqual(len({each["MUSTER_RENDEZVOUS_KEY"] for each in seen.values()}), 1)
        self.assertEqual(len({each["MUSTER_RENDEZVOUS_FILE"] for each in seen.values()}), 1)

    def test_the_folder_where_ranks_meet_is_private_and_gone_afterwards(self):
        program = ("import os; folder = os.path.dirname(os.environ['MUSTER_RENDEZVOUS_FILE'])\n"
                   "print(oct(os.stat(folder).st_mode), os.listdir(folder)); "
                   "open(os.environ['MUSTER_RENDEZVOUS_FILE'], 'w').close()")
        ran = horovodrun("-np", 1, *python(program), TMPDIR=str(self.folder), XDG_RUNTIME_DIR=None)
        self.assertEqual(ran.stdout, "[0]<stdout>:0o40700 []\n")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_every_run_has_a_key_of_its_own_and_no_command_line_shows_it(self):
        program = ("import os, pathlib; key = os.environ['MUSTER_RENDEZVOUS_KEY'].encode()\n"
                   "def content(path):\n"
                   "    try: return path.read_bytes()\n"
                   "    except OSError: return b''\n"  # the process has ended
                   "seen = [p for p in map(pathlib.Path, os.listdir('/proc')) if p.name.isdigit()\n"
                   "        and key in content('/proc' / p / 'cmdline')]\n"
                   "print(key.decode(), seen)")
        said = [horovodrun("-np", 1, *python(program)).stdout for _ in range(2)]
        self.assertNotEqual(said[0], said[1])
        for each in said:
            self.assertRegex(each, r"^\[0\]<stdout>:[0-9a-f]{64} \[\]\n$")

    def test_nothing_of_another_run_is_inherited(self):
        other = {"OMPI_COMM_WORLD_RANK": "7", "PMI_RANK": "7", "RANK": "7", "MUSTER_RENDEZVOUS": "elsewhere:1",
                 "MUSTER_ELASTIC_DRIVER": "elsewhere:2", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "elsewhere",
                 "HOROVOD_ELASTIC": "1"}
        ran = horovodrun("-np", 1, *python(SHOW), HOROVOD_CYCLE_TIME="3", **other)
        here = json.loads(ran.stdout.partition(":")[2])
        self.assertEqual({name for name in other if name in here}, set())
        self.assertEqual(here["HOROVOD_CYCLE_TIME"], "3")

    def test_ranks_read_nothing_and_inherit_no_descriptor(self):
        program = "import os; print(os.read(0, 1), sorted(os.listdir('/proc/self/fd')))"
        with open(os.devnull) as extra:
            os.set_inheritable(extra.fileno(), True)
            ran = subprocess.run(command_line("-np", 2, *python(program)), env=environment(), capture_output=True,
                                 text=True, timeout=BOUND, input="for nobody", close_fds=False)
        # 3 is the descriptor of the listed folder.
        self.assertEqual(sorted(ran.stdout.splitlines()),
                         [f"[{rank}]<stdout>:b'' ['0', '1', '2', '3']" for rank in (0, 1)])

    def test_tuning_options_become_variables_of_the_ranks(self):
        ran = horovodrun("-np", 1, "--fusion-threshold-mb", 32, "--timeline-filename", "t.json", "--no-stall-check",
                         "--network-interface", "lo", *python(SHOW), folder=self.folder)
        here = json.loads(ran.stdout.partition(":")[2])
        self.assertEqual((here["HOROVOD_FUSION_THRESHOLD"], here["HOROVOD_TIMELINE"], here["HOROVOD_GLOO_IFACE"],
                          here["HOROVOD_STALL_CHECK_DISABLE"]), (str(32 << 20), f"{self.folder}/t.json", "lo", "1"))


class Endings(Local):
    def test_the_first_that_fails_ends_the_others_and_its_code_is_the_runs(self):
        run = self.launched("-np", 3, *python("import os, sys\nos.environ['HOROVOD_RANK'] == '1' and sys.exit(9)\n"
                                              + READY_AND_WAIT))
        self.assertEqual(run.finish().code, 9)
        self.assertIn("horovodrun: rank 1 on localhost ended with exit code 9; see its lines above; "
                      "ending the 2 other ranks\n", run.errors)

    def test_a_rank_that_left_the_others_is_named_and_not_the_rank_that_failed_because_of_that(self):
        for ends, code, named in (("sys.exit(9)", 9, "rank 1 on localhost ended with exit code 9"),
                                  ("sys.exit(0)", 3, "rank 0 on localhost ended with exit code 3")):
            with self.subTest(ends), Launched("-np", 3, *python(
                    "import os, signal, sys\nrank = os.environ['HOROVOD_RANK']\n"
                    "if rank == '0': print('pid', os.getpid(), flush=True), "
                    "sys.stderr.write('HorovodInternalError: rank 1 on host here has left the session: "
                    "bye\\n'), sys.exit(3)\n"
                    "signal.signal(signal.SIGUSR1, lambda *_: " + ends + ")\n" + READY_AND_WAIT)) as run:
                run.until("[0]<stderr>:HorovodInternalError", "[1]<stdout>:pid ", "[2]<stdout>:pid ")
                self.assertTrue(self.watched(run, 0).is_over_within())
                self.watched(run, 1).kill(signal.SIGUSR1)
                self.assertEqual(run.finish().code, code)
                self.assertIn(f"horovodrun: {named}; see its lines above; ending the other rank\n", run.errors)

    def test_a_rank_that_followed_a_follower_is_not_waited_for_in_place_of_the_rank_that_left_first(self):
        run = self.launched("-np", 3, *python(
            "import os, signal, sys\nrank = os.environ['HOROVOD_RANK']\n"
            "def end(*_):\n"
            "    if rank == '1': sys.exit(9)\n"
            "    lost = '1' if rank == '0' else '0'\n"
            "    sys.stderr.write(f'HorovodInternalError: rank {lost} on host here has left the session: bye\\n')\n"
            "    sys.exit(3)\n"
            "signal.signal(signal.SIGUSR1, end)\n" + READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in range(3)]
        for rank in (0, 2, 1):
            ranks[rank].kill(signal.SIGUSR1)
            self.assertTrue(ranks[rank].is_over_within())
        self.assertEqual(run.finish().code, 9)
        self.assertIn("horovodrun: rank 1 on localhost ended with exit code 9; see its lines above\n", run.errors)

    def test_a_rank_that_did_not_answer_is_not_waited_for(self):
        self.assertEqual(lost_rank_in(b"rank 1 on host here has left the session"), "1")
        self.assertIsNone(lost_rank_in(b"rank 1 on host here did not answer for 60 s"))

    def test_a_rank_that_is_killed_is_named_with_the_signal(self):
        run = self.launched("-np", 2, *python(READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in (0, 1)]
        ranks[0].kill(signal.SIGSEGV)
        self.assertEqual(run.finish().code, 128 + signal.SIGSEGV)
        self.assertIn("rank 0 on localhost was killed by SIGSEGV: run it with PYTHONFAULTHANDLER=1", run.errors)
        self.assertTrue(ranks[1].is_over_within(5))

    def test_a_rank_that_ignores_the_request_to_end_is_killed(self):
        run = self.launched("-np", 2, *python(
            "import os, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY_AND_WAIT))
        ranks = [self.watched(run, rank) for rank in (0, 1)]
        ranks[1].kill()
        self.assertEqual(run.finish().code, 128 + signal.SIGKILL)
        self.assertTrue(ranks[0].is_over_within(5))

    def test_signals_end_all_ranks_in_order(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(number), Launched("-np", 2, *python(
                    "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(3)))\n"
                    + READY_AND_WAIT)) as run:
                ranks = [self.watched(run, rank) for rank in (0, 1)]
                run.signal(number)
                self.assertEqual(run.finish().code, code)
                self.assertIn("[0]<stdout>:bye\n", run.output)
                self.assertIn("[1]<stdout>:bye\n", run.output)
                self.assertTrue(all(rank.is_over_within(5) for rank in ranks))

    def test_a_second_ctrl_c_ends_ranks_that_ignore_the_first(self):
        run = self.launched("-np", 2, *python(
            "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True))\n"
            "print('pid', os.getpid(), flush=True)\nwhile True: signal.pause()"))
        ranks = [self.watched(run, rank) for rank in (0, 1)]
        run.signal(signal.SIGINT)
        run.until("[0]<stdout>:heard", "[1]<stdout>:heard")
        run.signal(signal.SIGINT)
        self.assertEqual(run.finish().code, 130)
        self.assertTrue(all(rank.is_over_within() for rank in ranks))

    def test_the_end_of_the_launcher_leaves_neither_ranks_nor_their_children_nor_the_folder_where_they_met(self):
        run = self.launched("-np", 2, *python(
            "import os, subprocess, sys\nopen(os.environ['MUSTER_RENDEZVOUS_FILE'], 'w').close()\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
            "print('child', child.pid, flush=True)\n" + READY_AND_WAIT), TMPDIR=str(self.folder), XDG_RUNTIME_DIR=None)
        processes = [self.watched(run, rank, word) for rank in (0, 1) for word in ("pid", "child")]
        own = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        guards = [Watched(pid) for pid in own]
        for guard in guards:
            self.addCleanup(guard.close)
        self.assertEqual(len(list(self.folder.iterdir())), 1)
        run.signal(signal.SIGKILL)
        self.assertTrue(all(process.is_over_within() for process in [*processes, *guards]))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_child_processes_of_a_rank_are_ended_with_it_and_do_not_delay_the_run(self):
        run = self.launched("-np", 1, "sh", "-c", "sleep 1000 & echo child $!; exit 0")
        child = self.watched(run, 0, "child")
        self.assertEqual(run.finish().code, 0)
        self.assertTrue(child.is_over_within())

    def test_a_process_that_left_the_session_with_the_output_open_does_not_delay_the_run(self):
        run = self.launched("-np", 1, *python(
            "import subprocess\n"
            "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "print('child', child.pid, flush=True)"))
        child = self.watched(run, 0, "child")
        self.assertEqual(run.finish().code, 0)
        self.assertFalse(child.is_over_within(0))
        child.kill()

    def test_a_rank_that_ends_with_0_does_not_end_others(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        run = self.launched("-np", 2, *python(
            "import os, sys\nrank = os.environ['HOROVOD_RANK']\nprint('pid', os.getpid(), flush=True)\n"
            "rank == '0' and sys.exit(0)\nprint(open(sys.argv[1]).read())", str(fifo)))
        first = self.watched(run, 0)
        self.watched(run, 1)
        self.assertTrue(first.is_over_within())
        fifo.write_text("still there")
        self.assertEqual(run.finish().code, 0)
        self.assertIn("[1]<stdout>:still there\n", run.output)

    def test_a_missing_program_is_an_error(self):
        ran = horovodrun("-np", 2, "no-such-program")
        self.assertEqual(ran.returncode, 127)
        self.assertIn("the program 'no-such-program' cannot be used: No such file or directory", ran.stderr)
        file = self.folder / "no-program"
        file.write_text("")
        ran = horovodrun("-np", 1, file)
        self.assertEqual(ran.returncode, 126)
        self.assertIn("Permission denied", ran.stderr)

    def test_a_missing_working_folder_is_an_error(self):
        ran = subprocess.run(["sh", "-c", 'mkdir "$0" && cd "$0" && rmdir "$0" && "$@"', self.folder / "gone",
                              *command_line("-np", 1, "--output-filename", "relative", "--timeline-filename", "t",
                                            "echo", "x")],
                             env=environment(), capture_output=True, text=True, timeout=BOUND)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
        self.assertIn("the working folder, in which the ranks start, cannot be used: No such file", ran.stderr)
        self.assertNotIn("Traceback", ran.stderr)

    def test_standard_streams_that_are_closed_do_no_harm(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            said = self.folder / "said"
            ran = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command_line(
                "-np", 2, "sh", "-c", f"echo out; echo err >&2; echo $HOROVOD_RANK >> {said}")], env=environment(),
                capture_output=True, timeout=BOUND)
            self.assertEqual(ran.returncode, 0, (closed, ran))
            self.assertEqual(sorted(said.read_text().split()), ["0", "1"])
            said.unlink()


class Output(Local):
    def test_streams_stay_apart_with_their_rank_before_each_line(self):
        ran = horovodrun("-np", 2, "sh", "-c", "echo out; echo; printf 'no end'; echo err >&2")
        for rank in (0, 1):
            own = [line for line in ran.stdout.splitlines() if line.startswith(f"[{rank}]")]
            self.assertEqual(own, [f"[{rank}]<stdout>:{text}" for text in ("out", "", "no end")])
        self.assertEqual(sorted(ran.stderr.splitlines()), ["[0]<stderr>:err", "[1]<stderr>:err"])

    def test_megabytes_of_both_streams_of_four_ranks_come_whole_and_in_order(self):
        program = ("import os, sys\nrank = os.environ['HOROVOD_RANK']\n"
                   "for n in range(20000):\n"
                   "    print('out', rank, n, 'x' * (n % 180))\n    print('err', rank, n, 'y' * 90, file=sys.stderr)\n")
        ran = horovodrun("-np", 4, "--output-filename", self.folder / "logs", *python(program), PYTHONUNBUFFERED=None)
        self.assertEqual(ran.returncode, 0)
        for stream, name, text in (("stdout", "out", ran.stdout), ("stderr", "err", ran.stderr)):
            by_rank = {str(rank): [] for rank in range(4)}
            for line in text.splitlines():
                match = re.fullmatch(rf"\[(\d)\]<{stream}>:(.*)", line)
                self.assertIsNotNone(match, line)
                by_rank[match[1]].append(match[2])
            for rank, lines in by_rank.items():
                expected = [f"{name} {rank} {n} " + ("x" * (n % 180) if name == "out" else "y" * 90)
                            for n in range(20000)]
                self.assertEqual(lines, expected)
                self.assertEqual((self.folder / "logs" / f"rank.{rank}" / stream).read_text().splitlines(), expected)

    def test_files_of_output_have_every_byte_and_folders_numbers_of_one_width(self):
        ran = horovodrun("-np", 11, "--output-filename", "logs", "sh", "-c", "printf '\\001\\r\\nx'",
                         folder=self.folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(sorted(each.name for each in (self.folder / "logs").iterdir()),
                         [f"rank.{rank:02}" for rank in range(11)])
        self.assertEqual((self.folder / "logs" / "rank.10" / "stdout").read_bytes(), b"\x01\r\nx")

    def test_lines_with_the_time(self):
        ran = horovodrun("-np", 1, "--prefix-output-with-timestamp", "echo", "here")
        match = re.fullmatch(r"(.+?)\[0\]<stdout>:here\n", ran.stdout)
        time.strptime(match[1])

    def test_a_closed_output_ends_the_run(self):
        program = "import os\nwhile True: print('y' * 1000)"
        with subprocess.Popen(command_line("-np", 2, *python(program)), env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            run.stdout.readline()
            run.stdout.close()
            self.assertEqual(run.wait(BOUND), 141)

    def test_an_output_folder_that_cannot_be_created_is_an_error(self):
        (self.folder / "file").write_text("")
        ran = horovodrun("-np", 1, "--output-filename", self.folder / "file", "echo", "x")
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"{self.folder}/file/rank.0: Not a directory; the run has ended", ran.stderr)

    def test_a_full_device_is_named_and_ends_the_run(self):
        (self.folder / "rank.0").mkdir()
        (self.folder / "rank.0" / "stdout").symlink_to("/dev/full")
        ran = horovodrun("-np", 2, "--output-filename", self.folder, "sh", "-c", "echo x; exec sleep 1000")
        self.assertEqual((ran.returncode, ran.stderr), (
            1, f"horovodrun: {self.folder}/rank.0/stdout: No space left on device; the run has ended\n"))
        ran = subprocess.run(["sh", "-c", '"$@" > /dev/full', "sh", *command_line("-np", 2, "echo", "x")],
                             env=environment(), stderr=subprocess.PIPE, text=True, timeout=BOUND)
        self.assertEqual((ran.returncode, ran.stderr), (
            1, "horovodrun: standard output: No space left on device; the run has ended\n"))


if __name__ == "__main__":
    unittest.main()
