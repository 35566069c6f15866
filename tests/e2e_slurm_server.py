"""A server that is killed at each stage of a job on Slurm. The job continues or keeps waiting, the next server finds
it, and no job is lost or runs twice."""

import json

from muster_harness import main, processes_naming, read_bytes
from slurm_daemons import ENDING_BOUND
from slurm_harness import CountedTest


class TheServer(CountedTest):

    def test_a_restarted_server_finds_a_waiting_job(self):
        holder = self.fill()
        starts, gate = self.counted()
        identity = self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")["id"]

        self.muster.kill_server()
        self.assertEqual(self.muster.job("job")["phase"], "Queued")

        self.let_go(holder)
        self.await_starts(starts, 1)
        self.assertEqual(self.muster.slurm_job("job")["id"], identity)
        gate.open()
        self.ends_well("job")
        self.assertEqual(len(self.muster.slurm_jobs("job")), 1)

    def test_a_job_that_slurm_allocates_while_the_server_is_down_starts_after_its_restart(self):
        holder = self.fill()
        starts, gate = self.counted()
        identity = self.cluster.until(lambda: self.muster.slurm_job("job"), "it is in the queue")["id"]

        self.muster.kill_server()
        self.let_go(holder)
        self.cluster.await_state(identity, "RUNNING")
        self.muster.jobs()

        self.await_starts(starts, 1)
        gate.open()
        job = self.ends_well("job")
        self.assertEqual(job["attempt"], 1)

    def test_a_restarted_server_adopts_running_jobs_with_every_line_of_their_logs(self):
        gate, follow = self.at_the_gate("job")
        self.muster.kill_server()
        self.assertEqual(self.muster.job("job")["phase"], "Running")

        gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(self.muster.job("job")["attempt"], 1)
        self.assertEqual(self.muster.logs("job").splitlines(), ["[main] begun", "[main] over"])

    def test_an_end_without_a_server_is_reported_to_the_next_one(self):
        starts, gate = self.counted()
        self.await_starts(starts, 1)
        self.muster.kill_server()
        gate.open()
        self.cluster.until(lambda: not self.task_processes(), "the task has ended")

        self.ends_well("job")
        self.assertEqual(self.muster.logs("job").splitlines(), ["[main] over"])
        self.cluster.until(lambda: not self.cluster.active_jobs(), "Slurm's job is over", bound=ENDING_BOUND)

    def test_a_job_that_is_cancelled_in_slurm_while_the_server_is_down_is_reported(self):
        starts = self.muster.work / "job.starts"
        # One process: a shell could outlive its child and exit with 0.
        self.submit("job", f"echo $MUSTER_RESTART_COUNT >> {starts}; exec sleep infinity")
        self.await_starts(starts, 1)
        identity = self.muster.slurm_job("job")["id"]
        self.muster.kill_server()
        self.cluster.run("scancel", identity)
        self.cluster.await_state(identity, "CANCELLED")

        job = self.muster.ended("job")

        self.assertIn("cancelled in Slurm", json.dumps(job))
        self.assertEqual(len(starts.read_text().split()), 1)

    def test_a_server_that_is_killed_repeatedly_runs_no_job_twice(self):
        starts, gate = self.counted()
        for _ in range(6):
            self.muster.kill_server()
            self.muster.jobs()
        self.await_starts(starts, 1)

        gate.open()
        self.ends_well("job")
        self.assertEqual(len(starts.read_text().split()), 1)
        self.cluster.until(lambda: not self.cluster.active_jobs(), "nothing is in the queue",
                           bound=ENDING_BOUND)

    def task_processes(self):
        return [pid for pid in processes_naming(str(self.muster.work / "job.gate"))
                if read_bytes(f"/proc/{pid}/comm").strip() in (b"head", b"sh")]


class NodesWithFilesOfTheirOwn(TheServer):
    """The same with nodes that do not share the jobs' folder: data that is only on a node is not lost with the server.
    At the end of a job, a muster-node waits for its server for Slurm's KillWait; then it deletes the data and ends."""
    CLUSTER = {"apart": True, "settings": "KillWait=30\n"}


if __name__ == "__main__":
    main()
