"""Copying files out of tasks and into them: `muster cp`, through a real server."""

import os
import signal
import socket
import stat
import time
from pathlib import Path

from muster_harness import BOUND, MusterTest, await_no_process, main, processes_naming, read_bytes

MB = 1 << 20


def tree_of(folder):
    """The content of a folder: path -> type, mode, content or target, and time."""
    entries = {}
    for path in sorted(Path(os.fsencode(folder).decode(errors="surrogateescape")).rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            what = ("link", os.readlink(path))
        elif path.is_dir():
            what = ("folder", stat.S_IMODE(status.st_mode), status.st_mtime_ns)
        elif not path.is_file():
            what = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode))
        else:
            what = ("file", stat.S_IMODE(status.st_mode), path.read_bytes(), status.st_mtime_ns)
        entries[str(path.relative_to(folder))] = what
    return entries


def peak_of(pid):
    """The peak memory of a process, in bytes."""
    for line in read_bytes(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"process {pid} is gone")


class CopyingFiles(MusterTest):

    def setUp(self):
        super().setUp()
        self.gate = self.muster.gate()
        self.there = self.muster.work / "there"  # the task's folder
        self.there.mkdir()
        self.muster.run("submit", "single", "job", "--folder", self.there, "--env",
                        "LD_LIBRARY_PATH=/nowhere", "--env", "PATH=/usr/bin:/bin", "--", "sh", "-c",
                        f"echo up; {self.gate.wait}")
        self.assertEqual(self.muster.stream("logs", "job", "-f").line(), "[main] up")

    def cp(self, *words, **options):
        return self.muster.run("cp", *words, **options)

    def make_tree(self, folder):
        (folder / "a" / "empty").mkdir(parents=True)
        (folder / "a" / "run.sh").write_text("#!/bin/sh\n")
        (folder / "a" / "run.sh").chmod(0o750)
        (folder / "a" / "link").symlink_to("../nowhere")
        os.link(folder / "a" / "run.sh", folder / "same")
        Path(os.fsdecode(os.fsencode(folder) + b"/odd \xff\n\x1b[31m")).write_bytes(b"x" * 70_000)
        (folder / "-rf").write_text("a name like a flag")
        (folder / "hole").touch()
        os.truncate(folder / "hole", 10 * MB)
        (folder / "a" / "empty").chmod(0o555)
        for path in (folder / "a" / "run.sh", folder / "a" / "empty", folder):
            os.utime(path, ns=(0, 981_173_106_123_456_789))

    def test_a_tree_is_unchanged_after_copying_it_in_and_out(self):
        here = self.muster.work / "here"
        self.make_tree(here)

        sent = self.cp("here", "job:new")
        fetched = self.cp("job:new", "back")

        self.assertEqual(tree_of(self.there / "new"), tree_of(here))
        self.assertEqual(tree_of(self.muster.work / "back"), tree_of(here))
        self.assertEqual((self.muster.work / "back" / "same").stat().st_nlink, 2)
        self.assertLess((self.muster.work / "back" / "hole").stat().st_blocks * 512, MB)
        for ran in (sent, fetched):
            self.assertEqual(ran.stdout, "")
            self.assertEqual(ran.stderr, "muster: copied 6 files, 10.1 MiB\n")

    def test_the_target_path_is_chosen_as_by_cp(self):
        (self.muster.work / "f").write_text("f")
        (self.muster.work / "d").mkdir()
        (self.muster.work / "d" / "x").write_text("x")

        self.cp("f", "job:")
        self.cp("f", "job:g")
        self.cp("d", "job:.")
        self.cp("d/.", "job:d2")
        self.cp("f", "d", "job/main:d2")
        self.cp("--task", "main", "f", f"job:{self.there}/d2/abs")

        self.assertEqual(sorted(tree_of(self.there)),
                         ["d", "d/x", "d2", "d2/abs", "d2/d", "d2/d/x", "d2/f", "d2/x", "f", "g"])
        self.cp("job:f", "job:d2", "d")
        self.cp("job:..", "above")  # the content of the folder that the task's folder lies in
        self.assertEqual((self.muster.work / "d" / "d2" / "d" / "x").read_text(), "x")
        self.assertEqual((self.muster.work / "above" / "there" / "f").read_text(), "f")
        self.cp("job:../there/./f", "h")
        self.assertEqual((self.muster.work / "h").read_text(), "f")

    def test_faults_are_reported_and_nothing_is_created(self):
        (self.muster.work / "f").write_text("f")
        os.mkfifo(self.there / "fifo")
        before = tree_of(self.muster.work / "there" / "..")
        cases = [
            (["job:none", "x"], 3, "there is no 'none'"),
            (["none", "job:x"], 3, "there is no 'none'"),
            (["job:/dev/zero", "x"], 2, "'/dev/zero' is a device: only files and folders"),
            (["job:fifo", "x"], 2, "'fifo' is a fifo: only files and folders"),
            (["/dev/zero", "job:x"], 2, "'/dev/zero' is a device: only files and folders"),
            (["job:none/", "x"], 3, "there is no 'none'"),
            (["f", "job:none/"], 3, "there is no folder 'none/'"),
            (["f", "job:none/x"], 3, "there is no folder 'none/'"),
            (["job:.", "f"], 4, "'f' is not a folder, and a folder cannot be copied there"),
            (["f", "x"], 2, "write JOB:PATH for a path in a job"),
            (["job:a", "job:b"], 2, "cannot copy from job to job"),
            (["f", "job:a", "job:b"], 2, "copy them with two commands"),
            (["job:a"], 2, "give a source and a destination"),
            (["--task", "worker-7", "job:f", "x"], 3, "has no task 'worker-7'"),
            (["nobody:f", "x"], 3, "nobody"),
        ]
        for words, code, sentence in cases:
            with self.subTest(words=words):
                self.assertIn(sentence, self.cp(*words, code=code).stderr)
        # Of several sources, the missing folder is reported once.
        for words, code, sentence in (
                (["f", "f", "job:none"], 3, "muster: there is no folder 'none/'\n"),
                (["f", "f", "job:none/"], 3, "muster: there is no folder 'none/'\n"),
                (["job:fifo", "job:fifo", "none"], 3, "muster: there is no folder 'none'\n"),
                (["job:fifo", "job:fifo", "none/"], 3, "muster: there is no folder 'none/'\n"),
                (["job:fifo", "job:fifo", "f"], 4, "'f' is not a folder, and several files cannot be copied there")):
            with self.subTest(words=words):
                ran = self.cp(*words, code=code)
                self.assertEqual(ran.stderr.count(sentence), 1, ran.stderr)
        self.assertEqual(tree_of(self.muster.work / "there" / ".."), before)

    def test_a_named_link_is_followed_and_others_stay_links(self):
        (self.there / "real").mkdir()
        (self.there / "real" / "x").write_text("x")
        (self.there / "real" / "loop").symlink_to("../real")
        (self.there / "link").symlink_to("real")

        self.cp("job:link", "copy")

        self.assertEqual((self.muster.work / "copy" / "x").read_text(), "x")
        self.assertEqual(os.readlink(self.muster.work / "copy" / "loop"), "../real")

    def test_files_that_cannot_be_copied_are_named_and_the_rest_is_copied(self):
        (self.there / "d").mkdir()
        (self.there / "d" / "x").write_text("x")
        os.mkfifo(self.there / "d" / "\x1b[31mfifo")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.there / "d" / "socket"))
            skipped = self.cp("job:d", "copy")
        (self.muster.work / "copy" / "d").mkdir()
        (self.muster.work / "copy" / "d" / "x").mkdir()

        in_the_way = self.cp("job:d", "copy", code=1)

        self.assertIn("muster: 'd/\\x1b[31mfifo' is a fifo: skipped\n", skipped.stderr)
        self.assertIn("muster: 'd/socket' is a socket: skipped\n", skipped.stderr)
        self.assertEqual((self.muster.work / "copy" / "x").read_text(), "x")
        self.assertIn("muster: 'copy/d/x' is a folder there\n", in_the_way.stderr)
        self.assertIn("1 entry failed, see above", in_the_way.stderr)

    def test_the_beginning_of_a_growing_file_is_copied(self):
        # A line at a time for as long as the test lasts.
        writer = self.muster.stream("exec", "job", "--", "sh", "-c",
                                    "i=0; while i=$((i+1)); do echo line $i; done >> log & "
                                    "while ! test -s log; do :; done; echo grows; wait")
        writer.until("grows")

        self.cp("job:log", "copy")

        copy = (self.muster.work / "copy").read_bytes()
        self.assertGreater(len(copy), 0)
        with open(self.there / "log", "rb") as log:
            self.assertEqual(log.read(len(copy)), copy)
            self.assertGreaterEqual(os.fstat(log.fileno()).st_size, len(copy))

    def test_large_copies_in_both_directions_use_little_memory(self):
        size = 300 * MB
        with open(self.muster.work / "large", "wb") as file:
            for block in range(size // MB):
                file.write(block.to_bytes(4, "big") * (MB // 4))
        server = self.muster.server_pid()
        before = peak_of(server)

        self.cp("large", "job:large", bound=2 * BOUND)
        self.cp("job:large", "back", bound=2 * BOUND)

        self.assertLess(peak_of(server) - before, 32 * MB)
        with open(self.muster.work / "large", "rb") as one, open(self.muster.work / "back", "rb") as two:
            while block := one.read(MB):
                self.assertTrue(block == two.read(MB))
            self.assertEqual(two.read(1), b"")

    def test_an_interrupted_copy_leaves_no_incomplete_file_and_no_process(self):
        self.make_large(self.there / "large")
        self.make_large(self.muster.work / "large")
        (self.muster.work / "to").mkdir()
        for words, sign, codes in (
                ([f"job:{self.there}/large", "to"], signal.SIGINT, (130,)),
                ([f"job:{self.there}/large", "to"], signal.SIGKILL, (-9,)),
                (["large", f"job:{self.there}/sent"], signal.SIGINT, (-2,)),
                (["large", f"job:{self.there}/sent"], signal.SIGKILL, (-9,))):
            with self.subTest(words=words, sign=sign):
                copy = self.muster.stream("cp", *words)
                self.await_helpers(1)
                copy.process.send_signal(sign)
                self.assertIn(copy.finish(), codes)
                await_no_process(f"pack\0{self.there}", BOUND)
                self.assertEqual(os.listdir(self.muster.work / "to"), [])
                self.assertEqual(os.listdir(self.there), ["large"])
        self.assertEqual(self.muster.job("job")["phase"], "Running")

    def test_the_end_of_the_job_ends_the_copy_with_an_error(self):
        self.make_large(self.there / "large")
        self.make_large(self.muster.work / "large")
        (self.muster.work / "to").mkdir()
        fetching = self.muster.stream("cp", f"job:{self.there}/large", "to")
        sending = self.muster.stream("cp", "large", f"job:{self.there}/sent")
        self.await_helpers(2)

        self.muster.run("stop", "--now", "job")

        for copy in (fetching, sending):
            self.assertEqual(copy.finish(), 4)
            self.assertIn("the copy ended in the task before it was complete", copy.errors)
        self.assertEqual(os.listdir(self.muster.work / "to"), [])
        self.assertEqual(os.listdir(self.there), ["large"])
        self.assertIn("does not run", self.cp("job:large", "x", code=4).stderr)

    def await_helpers(self, count):
        """Waits until this many copies are in progress."""
        deadline = time.monotonic() + BOUND
        while sum(written_by(pid) > MB for pid in processes_naming(f"pack\0{self.there}")) < count:
            self.assertLess(time.monotonic(), deadline, "no copy has begun")
            os.sched_yield()

    def make_large(self, path):
        """Creates a file of 64 GB that uses no disk space. All its zeros must be sent, because it has more holes than a
        tar can describe."""
        with open(path, "wb") as file:
            for block in range(5000):
                file.seek(block * 8 * MB // 2)
                file.write(b"x")
            file.truncate(64 << 30)


def written_by(pid):
    """The number of bytes that a process has written, to any file."""
    for line in read_bytes(f"/proc/{pid}/io").splitlines():
        if line.startswith(b"wchar:"):
            return int(line.split()[1])
    return 0


class CopyingWithoutASandbox(MusterTest):

    def test_copies_are_the_same_without_a_sandbox(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "bare", "--sandbox", "none", "--", "sh", "-c",
                        f"echo up; {gate.wait}")
        self.assertEqual(self.muster.stream("logs", "bare", "-f").line(), "[main] up")
        (self.muster.work / "f").write_text("text")

        self.muster.run("cp", "f", "bare:g")
        self.muster.run("cp", "bare:g", "h")

        self.assertEqual((self.muster.work / "h").read_text(), "text")


if __name__ == "__main__":
    main()
