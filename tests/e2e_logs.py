"""`muster logs` prints every byte of the output exactly once, and does not keep long logs in memory."""

import base64
import hashlib
import json
import re
import select
import subprocess
import time

from muster_harness import (BOUND, MPIRUN, MusterTest, Typed, await_end, descendants, main, read_bytes,
                            without_mpirun_warnings)

# /proc/PID/syscall of a process that waits in poll(2) (number 7 on x86-64) without a time limit.
POLLS_FOREVER = re.compile(r"7 0x\w+ 0x\w+ 0xffffffff ")

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.?\d*Z"


class LookingAtLogs(MusterTest):

    def lines_of(self, name, *flags):
        return self.muster.logs(name, *flags).splitlines()

    def test_the_follow_shows_earlier_output_and_ends_with_the_job(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c",
                        f"echo before; {gate.wait}; echo after")
        follow = self.muster.stream("logs", "job", "-f")
        self.assertEqual(follow.line(), "[main] before")
        self.assertEqual(self.lines_of("job"), ["[main] before"])

        gate.open()

        self.assertEqual(follow.finish(), 0)
        self.assertEqual(follow.text, "[main] before\n[main] after\n")

    def test_a_part_of_a_line_is_shown_before_its_newline_comes(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", "--", "sh", "-c",
                                    f"printf 'loss: '; {gate.wait}; echo 0.1")
        shown = b""
        while not shown.endswith(b"loss: "):
            self.assertTrue(select.select([follow.process.stdout], [], [], BOUND)[0], shown)
            shown += follow.process.stdout.read1(100)

        gate.open()

        self.assertEqual(shown + follow.process.stdout.read(), b"[main] loss: 0.1\n")

    def test_ranks_have_prefixes_and_are_in_the_logs_of_their_tasks(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", *MPIRUN, "sh", "-c",
                        "echo out; echo err >&2")

        lines = self.lines_of("dist")
        for rank in (0, 1):
            for word in ("out", "err"):
                self.assertEqual(lines.count(f"[{rank}@dist-worker-{rank}] {word}"), 1, lines)
        self.assertEqual(sorted(self.lines_of("dist", "--task", "worker-1")),
                         ["[1@dist-worker-1] err", "[1@dist-worker-1] out"])
        self.assertNotIn("out", "".join(self.lines_of("dist", "--task", "launcher")))
        self.assertIn("out", self.lines_of("dist", "--no-prefix"))

    def test_a_script_can_read_the_output_of_mpirun(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", "sh", "-c",
                        "echo begin; \"$@\" | sed 's/^/seen: /'", "launch", *MPIRUN, "echo", "out")

        lines = without_mpirun_warnings("\n".join(self.lines_of("dist")))
        self.assertEqual(lines, ["[launcher] begin", "[launcher] seen: out", "[launcher] seen: out"])

    def test_tail_shows_the_last_lines_and_timestamps_their_times(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "seq", "100")

        self.assertEqual(self.lines_of("job", "--tail", "3"), [f"[main] {n}" for n in (98, 99, 100)])
        self.assertEqual(self.lines_of("job", "--tail", "0"), [])
        self.assertEqual(len(self.lines_of("job", "--tail", "1000")), 100)
        for line in self.lines_of("job", "--tail", "2", "--timestamps"):
            self.assertRegex(line, rf"^{TIME} \[main\] \d+$")

    def test_since_shows_only_later_output(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", "--timestamps", "--", "sh",
                                    "-c", f"echo one; {gate.wait}; echo two")
        follow.until("one")
        # Times are shown in milliseconds: the clock moves on by one before the second line is printed.
        first = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == first:
            pass
        gate.open()
        second = follow.until("two").split()[0]
        follow.finish()

        self.assertEqual(self.lines_of("job", "--since", second), ["[main] two"])
        self.assertEqual(self.lines_of("job", "--since", "2099-01-01T00:00:00Z"), [])
        self.assertEqual(self.lines_of("job", "--since", "1h"), ["[main] one", "[main] two"])

    def test_lines_of_one_task_keep_their_order_without_loss(self):
        ran = self.muster.run("run", "--no-prefix", "--", "seq", "100000")

        self.assertEqual(hashlib.sha256(ran.stdout.encode()).hexdigest(), hashlib.sha256(
            "".join(f"{n}\n" for n in range(1, 100001)).encode()).hexdigest())

    def test_short_lines_of_all_ranks_printed_fast_are_merged_without_loss(self):
        ran = self.muster.run("run", "-n", 2, "--", "sh", "-c",
                              "for i in $(seq 2000); do echo line $i; done")

        for rank in (0, 1):
            lines = re.findall(rf"^\[{rank}@[^]]*\] line (\d+)$", ran.stdout, re.MULTILINE)
            self.assertEqual(lines, [str(n) for n in range(1, 2001)])


    def test_ranks_and_lines_can_be_selected(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", *MPIRUN, "sh", "-c",
                        "echo loss: 0.5; echo rate: 3; echo loss: 0.25 >&2")

        self.assertEqual(sorted(self.lines_of("dist", "--rank", "1")),
                         [f"[1@dist-worker-1] {text}" for text in ("loss: 0.25", "loss: 0.5", "rate: 3")])
        nothing = self.muster.run("logs", "dist", "--rank", "7")
        self.assertEqual(nothing.stdout, "")
        self.assertIn("muster: no line of 'dist' matches --rank 7\n", nothing.stderr)
        self.assertEqual(sorted(self.lines_of("dist", "--grep", r"loss: 0\.\d$", "--no-prefix")),
                         ["loss: 0.5", "loss: 0.5"])
        bad = self.muster.run("logs", "dist", "--grep", "(", code=2)
        self.assertIn("'(' is not a pattern", bad.stderr)

    def test_records_are_json_with_all_fields_of_a_line(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", *MPIRUN, "sh", "-c",
                        r"printf 'caf\303\251\n'; printf 'raw \377\n' >&2")

        followed = self.lines_of("dist", "--follow", "--output", "json")
        records = [json.loads(line) for line in followed]

        self.assertEqual(self.lines_of("dist", "-o", "json"), followed)
        for rank in (0, 1):
            of_rank = {record["stream"]: record for record in records if record.get("rank") == rank}
            self.assertEqual(of_rank["output"]["text"], "caf\u00e9")
            self.assertEqual(base64.b64decode(of_rank["error"]["base64"]), b"raw \xff")
            for record in of_rank.values():
                self.assertRegex(record["time"], rf"^{TIME}$")
                self.assertEqual((record["task"], record["host"], record["attempt"]),
                                 (f"worker-{rank}", f"dist-worker-{rank}", 1))

    def test_the_tags_of_mpirun_and_mpiexec_are_ranks(self):
        for name, launch, variable in (("open", [*MPIRUN, "--tag-output"], "OMPI_COMM_WORLD_RANK"),
                                       ("mpich", ["mpiexec.hydra", "-n", "2", "-l"], "PMI_RANK")):
            self.muster.run("submit", "mpi", name, "--workers", 2, "--follow", "--", *launch, "sh", "-c",
                            f"echo rank ${variable}")

            self.assertEqual(self.lines_of(name, "--rank", "1"), ["[1] rank 1"], "its host is unknown")
            self.assertEqual(sorted(self.lines_of(name, "--no-prefix", "--grep", "^rank")),
                             ["rank 0", "rank 1"])


