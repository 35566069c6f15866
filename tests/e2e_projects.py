"""Projects, quotas and the queue on a machine with two declared GPUs."""

import json
import os
import pty
import re
import select
import subprocess
import termios

from muster_harness import BOUND, DOCUMENTS_MPIRUN, MusterTest, main


class ProjectTest(MusterTest):
    """A server with two declared GPUs."""

    def setUp(self):
        super().setUp()
        self.server = self.muster.start_server("--declare-gpus", "2:V100:16G")

    # --- helpers

    def submit(self, name, *flags, script):
        """Submits a job of one task that runs the shell script `script`. The job is stored when this returns."""
        self.muster.run("submit", "single", name, *flags, "--", "sh", "-c", script)

    def submit_gang(self, name, *flags, script):
        """Submits an MPI job with a launcher and two workers of one GPU each."""
        self.muster.run("submit", "mpi", name, "--workers", 2, "--gpus", 1, *flags, "--",
                        *DOCUMENTS_MPIRUN, "sh", "-c", script)

    def follow(self, name):
        return self.muster.stream("logs", name, "-f")

    def assert_succeeds(self, follow, name):
        self.assertEqual(follow.finish(), 0, follow.errors)
        job = self.muster.job(name)
        self.assertEqual(job["phase"], "Succeeded", job)

    def explain(self, name):
        return json.loads(self.muster.run("explain", name, "-o", "json").stdout)

    def queue(self):
        return self.muster.run("queue", "-o", "names").stdout.split()

    def project(self, name):
        return json.loads(self.muster.run("project", "get", name, "-o", "json").stdout)

    def assert_never_started(self, name):
        job = self.muster.job(name)
        self.assertEqual((job["phase"], job["attempt"]), ("Queued", 0), job)
        self.assertFalse((self.muster.state / "jobs" / job["id"]).exists())

    def holder(self, name, *flags, gpus=1):
        """Starts a job that holds GPUs until its gate opens, and that is restarted after an eviction. It prints "start"
        and the number of its restarts."""
        gate = self.muster.gate(f"gate-{name}")
        self.submit(name, "--gpus", gpus, *flags,
                    script=f"echo start $MUSTER_RESTART_COUNT; {gate.wait} & wait $!")
        follow = self.follow(name)
        follow.until("start 0")
        return gate, follow


class TheDocumentsStory(ProjectTest):

    def setUp(self):
        super().setUp()
        self.muster.run("project", "create", "team-a", "--gpus", 2)

    def test_a_gang_within_the_quota_runs_and_each_worker_sees_a_gpu_of_its_own(self):
        gate = self.muster.gate()
        self.submit_gang("dist", "--project", "team-a",
                         script=f"echo sees GPU $CUDA_VISIBLE_DEVICES; {gate.wait}")
        dist = self.follow("dist")
        seen = sorted(dist.until("sees GPU") for _ in range(2))

        self.assertEqual([re.sub(r"^\[\d@", "[", line)[:-1] for line in seen],
                         ["[dist-worker-0] sees GPU ", "[dist-worker-1] sees GPU "])
        self.assertEqual(sorted(line[-1] for line in seen), ["0", "1"])
        self.assertEqual([(task["name"], len(task["devices"])) for task in self.muster.job("dist")["tasks"]],
                         [("launcher", 0), ("worker-0", 1), ("worker-1", 1)])

        self.submit("second", "--project", "team-a", "--gpus", 1, script="true")
        self.assert_never_started("second")
        why = self.explain("second")
        self.assertEqual((why["phase"], why["position"]), ("Queued", 1))
        self.assertRegex(why["reason"], r"\b1 GPU")
        page = self.muster.run("explain", "second").stdout
        self.assertTrue(page.startswith(f"Queued: {why['reason']}\n"), page)
        self.assertRegex(self.muster.run("queue").stdout, r"(?m)^ +1 +second +team-a +50 +1 GPU ")

        gate.open(times=2)
        self.assert_succeeds(dist, "dist")
        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")

    def test_no_task_of_a_gang_of_two_starts_while_one_gpu_is_free(self):
        gate, one = self.holder("one", "--project", "team-a")

        self.submit_gang("dist", "--project", "team-a", script="echo on $(hostname)")
        self.submit("small", "--project", "team-a", script="true")
        self.assertEqual(self.muster.ended("small")["phase"], "Succeeded")

        # A later job has run, so the scheduler has considered all of them.
        self.assert_never_started("dist")
        self.assertIn("1 GPU free", self.explain("dist")["reason"])
        dist = self.follow("dist")
        gate.open()
        self.assert_succeeds(one, "one")
        self.assert_succeeds(dist, "dist")
        self.assertEqual(dist.text.count("on dist-worker-"), 2)

    def test_a_job_over_quota_is_evicted_for_the_owner_of_the_quota_and_starts_again_later(self):
        self.muster.run("project", "create", "team-b")
        gate, extra = self.holder("extra", "--project", "team-b", gpus=2)

        owners_gate = self.muster.gate("gate-dist")
        self.submit_gang("dist", "--project", "team-a", script=f"echo runs; {owners_gate.wait}")
        dist = self.follow("dist")
        dist.until("runs")

        job = self.muster.job("extra")
        self.assertEqual(job["phase"], "Queued", job)
        self.assertRegex(" ".join(event["text"] for event in job["events"]),
                         r"evicted for 'dist' of project team-a")
        self.assertEqual(self.queue(), ["extra"])
        owners_gate.open(times=2)
        self.assert_succeeds(dist, "dist")
        extra.until("start 1")
        gate.open()
        self.assert_succeeds(extra, "extra")
        self.assertEqual(self.muster.job("extra")["restarts"], 1)


