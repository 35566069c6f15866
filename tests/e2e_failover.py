"""Two servers share one PostgreSQL database. One server leads and the other waits. When the leader dies, the other
takes over its jobs."""

import json
import os
import re
import signal
import time

from muster_harness import BOUND, MusterTest, UnixConnection, main
from postgres_harness import Postgres


class TwoServers(MusterTest):

    @classmethod
    def setUpClass(cls):
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.close)

    def setUp(self):
        super().setUp()
        self.jobs = self.muster.folder / "jobs"
        self.muster.configure(
            f"store: {self.postgres.new_url()}\njobs_dir: {self.jobs}\nlisten: 127.0.0.1:0\n")
        self.states = {"a": self.muster.state, "b": self.muster.folder / "state-b"}
        self.servers = {}

    def tearDown(self):
        # Both are killed at once, so that neither takes over the jobs of the other.
        for server in self.servers.values():
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)

    def environment(self, name):
        return {"MUSTER_STATE_DIR": str(self.states[name])}

    def start(self, name):
        self.servers[name] = self.muster.start_server(environment=self.environment(name))
        return self.servers[name]

    def run_at(self, name, *words, **options):
        return self.muster.run(*words, environment=self.environment(name), **options)

    def job_at(self, name, job):
        return json.loads(self.run_at(name, "get", job, "-o", "json").stdout)

    def ended_at(self, name, job):
        self.run_at(name, "logs", job, "-f", "--tail", "0")
        return self.job_at(name, job)

    def answer(self, name, path):
        connection = UnixConnection(self.states[name] / "muster.sock")
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def until_ready(self, name):
        """Waits until this server leads; returns the time in seconds."""
        begin = time.monotonic()
        while self.answer(name, "/readyz")[0] != 200:
            self.assertIsNone(self.servers[name].process.poll(), self.servers[name].errors)
            self.assertLess(time.monotonic(), begin + BOUND, self.servers[name].errors)
        return time.monotonic() - begin

    def address_of(self, name):
        return re.search(r"leads, as (\S+)", self.servers[name].errors).group(1)

    def counting_job(self, name, gate):
        """A job that records each of its starts in a file, and prints a line before the gate and a line after it."""
        self.run_at("a", "submit", "single", name, "--", "sh", "-c",
                    f"echo start >> {name}.starts; echo before; {gate.wait}; echo behind")

    def assert_ran_once(self, at, name):
        job = self.ended_at(at, name)
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", 1), job["events"])
        self.assertEqual(self.run_at(at, "logs", name).stdout, "[main] before\n[main] behind\n")
        self.assertEqual((self.muster.work / f"{name}.starts").read_text(), "start\n")
        return job

    def test_one_server_leads_and_the_other_names_it(self):
        self.start("a")
        self.start("b")

        self.assertEqual(self.answer("a", "/readyz")[0], 200)
        self.assertEqual(self.answer("b", "/healthz")[0], 200)
        status, text = self.answer("b", "/readyz")
        self.assertEqual(status, 503)
        self.assertIn(f"this server is on standby; {self.address_of('a')} leads", text)
        ran = self.run_at("b", "list", code=5)
        self.assertIn(f"this server is on standby; {self.address_of('a')} leads", ran.stderr)

    def test_the_standby_takes_over_when_the_leader_is_killed_and_the_jobs_continue(self):
        gates = [self.muster.gate(f"gate-{i}") for i in range(3)]
        self.start("a")
        self.start("b")
        for i, gate in enumerate(gates):
            self.counting_job(f"job-{i}", gate)
        follows = [self.muster.stream("logs", f"job-{i}", "-f") for i in range(3)]
        for follow in follows:
            follow.until("before")
            follow.close()

        os.kill(self.servers["a"].process.pid, signal.SIGKILL)
        took = self.until_ready("b")

        print(f"\n  took over {took:.2f} s after SIGKILL", flush=True)
        for gate in gates:
            gate.open()
        for i in range(3):
            job = self.assert_ran_once("b", f"job-{i}")
            self.assertIn("adopted by a new server", [event["text"] for event in job["events"]])

    def test_a_former_leader_waits_when_it_returns(self):
        self.start("a")
        self.start("b")
        os.kill(self.servers["a"].process.pid, signal.SIGKILL)
        self.until_ready("b")

        self.start("a")

        self.assertIn(f"{self.address_of('b')} leads", self.answer("a", "/readyz")[1])
        self.run_at("b", "server", "--stop")
        self.until_ready("a")

    def test_a_frozen_leader_ends_without_effect_when_it_wakes_after_a_takeover(self):
        gate = self.muster.gate()
        first = self.start("a")
        self.start("b")
        self.counting_job("job", gate)
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("before")
        follow.close()

        first.process.send_signal(signal.SIGSTOP)
        self.postgres.end_sessions_of_leaders()
        self.until_leader_is_not(self.address_of("a"))
        first.process.send_signal(signal.SIGCONT)

        self.assertEqual(first.finish(), 1, first.errors)
        self.assertIn("this server has lost the lead", first.errors)
        self.until_ready("b")
        gate.open()
        self.assert_ran_once("b", "job")

    def until_leader_is_not(self, address):
        deadline = time.monotonic() + BOUND
        while address in self.answer("b", "/readyz")[1]:
            self.assertLess(time.monotonic(), deadline)

    def test_nothing_is_lost_when_postgresql_is_restarted_while_jobs_run_and_are_submitted(self):
        gate = self.muster.gate()
        self.start("a")
        self.counting_job("runs", gate)
        follow = self.muster.stream("logs", "runs", "-f")
        follow.until("before")
        follow.close()

        for i in range(6):
            if i == 2:
                self.postgres.stop_at_once()
            if i == 4:
                self.postgres.start()
            self.submit_until_taken(f"job-{i}", can_be_taken=i not in (2, 3))
        for i in (2, 3):
            self.submit_until_taken(f"job-{i}")
        gate.open()

        self.assert_ran_once("a", "runs")
        for i in range(6):
            self.assertEqual(self.ended_at("a", f"job-{i}")["phase"], "Succeeded")
            self.assertEqual((self.muster.work / f"job-{i}.starts").read_text(), "start\n")

    def submit_until_taken(self, name, can_be_taken=True):
        deadline = time.monotonic() + BOUND
        while True:
            ran = self.run_at("a", "submit", "single", name, "--idempotency-key", name, "--", "sh", "-c",
                              f"echo start >> {name}.starts", code=None)
            if ran.returncode == 0 or not can_be_taken:
                self.assertEqual(ran.returncode == 0, can_be_taken, ran.stderr)
                return
            self.assertLess(time.monotonic(), deadline, ran.stderr)


if __name__ == "__main__":
    main()
