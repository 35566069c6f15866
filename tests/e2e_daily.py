"""A day's work with jobs: change a job and submit it again, number its name, compare, wait, and clean up."""

import json
from concurrent.futures import ThreadPoolExecutor

from muster_harness import MusterTest, main

JOB = """\
name: train
command: [sh, -c, "echo rate $LR; exit $CODE"]
environment: {LR: 1, CODE: 0}
"""


class DailyTest(MusterTest):

    def write(self, name, text):
        path = self.muster.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def names(self):
        return [job["spec"]["name"] for job in self.muster.jobs()]

    def phase(self, name):
        return self.muster.job(name)["phase"]


class Changing(DailyTest):

    def test_flags_and_settings_override_the_file(self):
        self.write("job.yaml", JOB)
        preview = self.muster.run("submit", "-f", "job.yaml", "-e", "LR=2", "--set", "environment.CODE=3", "--dry-run")
        self.assertRegex(preview.stdout, r"environment\.LR +2 +flag; the file has 1\n")
        self.assertRegex(preview.stdout, r"environment\.CODE +3 +--set; the file has 0\n")
        self.assertEqual(self.names(), [])

        self.muster.run("submit", "-f", "job.yaml", "-e", "LR=2", "--set", "environment.CODE=3", "--follow", code=3)

        self.assertIn("rate 2", self.muster.logs("train"))

    def test_the_program_behind_two_dashes_replaces_the_command(self):
        self.write("job.yaml", JOB)
        self.muster.run("submit", "-f", "job.yaml", "--follow", "--", "sh", "-c", "echo another; exit 4", code=4)
        self.assertEqual(self.muster.logs("train").count("another"), 1)

    def test_a_job_file_names_its_workspace(self):
        self.write("project/src/train.sh", "echo trained from $PWD\n")
        self.write("project/src/secret.pem", "key\n")
        self.write("project/src/.gitignore", "*.log\n")
        self.write("project/src/old.log", "old\n")
        self.write("project/job.yaml", "name: train\ncommand: sh train.sh && ls -A\n"
                                       "workspace: {from: src, ignore: ['*.pem']}\n")

        ran = self.muster.run("submit", "-f", "project/job.yaml", "--follow")

        lines = self.muster.logs("train").splitlines()
        self.assertIn("muster: workspace: 2 files", ran.stderr)
        self.assertEqual([line.split("] ")[-1] for line in lines],
                         ["trained from /workspace", ".gitignore", "train.sh"])
        self.write("other/train.sh", "echo other\n")
        self.muster.run("submit", "-f", "project/job.yaml", "--name", "b", "--workspace", "other", "--follow")
        self.assertIn("other", self.muster.logs("b"))

    def test_several_jobs_are_submitted_all_or_none(self):
        self.write("jobs.yaml", "name: a\ncommand: [echo, one]\nworkspace: code\n---\nname: b\ncommand: ['true']\n")
        self.write("code/x", "x\n")
        self.muster.run("submit", "-f", "jobs.yaml", "--gpus", "1", code=4)
        self.assertEqual(self.names(), [])

        self.muster.run("submit", "-f", "jobs.yaml", "--only", "b", "--name", "c")
        self.assertEqual(self.names(), ["c"])
        self.muster.run("submit", "-f", "jobs.yaml", "--label", "team=vision")
        self.assertEqual(self.muster.job("a")["spec"]["labels"], {"team": "vision"})
        self.muster.run("wait", "a", "b", "c")


