"""The private server: its automatic start, its access rules, its exit, and the effects of its death."""

import os
import re
import signal
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

from muster_harness import BOUND, DOCUMENTS_MPIRUN, MusterTest, await_end, mode_of, main


class Starting(MusterTest):

    def test_twenty_first_commands_at_once_start_one_server(self):
        with ThreadPoolExecutor(20) as pool:
            pids = list(pool.map(lambda _: (self.muster.run("list"), self.muster.server_pid())[1], range(20)))

        self.assertEqual(len(set(pids)), 1)
        self.assertEqual(self.muster.starts_of_server(), 1)

    def test_the_socket_and_the_state_folder_are_private(self):
        os.umask(0o000)
        self.addCleanup(os.umask, 0o022)

        self.muster.run("list")

        sock = self.muster.state / "muster.sock"
        self.assertTrue(stat.S_ISSOCK(os.lstat(sock).st_mode))
        self.assertEqual(mode_of(sock), 0o600)
        self.assertEqual(mode_of(self.muster.state), 0o700)
        for path in self.muster.state.iterdir():
            self.assertEqual(mode_of(path) & 0o077, 0, path)

    def test_the_socket_is_in_the_runtime_folder_if_there_is_one(self):
        runtime, home = self.muster.folder / "run", self.muster.home
        runtime.mkdir(mode=0o700)
        del self.muster.environment["MUSTER_STATE_DIR"]
        self.muster.environment["XDG_RUNTIME_DIR"] = str(runtime)
        self.muster.state = home / ".local" / "state" / "muster"

        self.muster.run("run", "--", "true")

        self.assertEqual(mode_of(runtime / "muster"), 0o700)
        self.assertEqual(mode_of(runtime / "muster" / "muster.sock"), 0o600)
        self.assertEqual(mode_of(self.muster.state), 0o700)

    def test_another_user_is_refused_even_if_the_socket_is_accessible(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        self.muster.run("list")
        path = self.muster.state / "muster.sock"
        for opened in (self.muster.folder, self.muster.state):
            opened.chmod(0o755)
        path.chmod(0o666)

        answer = self.ask_as(65534, path)

        self.assertNotIn(b"Permission denied", answer, "the user did not reach the socket")
        self.assertNotIn(b"200 OK", answer)
        self.assertNotIn(b"pid", answer)
        self.muster.state.chmod(0o700)

    @staticmethod
    def ask_as(uid, path):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            answer = b""
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(BOUND)
                    connection.connect(str(path))
                    connection.sendall(b"GET /v1/info HTTP/1.1\r\nhost: muster\r\nconnection: close\r\n\r\n")
                    while more := connection.recv(4096):
                        answer += more
            except OSError as error:
                answer += str(error).encode()
            os.write(writing, answer or b"closed")
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        return answer

    def test_a_second_server_on_the_same_folder_is_refused(self):
        self.muster.run("list")

        ran = self.muster.run("server", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("another server uses", ran.stderr)
        self.assertIn("muster server --stop", ran.stderr)

    def test_the_stale_socket_of_a_killed_server_is_replaced(self):
        self.muster.run("list")
        self.muster.kill_server()

        self.muster.run("list")

        self.assertEqual(self.muster.starts_of_server(), 2)


class Leaving(MusterTest):

    def test_it_exits_when_no_job_runs_and_no_request_comes(self):
        server = self.muster.start_server("--idle-exit", "100ms")

        self.assertEqual(server.finish(), 0)

    def test_it_stays_while_a_job_runs(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo one; {gate.wait}; sleep 0.5")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("one")
        follow.close()
        self.muster.run("server", "--stop")
        # Here the state folder already contains a job, so that the server is not idle before the first submit.
        server = self.muster.start_server("--idle-exit", "50ms")

        gate.open()

        self.assertEqual(server.finish(), 0)
        job = self.muster.job("job")
        self.assertEqual(job["phase"], "Succeeded")
        self.assertEqual([event["text"] for event in job["events"]].count("adopted by a new server"), 1)

    def test_it_exits_on_request_and_its_jobs_continue(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo one; {gate.wait}; echo two")
        self.muster.stream("logs", "job", "-f").until("one")
        pid = self.muster.server_pid()

        self.muster.run("server", "--stop")

        self.assertTrue(await_end(pid))
        gate.open()
        self.assertEqual(self.muster.ended("job")["phase"], "Succeeded")
        self.assertEqual(self.muster.logs("job"), "[main] one\n[main] two\n")

    def test_a_signal_ends_it_and_its_jobs_go_on(self):
        gate = self.muster.gate()
        server = self.muster.start_server()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo one; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("one")

        server.process.send_signal(signal.SIGTERM)

        self.assertEqual(server.finish(), 0)
        gate.open()
        self.assertEqual(self.muster.ended("job")["phase"], "Succeeded")


class Killed(MusterTest):

    def test_a_training_continues_when_the_server_is_killed_and_its_follow_is_complete(self):
        gates = [self.muster.gate(f"gate-{rank}") for rank in (0, 1)]
        rank_gate = gates[0].wait.replace("gate-0", "gate-$OMPI_COMM_WORLD_RANK")
        step = "for i in $(seq {} {}); do echo step $i of the training, the loss is 0.{}; done"
        follow = self.muster.stream(
            "submit", "mpi", "dist", "--workers", 2, "--follow", "--", *DOCUMENTS_MPIRUN, "sh", "-c",
            f"{step.format(1, 20, 5)}; {rank_gate}; {step.format(21, 40, 4)}")
        follow.until("step 20 ")
        follow.until("step 20 ")

        first = self.muster.kill_server()
        for gate in gates:
            gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertNotEqual(self.muster.server_pid(), first)
        for text in (follow.text, self.muster.logs("dist")):
            for rank in (0, 1):
                steps = re.findall(rf"^\[{rank}@dist-worker-{rank}\] step (\d+) ", text, re.MULTILINE)
                self.assertEqual(steps, [str(n) for n in range(1, 41)])
        job = self.muster.job("dist")
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", 1))
        self.assertIn("adopted by a new server", [event["text"] for event in job["events"]])

    def test_the_next_server_reports_jobs_that_ended_without_a_server(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo one; {gate.wait}; exit 9")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("one")
        follow.close()  # it would start another server at once
        shim = self.muster.shim_of(self.muster.job("job"), "main")

        self.muster.kill_server()
        gate.open()
        self.assertTrue(await_end(shim))

        job = self.muster.job("job")
        self.assertEqual((job["phase"], job["exit_code"]), ("Failed", 9))
        self.assertEqual(job["ended"], job["tasks"][0]["ended"], "not when the next server started")

    def test_a_follow_survives_many_killed_servers(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", "--", "sh", "-c",
                                    f"for i in 1 2 3 4 5; do echo round $i; {gate.wait}; done")
        for number in range(1, 6):
            follow.until(f"round {number}")
            self.muster.kill_server()
            gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(follow.text, "".join(f"[main] round {n}\n" for n in range(1, 6)))


class AnotherFolderOfJobs(MusterTest):

    def setUp(self):
        super().setUp()
        self.other = self.muster.work / "other"
        self.gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo up; {self.gate.wait}")
        follow = self.muster.stream("logs", "job", "-f")
        follow.until("up")
        follow.close()
        self.muster.run("server", "--stop")

    def test_a_server_that_has_no_trace_of_the_running_jobs_is_refused(self):
        for _ in range(2):
            refused = self.muster.run("server", "--jobs-dir", self.other, code=1)

            self.assertIn(f"job 'job' runs, but the folder of the jobs '{self.other}' has no trace of it",
                          refused.stderr)
            self.assertIn("--accept-lost-jobs", refused.stderr)
        self.gate.open()
        job = self.muster.ended("job")
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", 1))

    def test_tasks_of_a_job_that_was_accepted_as_lost_are_ended_by_the_next_server_of_their_folder(self):
        server = self.muster.start_server("--jobs-dir", self.other, "--accept-lost-jobs")
        job = self.muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        self.muster.run("server", "--stop")
        self.assertEqual(server.finish(), 0)
        self.assertIn("running jobs count as lost", server.errors)
        shim = self.muster.shim_of(job, "main")

        self.muster.run("list")

        self.assertTrue(await_end(shim))
        self.assertIn("tasks of a job that has ended still run, and are ended",
                      (self.muster.state / "server.log").read_text())


if __name__ == "__main__":
    main()
