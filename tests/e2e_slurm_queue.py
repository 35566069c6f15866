"""Jobs in Slurm's queue: the information that Muster shows, the settings that it passes to Slurm, and its reports of
actions of Slurm and its administrators."""

import json

from muster_harness import main
from slurm_harness import SlurmTest


class Waiting(SlurmTest):

    def test_slurms_reason_and_estimate_show_while_a_job_waits(self):
        holder = self.cluster.submit("sleep infinity", "--exclusive", "--nodes=4", "--time=60", "--no-requeue")
        self.cluster.await_state(holder, "RUNNING")
        self.submit("patient", "true")
        listed = self.cluster.until(lambda: self.muster.slurm_job("patient"), "it is in the queue")
        self.cluster.await_state(listed["id"], "PENDING")

        self.cluster.until(lambda: "Resources" in self.muster.run("explain", "patient").stdout,
                           "the reason is shown")
        said = self.muster.run("explain", "patient").stdout
        self.assertIn(f"job {listed['id']}", said)
        self.cluster.until(lambda: "expects it to start at" in self.muster.run("explain", "patient").stdout,
                           "Slurm's estimate is shown")
        self.assertIn("Resources", self.muster.run("get", "patient").stdout)
        self.assertEqual(self.muster.job("patient")["phase"], "Queued")

        self.let_go(holder)
        self.ends_well("patient")

    def test_a_job_behind_another_has_the_reason_priority(self):
        holder = self.fill()
        self.submit("first", "true")
        self.cluster.until(lambda: self.muster.slurm_job("first"), "the first is in the queue")
        self.submit("second", "true")

        self.cluster.until(lambda: "Priority" in self.muster.run("explain", "second").stdout, "the reason is Priority")

        self.let_go(holder)
        self.ends_well("first")
        self.ends_well("second")

    def test_a_job_that_is_stopped_while_it_waits_leaves_slurms_queue(self):
        self.fill()
        self.submit("job", "true")
        listed = self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")

        self.muster.run("stop", "job")

        self.cluster.await_state(listed["id"], "CANCELLED")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")

    def test_a_job_that_is_suspended_while_it_waits_leaves_slurms_queue_until_it_is_resumed(self):
        holder = self.fill()
        self.submit("job", "true")
        listed = self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")

        self.muster.run("suspend", "job")
        self.cluster.await_state(listed["id"], "CANCELLED")
        self.assertTrue(self.muster.job("job")["suspended"])
        self.muster.run("resume", "job")

        self.let_go(holder)
        self.ends_well("job")
        self.assertEqual(len(self.muster.slurm_jobs("job")), 2)

    def test_a_waiting_job_cancelled_in_slurm_ends_and_names_the_user(self):
        self.fill()
        self.submit("job", "true")
        listed = self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")

        self.cluster.run("scancel", listed["id"])

        job = self.muster.ended("job")
        self.assertIn(job["phase"], ("Stopped", "Failed"))
        self.assertRegex(json.dumps(job), "cancelled in Slurm")
        self.assertEqual(len(self.muster.slurm_jobs("job")), 1, "it is not submitted again")