class OnATerminal(MusterTest):

    def typed(self, *words):
        command = Typed(self.muster, *words)
        self.addCleanup(command.close)
        self.assertEqual(command.finish(), 0, command.text)
        return command.text.replace(b"\r\n", b"\n")

    def test_colours_appear_only_on_terminals_and_not_with_no_color(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "echo", "hi")
        self.muster.environment["TERM"] = "xterm"
        self.assertEqual(self.typed("logs", "job"), b"\x1b[32m[main]\x1b[0m hi\n")
        self.assertEqual(self.muster.logs("job"), "[main] hi\n")

        self.muster.environment["NO_COLOR"] = "1"
        self.assertEqual(self.typed("logs", "job"), b"[main] hi\n")

    def test_terminal_controls_are_made_harmless(self):
        script = self.muster.script(
            "evil.py", "import sys\n"
            "sys.stdout.buffer.write(b'\\x1b]0;title\\a \\x1b[2J\\x1b[10Aup \\x1b[31mred\\x1b[0m \\x1b[6n"
            "\\xc2\\x9b31m\\x08\\n'\n"
            "b'\\r 10%|#   |\\r 99%|### |\\r100%|####|\\n')\n")
        self.muster.run("submit", "single", "job", "--follow", "--", "python3", script)
        self.muster.environment.update(TERM="xterm", NO_COLOR="1")

        shown = self.typed("logs", "job", "--no-prefix")

        self.assertEqual(shown, b"\\x1b]0;title\\x07 up red \\u009b31m\\x08\n100%|####|\n")

    def test_repeated_lines_are_counted(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "sh", "-c",
                        "for i in $(seq 42); do echo WARNING; done; echo done")
        self.muster.environment.update(TERM="xterm", NO_COLOR="1")

        self.assertEqual(self.typed("logs", "job"),
                         b"[main] WARNING\n[main] ... (repeated 41 times)\n[main] done\n")
        self.assertEqual(self.typed("logs", "job", "--no-fold").count(b"WARNING"), 42)
        self.assertEqual(self.muster.logs("job").count("WARNING"), 42)

    def test_a_follower_sees_a_repeated_line_at_once_and_its_count_before_anything_else_comes(self):
        gate = self.muster.gate()
        self.muster.environment.update(TERM="xterm", NO_COLOR="1")
        self.muster.run("submit", "single", "job", "--", "sh", "-c",
                        f"echo WARNING; echo WARNING; echo WARNING; {gate.wait}")
        follow = Typed(self.muster, "logs", "-f", "job")
        self.addCleanup(follow.close)

        follow.until(b"[main] WARNING")
        follow.until(b"[main] ... (repeated 2 times)")

        gate.open()
        self.assertEqual(follow.finish(), 0)


