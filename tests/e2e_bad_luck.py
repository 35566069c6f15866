"""Programs that cannot run or are killed, and lost tasks: the job reports the cause, and no process or file remains."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

from muster_harness import (BOUND, DOCUMENTS_MPIRUN, MPIRUN, MUSTER, MusterTest, all_below, await_no_process,
                            descendants, kill_and_wait, main, read_bytes)


class ProgramsThatCannotRun(MusterTest):

    def single(self, *command, code):
        ran = self.muster.run("submit", "single", "job", "--follow", "--", *command, code=code)
        job = self.muster.job("job")
        self.assertEqual((job["phase"], job["exit_code"]), ("Failed", code))
        return job, ran

    def mpi(self, *command):
        ran = self.muster.run("submit", "mpi", "job", "--workers", 2, "--follow", "--", *command,
                              code=None)
        job = self.muster.job("job")
        self.assertEqual(job["phase"], "Failed")
        self.assertEqual(ran.returncode, job["exit_code"])
        self.assertNotEqual(ran.returncode, 0)
        return job, ran

    def test_a_missing_program_ends_with_127_and_is_named(self):
        job, ran = self.single("no-such-program", code=127)

        self.assertIn("main exited with code 127: the command was not found", job["failure"]["cause"])
        self.assertIn("'no-such-program' was not found", ran.stderr)
        self.assertIn("install the program", job["failure"]["advice"])

    def test_a_program_that_is_not_executable_ends_with_126_and_a_remedy(self):
        job, ran = self.single(self.muster.script("train.py", "print()", mode=0o644), code=126)

        self.assertIn("exited with code 126: the command was found but is not executable", ran.stderr)
        self.assertIn("chmod +x", job["failure"]["advice"])

    def test_a_script_whose_interpreter_is_missing_names_it(self):
        for line, where in (("#!/usr/bin/pythn3", "which does not exist"),
                            ("#!/usr/bin/env pythn3", "which is not on the PATH of the task")):
            with self.subTest(line):
                script = self.muster.script("train.py", f"{line}\nprint()\n")
                ran = self.muster.run("run", "--", script, code=127)

                self.assertIn(f"main exited with code 127: the first line of '{script}' names the interpreter "
                              f"'{line.rpartition(' ')[2].removeprefix('#!')}', {where}", ran.stderr)
                self.assertIn("install the interpreter where the task runs", ran.stderr)

    def test_the_line_ends_of_windows_in_a_script_are_reported(self):
        for line in ("#!/bin/sh", "#!/usr/bin/env sh"):
            with self.subTest(line):
                script = self.muster.script("train.sh", f"{line}\r\ntrue\r\n")
                ran = self.muster.run("run", "--", script, code=127)

                self.assertIn("sh' and ends with a carriage return (CRLF line ends)", ran.stderr)
                self.assertIn(f"sed -i 's/\\r$//' {script}", ran.stderr)

    def test_a_missing_interpreter_under_mpirun_is_reported(self):
        script = self.muster.script("train.py", "#!/usr/bin/pythn3\nprint()\n")

        job, ran = self.mpi(*MPIRUN, script)

        self.assertRegex(job["failure"]["cause"],
                         r"^(rank [01] on worker-[01]|launcher) exited with code 127: the first line of a script "
                         r"names an interpreter that does not exist$")
        self.assertIn(f"the first line of '{script}' names the interpreter '/usr/bin/pythn3'", ran.stderr)

    def test_a_missing_mpirun_ends_with_127_and_is_named(self):
        job, ran = self.mpi("/nowhere/mpirun", "-np", "2", "true")

        self.assertEqual(job["exit_code"], 127)
        self.assertIn("launcher exited with code 127: the command was not found", ran.stderr)
        self.assertIn("'/nowhere/mpirun' was not found", ran.stderr)

    def test_a_program_that_mpirun_cannot_find_shows_the_words_of_mpirun_and_advice(self):
        job, ran = self.mpi(*DOCUMENTS_MPIRUN, "/nowhere/train")

        self.assertTrue(any("/nowhere/train" in line for line in job["failure"]["last_lines"]), job)
        self.assertIn("could not access", ran.stderr)
        self.assertIn("give its full path", job["failure"]["advice"])

    def test_a_program_that_mpirun_may_not_execute_shows_the_words_of_mpirun_and_advice(self):
        script = self.muster.script("train.py", "print()", mode=0o644)

        job, ran = self.mpi(*DOCUMENTS_MPIRUN, script)

        self.assertRegex(job["failure"]["cause"], rf"^launcher exited with code 132: mpirun could not execute "
                                                  rf"'{script}' on job-worker-[01]$")
        self.assertIn("chmod +x", job["failure"]["advice"])
        self.assertIn(str(script), ran.stderr)

    def test_a_host_that_is_not_one_of_the_jobs_is_named_without_the_guesses_of_mpirun(self):
        for launch, cause in (("ssh", "ssh could not resolve host 'foo'"), ("agent", "this job has no host 'foo'")):
            with self.subTest(launch):
                name = f"dist-{launch}"
                self.muster.run("submit", "mpi", name, "--workers", 2, "--launch", launch, "--follow", "--",
                                *MPIRUN, "-H", f"{name}-worker-0,foo", "true", code=255)

                failure = self.muster.job(name)["failure"]
                self.assertIn(f"launcher exited with code 255: {cause}", failure["cause"])
                self.assertIn("remove -H", failure["advice"])
                self.assertEqual(len(failure["last_lines"]), 1, failure)

    def test_a_rank_that_ends_without_mpi_finalize_is_named(self):
        program = self.muster.work / "leaves"
        source = self.muster.work / "leaves.c"
        source.write_text("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
                          "int main(int count, char** words) {\n"
                          "  int rank = 0;\n  MPI_Init(&count, &words);\n"
                          "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                          '  if (rank == 1) { puts("no work for me"); exit(0); }\n'
                          "  MPI_Barrier(MPI_COMM_WORLD);\n  return MPI_Finalize();\n}\n")
        subprocess.run(["mpicc.openmpi", "-o", program, source], check=True)

        job, ran = self.mpi(*MPIRUN, program)

        self.assertEqual(job["failure"]["cause"], "rank 1 on worker-1 ended without MPI_Finalize")
        self.assertEqual(job["failure"]["last_lines"], ["no work for me"])
        self.assertIn("MPI_Finalize before every exit", job["failure"]["advice"])

    def test_more_ranks_than_slots_show_the_message_of_mpirun_and_advice(self):
        job, ran = self.mpi("mpirun", "--allow-run-as-root", "-np", "4", "--hostfile",
                            "/generated/hostfile", "true")

        self.assertIn("[launcher] There are not enough slots available", ran.stdout)
        self.assertIn("raise --workers or --slots-per-worker", job["failure"]["advice"])

    def test_ranks_that_all_ran_on_the_launcher_fail_the_job_although_mpirun_succeeded(self):
        job, ran = self.mpi("env", "-u", "OMPI_MCA_orte_default_hostfile", *MPIRUN, "--host",
                            "localhost:2", "true")

        self.assertEqual(job["exit_code"], 1)
        self.assertIn("all ranks ran on the launcher and none on a worker", ran.stderr)
        self.assertIn("--hostfile /generated/hostfile", job["failure"]["advice"])

    def test_a_missing_folder_is_named(self):
        ran = self.muster.run("submit", "single", "job", "--folder", "/nowhere/work", "--follow", "--",
                              "true", code=126)

        self.assertIn("main exited with code 126: cannot enter the working folder '/nowhere/work'", ran.stderr)
        self.assertIn("choose another one", ran.stderr)
        self.assertNotIn("not executable", ran.stderr)


class ProgramsThatDie(MusterTest):

    def test_a_program_killed_by_a_signal_ends_with_128_and_names_the_signal(self):
        for signal_name, code in (("KILL", 137), ("SEGV", 139), ("TERM", 143)):
            with self.subTest(signal_name):
                name = f"dies-{signal_name.lower()}"
                ran = self.muster.run("submit", "single", name, "--follow", "--", "sh", "-c",
                                      f"echo before; kill -{signal_name} $$", code=code)

                self.assertIn(f"was killed by signal {code - 128} (SIG{signal_name})", ran.stderr)
                self.assertIn("before", ran.stderr)
                task = self.muster.job(name)["tasks"][0]
                self.assertEqual(task["exit"]["signal"], code - 128)
                self.assertFalse(task["exit"]["out_of_memory"])

    def test_a_rank_killed_by_a_signal_fails_the_job_and_is_named(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--follow", "--", *MPIRUN,
                              "sh", "-c", "kill -9 $$", code=137)

        # On a busy machine Open MPI's mpirun may end without its last message, which names the rank.
        if "noticed that process rank" in ran.stdout + self.muster.run("logs", "dist").stdout:
            self.assertRegex(ran.stderr, r"rank [01] on worker-[01] was killed by signal 9 \(SIGKILL\)")
        else:
            self.assertIn("launcher exited with code 137: as after signal 9 (SIGKILL)", ran.stderr)

    def test_an_out_of_memory_kill_of_the_kernel_is_reported(self):
        group = self.small_memory_group(32 << 20)

        ran = self.muster.run("submit", "single", "hungry", "--follow", "--", "sh", "-c",
                              f"echo $$ > {group}/cgroup.procs && exec tail /dev/zero", code=137)

        self.assertIn("the kernel's out-of-memory killer ended a process", ran.stderr)
        self.assertIn("a smaller batch", ran.stderr)
        self.assertTrue(self.muster.job("hungry")["tasks"][0]["exit"]["out_of_memory"])

    def small_memory_group(self, limit):
        """A new memory cgroup for the test; skips the test if it cannot be created."""
        hierarchies = (
            (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            (Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max"))
        reasons = []
        for root, limit_file, swap_file in hierarchies:
            group = root / f"muster-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError as error:
                reasons.append(str(error))
                continue
            self.addCleanup(self.remove_group, group)
            if not (group / limit_file).exists():
                reasons.append(f"{root} has no memory controller")
                continue
            (group / limit_file).write_text(str(limit))
            if (group / swap_file).exists():
                (group / swap_file).write_text(str(limit if "memsw" in swap_file else 0))
            return group
        self.skipTest("a memory cgroup is needed to be short of memory alone, and none can be made "
                      f"here: {'; '.join(reasons)}")

    @staticmethod
    def remove_group(group):
        if group.exists():
            group.rmdir()


class LostTasks(MusterTest):

    def train(self):
        """Starts an MPI job that trains. Returns the command that follows it, and the job."""
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                                    *DOCUMENTS_MPIRUN, "sh", "-c", f"echo training; {gate.wait}")
        follow.until("training")
        follow.until("training")
        return follow, self.muster.job("dist")

    def assert_it_failed_and_left_nothing(self, follow, job):
        self.assertNotEqual(follow.finish(), 0)
        self.assertEqual(self.muster.job("dist")["phase"], "Failed")
        await_no_process(str(self.muster.state / "jobs"), BOUND)
        self.assertEqual(self.muster.private_keys(), [])
        self.assertFalse((self.muster.task_folder(job, "worker-0") / "generated").exists())
        self.assertEqual([path for path in all_below(self.muster.state / "jobs") if path.name == "attach"], [], "sockets of ended tasks")

    def test_a_killed_worker_fails_the_job_and_is_named(self):
        follow, job = self.train()

        self.muster.kill_program(job, "worker-1")

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: worker-1 was killed by signal 9 (SIGKILL)", follow.errors)

    def test_a_worker_whose_shim_is_killed_fails_the_job_and_is_named(self):
        follow, job = self.train()

        kill_and_wait(self.muster.shim_of(job, "worker-1"))

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: worker-1 was lost", follow.errors)

    def test_a_killed_launcher_fails_the_job_and_leaves_nothing(self):
        follow, job = self.train()

        self.muster.kill_program(job, "launcher")

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: launcher was killed by signal 9 (SIGKILL)", follow.errors)

    def test_a_launcher_whose_shim_is_killed_fails_the_job_and_leaves_nothing(self):
        follow, job = self.train()

        kill_and_wait(self.muster.shim_of(job, "launcher"))

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: launcher was lost", follow.errors)

    def kill_in_worker(self, job, worker, is_meant):
        """Kills the first process of the worker whose command line matches."""
        for pid in descendants(self.muster.shim_of(job, worker)):
            if is_meant(read_bytes(f"/proc/{pid}/cmdline").split(b"\0")):
                return kill_and_wait(pid)
        raise AssertionError(f"no such process in {worker}")

    def test_a_worker_whose_daemon_of_mpirun_is_killed_is_named(self):
        follow, job = self.train()

        self.kill_in_worker(job, "worker-1", lambda words: words[0].endswith(b"orted"))

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: worker-1: mpirun's daemon there (orted)", follow.errors)

    def test_a_worker_whose_ssh_session_is_killed_is_named(self):
        follow, job = self.train()

        self.kill_in_worker(job, "worker-1", lambda words: words[0].startswith(b"sshd: "))

        self.assert_it_failed_and_left_nothing(follow, job)
        self.assertIn("job 'dist' failed: worker-1: mpirun's daemon there (orted) or its remote shell",
                      follow.errors)

    def test_a_single_job_whose_processes_are_killed_fails_with_137(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "alone", "--follow", "--", "sh", "-c",
                                    f"echo here; {gate.wait}; true")
        follow.until("here")

        self.muster.kill_program(self.muster.job("alone"), "main")

        self.assertEqual(follow.finish(), 137)
        await_no_process(str(self.muster.state / "jobs"), BOUND)


class WorkersThatDoNotAnswer(MusterTest):

    def test_a_worker_that_does_not_answer_in_time_is_named_and_the_end_of_its_log_shown(self):
        if not shutil.which("bwrap"):
            self.fail("bubblewrap is not installed")
        broken = self.muster.script("sshd", "#!/bin/sh\necho 'sshd: no hostkeys available' >&2\nexit 1\n")
        self.muster.start_server(
            prefix=["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(broken), "/usr/sbin/sshd"])

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--start-timeout", "10s",
                              "--follow", "--", *MPIRUN, "true", code=1)

        self.assertRegex(ran.stderr, "job 'dist' failed: worker-[01] did not answer on its ssh port "
                                     r"within 10s \(nor did 1 other task\)")
        self.assertRegex(ran.stderr, "last lines of worker-[01]:\n +sshd: no hostkeys available")
        self.assertIn("--start-timeout", ran.stderr)
        self.assertEqual(self.muster.logs("dist", "--task", "launcher"), "")


class FilesOfTheMachineThatAreReplaced(MusterTest):

    # The error of bubblewrap if another program renames a new file to /etc/hosts between two of its system calls.
    BUBBLEWRAP_THAT_FAILS_ONCE = """\
