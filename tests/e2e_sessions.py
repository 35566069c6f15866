"""Interactive work in a job: `muster bash`, `attach` and `convert`, on terminals, through real servers."""

import os
import signal

from muster_harness import MusterTest, Typed, main


class Sessions(MusterTest):

    def typed(self, *words, **options):
        typed = Typed(self.muster, *words, **options)
        self.addCleanup(typed.close)
        return typed

    def lab(self, name="lab", *flags):
        """An interactive job that waits for shells."""
        self.muster.run("submit", "single", name, "--interactive", *flags)
        return name

    def shell(self, name="lab", task="main", **options):
        """Opens a shell and waits for its prompt."""
        typed = self.typed("bash", name, **options)
        typed.until(f"{name}/{task}".encode())
        return typed


class AShell(Sessions):

    def test_the_prompt_names_the_job_and_the_shell_returns_its_own_code(self):
        self.lab()
        shell = self.shell()

        shell.type(b"hostname; echo $MUSTER_TASK\nexit 7\n")

        self.assertEqual(shell.finish(), 7)
        self.assertIn(b"lab-main\r\nmain\r\n", shell.text)
        self.assertEqual(self.muster.job("lab")["phase"], "Running")

    def test_a_shell_behaves_like_a_local_shell(self):
        self.lab()
        shell = self.shell(rows=33, columns=101)
        self.assertFalse(shell.echoes())
        shell.type(b"stty size\n")
        shell.until(b"33 101\r\n")
        shell.resize(50, 132)
        shell.type(b"stty size\n")
        shell.until(b"50 132\r\n")

        shell.type(b"sh -c 'echo sleeps; exec sleep 1000'\n")
        shell.until(b"sleeps\r\n")
        shell.type(b"\x03")
        shell.type(b"echo code $?\n")
        shell.until(b"code 130\r\n")
        shell.type("echo letters=$(printf 'Grüße, 世界' | wc -m)\n".encode())
        shell.until(b"letters=9\r\n")
        shell.type("echo größer \x7f\x7f\x7f\x7fßte\n".encode())
        shell.until("größte\r\n".encode())
        shell.type(b"exit\n")

        self.assertEqual(shell.finish(), 0, shell.text)

    def test_a_shell_reads_the_users_bashrc_and_two_shells_may_be_open(self):
        (self.muster.home / ".bashrc").write_text("greeting='of my own'\nPS1='mine> '\n")
        self.lab()
        first, second = self.shell(), self.shell()

        first.type(b"echo $greeting; touch here\n")
        first.until(b"of my own\r\n")
        first.type(b"echo did $?\n")
        first.until(b"did 0\r\n")
        second.type(b"ls\n")
        second.until(b"here\r\n")
        first.type(b"exit\n")
        self.assertEqual(first.finish(), 0)
        second.type(b"echo still; exit 3\n")

        self.assertEqual(second.finish(), 3)
        self.assertIn(b"still\r\n", second.text)

    def test_a_shell_runs_a_script_from_a_pipe(self):
        self.lab()

        ran = self.muster.run("bash", "lab", input="echo piped $MUSTER_JOB\nexit 4\n", code=4)

        self.assertEqual(ran.stdout, "piped lab\n")

    def test_a_shell_ends_when_its_terminal_is_closed_and_other_processes_continue(self):
        self.lab()
        last_words = self.muster.work / "last-words"
        os.mkfifo(last_words)
        heard = self.muster.stream_of(["head", "-n", "1", str(last_words)])
        shell = Typed(self.muster, "bash", "lab")
        shell.until(b"lab/main")
        shell.type(f"sh -c 'trap \"echo hung up > {last_words}; exit\" HUP; echo is on; "
                   "while :; do sleep 0.01; done'\n".encode())
        shell.until(b"is on\r\n")

        self.assertIn(shell.hang_up(), (-signal.SIGHUP, 128 + signal.SIGHUP))

        self.assertEqual(heard.line(), "hung up")
        self.assertEqual(self.muster.job("lab")["phase"], "Running")
        self.assertIn("still there", self.muster.run("exec", "lab", "--", "echo", "still there").stdout)

    def test_a_shell_ends_with_a_message_when_the_server_ends_and_the_job_continues(self):
        self.lab()
        shell = self.shell()

        self.muster.kill_server()

        self.assertEqual(shell.finish(), 5)
        self.assertIn(b"muster: lost the connection to the server; the job continues: muster bash lab opens a new "
                      b"shell\r\n", shell.text)
        again = self.shell()
        again.type(b"exit 6\n")
        self.assertEqual(again.finish(), 6)
        self.assertEqual(self.muster.job("lab")["phase"], "Running")

    def test_a_shell_restores_the_terminal(self):
        self.lab()
        around = self.typed(argv=["/bin/sh", "-c",
                                  f"{' '.join(self.muster.argv('bash', 'lab'))}; stty -a | grep -o ' echo '"])
        around.until(b"lab/main")

        self.muster.kill_server()

        around.finish()
        self.assertIn(b" echo \r\n", around.text)

    def test_a_shell_ends_with_its_job_and_reports_that(self):
        self.lab()
        shell = self.shell()

        self.muster.run("stop", "--now", "lab")

        self.assertEqual(shell.finish(), 137)
        self.assertIn(b"muster: the shell ended with job 'lab'", shell.text)

    def test_a_shell_waits_for_a_job_that_is_about_to_start(self):
        self.muster.run("submit", "single", "lab", "--interactive", "--hold")
        shell = self.typed("bash", "lab")
        shell.until(b"muster: job 'lab' is Queued")

        self.muster.run("resume", "lab")

        shell.until(b"lab/main")
        shell.type(b"exit\n")
        self.assertEqual(shell.finish(), 0)

    def test_a_shell_waits_for_a_limited_time_and_not_for_ended_jobs(self):
        self.muster.run("submit", "single", "held", "--interactive", "--hold")
        self.muster.run("submit", "single", "done", "--follow", "--", "sh", "-c", "exit 3", code=3)

        self.assertIn("is Queued", self.muster.run("bash", "held", "--wait", "0s", code=None).stderr)
        ended = self.muster.run("bash", "done", code=4).stderr
        self.assertIn("job 'done' has ended (Failed)", ended)
        waiting = self.typed("bash", "held")
        waiting.until(b"is Queued")
        waiting.type(b"\x03")
        self.assertEqual(waiting.finish(), 130)
        self.assertIn("has no task", self.muster.run("bash", "held", "--task", "x", code=3).stderr)


