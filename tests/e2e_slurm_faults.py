"""Faults around a job on Slurm: daemons that die, a controller that is down or loses jobs, and lost replies. No job is
lost or runs twice, and each fault is reported."""

import json

from muster_harness import main, processes_naming, read_bytes
from slurm_daemons import ENDING_BOUND
from slurm_harness import CountedTest

# An sbatch that submits the job and loses the reply once, like a broken connection.
LOSING_SBATCH = """#!/bin/sh
if mkdir {once} 2>/dev/null; then
  /usr/bin/sbatch "$@" >/dev/null
  echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
  exit 1
fi
exec /usr/bin/sbatch "$@"
"""

# An sbatch that does not return until the test releases it.
SLOW_SBATCH = """#!/bin/sh
echo $$ >> {pids}
head -c 1 {gate} >/dev/null
exec /usr/bin/sbatch "$@"
"""


class TheController(CountedTest):

    def test_a_restarted_controller_finds_jobs_that_have_continued(self):
        starts, gate = self.counted()
        self.await_starts(starts, 1)

        self.cluster.kill_controller()
        self.cluster.until(lambda: "has not answered since" in self.muster.job("job")["reason"],
                           "Muster reports that it has not answered")
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        self.cluster.start_controller()

        self.cluster.until(lambda: "has not answered since" not in self.muster.job("job")["reason"],
                           "the reason no longer mentions the controller")
        gate.open()
        job = self.ends_well("job")
        self.assertEqual(job["attempt"], 1)
        self.assertEqual(len(starts.read_text().split()), 1)

    def test_jobs_can_be_submitted_end_and_be_stopped_while_the_controller_is_down(self):
        running, gate = self.counted("running")
        self.await_starts(running, 1)
        self.submit("stopped", "sleep infinity")
        self.muster.await_phase("stopped", "Running")

        self.cluster.kill_controller()
        self.submit("later", "echo later")
        self.muster.run("stop", "stopped")
        gate.open()
        self.ends_well("running")
        self.cluster.until(lambda: "has not answered since" in self.muster.run("explain", "later").stdout,
                           "the explanation has the reason")
        self.cluster.start_controller()

        self.ends_well("later")
        self.assertEqual(self.muster.ended("stopped")["phase"], "Stopped")
        self.cluster.until(lambda: not self.cluster.active_jobs(), "nothing is left of them",
                           bound=ENDING_BOUND)
        self.assertEqual(len(self.muster.slurm_jobs("later")), 1)

    def test_a_hanging_program_delays_no_other(self):
        starts, gate = self.counted()
        self.await_starts(starts, 1)

        self.cluster.freeze_controller()
        try:
            self.muster.run("list", bound=30)
            self.submit("later", "echo later")
            gate.open()
            self.ends_well("job")
            # Long enough for a late answer: the submitted job is found later.
            self.cluster.until(lambda: "Slurm" in self.muster.run("explain", "later").stdout
                               and "answer" in self.muster.run("explain", "later").stdout,
                               "the explanation has the reason")
        finally:
            self.cluster.thaw_controller()

        self.ends_well("later")
        self.assertEqual(len(self.muster.slurm_jobs("later")), 1, "it was submitted once")

    def test_a_job_that_the_controller_has_lost_is_submitted_again(self):
        holder = self.fill()
        self.cluster.kill_controller()  # and the controller has saved its state
        self.cluster.start_controller()
        self.submit("job", "echo here")
        self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")

        self.cluster.kill_controller(saved=False)
        self.cluster.start_controller()

        self.let_go(holder)
        self.ends_well("job")


class NodesThatDie(CountedTest):
    """Nodes whose processes all die at once, so that no process remains that could record the end of the task."""
    CLUSTER = {"apart": True}

    def test_a_node_that_dies_ends_the_attempt_and_another_runs_elsewhere(self):
        starts, gate = self.counted("job", "--retries", 1)
        self.await_starts(starts, 1)
        node = self.muster.job("job")["tasks"][0]["node"]

        self.cluster.kill_node(node)
        try:
            self.await_starts(starts, 2)
            after = self.muster.job("job")
            self.assertNotEqual(after["tasks"][0]["node"], node)
            self.assertEqual(after["attempt"], 2)
        finally:
            self.cluster.start_node(node)
        gate.open(2)
        self.ends_well("job")
        self.assertEqual(self.muster.job("job")["attempt"], 2)

        self.assertTrue(self.cluster.left_on_nodes(), "what was there when the node lost its power")
        self.only_on(node)
        self.submit("next", "echo next")
        self.ends_well("next")
        # The batch script and srun of the job end a moment after the job.
        self.cluster.until(lambda: self.cluster.left_on_nodes() == [], "nothing is left on the nodes")

    def test_without_retries_the_job_fails_and_names_the_node(self):
        starts, _ = self.counted()
        self.await_starts(starts, 1)
        node = self.muster.job("job")["tasks"][0]["node"]

        self.cluster.kill_node(node)
        try:
            job = self.muster.ended("job")
        finally:
            self.cluster.start_node(node)

        self.assertEqual(job["phase"], "Failed")
        self.assertIn(f"node {node}", job["failure"]["cause"])
        self.assertEqual(len(starts.read_text().split()), 1)
        self.only_on(node)
        self.submit("next", "echo next")
        self.ends_well("next")

    def only_on(self, node):
        """Makes all other nodes unavailable to the next job."""
        for name in self.cluster.nodes:
            if name != node:
                self.cluster.drain(name, "a test")
                self.addCleanup(self.cluster.undrain, name)