class Repeating(DailyTest):

    def test_a_rerun_repeats_a_job_and_is_compared_with_it(self):
        self.write("code/train.sh", "echo rate $LR\n")
        self.muster.run("submit", "single", "train", "--workspace", "code", "-e", "LR=1", "--follow", "--",
                        "sh", "train.sh")
        (self.muster.work / "code" / "train.sh").unlink()

        again = self.muster.run("rerun", "train")
        self.assertEqual(again.stdout, "submitted train-2, a rerun of train\n")
        self.muster.run("wait", "train-2")
        self.assertIn("rate 1", self.muster.logs("train-2"))
        self.assertEqual(self.muster.run("diff", "train", "train-2").stdout, "")
        origin = self.muster.job("train-2")["origin"]
        self.assertEqual(origin, {"kind": "rerun", "name": "train", "id": self.muster.job("train")["id"], "member": 0})
        self.assertRegex(self.muster.run("get", "train-2").stdout, r"ORIGIN +rerun of train\n")

        self.muster.run("rerun", "train-2", "-e", "LR=2", "--retries", 1, "--follow")
        self.assertIn("rate 2", self.muster.logs("train-3"))
        self.assertEqual(self.muster.run("diff", "train-3", code=1).stdout,
                         "--- train-2\n+++ train-3\n- scheduling.retries: 0\n+ scheduling.retries: 1\n"
                         "- environment.LR: 1\n+ environment.LR: 2\n")

    def test_a_rerun_uses_the_secrets_of_the_project_by_name(self):
        self.muster.run("secret", "set", "HF", input="first")
        self.muster.run("submit", "single", "a", "--secret", "HF", "--follow", "--", "sh", "-c", "echo ${#HF}")
        self.muster.run("secret", "set", "HF", input="a longer value")

        self.muster.run("rerun", "a", "--follow")

        self.assertIn("14", self.muster.logs("a-2"))
        self.muster.run("secret", "delete", "HF")
        self.assertIn("there is no secret 'HF'", self.muster.run("rerun", "a", code=3).stderr)

    def test_a_job_is_compared_with_a_file(self):
        self.write("job.yaml", JOB)
        self.muster.run("submit", "-f", "job.yaml", "--follow")
        self.muster.run("diff", "train", "job.yaml")

        self.write("job.yaml", JOB.replace("LR: 1", "LR: 5"))

        shown = json.loads(self.muster.run("diff", "train", "job.yaml", "-o", "json", code=1).stdout)
        self.assertEqual(shown, {"left": "train", "right": "job.yaml", "differences": [
            {"field": "environment.LR", "left": "1", "right": "5"}]})

    def test_reruns_submitted_at_the_same_time_get_different_names(self):
        self.muster.run("run", "--name", "a", "--", "true")
        with ThreadPoolExecutor(4) as pool:
            ran = list(pool.map(lambda _: self.muster.run("rerun", "a").stdout.split()[1], range(4)))
        self.assertEqual(sorted(ran), ["a-2,", "a-3,", "a-4,", "a-5,"])
        self.muster.run("wait", "a-2", "a-3", "a-4", "a-5")

    def test_a_taken_name_is_refused_and_the_refusal_names_the_flag(self):
        self.write("job.yaml", JOB)
        self.muster.run("submit", "-f", "job.yaml", "--follow")
        before = self.muster.job("train")

        refused = self.muster.run("submit", "-f", "job.yaml", code=4)
        self.assertIn("--name-suffix", refused.stderr)
        self.assertEqual(self.muster.run("submit", "-f", "job.yaml", "--name-suffix").stdout, "submitted train-2\n")
        self.assertEqual(self.muster.run("submit", "-f", "job.yaml", "--name", "train-{n}").stdout,
                         "submitted train-3\n")
        self.muster.run("wait", "train-2", "train-3")
        self.assertEqual(self.muster.job("train"), before)