class AShellOfAnMpiJob(Sessions):

    FLAGS: tuple = ()

    def test_mpirun_in_a_shell_needs_no_options(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--interactive", *self.FLAGS)
        shell = self.typed("bash", "dist")
        shell.until(b"dist/launcher")

        shell.type(b"mpirun -np 2 hostname; echo code $?\n")
        shell.until(b"code 0\r\n")
        self.assertIn(b"dist-worker-0\r\n", shell.text)
        self.assertIn(b"dist-worker-1\r\n", shell.text)
        shell.type(b"ssh -n dist-worker-1 'echo over at $(hostname)'\n")
        shell.until(b"over at dist-worker-1\r\n")
        shell.type(b"echo copied > note; scp note dist-worker-0:note.there; cat note.there\n")
        shell.until(b"copied\r\n")
        shell.type(b"exit\n")

        self.assertEqual(shell.finish(), 0)


class Attaching(Sessions):

    def submit(self, *words):
        self.muster.run("submit", "single", "talk", *words)

    def test_a_user_can_type_detach_and_attach_again_after_a_restart_of_the_server(self):
        self.submit("--stdin", "--tty", "--", "sh", "-c",
                    "while read line; do echo \"<$line>\"; test \"$line\" = end && exit 5; done")
        first = self.typed("attach", "talk")
        first.until(b"attached to main of job 'talk'; ctrl-p ctrl-q detaches")
        first.type(b"one\n")
        first.until(b"<one>\r\n")
        first.type(b"\x10\x11")
        self.assertEqual(first.finish(), 0)
        self.assertIn(b"detached from job 'talk', which continues", first.text)

        second = self.typed("attach", "talk")
        second.until(b"detaches")
        second.type(b"two\n")
        second.until(b"<two>\r\n")
        self.muster.kill_server()
        self.assertEqual(second.finish(), 5)
        self.assertIn(b"lost the connection to the server; the job continues: muster attach talk", second.text)

        third = self.typed("attach", "talk", "--from-start")
        third.until(b"<two>\r\n")
        third.type(b"end\n")
        self.assertEqual(third.finish(), 5)
        self.assertIn("[main] <end>\n", self.muster.logs("talk"))

    def test_two_users_share_the_input_and_output_of_a_real_terminal(self):
        sized = self.muster.gate()
        # A signal that arrives just before `read` blocks waits until `read` ends; `wait` does not have this race.
        self.submit("--stdin", "--tty", "--", "sh", "-c",
                    "trap 'echo interrupted; exit 9' INT; trap 'stty size' WINCH; tty; stty size; "
                    f"{sized.wait} & until wait $!; do :; done; read line; echo was read; "
                    "while :; do sleep 0.01; done")
        # The last reported size counts.
        first = self.typed("attach", "talk", rows=30, columns=90)
        first.until(b"30 90\r\n")
        second = self.typed("attach", "talk", rows=31, columns=91)
        second.until(b"31 91\r\n")
        second.resize(44, 144)
        for each in (first, second):
            each.until(b"44 144\r\n")
        sized.open()
        second.type(b"\n")
        for each in (first, second):
            each.until(b"was read\r\n")

        first.type(b"\x03")

        self.assertEqual(second.finish(), 9)
        self.assertEqual(first.finish(), 9)
        self.assertIn(b"^Cinterrupted\r\n", second.text)
        self.assertIn("/dev/pts/", self.muster.logs("talk"))

    def test_piped_input_reaches_a_job_that_reads(self):
        self.submit("--stdin", "--", "sh", "-c", "echo up; wc -c")
        self.assertEqual(self.muster.stream("logs", "talk", "-f").line(), "[main] up")

        ran = self.muster.run("attach", "talk", input="x" * 300_000)

        self.assertEqual(ran.stdout.strip(), "300000")
        self.assertIn("attached to main of job 'talk'; Ctrl-C detaches", ran.stderr)

    def test_watching_sends_nothing_to_the_program(self):
        self.submit("--stdin", "--", "sh", "-c", "echo up; read line; echo \"got $line\"; exit 3")
        self.assertEqual(self.muster.stream("logs", "talk", "-f").line(), "[main] up")
        watcher = self.muster.stream("attach", "talk", "--no-stdin", "--from-start")
        self.assertEqual(watcher.line(), "up")

        self.muster.run("attach", "talk", input="me\n", code=3)

        self.assertEqual(watcher.line(), "got me")
        self.assertEqual(watcher.finish(), 3)

    def test_attaching_to_a_job_without_input_shows_new_output(self):
        gate = self.muster.gate()
        # Lines tell when the log is followed: the message comes before the request.
        self.submit("--", "sh", "-c", f"echo before; while ! test -e {self.muster.work}/shown; do sleep 0.1; "
                    f"echo meanwhile; done; {gate.wait}; echo after")
        self.assertEqual(self.muster.stream("logs", "talk", "-f").line(), "[main] before")
        watcher = self.typed("attach", "talk")
        watcher.until(b"reads no input and has no terminal")
        watcher.until(b"meanwhile")
        (self.muster.work / "shown").touch()
        gone = self.typed("attach", "talk")
        gone.until(b"reads no input")
        gone.type(b"\x03")
        self.assertEqual(gone.finish(), 130)
        self.assertIn(b"detached from job 'talk'", gone.text)

        gate.open()

        self.assertEqual(watcher.finish(), 0)
        self.assertIn(b"after", watcher.text)
        self.assertNotIn(b"before", watcher.text)

    def test_invalid_keys_are_reported(self):
        self.assertIn("'alt-x' is not a key",
                      self.muster.run("attach", "talk", "--detach-keys", "alt-x", code=2).stderr)


class Converting(Sessions):

    def type_in_lab(self, *lines, task="main"):
        shell = self.shell(task=task)
        for number, line in enumerate(lines):
            shell.type(f"{line}\n".encode())
            shell.type(f" echo did-$(({number} + 0))\n".encode())
            shell.until(f"did-{number}\r\n".encode())
        shell.type(b"exit\n")
        self.assertEqual(shell.finish(), 0)

    def test_convert_turns_the_typed_command_into_an_unattended_job(self):
        self.lab()
        (self.muster.work / "deep").mkdir()
        (self.muster.work / "deep" / "train.py").write_text("print('trained in', __import__('os').getcwd())\n")
        self.type_in_lab("cd deep", "python3 train.py", "ls", "false")

        listed = self.muster.run("convert", "lab", "--list").stdout
        self.assertRegex(listed, r"LINE +EXIT +TOOK +FOLDER +COMMAND\n")
        self.assertRegex(listed, r" 2 +0 +\d+s +/\S+/deep +python3 train.py\n")
        self.assertNotIn("did-", listed)

        asked = self.typed("convert", "lab")
        asked.until(b"Run this as job 'lab-train', and end 'lab'? [Y/n] ")
        self.assertIn(b"  python3 train.py\r\n", asked.text)
        asked.type(b"y\n")
        self.assertEqual(asked.finish(), 0, asked.text)

        self.assertEqual(self.muster.ended("lab-train")["phase"], "Succeeded")
        self.assertEqual(self.muster.logs("lab-train"), f"[main] trained in {self.muster.work}/deep\n")
        spec = self.muster.job("lab-train")["spec"]
        self.assertEqual(spec["command"], ["bash", "-c", "python3 train.py"])
        self.assertEqual(spec["scheduling"]["purpose"], "train")
        self.assertEqual(self.muster.ended("lab")["phase"], "Stopped")

    def test_convert_accepts_any_line_and_keeps_the_session_on_request(self):
        self.lab()
        self.type_in_lab("echo one", "echo two")

        self.assertIn("no command typed in job 'lab' looks like a training",
                      self.muster.run("convert", "lab", code=3).stderr)
        self.assertIn("confirm with --yes", self.muster.run("convert", "lab", "--line", "1", code=2).stderr)
        self.muster.run("convert", "lab", "--line", "2", "--yes", "--keep", "--name", "second")
        self.muster.run("convert", "lab", "--command", "echo three | tr e E", "-y", "--keep")

        self.muster.ended("second")
        self.muster.ended("lab-train")
        self.assertEqual(self.muster.logs("second"), "[main] two\n")
        self.assertEqual(self.muster.logs("lab-train"), "[main] thrEE\n")
        self.assertEqual(self.muster.job("lab")["phase"], "Running")
        self.assertIn("there is no command 9",
                      self.muster.run("convert", "lab", "--line", "9", code=3).stderr)

    def test_convert_records_no_command_that_must_not_be_recorded(self):
        self.lab()
        self.type_in_lab(" echo with-a-blank", "echo kept", "unset MUSTER_TYPED", "echo behind-it")

        listed = self.muster.run("convert", "lab", "--list").stdout

        self.assertIn("echo kept", listed)
        self.assertNotIn("with-a-blank", listed)
        self.assertNotIn("behind-it", listed)

    def test_convert_uses_a_command_that_was_running_when_its_terminal_was_closed(self):
        self.lab()
        shell = self.shell()
        shell.type(b"python3 -c 'print(6 * 7, flush=True); import time; time.sleep(1000)'\n")
        shell.until(b"42\r\n")

        self.muster.kill_server()
        shell.finish()

        listed = self.muster.run("convert", "lab", "--list").stdout
        self.assertRegex(listed, r" 1 +- +- +\S+ +python3 -c ")

    def test_convert_of_an_ended_job_requires_the_command(self):
        self.lab()
        self.muster.run("stop", "lab")
        self.muster.ended("lab")

        self.assertIn("--command 'TEXT'", self.muster.run("convert", "lab", code=4).stderr)
        self.muster.run("convert", "lab", "--command", "echo again", "--yes")
        self.muster.ended("lab-train")
        self.assertEqual(self.muster.logs("lab-train"), "[main] again\n")


    def test_a_converted_job_runs_mpirun_as_root_if_the_shell_did(self):
        self.muster.run("submit", "mpi", "lab", "--workers", 2, "--interactive")
        self.type_in_lab("mpirun -np 2 hostname < /dev/null", task="launcher")

        self.muster.run("convert", "lab", "--yes")

        self.assertEqual(self.muster.ended("lab-train")["phase"], "Succeeded", self.muster.logs("lab-train"))
        self.assertEqual(self.muster.ended("lab")["phase"], "Stopped")
        environment = self.muster.job("lab-train")["spec"]["environment"]
        self.assertEqual(environment.get("OMPI_ALLOW_RUN_AS_ROOT"), "1" if os.geteuid() == 0 else None)

    def test_convert_keeps_the_session_if_the_new_job_cannot_start(self):
        self.lab()
        (self.muster.work / "gone").mkdir()
        self.type_in_lab("cd gone", "python3 --version", "cd ..", "rmdir gone")

        failed = self.muster.run("convert", "lab", "--yes", code=1)

        self.assertIn("job 'lab-train' failed: ", failed.stderr)
        self.assertIn("muster: job 'lab' continues\n", failed.stderr)
        self.assertEqual(self.muster.job("lab")["phase"], "Running")

    def test_convert_keeps_the_session_until_the_new_job_runs(self):
        self.muster.start_server("--declare-gpus", "1:V100:16G")
        self.lab("lab", "--gpus", 1)
        self.type_in_lab("echo one")

        waits = self.muster.run("convert", "lab", "--line", 1, "--yes", "--wait", "100ms", code=None)

        self.assertIn("job 'lab-train' does not run yet: it is Queued: needs 1 GPU", waits.stderr)
        self.assertIn("stop that one with: muster stop lab", waits.stderr)
        self.assertNotEqual(waits.returncode, 0)
        self.assertEqual(self.muster.job("lab")["phase"], "Running")

        self.muster.run("convert", "lab", "--line", 1, "--yes", "--end-first", "--name", "second")
        self.assertEqual(self.muster.ended("lab")["phase"], "Stopped")
        self.assertEqual(self.muster.ended("lab-train")["phase"], "Succeeded")
        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")


class InteractiveJobs(Sessions):

    def test_interactive_jobs_are_not_restarted(self):
        refused = self.muster.run("submit", "single", "lab", "--interactive", "--retries", "2", code=2)
        self.assertIn("--retries: an interactive job is never retried", refused.stderr)

        submitted = self.muster.run("submit", "single", "lab", "--interactive")

        self.assertIn("to open a shell in it: muster bash lab", submitted.stderr)
        self.assertEqual(self.muster.job("lab")["spec"]["command"], ["sleep", "infinity"])

    def test_interactive_jobs_end_at_their_time_limit(self):
        self.lab("lab", "--time-limit", "500ms")

        self.assertIn("time limit", str(self.muster.ended("lab")))


if __name__ == "__main__":
    main()