class SuspendedJobsAndCordonedNodes(ProjectTest):

    def test_a_suspended_job_releases_its_resources_until_it_is_resumed(self):
        gate, first = self.holder("first", gpus=2)

        self.muster.run("suspend", "first")
        self.submit("second", "--gpus", 2, script="true")

        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")
        self.assertTrue(self.muster.job("first")["suspended"])
        self.assertIn("muster resume first", self.explain("first")["reason"])
        self.assertEqual(self.muster.run("resume", "first").stdout, "resumed first\n")
        first.until("start 1")
        gate.open()
        self.assert_succeeds(first, "first")
        self.muster.run("suspend", "second", code=4)

    def test_a_cordoned_node_gets_no_new_task_and_a_drained_node_loses_its_tasks(self):
        node = self.muster.run("node", "list", "-o", "names").stdout.strip()
        gate, first = self.holder("first")

        self.assertEqual(self.muster.run("node", "cordon", node).stdout,
                         f"cordoned {node}; 1 job continues there\n")
        self.submit("second", script="true")
        self.assertEqual(self.muster.job("first")["phase"], "Running")
        self.assert_never_started("second")
        self.muster.run("node", "uncordon", node)
        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")

        self.muster.run("node", "drain", node)
        events = self.muster.stream("events", "first", "--follow")
        events.until("evicted")
        self.muster.run("node", "uncordon", node)
        first.until("start 1")
        gate.open()
        self.assert_succeeds(first, "first")
        self.assertEqual(events.finish(), 0)

    def test_a_node_stays_cordoned_after_a_restart_of_the_server(self):
        node = self.muster.run("node", "list", "-o", "names").stdout.strip()
        self.muster.run("project", "create", "team-a", "--gpus", 1, "--limit", 2)
        self.muster.run("node", "cordon", node)

        self.muster.kill_server()
        self.server = self.muster.start_server("--declare-gpus", "2")

        self.assertRegex(self.muster.run("node", "list").stdout, rf"(?m)^{re.escape(node)} +cordoned ")
        self.assertEqual(self.project("team-a")["name"], "team-a")