class Waiting(DailyTest):

    def test_wait_exits_with_the_code_of_the_job(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "good", "--", "true")
        self.muster.run("submit", "single", "bad", "--", "sh", "-c", f"{gate.wait}; exit 7")
        waiting = self.muster.stream("wait", "good", "bad")
        waiting.until("good: Succeeded")
        gate.open()
        self.assertEqual(waiting.finish(), 7)
        self.assertIn("bad: Failed, exit code 7", waiting.text)
        self.assertIn("job 'bad' failed", waiting.errors)

    def test_wait_for_a_start_does_not_wait_for_the_end(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--hold", "--", "sh", "-c", gate.wait)
        waiting = self.muster.stream("wait", "job", "--for", "started")
        self.muster.run("resume", "job")
        self.assertEqual(waiting.finish(), 0)
        self.assertEqual(self.phase("job"), "Running")
        gate.open()

    def test_wait_for_a_start_ends_when_the_job_can_no_longer_start(self):
        self.muster.run("submit", "single", "job", "--hold", "--", "true")
        waiting = self.muster.stream("wait", "job", "--for", "started")
        self.muster.run("stop", "job")
        self.assertEqual(waiting.finish(), 1)

    def test_the_time_of_wait_is_limited_and_the_job_goes_on(self):
        self.muster.run("submit", "single", "job", "--hold", "--", "true")
        self.assertIn("has not ended after 50ms", self.muster.run("wait", "job", "--timeout", "50ms", code=124).stderr)
        self.assertEqual(self.phase("job"), "Queued")

    def test_interrupting_wait_leaves_the_job_alone(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "done", "--", "true")
        self.muster.run("submit", "single", "job", "--", "sh", "-c", gate.wait)
        waiting = self.muster.stream("wait", "done", "job")
        waiting.until("done: Succeeded")
        waiting.interrupt()
        self.assertEqual(waiting.finish(), 130)
        gate.open()
        self.assertEqual(self.muster.stream("wait", "job").finish(), 0)

    def test_wait_survives_the_death_of_the_server(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "done", "--", "true")
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"{gate.wait}; exit 3")
        waiting = self.muster.stream("wait", "done", "job")
        waiting.until("done: Succeeded")
        self.muster.kill_server()
        gate.open()
        self.assertEqual(waiting.finish(), 3)

    def test_a_job_that_is_deleted_while_it_is_waited_for_is_not_found(self):
        self.muster.run("submit", "single", "done", "--", "true")
        self.muster.run("submit", "single", "job", "--hold", "--", "true")
        waiting = self.muster.stream("wait", "done", "job")
        waiting.until("done: Succeeded")
        self.muster.run("delete", "job", "--force")
        self.assertIn(waiting.finish(), (1, 3))  # it was seen to be stopped, or only to be gone

    def test_stop_waits_for_the_end_if_asked(self):
        self.muster.run("submit", "single", "job", "--", "sleep", "infinity")
        self.muster.run("wait", "job", "--for", "started")
        self.assertEqual(self.muster.run("stop", "job", "--wait").stdout, "job has ended: Stopped\n")
        self.muster.run("delete", "job")
        self.assertEqual(self.names(), [])

    def test_stop_followed_by_delete_needs_no_wait(self):
        self.muster.run("submit", "single", "job", "--", "sleep", "infinity")
        self.muster.run("wait", "job", "--for", "started")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.run("delete", "job").stdout, "deleted job\n")