#!/bin/sh
[ -e {mark} ] && exec {real} "$@"
touch {mark}
cp /etc/hosts /etc/hosts.new
mv /etc/hosts.new /etc/hosts
echo "bwrap: Can't bind mount /oldroot/hosts on /newroot/etc/hosts: No such file or directory" >&2
exit 1
"""

    def test_a_sandbox_that_failed_because_another_program_replaced_the_hosts_file_is_made_again(self):
        real = shutil.which("bwrap")
        etc = self.muster.work / "etc"
        subprocess.run(["cp", "-a", "/etc", etc], stderr=subprocess.DEVNULL, timeout=BOUND)  # what is readable
        self.muster.script("bwrap", self.BUBBLEWRAP_THAT_FAILS_ONCE.format(
            mark=self.muster.work / "failed", real=real))
        self.muster.environment["PATH"] = f"{self.muster.work}:{os.environ['PATH']}"
        self.muster.start_server(prefix=[real, "--dev-bind", "/", "/", "--bind", str(etc), "/etc"])

        self.muster.run("submit", "single", "job", "--follow", "--", "true")

        job = self.muster.job("job")
        self.assertEqual((job["phase"], job["attempt"], job["restarts"]), ("Succeeded", 2, 0), job)
        said = [event["text"] for event in job["events"] if "another program replaced" in event["text"]]
        self.assertEqual(len(said), 1, job["events"])
        self.assertTrue(said[0].endswith("; the job is retried"), said)


class ProgramsThatAreReplaced(MusterTest):

    def test_a_job_that_starts_while_an_installation_replaces_the_supervisor_starts_again(self):
        programs = self.muster.work / "programs"
        programs.mkdir()
        for program in ("muster", "muster-shim", "muster-helper"):
            shutil.copy(MUSTER.with_name(program), programs)
        muster = self.new_muster(binary=programs / "muster")
        muster.start_server()
        new = (programs / "muster-shim").rename(programs / "new")

        muster.run("submit", "single", "job", "--", "true")
        follow = muster.stream("logs", "job", "--follow")
        muster.stream("events", "job", "--follow").until("muster-shim")
        new.rename(programs / "muster-shim")

        self.assertEqual(follow.finish(), 0, follow.errors)
        job = muster.job("job")
        self.assertEqual((job["phase"], job["restarts"]), ("Succeeded", 0), job["events"])
        self.assertGreater(job["attempt"], 1)


# In the first attempt, the worker takes the chief's port after Muster has checked the port, and before the
# chief's program binds it.
CLUSTER = """\
import json, os, signal, socket

