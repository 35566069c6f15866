"""The server is killed right after each of its commits, and again while it recovers. The next server completes the
work; nothing is lost or done twice."""

import json
import signal

from e2e_schedules import set_decided
from muster_harness import BOUND, BUILD, DOCUMENTS_MPIRUN, MusterTest, main

CRASH_SERVER = BUILD / "tests" / "crash_server"
SHIM = BUILD / "platform" / "muster-shim"
# More commits than a job ever makes: a loop that reaches this number would not end.
TOO_MANY = 40


class CrashPoints(MusterTest):

    def crash_server(self, muster, commit):
        """A server that dies after this many commits; None if it died while it recovered."""
        server = muster.stream_of([CRASH_SERVER, SHIM], {"MUSTER_CRASH_AFTER_COMMIT": str(commit)})
        if server.line() == "ready":
            return server
        self.assert_crashed(server)
        return None

    def assert_crashed(self, server):
        self.assertEqual(server.process.wait(BOUND), -signal.SIGKILL, server.errors)

    def each_crash_point(self, scenario, declared_gpus=None, prepare=None, most=TOO_MANY, step=1):
        """Runs `scenario(muster)` repeatedly with a server that dies after its 1st, 2nd, ... commit, until the server
        survives the scenario. `prepare(muster)` runs before each, with a server that does not die."""
        for commit in range(1, most, step):
            with self.subTest(commit=commit):
                muster = self.new_muster()
                if declared_gpus:
                    muster.environment["MUSTER_DECLARE_GPUS"] = declared_gpus
                if prepare:
                    prepare(muster)
                server = self.crash_server(muster, commit)
                scenario(muster)
                if server is None or muster.server_pid() != server.process.pid:
                    if server is not None:
                        self.assert_crashed(server)
                    muster.close()
                    continue
                muster.close()
                self.assertGreater(commit, 3, "a job takes more commits than that")
                return
            break  # the subtest failed: later ones would fail in the same way
        self.fail(f"stopped at crash point {commit}")

    def assert_it_ran_once_in_its_last_attempt(self, muster, job):
        attempts = (muster.work / "attempts").read_text().split()
        self.assertEqual(attempts, [str(job["attempt"])], job["events"])

    def assert_known_once_and_succeeded(self, muster, name):
        self.assertEqual([job["spec"]["name"] for job in muster.jobs()], [name])
        job = muster.ended(name)
        self.assertEqual(job["phase"], "Succeeded", job)
        self.assert_it_ran_once_in_its_last_attempt(muster, job)
        return job

    def test_a_single_job_is_submitted_once_and_runs_once_wherever_its_server_dies(self):
        def scenario(muster):
            muster.run("submit", "single", "job", "--", "sh", "-c",
                       "echo $MUSTER_ATTEMPT >> attempts; echo said once")
            self.assert_known_once_and_succeeded(muster, "job")
            self.assertEqual(muster.logs("job"), "[main] said once\n")

        self.each_crash_point(scenario)

    def test_an_mpi_job_is_submitted_once_and_runs_once_wherever_its_server_dies(self):
        def scenario(muster):
            muster.run("submit", "mpi", "job", "--workers", 2, "--", "sh", "-c",
                       "echo $MUSTER_ATTEMPT >> attempts; exec \"$@\"", "launch", *DOCUMENTS_MPIRUN,
                       "sh", "-c", "echo said once")
            self.assert_known_once_and_succeeded(muster, "job")
            lines = [line for line in muster.logs("job").splitlines() if "said once" in line]
            self.assertEqual(lines, ["[launcher] said once"] * 2)

        self.each_crash_point(scenario)

    def test_a_stopped_job_ends_stopped_wherever_its_server_dies(self):
        def scenario(muster):
            gate = muster.gate()
            muster.run("submit", "single", "job", "--", "sh", "-c",
                       f"echo $MUSTER_ATTEMPT >> attempts; echo here; {gate.wait}")
            muster.stream("logs", "job", "-f").until("here")
            muster.run("stop", "job")
            job = muster.ended("job")
            self.assertEqual(job["phase"], "Stopped", job)
            self.assert_it_ran_once_in_its_last_attempt(muster, job)

        self.each_crash_point(scenario)

    def test_a_deleted_job_is_gone_with_its_logs_wherever_its_server_dies(self):
        def scenario(muster):
            muster.run("submit", "single", "job", "--", "true")
            muster.ended("job")
            # The server died after it had deleted the job, before it could answer.
            ran = muster.run("delete", "job", code=None)
            self.assertIn(ran.returncode, (0, 3), ran.stderr)
            self.assertEqual(muster.jobs(), [])
            self.assertEqual(muster.job_folders(), [])

        self.each_crash_point(scenario)

    def test_a_preemption_is_completed_wherever_its_server_dies(self):
        def scenario(muster):
            for project, quota in (("team-a", 2), ("team-b", 0)):
                # The server died after it had created the project, before it could answer.
                made = muster.run("project", "create", project, "--gpus", quota, code=None)
                self.assertIn(made.returncode, (0, 5), made.stderr)
                muster.run("project", "get", project)
            gate = muster.gate()
            muster.run("submit", "single", "guest", "--project", "team-b", "--gpus", 2, "--",
                       "sh", "-c", f"echo $MUSTER_ATTEMPT >> guest; echo here; {gate.wait}")
            muster.stream("logs", "guest", "-f").until("here")

            muster.run("submit", "single", "owner", "--project", "team-a", "--gpus", 2, "--",
                       "sh", "-c", "echo $MUSTER_ATTEMPT >> owner")

            owner = muster.ended("owner")
            self.assertEqual(owner["phase"], "Succeeded", owner)
            self.assertEqual((muster.work / "owner").read_text().split(), [str(owner["attempt"])])
            again = muster.stream("logs", "guest", "-f")
            again.until("here")
            again.until("here")
            gate.open()
            guest = muster.ended("guest")
            self.assertEqual((guest["phase"], guest["restarts"]), ("Succeeded", 1), guest["events"])
            attempts = (muster.work / "guest").read_text().split()
            self.assertEqual(len(attempts), 2, guest["events"])
            self.assertEqual(attempts, sorted(set(attempts), key=int))
            self.assertEqual(attempts[-1], str(guest["attempt"]))

        self.each_crash_point(scenario, declared_gpus="2")

    def test_no_trial_of_asha_is_doubled_or_lost_wherever_the_server_dies(self):
        def scenario(muster):
            muster.script("train.py", """
import os
steps = int(os.environ["MUSTER_SWEEP_STEPS"])
with open("starts", "a") as file:
    file.write(os.environ["MUSTER_JOB"] + " " + os.environ["MUSTER_ATTEMPT"] + "\\n")
print(f"::metrics step={steps} accuracy={os.environ['X']}", flush=True)
""")
            # The server died after it had created the sweep, before it could answer.
            made = muster.run("sweep", "create", "lr", "--param", "x=0.1,0.2,0.3", "--method", "asha", "--max-trials", 3,
                              "--metric", "accuracy", "--max-steps", 2, "--divisor", 2, "--max-concurrent", 1, "--",
                              "python3", "train.py", code=None)
            self.assertIn(made.returncode, (0, 4, 5), made.stderr)
            muster.run("sweep", "wait", "lr", "--timeout", "240s", bound=270)

            sweep = json.loads(muster.run("sweep", "get", "lr", "-o", "json").stdout)
            self.assertEqual((sweep["phase"], sweep["trials_started"]), ("Succeeded", 3))
            self.assertEqual(sorted(job["spec"]["name"] for job in muster.jobs()), ["lr-1", "lr-2", "lr-3"])
            starts = (muster.work / "starts").read_text().splitlines()
            self.assertEqual(sorted(starts), sorted(set(starts)), "an attempt was started twice")
            best = sweep["trials"][0]
            self.assertEqual((best["phase"], best["steps"]), ("Completed", 2))

        self.each_crash_point(scenario, most=60, step=3)

    def test_a_missed_run_is_caught_up_once_wherever_the_server_dies(self):
        def prepare(muster):
            muster.run("schedule", "create", "twelve", "--cron", "0 */12 * * *", "--", "sh", "-c",
                       "echo $MUSTER_JOB $MUSTER_ATTEMPT >> runs")
            muster.kill_server()
            set_decided(muster, "twelve", 13)

        def scenario(muster):
            history = json.loads(muster.run("schedule", "get", "twelve", "-o", "json").stdout)["history"]
            self.assertEqual([run["outcome"] for run in history], ["started"])
            name = history[0]["job"]
            job = muster.ended(name)
            self.assertEqual(job["phase"], "Succeeded")
            self.assertEqual([each["spec"]["name"] for each in muster.jobs()], [name])
            self.assertEqual((muster.work / "runs").read_text().splitlines(), [f"{name} {job['attempt']}"])

        self.each_crash_point(scenario, prepare=prepare)

    def test_a_job_is_recovered_after_a_server_died_while_it_recovered(self):
        crashes = 0
        for commit in (2, 3):
            for again in (1, 2, 3):
                with self.subTest(commit=commit, again=again):
                    muster = self.new_muster()
                    first = self.crash_server(muster, commit)
                    # Not by a command, which would start another server when this one dies.
                    muster.post("/v1/jobs", {
                        "name": "job", "kind": "single", "folder": str(muster.work),
                        "command": ["sh", "-c", "echo $MUSTER_ATTEMPT >> attempts"]})
                    self.assert_crashed(first)
                    second = self.crash_server(muster, again)

                    self.assert_known_once_and_succeeded(muster, "job")

                    crashes += second is None or muster.server_pid() != second.process.pid
                    muster.close()
        self.assertGreaterEqual(crashes, 2)


if __name__ == "__main__":
    main()