class OtherObjects(DailyTest):
    """Sweeps and arrays, which `muster list` shows beside jobs: the commands for jobs accept their names, too."""

    def test_a_sweep_is_shown_and_waited_for(self):
        self.muster.run("sweep", "create", "lr", "--param", "x=1,2", "--method", "grid", "--metric", "m", "--",
                        "sh", "-c", "echo ::metrics m={x}")
        self.assertEqual(sorted(self.muster.run("wait", "lr", "lr-1").stdout.splitlines()),
                         ["lr-1: Succeeded", "lr: Succeeded; 2 of 2 started, 2 completed; best m: 2 (lr-2)"])
        page = self.muster.run("get", "lr").stdout
        self.assertRegex(page, r"KIND +sweep of single jobs\n")
        self.assertEqual(page, self.muster.run("sweep", "get", "lr").stdout)
        self.write("again.yaml", self.muster.run("get", "lr", "--spec").stdout)
        self.muster.run("sweep", "-f", "again.yaml", "--name", "again")
        self.muster.run("wait", "again")
        self.assertEqual(self.muster.run("delete", "lr", "again").stdout, "deleted lr\ndeleted again\n")
        self.assertEqual(self.names(), [])

    def test_a_sweep_is_stopped_and_its_delete_waits_for_the_trials(self):
        self.muster.script("slow.py", "import signal, time\n"
                           "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), exit(1)))\n"
                           "print('runs', flush=True)\ntime.sleep(1000)\n")
        for name in ("one", "two", "three"):
            self.muster.run("sweep", "create", name, "--param", "x=1,2", "--method", "grid", "--metric", "m", "--",
                            "python3", "slow.py")
            self.muster.stream("logs", name + "-1", "-f").until("runs")
        self.assertRegex(self.muster.run("stop", "one").stdout, "^stopping one: 2 of 2 started, 2 stopped\n$")
        self.assertEqual(self.muster.run("delete", "one").stdout, "deleted one\n")
        self.assertIn("two has ended: Stopped", self.muster.run("stop", "two", "--wait").stdout)
        self.assertEqual({self.phase(f"two-{number}") for number in (1, 2)}, {"Stopped"})
        self.assertEqual(self.muster.run("wait", "two", code=1).stdout, "two: Stopped; 2 of 2 started, 2 stopped\n")
        self.muster.run("delete", "three", code=4)
        self.muster.run("delete", "three", "two", "--force")
        self.assertEqual(self.names(), [])

    def test_a_stopped_array_is_deleted_once_its_members_have_ended(self):
        self.muster.run("submit", "single", "long", "--array", "0-9%2", "--", "sleep", "infinity")
        self.muster.run("wait", "long-0", "--for", "started")
        self.muster.run("delete", "long", code=4)
        self.muster.run("stop", "long")
        self.assertEqual(self.muster.run("delete", "long").stdout, "deleted long\n")

    def test_arrays_are_compared(self):
        self.muster.run("submit", "single", "train", "--array", "0-1", "--", "true")
        self.muster.run("rerun", "train", "-e", "LR=1")
        self.muster.run("wait", "train", "train-rerun-1")
        self.assertIn("+ environment.LR: 1\n", self.muster.run("diff", "train", "train-rerun-1", code=1).stdout)

    def test_commands_for_one_job_name_what_an_object_consists_of(self):
        self.muster.run("submit", "single", "train", "--array", "3-5", "--", "true")
        self.muster.run("sweep", "create", "lr", "--param", "x=1,2", "--method", "grid", "--metric", "m", "--", "true")
        self.muster.run("schedule", "create", "nightly", "--cron", "@yearly", "--", "true")
        for name, words in (("train", "'train' is an array, and this request is for one job\n"
                                      "  name a member, such as train[3]"),
                            ("lr", "'lr' is a sweep, and this request is for one job\n  name a trial, such as lr-1"),
                            ("nightly", "'nightly' is a schedule, and this request is for one job\n"
                                        "  name one of its runs: 'muster schedule history nightly'")):
            for command in (("metrics",), ("artifacts", "list")):
                self.assertIn(words, self.muster.run(*command, name, code=3).stderr)
        self.assertRegex(self.muster.run("get", "nightly").stdout, r"CRON +@yearly\n")
        self.assertIn('command:\n  - "true"\n', self.muster.run("get", "nightly", "--spec").stdout)
        for command in ("stop", "wait", "logs", "delete", "rerun"):
            self.assertIn("'nightly' is a schedule", self.muster.run(command, "nightly", code=3).stderr)
        self.assertIn("did you mean 'train'", self.muster.run("get", "trian", code=3).stderr)
        for command in ("logs", "get", "stop", "metrics", "delete"):
            self.assertIn("array 'train' has no member 44\n  the indexes of its members are 3-5",
                          self.muster.run(command, "train[44]", code=3).stderr)
        self.muster.run("wait", "train")
        self.muster.run("delete", "train-4")
        self.assertNotIn("has no member", self.muster.run("logs", "train-4", code=None).stderr)


class Deleting(DailyTest):

    def test_jobs_are_deleted_by_label_phase_and_age(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "runs", "-l", "team=vision", "--", "sh", "-c", gate.wait)
        self.muster.run("submit", "single", "good", "-l", "team=vision", "--", "true")
        self.muster.run("submit", "single", "bad", "--", "false")
        self.muster.run("wait", "good")
        self.muster.run("wait", "bad", code=1)

        shown = self.muster.run("delete", "-l", "team=vision", "--dry-run", "-o", "json").stdout
        self.assertEqual([job["spec"]["name"] for job in json.loads(shown)["jobs"]], ["good"])
        self.assertIn("confirm with --yes", self.muster.run("delete", "--phase", "Failed", code=2).stderr)
        self.assertEqual(self.muster.run("delete", "--phase", "Failed", "--yes").stdout, "deleted bad\n")
        self.muster.run("delete", "-l", "team=vision", "--ended-before", "1h", "--yes")
        self.assertEqual(sorted(self.names()), ["good", "runs"])
        gone = json.loads(self.muster.run("delete", "-l", "team=vision", "--yes", "-o", "json").stdout)["jobs"]
        self.assertEqual([job["spec"]["name"] for job in gone], ["good"])
        gate.open()


if __name__ == "__main__":
    main()
