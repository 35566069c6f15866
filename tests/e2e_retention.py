"""Ended jobs are removed by `muster delete` or by retention rules. Everything that belongs to the job is removed, and
nothing else."""

import ctypes
import json
import os
import select
import signal
import subprocess

from muster_harness import BOUND, MPIRUN, MusterTest, Typed, UnixConnection, main


def tree_of(folder):
    """Every path below the folder, except for the database, the log and files that are being removed, which change all
    the time."""
    passing = ("muster.db", "server.log", ".removed", ".unpacking")
    found = set()
    for at, folders, files in os.walk(folder):  # a folder that vanishes meanwhile is no error
        folders[:] = [name for name in folders if not name.startswith(passing)]
        files = [name for name in files if not name.startswith(passing)]
        found |= {os.path.relpath(os.path.join(at, name), folder) for name in folders + files}
    return found


def await_removal(path):
    """Waits until the path does not exist any more. Its parent must exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    try:
        in_delete = 0x200
        if libc.inotify_add_watch(watch, os.fsencode(path.parent), in_delete) < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {path.parent}")
        while path.exists():
            if not select.select([watch], [], [], BOUND)[0]:
                raise AssertionError(f"{path} was not removed")
            os.read(watch, 1 << 16)
    finally:
        os.close(watch)


class Keeping(MusterTest):

    def await_gone(self, *names):
        """Waits until no job with these names exists."""
        left, ready = set(), False
        for event, data in self.watched():
            if event == "job" and data["spec"]["name"] in names:
                left.add(data["spec"]["name"])
            elif event == "removed":
                left.discard(data["name"])
            ready = ready or event == "ready"
            if ready and not left:
                return

    def watched(self):
        connection = UnixConnection(self.muster.state / "muster.sock")
        try:
            connection.request("GET", "/v1/watch/jobs")
            answer = connection.getresponse()
            event = None
            while line := answer.readline():
                text = line.decode().rstrip("\r\n")
                if text.startswith("event:"):
                    event = text[len("event:"):].strip()
                elif text.startswith("data:"):
                    data = text[len("data:"):].strip()
                    yield event, json.loads(data) if data.startswith("{") else data
        finally:
            connection.close()

    def run_job(self, name, *flags, command=("true",)):
        self.muster.run("submit", "single", name, *flags, "--follow", "--", *command)

    def names(self):
        return sorted(job["spec"]["name"] for job in self.muster.jobs())


class Rules(Keeping):

    def test_without_a_rule_jobs_are_kept_and_show_no_time_of_removal(self):
        self.run_job("job")
        self.muster.kill_server()

        self.assertEqual(self.names(), ["job"])
        self.assertNotIn("KEPT", self.muster.run("get", "job").stdout)

    def test_a_job_is_removed_after_the_time_that_it_requested(self):
        self.run_job("stays")
        self.muster.run("submit", "single", "goes", "--keep-for", "0s", "--", "true")

        self.await_gone("goes")

        self.assertEqual(self.names(), ["stays"])
        records = json.loads(self.muster.run("audit", "-o", "json").stdout)["records"]
        self.assertEqual(records[0]["action"], "job.delete")
        self.assertEqual(records[0]["user"], "(server)")
        rule = [each for each in records[0]["changes"] if each["field"] == "rule"]
        self.assertEqual(rule[0]["after"], "keep_for=0ms of the job")
        log = (self.muster.state / "server.log").read_text()
        self.assertIn("removes a job by a rule of retention", log)

    def test_get_shows_until_when_a_job_is_kept(self):
        self.run_job("job", "--keep-for", "2h")

        page = self.muster.run("get", "job").stdout
        self.assertRegex(page, r"KEPT +until 20\d\d-\S+ \(for another 1h5\dm\)")

    def test_the_servers_retention_time_applies_to_jobs_without_their_own(self):
        self.run_job("plain")
        self.run_job("longer", "--keep-for", "1d")
        self.muster.run("server", "--stop")

        self.muster.configure("keep_jobs_for: 0s\n")
        self.muster.run("list")
        self.await_gone("plain")

        self.assertEqual(self.names(), ["longer"])

    def test_the_oldest_jobs_beyond_the_maximum_number_are_removed(self):
        self.muster.configure("keep_jobs: 2\n")
        for name in ("a", "b", "c"):
            self.run_job(name)

        self.await_gone("a")

        self.assertEqual(self.names(), ["b", "c"])

    def test_the_oldest_jobs_beyond_the_maximum_disk_use_are_removed(self):
        self.muster.configure("keep_bytes: 6Mi\n")
        for name in ("a", "b", "c"):
            self.run_job(name, "--artifacts",
                         command=("sh", "-c", "head -c 2500000 /dev/urandom > /artifacts/big"))

        self.await_gone("a")

        self.assertEqual(self.names(), ["b", "c"])

    def test_a_changed_rule_takes_effect_in_a_running_server(self):
        server = self.muster.start_server("--config", str(self.config("keep_jobs: all\n")))
        for name in ("a", "b"):
            self.run_job(name)
        self.config("keep_jobs: 1\n")

        server.process.send_signal(signal.SIGHUP)
        self.await_gone("a")

        self.assertEqual(self.names(), ["b"])

    def config(self, text):
        path = self.muster.work / "server.yaml"
        path.write_text(text)
        return path

    def test_no_rule_removes_running_or_waiting_jobs(self):
        self.muster.configure("keep_jobs: 0\nkeep_jobs_for: 0s\nkeep_bytes: 1Ki\n")
        gate = self.muster.gate()
        self.muster.run("submit", "single", "runs", "--", "sh", "-c", gate.wait)
        self.muster.run("submit", "single", "held", "--hold", "--", "true")
        self.muster.run("submit", "single", "goes", "--", "true")

        self.await_gone("goes")

        self.assertEqual(self.names(), ["held", "runs"])
        gate.open()
        self.await_gone("runs")
        self.assertEqual(self.names(), ["held"])
        self.muster.run("stop", "held")
        self.await_gone("held")

    def test_a_follower_sees_the_end_of_a_job_that_is_not_kept(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--keep-for", "0s", "--", "sh", "-c",
                        f"echo before; {gate.wait}; echo after")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("before")

        gate.open()

        self.assertEqual(follow.finish(), 0)
        self.assertIn("after", follow.text)
        self.await_gone("job")


class Deleting(Keeping):

    def test_a_deleted_job_leaves_no_file_and_removes_no_file_of_other_jobs(self):
        storage = ["-v", "storage/models:/models"]
        (self.muster.work / "code").mkdir()
        (self.muster.work / "code" / "main.sh").write_text("echo hi")
        files = ["--workspace", "code"]
        self.run_job("first", *storage, *files, "--artifacts",
                     command=("sh", "-c", "echo kept > /models/m; echo x > /artifacts/a"))
        before = tree_of(self.muster.state)
        self.muster.run("submit", "mpi", "second", "--workers", 2, "--artifacts", *storage, *files,
                        "--follow", "--", *MPIRUN, "sh", "-c",
                        "echo more >> /models/m; echo x > /artifacts/b; echo said")
        self.assertNotEqual(tree_of(self.muster.state), before)

        self.muster.run("delete", "second")

        self.assertEqual(tree_of(self.muster.state), before)
        self.assertEqual((self.muster.state / "jobs/storage/default/models/m").read_text(),
                         "kept\nmore\nmore\n")
        self.run_job("third", *files, command=("sh", "main.sh"))
        self.assertEqual(self.muster.logs("third"), "[main] hi\n")

    def test_a_folder_with_hostile_entries_is_removed_without_touching_other_files(self):
        outside = self.muster.work / "outside"
        outside.mkdir()
        (outside / "kept").write_text("mine")
        self.run_job("job", "--artifacts", command=("sh", "-c", f"""cd /artifacts
            ln -s {outside} link; ln -s / root; mkfifo pipe; mkdir -m 0 closed
            mkdir -p full/inner; touch full/inner/file; chmod 0 full/inner full
            for i in $(seq 2000); do mkdir d && cd d; done; touch deep"""))

        self.muster.run("delete", "job")

        self.assertEqual(self.muster.job_folders(), [])
        for left in (self.muster.state / "jobs" / ".removed").iterdir():
            await_removal(left)
        self.assertEqual((outside / "kept").read_text(), "mine")

    def test_a_mount_in_a_folder_is_not_entered_and_remaining_files_are_reported(self):
        server = self.muster.start_server(prefix=("unshare", "--user", "--map-root-user", "--mount"))
        precious = self.muster.work / "precious"
        precious.mkdir()
        (precious / "kept").write_text("mine")
        self.run_job("job", "--artifacts", command=("mkdir", "/artifacts/mnt"))
        self.run_job("other", "--artifacts")
        job, other = self.muster.job("job")["id"], self.muster.job("other")["id"]
        jobs = self.muster.state / "jobs"
        subprocess.run(["nsenter", "--target", str(self.muster.server_pid()), "--user", "--mount",
                        "--preserve-credentials", "mount", "--bind", precious,
                        jobs / job / "artifacts" / "mnt"], check=True)

        self.muster.run("delete", "job", "other")

        await_removal(jobs / ".removed" / other)  # the second one in the queue
        self.assertEqual(self.names(), [])
        self.assertEqual((precious / "kept").read_text(), "mine")
        self.assertIn("is tried again", server.errors)
        self.muster.run("server", "--stop")
        self.assertTrue((jobs / ".removed" / job / "artifacts" / "mnt").exists())
        # The next server does not see the mount.
        self.muster.run("list")
        await_removal(jobs / ".removed" / job)
        self.assertEqual((precious / "kept").read_text(), "mine")

    def test_the_next_server_removes_the_files_that_a_killed_server_left(self):
        self.run_job("job")
        self.muster.kill_server()
        left = self.muster.state / "jobs" / ".removed" / "gone"
        left.mkdir(parents=True)
        (left / "log").write_text("x")

        self.muster.run("list")

        await_removal(left)

    def test_a_job_that_runs_has_to_be_stopped_first_or_forced(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo up; {gate.wait}")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("up")

        refused = self.muster.run("delete", "job", code=4)
        self.assertIn("job 'job' has not ended", refused.stderr)
        self.assertIn("muster stop job", refused.stderr)
        self.muster.run("delete", "--force", "job")

        follow.finish()
        self.assertEqual(self.names(), [])

    def test_a_download_is_completed_although_its_job_is_deleted(self):
        size = 64 << 20
        self.run_job("job", "--artifacts",
                     command=("sh", "-c", f"head -c {size} /dev/zero > /artifacts/big"))
        connection = UnixConnection(self.muster.state / "muster.sock")
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/jobs/job/artifact?path=big")
        answer = connection.getresponse()
        self.assertEqual(len(answer.read(1000)), 1000)

        self.muster.run("delete", "job")

        self.assertEqual(len(answer.read()), size - 1000)

    # --- many jobs at once

    def test_all_ended_jobs_are_deleted_only_after_a_confirmation(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "runs", "--", "sh", "-c", gate.wait)
        for name in ("a", "b"):
            self.run_job(name)

        shown = self.muster.run("delete", "--all-ended", "--dry-run").stdout
        self.assertEqual([line.split()[0] for line in shown.splitlines()], ["NAME", "a", "b"])
        refused = self.muster.run("delete", "--all-ended", code=2)
        self.assertIn("this command deletes 2 jobs", refused.stderr)
        self.muster.run("delete", "--ended-before", "1h", "--yes")
        self.assertEqual(self.names(), ["a", "b", "runs"])

        ran = self.muster.run("delete", "--all-ended", "--yes")

        self.assertEqual(ran.stdout, "deleted a\ndeleted b\n")
        self.assertEqual(self.names(), ["runs"])
        gate.open()

    def test_an_array_and_a_sweep_are_deleted_as_a_whole(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "half", "--array", "0-3%2", "--", "sh", "-c",
                        f"test $MUSTER_ARRAY_INDEX = 0 || {{ {gate.wait}; }}")
        self.muster.run("submit", "single", "train", "--array", "0-2", "-l", "team=vision", "--", "true")
        self.muster.run("sweep", "create", "lr", "--param", "x=1,2", "--method", "grid", "--metric", "m", "--",
                        "sh", "-c", "echo ::metrics m={x}")
        self.run_job("a")
        self.muster.run("wait", "train", "lr", "half-0")

        shown = json.loads(self.muster.run("delete", "--all-ended", "--dry-run", "-o", "json").stdout)
        self.assertEqual([[each["spec"]["name"] for each in shown[kind]] for kind in ("jobs", "arrays")],
                         [["a"], ["train"]])
        self.assertEqual([each["name"] for each in shown["sweeps"]], ["lr"])
        refused = self.muster.run("delete", "--all-ended", code=2).stderr
        self.assertIn("deletes 1 job, 1 array (3 members), 1 sweep (2 trials) and needs", refused)
        table = self.muster.run("delete", "-l", "team=vision", "--dry-run").stdout
        self.assertRegex(table, r"\ntrain +default +array +Succeeded +3/3 ")
        self.assertEqual(len(table.splitlines()), 2)

        ran = self.muster.run("delete", "--all-ended", "--yes").stdout

        self.assertEqual(sorted(ran.splitlines()), ["deleted a", "deleted lr", "deleted train"])
        # The ended member stays, because its array still runs.
        self.assertEqual(self.muster.run("list", "-o", "names").stdout, "half\n")
        self.assertIn("half-0", self.names())
        self.muster.run("delete", "half", code=4)
        self.muster.run("stop", "--now", "half")
        self.muster.run("wait", "half", code=None)  # no member starts after that

    def test_delete_asks_for_confirmation_on_a_terminal(self):
        self.run_job("a")
        no = Typed(self.muster, "delete", "--all-ended")
        no.until(b"delete 1 job with all logs and artifacts? [y/N]")
        no.type(b"n\r")
        self.assertEqual(no.finish(), 1)
        no.close()
        self.assertEqual(self.names(), ["a"])

        interrupted = Typed(self.muster, "delete", "--all-ended")
        interrupted.until(b"[y/N]")
        interrupted.type(b"\x03")
        self.assertEqual(interrupted.finish(), 130)
        interrupted.close()
        self.assertEqual(self.names(), ["a"])

        yes = Typed(self.muster, "delete", "--all-ended")
        yes.until(b"[y/N]")
        yes.type(b"y\r")
        self.assertEqual(yes.finish(), 0)
        yes.close()
        self.assertEqual(self.names(), [])

    def test_only_jobs_of_the_project_are_removed(self):
        self.muster.run("project", "create", "other")
        self.run_job("mine")
        self.run_job("theirs", "--project", "other")

        self.muster.run("delete", "--all-ended", "--yes", "--project", "other")

        self.assertEqual(self.names(), ["mine"])

    def test_names_and_all_cannot_be_combined(self):
        ran = self.muster.run("delete", "job", "--all-ended", code=2)
        self.assertIn("cannot be used with --all-ended", ran.stderr)
        self.assertIn("name the jobs", self.muster.run("delete", code=2).stderr)


if __name__ == "__main__":
    main()