# Open MPI names a failed rank only after mpirun has recorded that all ranks run; before, it reports only the exit code.
# mpirun passes the end of its standard input, which is empty here, to rank 0 just before it records that, so a rank
# that fails in between is not named. So rank 0 opens a gate at the end of its input, and the other ranks wait at a
# second gate, which the test opens when mpirun has nothing left to do.
class FailureReports(MusterTest):

    def setUp(self):
        super().setUp()
        self.all_started = self.muster.gate("all-started")
        self.may_fail = self.muster.gate("may-fail")
        self.all_ranks_run = (f"if [ $MUSTER_RANK = 0 ]; then read end; {self.all_started.tell()}; "
                              f"exec sleep 60; fi; {self.may_fail.wait}; ")

    def await_idle_mpirun(self):
        """Waits until the job's mpirun waits for events without a time limit, which means that it has handled all."""
        launcher = self.muster.shim_of(self.muster.job("job"), "launcher")
        mpirun, = [pid for pid in descendants(launcher) if read_bytes(f"/proc/{pid}/comm") == b"mpirun\n"]
        deadline = time.monotonic() + BOUND
        while not POLLS_FOREVER.match(call := read_bytes(f"/proc/{mpirun}/syscall").decode()):
            self.assertLess(time.monotonic(), deadline, call)
            self.assertFalse(await_end(mpirun, 0.01), "mpirun has ended")

    def failed(self, *command, kind="mpi", code=None, waits=False):
        """The failure of a job, and what its follower printed on standard error. `waits`: its ranks wait until all
        of them run (all_ranks_run)."""
        flags = ["--workers", 2] if kind == "mpi" else []
        ran = self.muster.stream("submit", kind, "job", *flags, "--follow", "--", *command)
        if waits:
            self.all_started.pass_through()
            self.await_idle_mpirun()
            self.may_fail.open()
        ended = ran.finish()
        self.assertNotEqual(ended, 0)
        if code is not None:
            self.assertEqual(ended, code)
        return self.muster.job("job")["failure"], ran.errors

    def test_a_rank_that_exits_is_named_with_its_own_last_lines(self):
        failure, told = self.failed(
            *MPIRUN, "sh", "-c", "echo hello from $MUSTER_RANK; " + self.all_ranks_run +
            "echo 'no data in /data' >&2; exit 3", code=3, waits=True)

        self.assertEqual((failure["task"], failure["rank"], failure["cause"]),
                         ("worker-1", 1, "rank 1 on worker-1 exited with code 3"))
        self.assertEqual(sorted(failure["last_lines"]), ["hello from 1", "no data in /data"])
        self.assertIn("muster: job 'job' failed: rank 1 on worker-1 exited with code 3\n  last lines:\n",
                      told)
        self.assertNotIn("Primary job", told)
        page = self.muster.run("get", "job").stdout
        self.assertIn("FAILURE\n  rank 1 on worker-1 exited with code 3\n", page)

    def test_a_rank_that_is_killed_is_named_with_the_signal(self):
        failure, _ = self.failed(
            *MPIRUN, "sh", "-c", self.all_ranks_run + "echo last; kill -9 $$", code=137, waits=True)

        self.assertEqual((failure["task"], failure["rank"]), ("worker-1", 1))
        self.assertTrue(failure["cause"].startswith(
            "rank 1 on worker-1 was killed by signal 9 (SIGKILL)"), failure)
        self.assertEqual(failure["last_lines"], ["last"])
        self.assertIn("memory", failure["advice"])

    def test_a_python_exception_is_the_cause_with_its_place(self):
        script = self.muster.script("train.py", "import os\nimport no_such_module\n")

        failure, _ = self.failed(
            *MPIRUN, "sh", "-c", self.all_ranks_run + f"exec python3 {script}", code=1, waits=True)

        self.assertEqual(failure["cause"],
                         "rank 1 on worker-1 exited with code 1: ModuleNotFoundError: "
                         "No module named 'no_such_module' (train.py, line 2)")
        self.assertIn("--workspace", failure["advice"])

    def test_a_script_that_calls_mpirun_still_names_the_rank(self):
        failure, _ = self.failed(
            "sh", "-c", '"$@" 2>&1', "launch", *MPIRUN, "sh", "-c",
            self.all_ranks_run + "echo about to fail; exit 3", code=3, waits=True)

        self.assertEqual((failure["task"], failure["rank"]), ("worker-1", 1))
        self.assertEqual(failure["last_lines"], ["[launcher] about to fail"])

    def test_a_killed_rank_of_mpich_is_identified_by_its_host(self):
        failure, _ = self.failed(
            "mpiexec.hydra", "-n", "2", "sh", "-c",
            "[ $PMI_RANK = 0 ] && exec sleep 60; echo about to fail; kill -9 $$")

        self.assertEqual(failure["task"], "worker-1")
        self.assertTrue(failure["cause"].startswith("a rank on worker-1 was killed by signal 9"), failure)
        self.assertIn("[launcher] about to fail", failure["last_lines"])

    def test_the_output_of_a_single_program_leads_to_advice(self):
        failure, _ = self.failed("sh", "-c", "echo 'bind: Address already in use' >&2; exit 1",
                                 kind="single", code=1)

        self.assertEqual(failure["cause"],
                         "main exited with code 1: its port is in use by another program")
        self.assertIn("MASTER_PORT", failure["advice"])


