"""Schedules: jobs that run again and again."""

import contextlib
import datetime
import json
import re
import sqlite3
import zlib

from muster_harness import MusterTest, main


def hourly():
    """Once an hour, about half an hour from now, so that no run becomes due during a test."""
    return f"{(datetime.datetime.now(datetime.timezone.utc).minute + 30) % 60} * * * *"


def twice_a_day():
    """Every 12 hours, about 6 hours from now."""
    hour = (datetime.datetime.now(datetime.timezone.utc).hour + 6) % 12
    return f"0 {hour},{hour + 12} * * *"


def set_decided(muster, name, hours):
    """Changes the database while no server runs, as if the server had not processed the schedule for some hours."""
    with contextlib.closing(sqlite3.connect(muster.state / "muster.db")) as database, database:
        identity, project, document = database.execute(
            "SELECT id, project, document FROM object WHERE kind = 'schedule' AND name = ?", (name,)).fetchone()
        past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=hours)
        past = past.strftime("%Y-%m-%dT%H:%M:%S.000000000Z").encode()
        document, count = re.subn(rb"(?<=decided_until..)\d{4}-\d\d-\d\dT[\d:.]{18}Z", past, document, flags=re.DOTALL)
        assert count == 1, document
        checksum = 0
        for column in (b"schedule", identity.encode(), project.encode(), name.encode(), document):
            checksum = zlib.crc32(len(column).to_bytes(8, "little") + column, checksum)
        database.execute("UPDATE object SET document = ?, checksum = ? WHERE kind = 'schedule' AND id = ?",
                         (document, checksum, identity))


