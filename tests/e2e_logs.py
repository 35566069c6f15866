"""What `muster logs` shows, and that not a byte of it is lost, made up or held in memory."""

import hashlib
import json
import re
import select
import shutil
import subprocess
import time

from muster_harness import BOUND, MPIRUN, MusterTest, read_bytes, main

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.?\d*Z"


class LookingAtLogs(MusterTest):

    def lines_of(self, name, *flags):
        return self.muster.logs(name, *flags).splitlines()

    def test_the_follow_ends_with_the_job_and_shows_what_came_before_it(self):
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

    def test_ranks_are_told_apart_by_their_prefix_and_found_in_their_own_tasks(self):
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

    def test_a_script_that_runs_mpirun_reads_what_mpirun_prints(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", "sh", "-c",
                        "echo begin; \"$@\" | sed 's/^/seen: /'", "launch", *MPIRUN, "echo", "out")

        lines = [line for line in self.lines_of("dist") if "setpgid" not in line]
        self.assertEqual(lines, ["[launcher] begin", "[launcher] seen: out", "[launcher] seen: out"])

    def test_tail_shows_the_last_lines_and_timestamps_their_times(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "seq", "100")

        self.assertEqual(self.lines_of("job", "--tail", "3"), [f"[main] {n}" for n in (98, 99, 100)])
        self.assertEqual(self.lines_of("job", "--tail", "0"), [])
        self.assertEqual(len(self.lines_of("job", "--tail", "1000")), 100)
        for line in self.lines_of("job", "--tail", "2", "--timestamps"):
            self.assertRegex(line, rf"^{TIME} \[main\] \d+$")

    def test_since_shows_only_what_came_from_then_on(self):
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

    def test_lines_of_one_task_keep_their_order_and_none_is_lost(self):
        ran = self.muster.run("run", "--no-prefix", "--", "seq", "100000")

        self.assertEqual(hashlib.sha256(ran.stdout.encode()).hexdigest(), hashlib.sha256(
            "".join(f"{n}\n" for n in range(1, 100001)).encode()).hexdigest())

    def test_short_lines_of_all_ranks_printed_fast_are_merged_and_none_is_lost(self):
        ran = self.muster.run("run", "-n", 2, "--", "sh", "-c",
                              "for i in $(seq 2000); do echo line $i; done")

        for rank in (0, 1):
            lines = re.findall(rf"^\[{rank}@[^]]*\] line (\d+)$", ran.stdout, re.MULTILINE)
            self.assertEqual(lines, [str(n) for n in range(1, 2001)])


class AwkwardLogs(MusterTest):

    def test_binary_bytes_come_out_as_they_went_in(self):
        script = self.muster.script(
            "bytes.py", "import sys\n"
            "sys.stdout.buffer.write(bytes(range(256)) * 1000 + b'\\xff\\xfe\\r\\0\\n')\n")

        ran = self.muster.run("run", "--no-prefix", "--name", "binary", "--", "python3", script,
                              text=False)

        wanted = bytes(range(256)) * 1000 + b"\xff\xfe\r\0\n"
        self.assertEqual(ran.stdout, wanted)
        self.assertEqual(self.muster.run("logs", "binary", "--no-prefix", text=False).stdout, wanted)

    def test_a_gigabyte_on_one_line_is_streamed_exactly_in_little_memory(self):
        size = 1 << 30
        if shutil.disk_usage(self.muster.folder).free < 2 * size:
            self.skipTest("less than 2 GiB are free for a log of one")
        self.muster.run("submit", "single", "long", "--", "sh", "-c",
                        f"head -c {size - 1} /dev/zero | tr '\\0' x; echo")

        following, followed = self.digest_of("logs", "long", "-f", "--no-prefix")
        reading, read = self.digest_of("logs", "long", "--no-prefix")

        wanted = hashlib.sha256()
        for _ in range(1023):
            wanted.update(b"x" * (1 << 20))
        wanted.update(b"x" * ((1 << 20) - 1) + b"\n")
        self.assertEqual((following, reading), (size, size))
        self.assertEqual((followed, read), (wanted.hexdigest(),) * 2)
        status = read_bytes(f"/proc/{self.muster.server_pid()}/status").decode()
        peak_kb = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
        self.assertLess(peak_kb, 100_000)

    def digest_of(self, *words):
        """(how many bytes a command prints, their hash)"""
        digest, count = hashlib.sha256(), 0
        with subprocess.Popen(self.muster.argv(*words), env=self.muster.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            while data := process.stdout.read1(1 << 20):
                digest.update(data)
                count += len(data)
        self.assertEqual(process.returncode, 0)
        return count, digest.hexdigest()


class FullDisk(MusterTest):
    """The state folder is a small file system of its own, in a mount namespace of bubblewrap's."""

    SIZE = 8 << 20

    def on_a_small_disk(self, script):
        """Runs a piece of shell where the state folder holds SIZE bytes."""
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

    def lost_bytes(self, log, exit_status):
        """How many bytes are told to be missing: in the log where there was room again to say so, or
        else with how the task ended."""
        said = re.findall(rb"(\d+) bytes of output are lost here: the disk under the log was full", log)
        said += re.findall(r"(\d+) bytes of its log are lost: the disk was full",
                           exit_status["explanation"])
        self.assertTrue(said, exit_status)
        return sum(map(int, said))

    def test_a_job_that_fills_the_disk_ends_with_its_own_code_and_the_loss_is_told(self):
        self.on_a_small_disk(
            f"muster submit single job -- sh -c 'head -c {3 * self.SIZE} /dev/zero | tr \"\\0\" x; exit 7'\n"
            "muster logs job -f --no-prefix > log\n"
            "muster get job -o json > job.json\n"
            "muster server --stop\n")

        job = self.get()
        exit_status = job["tasks"][0]["exit"]
        self.assertEqual((job["phase"], job["exit_code"], exit_status["code"]), ("Failed", 7, 7))
        log = (self.muster.work / "log").read_bytes()
        self.assertEqual(log.count(b"x") + self.lost_bytes(log, exit_status), 3 * self.SIZE, exit_status)

    def test_a_log_goes_on_when_there_is_room_again_and_says_how_much_it_lacks(self):
        self.on_a_small_disk(
            f"head -c {self.SIZE // 2} /dev/zero > $1/filler\n"
            f"muster submit single job -- sh -c \"head -c {self.SIZE} /dev/zero | tr '\\0' x;"
            " rm $1/filler; printf 'room again'\"\n"
            "muster logs job -f --no-prefix > log\n"
            "muster get job -o json > job.json\n"
            "muster server --stop\n")

        self.assertEqual(self.get()["phase"], "Succeeded")
        log = (self.muster.work / "log").read_bytes()
        self.assertEqual(log.count(b"x") + self.lost_bytes(log, self.get()["tasks"][0]["exit"]), self.SIZE)
        self.assertTrue(log.endswith(b"room again\n"), log[-300:])


if __name__ == "__main__":
    main()