class AwkwardLogs(MusterTest):

    def test_binary_output_is_printed_unchanged(self):
        script = self.muster.script(
            "bytes.py", "import sys\n"
            "sys.stdout.buffer.write(bytes(range(256)) * 1000 + b'\\xff\\xfe\\r\\0\\n')\n")

        ran = self.muster.run("run", "--no-prefix", "--name", "binary", "--", "python3", script,
                              text=False)

        wanted = bytes(range(256)) * 1000 + b"\xff\xfe\r\0\n"
        self.assertEqual(ran.stdout, wanted)
        self.assertEqual(self.muster.run("logs", "binary", "--no-prefix", text=False).stdout, wanted)

    def test_a_line_longer_than_the_servers_memory_is_streamed_exactly(self):
        # Twice the memory that the server may use: any copy of the line would exceed it.
        megabytes = 192
        size = megabytes << 20
        self.muster.environment["MUSTER_LOG_QUOTA"] = "1Gi"
        self.muster.run("submit", "single", "long", "--", "sh", "-c",
                        f"head -c {size - 1} /dev/zero | tr '\\0' x; echo")

        following, followed = self.digest_of("logs", "long", "-f", "--no-prefix")
        reading, read = self.digest_of("logs", "long", "--no-prefix")

        wanted = hashlib.sha256()
        for _ in range(megabytes - 1):
            wanted.update(b"x" * (1 << 20))
        wanted.update(b"x" * ((1 << 20) - 1) + b"\n")
        self.assertEqual((following, reading), (size, size))
        self.assertEqual((followed, read), (wanted.hexdigest(),) * 2)
        status = read_bytes(f"/proc/{self.muster.server_pid()}/status").decode()
        peak_kb = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
        self.assertLess(peak_kb, 100_000)

    def digest_of(self, *words):
        """(the number of bytes that a command prints, their hash)"""
        digest, count = hashlib.sha256(), 0
        with subprocess.Popen(self.muster.argv(*words), env=self.muster.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            while data := process.stdout.read1(1 << 20):
                digest.update(data)
                count += len(data)
        self.assertEqual(process.returncode, 0)
        return count, digest.hexdigest()


class FullDisk(MusterTest):
    """Tests in which the state folder is a small file system, in a mount namespace of bubblewrap."""

    SIZE = 8 << 20

    def on_a_small_disk(self, script):
        """Runs a shell script with a state folder of SIZE bytes."""
        self.muster.state.mkdir(mode=0o700)
        ran = subprocess.run(
            ["bwrap", "--dev-bind", "/", "/", "--size", str(self.SIZE), "--perms", "0700", "--tmpfs",
             str(self.muster.state), "sh", "-ec", script.replace("muster ", f"{self.muster.binary} "),
             "sh", str(self.muster.state)],
            env=self.muster.environment, cwd=self.muster.work, capture_output=True, text=True,
            timeout=BOUND)
        self.assertEqual(ran.returncode, 0, ran.stdout[-3000:] + ran.stderr[-3000:])
        return ran

    def get(self):
        return json.loads((self.muster.work / "job.json").read_text())

    def lost_bytes(self, log, job):
        """The number of missing bytes; the log, the task and an event must report the same number."""
        said = re.findall(rb"(\d+) bytes of output are lost here: the disk under the log was full", log)
        lost = sum(map(int, said))
        self.assertEqual(job["tasks"][0]["exit"]["lost_log_bytes"], lost)
        events = [event["text"] for event in job["events"]]
        self.assertIn(f"main: {lost} bytes of its output are lost: the disk of its log was full", events)
        return lost

    def test_a_job_that_fills_the_disk_ends_with_its_own_code_and_reports_the_loss(self):
        self.on_a_small_disk(
            f"muster submit single job -- sh -c 'head -c {3 * self.SIZE} /dev/zero | tr \"\\0\" x; exit 7'\n"
            "muster logs job -f --no-prefix > log\n"
            "muster get job -o json > job.json\n"
            "muster server --stop\n")

        job = self.get()
        exit_status = job["tasks"][0]["exit"]
        self.assertEqual((job["phase"], job["exit_code"], exit_status["code"]), ("Failed", 7, 7))
        log = (self.muster.work / "log").read_bytes()
        self.assertEqual(log.count(b"x") + self.lost_bytes(log, job), 3 * self.SIZE, exit_status)

    def test_a_log_continues_after_a_full_disk_and_reports_the_loss(self):
        self.on_a_small_disk(
            f"head -c {self.SIZE // 2} /dev/zero > $1/filler\n"
            f"muster submit single job -- sh -c \"head -c {self.SIZE} /dev/zero | tr '\\0' x;"
            " rm $1/filler; printf 'room again'\"\n"
            "muster logs job -f --no-prefix > log\n"
            "muster get job -o json > job.json\n"
            "muster server --stop\n")

        self.assertEqual(self.get()["phase"], "Succeeded")
        log = (self.muster.work / "log").read_bytes()
        self.assertEqual(log.count(b"x") + self.lost_bytes(log, self.get()), self.SIZE)
        self.assertTrue(log.endswith(b"room again\n"), log[-300:])

    def test_a_job_that_lost_half_of_its_log_succeeds_and_reports_it(self):
        self.on_a_small_disk(
            f"muster submit single job -- sh -c 'head -c {2 * self.SIZE} /dev/zero | tr \"\\0\" x'\n"
            "muster logs job -f --no-prefix > log\n"
            "muster get job -o json > job.json\n"
            "muster get job > page\n"
            "muster server --stop\n")

        job = self.get()
        self.assertEqual(job["phase"], "Succeeded")
        lost = self.lost_bytes((self.muster.work / "log").read_bytes(), job)
        self.assertGreater(lost, self.SIZE)
        self.assertIn(f"main: {lost} bytes of its output are lost", (self.muster.work / "page").read_text())

    def test_a_job_that_cannot_start_on_a_full_disk_advises_a_remedy(self):
        self.muster.state.mkdir(mode=0o700)
        jobs = self.muster.state / "jobs"
        jobs.mkdir(mode=0o700)
        script = (f"{self.muster.binary} list\n"
                  f"head -c {1 << 20} /dev/zero > {jobs}/filler || true\n"
                  f"{self.muster.binary} submit single job --follow -- true || true\n"
                  f"rm {jobs}/filler\n"
                  f"{self.muster.binary} server --stop\n")
        ran = subprocess.run(
            ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 19), "--perms", "0700", "--tmpfs", str(jobs),
             "sh", "-ec", script],
            env=self.muster.environment, cwd=self.muster.work, capture_output=True, text=True, timeout=BOUND)

        self.assertIn("No space left on device", ran.stderr)
        self.assertIn(f"the disk under '{jobs}' is full: free space there (muster delete", ran.stderr)

    def test_a_server_that_cannot_start_on_a_full_disk_advises_a_remedy(self):
        ran = self.on_a_small_disk(
            f"head -c {2 * self.SIZE} /dev/zero > $1/filler || true\n"
            "muster list 2> refusal || true\n")

        refusal = (self.muster.work / "refusal").read_text()
        self.assertIn(f"the disk under '{self.muster.state}' is full: free space there", refusal, ran.stderr)


if __name__ == "__main__":
    main()