class Schedules(MusterTest):

    def create(self, name, *flags, cron="0 3 1 1 *", command=("true",), code=0):
        return self.muster.run("schedule", "create", name, "--cron", cron, *flags, "--", *command, code=code)

    def schedule(self, name):
        return json.loads(self.muster.run("schedule", "get", name, "-o", "json").stdout)

    def history(self, name):
        return self.schedule(name)["history"]

    def let_it_be_late(self, hours, *names):
        """Kills the server and makes these schedules unprocessed for some hours."""
        self.muster.kill_server()
        for name in names:
            set_decided(self.muster, name, hours)

    def test_a_run_by_request_is_a_job_of_the_schedule(self):
        created = self.create("nightly", "--timezone", "Europe/Zurich", "--env", "LR=0.1",
                              command=("sh", "-c", "echo lr $LR")).stdout
        self.assertRegex(created, r"NEXT +\d{4}-01-01 03:00 \+01:00")

        run = json.loads(self.muster.run("schedule", "run", "nightly", "-o", "json").stdout)

        name = run["spec"]["name"]
        self.assertRegex(name, r"^nightly-\d{8}-\d{6}$")
        self.assertEqual((run["origin"]["kind"], run["origin"]["name"]), ("schedule", "nightly"))
        self.assertEqual(self.muster.ended(name)["phase"], "Succeeded")
        self.assertIn("lr 0.1", self.muster.logs(name))
        self.assertEqual([(each["job"], each["phase"], each["exit_code"]) for each in self.history("nightly")],
                         [(name, "Succeeded", 0)])
        self.muster.run("delete", name)
        self.assertEqual(self.history("nightly")[0]["phase"], "Succeeded")
        self.assertIn("by request", self.muster.run("schedule", "history", "nightly").stdout)

    def test_the_last_missed_run_starts_once_after_a_downtime(self):
        self.create("hourly", cron=hourly())
        self.create("lost", "--catch-up", "none", cron=hourly())
        self.let_it_be_late(5, "hourly", "lost")

        history = self.history("hourly")
        self.assertEqual([each["outcome"] for each in history], ["started"])
        time = datetime.datetime.fromisoformat(history[0]["time"][:19])
        self.assertEqual(history[0]["job"], time.strftime("hourly-%Y%m%d-%H%M"))
        self.assertEqual(self.muster.ended(history[0]["job"])["phase"], "Succeeded")
        self.assertEqual([each["outcome"] for each in self.history("lost")], ["missed"])
        for _ in range(3):
            self.muster.kill_server()
            self.assertEqual(len(self.history("hourly")), 1)

    def test_a_missed_run_starts_only_within_its_time(self):
        self.create("late", "--catch-up-within", "1m", cron=twice_a_day())
        self.create("wide", "--catch-up-within", "13h", cron=twice_a_day())
        self.let_it_be_late(13, "late", "wide")
        self.assertEqual([each["outcome"] for each in self.history("late")], ["missed"])
        self.assertEqual([each["outcome"] for each in self.history("wide")], ["started"])
        refused = self.create("no", "--catch-up", "none", "--catch-up-within", "1h", code=2).stderr
        self.assertIn("--catch-up-within cannot be used with --catch-up none", refused)

    def test_a_schedule_may_be_created_paused(self):
        self.create("nightly", "--paused", cron=hourly())
        self.assertEqual(self.schedule("nightly")["upcoming"], [])
        self.muster.run("schedule", "resume", "nightly")
        self.assertEqual(len(self.schedule("nightly")["upcoming"]), 5)

    def test_an_overlapping_run_follows_the_policy_of_the_schedule(self):
        gate = self.muster.gate()
        wait = ("sh", "-c", gate.wait)
        for how in ("forbid", "allow", "replace"):
            self.create(how, "--overlap", how, cron=hourly(), command=wait)
            self.muster.run("schedule", "run", how)
        refused = self.muster.run("schedule", "run", "forbid", code=4).stderr
        self.assertIn("an earlier run of schedule 'forbid' has not ended", refused)
        self.let_it_be_late(2, "forbid", "allow", "replace")

        self.assertEqual([each["outcome"] for each in self.history("forbid")], ["skipped", "started"])
        self.assertEqual([each["outcome"] for each in self.history("allow")], ["started", "started"])
        later, earlier = self.history("replace")
        self.assertEqual(self.muster.ended(earlier["job"])["phase"], "Stopped")
        self.assertEqual([each["met"] for each in self.muster.job(later["job"])["awaited"]], [True])

    def test_a_paused_schedule_misses_its_runs(self):
        self.create("nightly", cron=hourly())
        self.assertIn("paused", self.muster.run("schedule", "pause", "nightly").stdout)
        self.assertEqual(self.schedule("nightly")["upcoming"], [])
        self.let_it_be_late(5, "nightly")
        self.assertEqual(self.history("nightly"), [])
        self.muster.run("schedule", "resume", "nightly")
        self.assertEqual(len(self.schedule("nightly")["upcoming"]), 5)
        self.assertEqual(self.history("nightly"), [])

    def test_a_refused_run_is_in_the_history(self):
        self.muster.run("secret", "set", "KEY", input="x")
        self.create("nightly", "--secret", "KEY", cron=hourly())
        self.muster.run("secret", "delete", "KEY")
        self.let_it_be_late(2, "nightly")

        run = self.history("nightly")[0]
        self.assertEqual(run["outcome"], "refused")
        self.assertIn("lacks secrets that the job uses", run["error"])

    def test_a_job_file_is_accepted_and_invalid_flags_are_refused(self):
        file = self.muster.script("job.yaml", "name: train\ncommand: [\"true\"]\nresources: {cpus: 1}\n")
        self.muster.run("schedule", "create", "weekly", "--cron", "@weekly", "-f", file, "--set", "resources.cpus=2")
        self.assertEqual(self.schedule("weekly")["spec"]["job"]["resources"]["cpus"], 2)
        self.assertIn("exists already", self.create("weekly", code=4).stderr)

        wrong = self.create("bad", "--timezone", "Mars/Olympus", cron="61 3 * *  foo", code=2).stderr
        for words in ("minute: '61' is not valid", "day of the week: 'foo' is not valid",
                      "no time zone 'Mars/Olympus'"):
            self.assertIn(words, wrong)
        self.assertIn("never matches", self.create("bad", cron="0 0 30 2 *", code=2).stderr)
        self.assertIn("did you mean 'weekly'?", self.muster.run("schedule", "get", "weekyl", code=3).stderr)
        self.muster.run("schedule", "delete", "weekly")
        self.assertIn("no schedules", self.muster.run("schedule", "list").stdout)

    def test_the_image_of_a_run_gets_only_what_flags_name(self):
        image = ("--image", "python:3.11")
        self.create("nightly", *image, "--env", "LR=0.1", "--env", "HOME")
        annotations = self.schedule("nightly")["spec"]["job"]["annotations"]
        inherited = annotations["muster/inherited-variables"].split()
        self.assertIn("PATH", inherited)
        self.assertNotIn("LR", inherited)
        self.assertNotIn("HOME", inherited)
        self.assertEqual(annotations["muster/inherited-folder"], str(self.muster.work))

        self.create("weekly", *image, "--folder", "/", "--set", "environment.PATH=/bin")
        annotations = self.schedule("weekly")["spec"]["job"]["annotations"]
        self.assertNotIn("PATH", annotations["muster/inherited-variables"].split())
        self.assertNotIn("muster/inherited-folder", annotations)

    def test_a_run_may_be_an_array(self):
        self.muster.run("schedule", "create", "nightly", "--cron", "@yearly", "--set", "array=0-2", "--", "true")
        run = json.loads(self.muster.run("schedule", "run", "nightly", "--output", "json").stdout)
        self.assertEqual(sum(run["counts"].values()), 3)
        self.muster.run("wait", run["spec"]["name"])
        history = json.loads(self.muster.run("schedule", "get", "nightly", "--output", "json").stdout)["history"]
        self.assertEqual((history[0]["job"], history[0]["phase"]), (run["spec"]["name"], "Succeeded"))

    def test_the_list_shows_the_fields_of_a_schedule(self):
        self.muster.run("schedule", "create", "nightly", "--cron", "@yearly", "--", "true")
        self.assertRegex(self.muster.run("list").stdout, r"nightly +default +schedule +Active +- ")
        self.assertEqual(self.muster.run("list", "--phase", "queued", "--output", "names").stdout, "")
        self.assertEqual(self.muster.run("list", "--phase", "active", "--output", "names").stdout, "nightly\n")
        self.muster.run("schedule", "pause", "nightly")
        self.assertRegex(self.muster.run("list").stdout, r"nightly +default +schedule +Paused +- ")

    def test_names_of_runs_cannot_be_used_for_other_jobs(self):
        self.create("nightly")
        taken = self.muster.run("submit", "single", "nightly-20301129-0300", "--", "true", code=4).stderr
        self.assertTrue(re.search("nightly-20301129-0300", taken), taken)


if __name__ == "__main__":
    main()