class PassedSettings(SlurmTest):
    SETTINGS = {"accounts": {"team-a": "chosen"}, "default_account": "of-%p", "options": ["--nice=7"]}

    def test_a_project_has_its_account_and_others_the_default(self):
        self.muster.run("project", "create", "team-a")
        for project, account in (("team-a", "chosen"), ("default", "of-default")):
            self.submit(f"in-{project}", "true", "--project", project)
            self.ends_well(f"in-{project}")
            self.assertEqual(self.muster.slurm_job(f"in-{project}")["account"], account)

    def test_a_partition_that_refuses_its_account_is_named_while_it_waits(self):
        # Without an accounting database Slurm has no accounts, and such a partition accepts no job.
        self.submit("job", "true", "--slurm-partition", "closed")

        self.cluster.until(lambda: "(closed allows chosen)" in self.muster.run("explain", "job").stdout,
                           "the explanation has Slurm's whole reason")

        self.assertIn("--slurm-partition", self.muster.run("explain", "job").stdout)
        self.assertEqual(self.muster.job("job")["phase"], "Queued")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")

    def test_partition_account_and_time_limit_are_slurms(self):
        gate, follow = self.at_the_gate("job", "--slurm-partition", "urgent", "--time-limit", "90m")

        listed = self.muster.slurm_job("job")
        shown = self.cluster.run("scontrol", "show", "job", listed["id"])
        self.assertEqual(listed["partition"], "urgent")
        self.assertRegex(shown, r"TimeLimit=01:3\d:00")
        self.assertIn("Nice=7", shown)
        self.assertIn("JobName=job", shown)
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)

    def test_a_node_pool_is_a_partition(self):
        gate, follow = self.at_the_gate("job", "--node-pool", "urgent")

        self.assertEqual(self.muster.slurm_job("job")["partition"], "urgent")
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)

    def test_a_refusal_quotes_slurm_and_advises_a_remedy(self):
        for flags, words in ((["--slurm-partition", "nope"], "partition"),
                             (["--slurm-reservation", "nope"], "reservation"),
                             (["--slurm-constraint", "v100"], "feature"),
                             (["--gpus", "99"], "node"),
                             (["--memory", "900G"], "node")):
            with self.subTest(flags=flags):
                self.muster.run("submit", "single", "job", *flags, "--", "true", code=None)
                jobs = [job for job in self.muster.jobs() if job["spec"]["name"] == "job"]
                if jobs:  # it was not refused at once
                    job = self.cluster.until(lambda: self.over("job"), "it is refused")
                    self.assertEqual(job["phase"], "Failed", job)
                    self.assertIn(words, json.dumps(job["failure"]).lower())
                    self.assertTrue(job["failure"]["advice"], job["failure"])
                    self.muster.run("delete", "job")
        self.assertEqual(self.cluster.active_jobs(), [])

    def over(self, name):
        job = self.muster.job(name)
        return job if job["phase"] in ("Failed", "Stopped", "Succeeded") else None


class ActionsOfSlurm(SlurmTest):

    def test_a_running_job_cancelled_in_slurm_ends_with_the_reason(self):
        _, follow = self.at_the_gate()
        identity = self.muster.slurm_job("job")["id"]

        self.cluster.run("scancel", identity)

        self.assertNotEqual(follow.finish(), 0)
        job = self.muster.job("job")
        self.assertIn("cancelled in Slurm", json.dumps(job))
        self.assertIn("begun", follow.text)
        self.assertEqual(len(self.muster.slurm_jobs("job")), 1, "it is not submitted again")

    def test_a_job_that_slurm_requeues_starts_as_another_attempt(self):
        marks = self.muster.work / "starts"
        gate = self.muster.gate()
        self.submit("job", f"echo $MUSTER_RESTART_COUNT >> {marks}; echo begun; {gate.wait}")
        self.cluster.until(marks.exists, "it runs")
        identity = self.muster.slurm_job("job")["id"]

        self.cluster.run("scontrol", "requeue", identity)

        self.cluster.until(lambda: len(marks.read_text().split()) == 2, "it runs again")
        self.assertEqual(marks.read_text().split(), ["0", "1"])
        self.assertEqual(self.muster.slurm_job("job")["id"], identity, "it keeps its age in the queue")
        gate.open()
        job = self.ends_well("job")
        self.assertEqual(job["attempt"], 2)

    def test_a_preempted_job_is_queued_again_with_the_reason(self):
        marks = self.muster.work / "starts"
        gate = self.muster.gate()
        self.submit("job", f"echo run >> {marks}; {gate.wait}")
        self.cluster.until(marks.exists, "it runs")

        urgent = self.fill("urgent")

        job = self.muster.await_phase("job", "Queued")
        self.cluster.until(lambda: "preempt" in self.muster.run("get", "job").stdout.lower()
                           or "preempt" in self.muster.run("explain", "job").stdout.lower(), "it says why")
        self.let_go(urgent)
        self.cluster.until(lambda: marks.read_text().count("run") == 2, "it runs again")
        gate.open()
        job = self.ends_well("job")
        self.assertEqual(job["attempt"], 2)

    def test_a_job_suspended_by_slurm_stays_running_with_a_note(self):
        gate, follow = self.at_the_gate()
        identity = self.muster.slurm_job("job")["id"]

        self.cluster.suspend(identity)
        self.cluster.until(lambda: "Slurm has suspended it" in self.muster.job("job")["reason"], "it is shown")
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        self.cluster.run("scontrol", "resume", identity)

        self.cluster.until(lambda: "suspended" not in self.muster.job("job")["reason"], "it is shown no more")
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)

    def test_a_job_suspended_by_slurm_can_be_stopped(self):
        _, follow = self.at_the_gate()
        identity = self.muster.slurm_job("job")["id"]
        self.cluster.suspend(identity)
        self.cluster.until(lambda: "Slurm has suspended it" in self.muster.job("job")["reason"], "it is shown")

        self.muster.run("stop", "job")

        follow.finish()
        self.assertEqual(self.muster.job("job")["phase"], "Stopped")
        self.cluster.until(lambda: not self.cluster.active_jobs(), "Slurm's job is over")

    def test_a_job_past_slurms_time_limit_fails_with_that_reason(self):
        _, follow = self.at_the_gate("job", "--time-limit", "2h")
        identity = self.muster.slurm_job("job")["id"]

        # Slurm counts in minutes, and checks limits every half minute.
        self.cluster.run("scontrol", "update", f"JobId={identity}", "TimeLimit=1")

        self.assertNotEqual(follow.finish(bound=300), 0)
        job = self.muster.job("job")
        self.assertEqual(job["phase"], "Failed")
        self.assertRegex(json.dumps(job["failure"]).lower(), "time limit|timeout")


