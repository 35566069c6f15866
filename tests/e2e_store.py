"""The store of a server, on PostgreSQL and on SQLite: backups, restores, checks, and damaged databases."""

import os
import shutil
import signal
import sqlite3
import subprocess

from muster_harness import BOUND, MUSTER, MusterTest, await_no_process, main
from postgres_harness import Postgres


class StoreTest(MusterTest):
    @classmethod
    def setUpClass(cls):
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.close)

    def setUp(self):
        super().setUp()
        self.url = self.postgres.new_url()

    def use_postgres(self):
        self.muster.configure(f"store: {self.url}\n")

    def database(self):
        return self.muster.state / "muster.db"

    def test_a_job_on_postgresql_runs_on_while_server_and_database_are_killed(self):
        self.use_postgres()
        gate = self.muster.gate()
        self.muster.run("submit", "single", "steady", "--",
                        "sh", "-c", f"echo began; {gate.wait}; echo ended")
        following = self.muster.stream("logs", "steady", "--follow")
        following.until("began")
        self.muster.kill_server()
        self.postgres.restart_at_once()
        gate.open()

        job = self.muster.ended("steady")

        self.assertEqual(job["phase"], "Succeeded")
        self.assertEqual(job["attempt"], 1)
        self.assertEqual(self.muster.logs("steady").splitlines(), ["[main] began", "[main] ended"])
        self.assertFalse(self.database().exists())
        self.muster.run("delete", "steady")

    def test_a_backup_of_a_running_server_is_restored_into_the_other_database(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        backup = self.muster.work / "backup"

        self.muster.run("store", "backup", backup)
        self.muster.run("server", "--stop")
        self.muster.run("store", "restore", backup, "--store", self.url)
        self.muster.run("store", "check", "--store", self.url)

        self.use_postgres()
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["kept"])
        self.assertEqual(self.muster.job("kept")["phase"], "Succeeded")

    def test_a_backup_goes_through_pipes(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")

        backup = self.muster.run("store", "backup", "-", text=False)
        self.muster.run("server", "--stop")
        restored = self.muster.run("store", "restore", "-", "--store", self.url, text=False, input=backup.stdout)

        self.assertRegex(backup.stderr, rb"jobs +1")
        self.assertRegex(restored.stdout, rb"jobs +1")
        self.assertEqual(list(self.muster.state.glob("backup-*")), [])
        self.use_postgres()
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["kept"])

    def test_a_backup_without_a_reader_leaves_no_copy(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        reading, writing = os.pipe()
        os.close(reading)

        with os.fdopen(writing, "wb") as output:
            backup = subprocess.run(self.muster.argv("store", "backup", "-"), env=self.muster.environment,
                                    stdout=output, stderr=subprocess.PIPE, timeout=BOUND, cwd=self.muster.work)

        self.assertEqual(backup.returncode, -signal.SIGPIPE, backup.stderr)
        self.assertEqual(list(self.muster.state.glob("backup-*")), [])

    def test_ctrl_c_during_a_restore_from_a_pipe_leaves_no_copy(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        restore = subprocess.Popen(self.muster.argv("store", "restore", "-"), env=self.muster.environment,
                                   stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.muster.work)
        with restore.stdin as backup:
            backup.write(bytes(1 << 20))  # more than a pipe holds: part of it has been read
            backup.flush()
            copies = list(self.muster.state.glob("backup-*"))
            restore.send_signal(signal.SIGINT)
            self.assertEqual(restore.wait(BOUND), 130)

        self.assertEqual(len(copies), 1)
        self.assertEqual(list(self.muster.state.glob("backup-*")), [])

    def test_a_store_that_is_not_empty_is_not_overwritten(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        backup = self.muster.work / "backup"
        self.muster.run("store", "backup", backup)

        again = self.muster.run("store", "backup", backup, code=None)
        in_use = self.muster.run("store", "restore", backup, code=None)
        self.muster.run("server", "--stop")
        restored = self.muster.run("store", "restore", backup, code=None)

        self.assertNotEqual(again.returncode, 0)
        self.assertIn("already exists", again.stderr)
        self.assertNotEqual(restored.returncode, 0)
        self.assertIn("is not empty", restored.stderr)
        self.assertNotEqual(in_use.returncode, 0)
        self.assertIn("a server uses", in_use.stderr)
        self.assertEqual(self.muster.job("kept")["phase"], "Succeeded")

    def test_a_damaged_database_is_named_with_a_remedy(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        backup = self.muster.work / "backup"
        self.muster.run("store", "backup", backup)
        damaged = self.muster.work / "damaged.db"
        pages = bytearray(backup.read_bytes())
        pages[4096:8192] = b"\xee" * 4096
        damaged.write_bytes(pages)
        self.muster.run("server", "--stop")

        check = self.muster.run("store", "check", "--store", damaged, code=None)
        restored = self.muster.run("store", "restore", damaged, "--store", self.url, code=None)

        self.assertEqual(check.returncode, 1, check.stderr)
        self.assertNotEqual(restored.returncode, 0)
        self.assertIn("is not a backup", restored.stderr)

    def flip_a_bit_of(self, job):
        """Flips a bit in the middle of a record, directly in the file, as a failing disk does."""
        with sqlite3.connect(self.database()) as database:
            document, = database.execute("SELECT document FROM job WHERE name = ?", (job,)).fetchone()
            damaged = bytearray(document)
            damaged[len(damaged) // 2] ^= 4
            database.execute("UPDATE job SET document = ? WHERE name = ?", (bytes(damaged), job))
        database.close()

    def test_an_unreadable_job_is_named_and_set_aside_while_the_others_run_on(self):
        gate = self.muster.gate()
        for name in ("kept", "broken"):
            self.muster.run("submit", "single", name, "--follow", "--", "true")
        self.muster.run("submit", "single", "runs", "--", "sh", "-c", gate.wait)
        self.muster.run("server", "--stop")
        self.flip_a_bit_of("broken")

        listed = self.muster.run("list").stdout
        page = self.muster.run("get", "broken").stdout
        job = self.muster.job("broken")
        deleted = self.muster.run("delete", "broken", code=4)
        taken = self.muster.run("submit", "single", "broken", "--", "true", code=None)
        self.muster.run("submit", "single", "next", "--follow", "--", "true")
        in_use = self.muster.run("store", "set-aside", "default/broken", code=None)
        gate.open()
        self.assertEqual(self.muster.ended("runs")["phase"], "Succeeded")
        self.muster.run("server", "--stop")
        check = self.muster.run("store", "check", code=1)
        readable = self.muster.run("store", "set-aside", "kept", code=3)
        aside = self.muster.run("store", "set-aside", "default/broken")

        command = "muster store set-aside default/broken"
        self.assertRegex(listed, r"broken +default +- +Unreadable +- .*cannot be read: its checksum "
                                 "differs from its content")
        self.assertIn(command, page)
        self.assertIs(job["unreadable"], True)
        self.assertIn(command, deleted.stderr)
        self.assertNotEqual(taken.returncode, 0)
        self.assertIn("'broken'", taken.stderr)
        self.assertNotEqual(in_use.returncode, 0)
        self.assertIn("a server uses", in_use.stderr)
        self.assertIn(command, check.stdout)
        self.assertIn("these records cannot be read: default/broken", readable.stderr)
        self.assertRegex(aside.stdout, r"set aside:\n  job 'default/broken' \(id [a-z0-9]+\), set aside ")
        log = (self.muster.state / "server.log").read_text()
        self.assertRegex(log, f"job 'default/broken' .*cannot be read: .*{command}")
        self.assertEqual(self.muster.run("store", "check").returncode, 0)
        names = [each["spec"]["name"] for each in self.muster.jobs()]
        self.assertEqual(sorted(names), ["kept", "next", "runs"])
        self.muster.run("submit", "single", "broken", "--follow", "--", "true")

    def test_a_running_task_of_an_unreadable_job_is_left_alone(self):
        gate = self.muster.gate()
        end = self.muster.work / "end"
        os.mkfifo(end)
        self.muster.run("submit", "single", "broken", "--", "sh", "-c", f"{gate.wait}; echo well > {end}")
        self.muster.run("wait", "broken", "--for", "started")
        self.muster.run("server", "--stop")
        self.flip_a_bit_of("broken")

        self.assertIs(self.muster.job("broken")["unreadable"], True)
        self.assertIn("these of its tasks still run, and keep their GPUs: main",
                      self.muster.run("get", "broken").stdout)
        gate.open()
        reader = self.muster.stream_of(["cat", str(end)])

        self.assertEqual(reader.line(), "well")
        self.assertEqual(reader.finish(), 0)
        self.muster.run("server", "--stop")
        self.muster.run("store", "set-aside", "broken")

    def test_no_job_gets_the_gpu_of_an_unreadable_job_before_its_task_has_ended(self):
        self.muster.configure("gpus: 1\n")
        gate = self.muster.gate()
        ended = self.muster.work / "ended"
        self.muster.run("submit", "single", "broken", "--gpus", 1, "--",
                        "sh", "-c", f"{gate.wait}; touch {ended}")
        self.muster.run("wait", "broken", "--for", "started")
        self.muster.run("server", "--stop")
        self.flip_a_bit_of("broken")

        self.muster.run("submit", "single", "next", "--gpus", 1, "--", "test", "-e", ended)
        gate.open()

        self.assertEqual(self.muster.ended("next")["phase"], "Succeeded", "it started too early")
        self.muster.run("server", "--stop")
        self.muster.run("store", "set-aside", "broken")

    def test_a_running_task_of_an_unreadable_job_can_be_stopped(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "broken", "--", "sh", "-c", gate.wait)
        self.muster.run("wait", "broken", "--for", "started")
        self.muster.run("server", "--stop")
        self.flip_a_bit_of("broken")

        self.muster.run("stop", "--now", "broken")

        await_no_process(str(self.muster.state / "jobs"), BOUND)
        self.muster.run("server", "--stop")
        self.muster.run("store", "set-aside", "broken")

    def test_a_job_that_is_newer_than_the_restored_backup_keeps_its_gpu_and_can_be_stopped(self):
        self.muster.configure("gpus: 1\n")
        backup = self.muster.work / "backup"
        self.muster.run("list")
        self.muster.run("store", "backup", backup)
        gate = self.muster.gate()
        self.muster.run("submit", "single", "orphan", "--gpus", 1, "--", "sh", "-c", f"echo up; {gate.wait}")
        follow = self.muster.stream("logs", "-f", "orphan")
        follow.until("up")
        follow.close()
        orphan = self.muster.job("orphan")["id"]
        self.muster.run("server", "--stop")
        for left in self.muster.state.glob("muster.db*"):
            left.unlink()
        self.muster.run("store", "restore", backup)

        self.muster.run("submit", "single", "next", "--gpus", 1, "--", "true")

        self.assertEqual(self.muster.job("next")["phase"], "Queued")
        self.assertRegex(self.muster.run("list").stdout,
                         rf"{orphan} +default +- +Unreadable +- .*runs without a record in the database")
        self.assertIn("submitted as 'orphan'", self.muster.run("get", orphan).stdout)
        self.assertIn(f"job {orphan} (submitted as 'orphan') runs, but the database has no record of it",
                      (self.muster.state / "server.log").read_text())
        self.muster.run("stop", "--now", orphan)
        self.assertEqual(self.muster.ended("next")["phase"], "Succeeded")
        self.muster.run("server", "--stop")
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["next"])

    def test_a_lost_postgresql_is_replaced_by_no_second_database(self):
        server = self.muster.start_server("--store", self.url)
        server.process.send_signal(signal.SIGKILL)
        server.finish()

        for words in (("list",), ("user", "create", "lost")):
            ran = self.muster.run(*words, code=5)
            self.assertIn("has its database in PostgreSQL", ran.stderr)
        self.assertFalse(self.database().exists())

    def test_a_database_that_became_empty_is_refused(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        backup = self.muster.work / "backup"
        self.muster.run("store", "backup", backup)
        self.muster.run("server", "--stop")
        self.database().write_bytes(b"")

        refused = self.muster.run("list", code=None)
        check = self.muster.run("store", "check", code=1)
        self.muster.run("store", "restore", backup)

        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("is empty (0 bytes)", refused.stderr)
        self.assertIn("muster store restore FILE", refused.stderr)
        self.assertIn("it contains no store", check.stdout)
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["kept"])

    def in_bubblewrap(self, script, *words):
        """Runs a script in bubblewrap, in which `muster` is the program; `words`: bubblewrap's options for the state
        folder."""
        if not shutil.which("bwrap"):
            self.fail("bubblewrap is not installed")
        return subprocess.run(
            ["bwrap", "--dev-bind", "/", "/", *words, "sh", "-c", script.replace("muster ", f"{MUSTER} ")],
            env=self.muster.environment, cwd=self.muster.work, capture_output=True, text=True, timeout=BOUND)

    def test_a_read_only_file_system_is_reported_as_such(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        self.muster.run("server", "--stop")

        ran = self.in_bubblewrap("muster store check; echo code $?; muster server; echo code $?",
                                 "--ro-bind", str(self.muster.state), str(self.muster.state))

        self.assertRegex(ran.stdout, r"(?s)JOBS +1\n.*code 0\ncode 1\n|jobs +1\n.*code 0\ncode 1\n")
        self.assertNotIn("damaged", ran.stdout + ran.stderr)
        self.assertIn("Read-only file system", ran.stderr)
        self.assertNotIn("another server", ran.stderr)
        self.assertIn("MUSTER_STATE_DIR", ran.stderr)

    def test_a_first_start_on_a_full_disk_reports_it_and_succeeds_later(self):
        self.muster.state.mkdir(mode=0o700)
        filler = self.muster.state / "filler"

        ran = self.in_bubblewrap(
            f"head -c {1 << 20} /dev/zero > {filler} 2> /dev/null\n"
            "muster list; echo code $?\n"
            f"rm {filler}\n"
            "muster list; echo code $?\n"
            "muster server --stop\n",
            "--size", str(1 << 20), "--perms", "0700", "--tmpfs", str(self.muster.state))

        self.assertIn("code 5\n", ran.stdout)
        self.assertTrue(ran.stdout.splitlines()[-2] == "code 0", ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, "the server could not start: .*(No space left on device|no room to grow)")

    def test_ended_jobs_are_deleted_on_a_full_disk_also_by_a_server_that_must_start(self):
        self.muster.state.mkdir(mode=0o700)
        filler = self.muster.state / "filler"
        fill = f"cat /dev/zero > {filler} 2> /dev/null"

        ran = self.in_bubblewrap(
            "muster submit single first --follow -- true\n"
            "muster submit single second --follow -- true\n"
            f"{fill}\n"
            "muster delete first; echo running $?\n"
            f"rm {filler}\n"
            "muster server --stop; muster list; muster server --stop\n"
            f"{fill}\n"
            "muster delete second; echo stopped $?\n"
            f"rm {filler}\n"
            "echo left; muster list --output json\n"
            "muster server --stop\n",
            "--size", str(24 << 20), "--perms", "0700", "--tmpfs", str(self.muster.state))

        self.assertIn("running 0\n", ran.stdout, ran.stderr)
        self.assertIn("stopped 0\n", ran.stdout, ran.stderr)
        self.assertNotRegex(ran.stdout.split("left\n")[1], "first|second")

    def test_a_database_of_a_newer_muster_is_refused_and_left_alone(self):
        self.muster.run("submit", "single", "kept", "--follow", "--", "true")
        self.muster.run("store", "backup", self.muster.work / "newer.db")
        with sqlite3.connect(self.muster.work / "newer.db") as newer:
            newer.execute("PRAGMA user_version = 99")
        newer.close()
        before = (self.muster.work / "newer.db").read_bytes()

        refused = self.muster.run("store", "check", "--store", self.muster.work / "newer.db",
                                  code=None)

        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("version 99", refused.stderr)
        self.assertEqual((self.muster.work / "newer.db").read_bytes(), before)

    def test_a_password_of_the_url_is_in_no_error(self):
        password = self.muster.work / "password"
        password.write_text("hunter2")
        password.chmod(0o600)
        url = f"postgres://ada@/nothing?host={self.muster.work}"

        failed = self.muster.run("store", "check", "--store", url, "--store-password-file",
                                 password, code=None)

        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("cannot be reached", failed.stderr)
        self.assertNotIn("hunter2", failed.stdout + failed.stderr)


if __name__ == "__main__":
    main()