config = json.loads(os.environ["TF_CONFIG"])
port = int(config["cluster"]["chief"][0].rpartition(":")[2])
is_first = os.environ["MUSTER_ATTEMPT"] == "1"

# Pipes: who opens one waits for the other end.
def say(word):
    open(word, "w").close()

def hear(word):
    open(word).close()

def listen():
    server = socket.socket()
    server.bind(("0.0.0.0", port))
    server.listen()
    return server

if config["task"]["type"] == "worker":
    if is_first:
        hear("chief-runs")
        server = listen()
        say("port-taken")
        signal.pause()
else:
    if is_first:
        say("chief-runs")
        hear("port-taken")
    try:
        server = listen()
    except OSError as error:
        raise SystemExit(f"0.0.0.0:{port}: {error.strerror}")
    print("bound", port)
"""


class PortsThatAreTaken(MusterTest):

    def test_a_port_that_is_taken_before_the_program_binds_it_restarts_the_job_with_other_ports(self):
        program = self.muster.script("cluster.py", CLUSTER)
        for word in ("chief-runs", "port-taken"):
            os.mkfifo(self.muster.work / word)

        ran = self.muster.run("submit", "grpc", "tf", "--workers", 1, "--follow", "--", "python3", program)

        job = self.muster.job("tf")
        self.assertEqual((job["phase"], job["attempt"], job["restarts"]), ("Succeeded", 2, 0), job)
        said = [re.fullmatch(r"another process took port (\d+) of chief before its program could listen on it; the job "
                             "restarts with other ports", event["text"])
                for event in job["events"]]
        first = [match[1] for match in said if match]
        self.assertEqual(len(first), 1, job["events"])
        self.assertRegex(ran.stdout, r"bound \d+")
        self.assertNotIn(f"bound {first[0]}", ran.stdout)

    def test_a_taken_port_that_the_program_chose_itself_fails_the_job_and_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as theirs:
            port = theirs.getsockname()[1]
            program = self.muster.script("serve.py", f"""\
import asyncio
asyncio.run(asyncio.start_server(print, "127.0.0.1", {port}))
""")

            self.muster.run("submit", "grpc", "tf", "--workers", 0, "--follow", "--", "python3", program,
                            code=1)

        job = self.muster.job("tf")
        self.assertEqual((job["phase"], job["attempt"]), ("Failed", 1), job)
        self.assertIn(f"('127.0.0.1', {port}): address already in use", job["failure"]["cause"])
        self.assertIn("listen on the port that the job was given", job["failure"]["advice"])


if __name__ == "__main__":
    main()