class SavingBeforeAPreemption(SlurmTest):
    """Ranks that save their work at once. They have no longer than srun, which receives the same signal."""
    CLUSTER = {"settings": "KillWait=10\n"}

    def test_ranks_of_srun_save_their_work_before_a_preemption(self):
        starts, saved = self.muster.work / "starts", self.muster.work / "saved"
        gate = self.muster.gate()
        self.submit("job", f"trap 'echo $SLURM_PROCID >> {saved}; exit 0' TERM; echo run >> {starts}; "
                    f"{gate.wait}", "--workers", 2, "--launch", "srun", kind="mpi")
        self.cluster.until(lambda: starts.exists() and starts.read_text().count("run") == 2, "both ranks run")

        urgent = self.fill("urgent")

        self.muster.await_phase("job", "Queued")
        self.assertEqual(sorted(saved.read_text().split()), ["0", "1"])
        self.let_go(urgent)
        self.cluster.until(lambda: starts.read_text().count("run") == 4, "both ranks run again")
        gate.open(2)
        job = self.ends_well("job")
        self.assertEqual(job["attempt"], 2)


class Ending(SlurmTest):

    def test_stop_gives_a_job_its_grace_and_leaves_nothing(self):
        follow = self.muster.stream("submit", "single", "job", "--follow", "--", "sh", "-c",
                                    "trap 'echo heard; exit 3' TERM; echo begun; while :; do sleep 0.1; done")
        follow.until("begun")

        self.muster.run("stop", "job")

        follow.finish()
        self.assertIn("heard", follow.text)
        self.assertEqual(self.muster.job("job")["phase"], "Stopped")
        self.cluster.until(lambda: not self.cluster.active_jobs(), "Slurm's job is over")

    def test_suspend_releases_the_nodes_and_resume_requests_new_ones(self):
        marks = self.muster.work / "starts"
        gate = self.muster.gate()
        self.submit("job", f"echo run >> {marks}; {gate.wait}")
        self.cluster.until(marks.exists, "it runs")

        self.muster.run("suspend", "job")
        self.assertTrue(self.muster.job("job")["suspended"])
        self.cluster.until(lambda: not self.cluster.active_jobs(), "its nodes are free")
        self.muster.run("resume", "job")

        self.cluster.until(lambda: marks.read_text().count("run") == 2, "it runs again")
        gate.open()
        self.ends_well("job")

    def test_musters_own_time_limit_fails_it(self):
        ran = self.muster.run("submit", "single", "job", "--time-limit", "3s", "--follow", "--", "sh", "-c",
                              "echo begun; sleep 1000", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("time limit", json.dumps(self.muster.job("job")["failure"]))

    def test_deleted_jobs_leave_no_folder(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "true")
        self.assertEqual(len(self.muster.job_folders()), 1)

        self.muster.run("delete", "job")

        self.cluster.until(lambda: not self.muster.job_folders(), "its folder is gone")


if __name__ == "__main__":
    main()