class Nodes(CountedTest):

    def test_a_slurmd_that_dies_alone_leaves_no_second_copy_running(self):
        starts, gate = self.counted("job", "--retries", 1)
        self.await_starts(starts, 1)
        node = self.muster.job("job")["tasks"][0]["node"]

        # The task continues without its muster-node's connection, until the server orders it to end.
        self.cluster.kill_node(node)
        try:
            self.await_starts(starts, 2)
            self.cluster.until(lambda: len(self.waiting_at_gates()) == 1, "one copy is left")
        finally:
            self.cluster.start_node(node)
        gate.open(2)
        self.ends_well("job")

    def test_a_drained_node_is_listed_as_drained_and_gets_no_more_jobs(self):
        gate, follow = self.at_the_gate("job")
        node = self.muster.job("job")["tasks"][0]["node"]
        for name in self.cluster.nodes:
            if name != node:
                self.cluster.drain(name, "its fan is loud")
                self.addCleanup(self.cluster.undrain, name)

        # Only the node of the first job remains, and it has free resources: the job there continues.
        self.submit("two", "echo two")
        self.ends_well("two")
        self.assertEqual(self.muster.job("two")["tasks"][0]["node"], node)
        other = next(name for name in self.cluster.nodes if name != node)
        self.cluster.until(lambda: ["cordoned", "its fan is loud"] == self.shown(other),
                           f"{other} is shown with its reason")
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)

    def shown(self, node):
        """The state of the job, and its reason."""
        listed = json.loads(self.muster.run("node", "list", "--output", "json").stdout)["nodes"]
        found = next(each for each in listed if each["name"] == node)
        return [found["state"], found["labels"].get("reason", "")]

    def waiting_at_gates(self):
        return [pid for pid in processes_naming(str(self.muster.work / "job.gate"))
                if read_bytes(f"/proc/{pid}/comm").strip() == b"head"]


class Replies(CountedTest):

    def shadow(self, program, text):
        """Puts the script `text` before Slurm's own program in the server's PATH."""
        folder = self.muster.work / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / program
        path.write_text(text)
        path.chmod(0o755)
        self.muster.environment["PATH"] = f"{folder}:{self.muster.environment['PATH']}"

    def test_after_a_lost_reply_the_queue_is_checked_before_a_job_is_submitted_again(self):
        self.shadow("sbatch", LOSING_SBATCH.format(once=self.muster.work / "once"))
        starts, gate = self.counted()

        self.await_starts(starts, 1)

        self.assertEqual(len(self.muster.slurm_jobs("job")), 1)
        gate.open()
        self.ends_well("job")
        self.assertTrue((self.muster.work / "once").exists(), "the first sbatch was not the one that loses replies")
        self.assertEqual(len(starts.read_text().split()), 1)

    def test_a_server_killed_while_it_submits_submits_once(self):
        pids = self.muster.work / "pids"
        submitting = self.muster.gate("submitting")
        self.shadow("sbatch", SLOW_SBATCH.format(pids=pids, gate=self.muster.work / "submitting"))
        starts, gate = self.counted()
        self.cluster.until(pids.exists, "sbatch runs")

        self.muster.kill_server()
        submitting.open(8)  # calls in progress continue without it, and later calls are not delayed
        self.muster.jobs()

        self.await_starts(starts, 1)
        gate.open()
        self.ends_well("job")
        self.assertEqual(len(starts.read_text().split()), 1)
        self.cluster.until(lambda: not self.cluster.active_jobs(), "nothing else of it is in the queue",
                           bound=ENDING_BOUND)


if __name__ == "__main__":
    main()