class Asking(ProjectTest):

    def test_a_dry_run_shows_where_a_job_would_start_and_stores_nothing(self):
        self.muster.run("project", "create", "team-a", "--gpus", 2)

        said = self.muster.run("submit", "mpi", "dist", "--project", "team-a", "--workers", 2, "--gpus", 1,
                               "--dry-run", "--", "true").stdout

        self.assertTrue(said.startswith("would start now\n"), said)
        for row in (r"worker-0 +\S+ +GPU 0", r"worker-1 +\S+ +GPU 1", r"used +0 GPU\S* .*2 GPU"):
            self.assertRegex(said, row)
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual(self.project("team-a")["status"]["requested"]["gpus"], 0)

    def test_a_dry_run_of_a_job_that_would_wait_gives_the_reason(self):
        gate, holder = self.holder("holder", gpus=2)

        said = self.muster.run("submit", "single", "next", "--gpus", 1, "--dry-run", "--", "true").stdout

        self.assertTrue(said.startswith("would wait: "), said)
        gate.open()
        self.assert_succeeds(holder, "holder")

    def test_a_job_that_can_never_run_is_refused_with_the_numbers(self):
        self.muster.run("project", "create", "small", "--limit", 1)
        for flags in (["--gpus", 3], ["--gpus", 2, "--project", "small"]):
            for dry in ([], ["--dry-run"]):
                refused = self.muster.run("submit", "single", "never", *flags, *dry, "--", "true", code=4)
                self.assertRegex(refused.stderr, rf"\b{flags[1]} GPU")
        self.assertEqual(self.muster.jobs(), [])

    def test_unknown_names_are_answered_with_the_nearest(self):
        self.muster.run("project", "create", "team-a")
        for words in (["project", "get", "teem-a"], ["project", "use", "team-aa"],
                      ["submit", "single", "job", "--project", "tem-a", "--", "true"]):
            self.assertIn("team-a", self.muster.run(*words, code=3).stderr)
        node = self.muster.run("node", "list", "-o", "names").stdout.strip()
        self.assertIn(node, self.muster.run("node", "get", node + "x", code=3).stderr)

    def test_a_project_with_jobs_is_not_deleted_and_its_quota_may_fall_below_its_use(self):
        self.muster.run("project", "create", "team-a", "--gpus", 2)
        gate, holder = self.holder("holder", "--project", "team-a", gpus=2)

        self.muster.run("project", "delete", "team-a", code=4)
        self.muster.run("project", "set", "team-a", "--gpus", 1)

        self.assertRegex(self.muster.run("project", "list").stdout,
                         r"(?m)^team-a +1 GPU +- +1 +\S+ GPU +2 GPU +1 +0$")
        gate.open()
        self.assert_succeeds(holder, "holder")
        self.muster.run("delete", "holder")
        self.assertEqual(self.muster.run("project", "delete", "team-a").stdout, "deleted team-a\n")

    def test_jobs_are_submitted_to_the_project_in_use(self):
        self.muster.run("project", "create", "team-a")
        self.muster.run("project", "use", "team-a")

        self.muster.run("run", "--name", "one", "--", "true")
        self.muster.run("run", "--name", "two", "--", "true", environment={"MUSTER_PROJECT": "default"})

        self.assertEqual({job["spec"]["name"]: job["spec"]["project"] for job in self.muster.jobs()},
                         {"one": "team-a", "two": "default"})
        self.assertEqual(self.muster.run("list", "--project", "team-a", "-o", "names").stdout, "one\n")


class Top(ProjectTest):

    def test_top_prints_once_if_its_output_is_not_a_terminal(self):
        gate, holder = self.holder("holder")

        said = self.muster.run("top").stdout

        self.assertRegex(said, r"^muster .* GPUs 1/2 +running 1 +waiting 0\n")
        self.assertRegex(said, r"(?m)^holder +default +Running +1 GPU ")
        gate.open()
        self.assert_succeeds(holder, "holder")

    def test_top_updates_on_a_terminal_and_q_restores_the_terminal(self):
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, its)
        before = termios.tcgetattr(its)
        top = subprocess.Popen(self.muster.argv("top", "--interval", "100ms"), stdin=its, stdout=its,
                               env=self.muster.environment | {"TERM": "xterm"})
        self.addCleanup(top.wait, BOUND)
        self.addCleanup(top.kill)
        self.read_until(ours, b"running 0")

        gate, holder = self.holder("holder")
        self.read_until(ours, b"running 1")
        os.write(ours, b"q")

        self.assertEqual(top.wait(BOUND), 0)
        self.read_until(ours, b"\x1b[?1049l")
        self.assertEqual(termios.tcgetattr(its), before)
        gate.open()
        self.assert_succeeds(holder, "holder")

    def read_until(self, terminal, words):
        seen = b""
        while words not in seen:
            if not select.select([terminal], [], [], BOUND)[0]:
                self.fail(f"the terminal never showed {words!r}; last: {seen[-500:]!r}")
            seen += os.read(terminal, 1 << 16)


if __name__ == "__main__":
    main()
