"""Running programs in a task of a job: `muster exec`, through a real server."""

import os

from muster_harness import BOUND, MusterTest, Typed, await_no_process, main


class RunningProgramsInTasks(MusterTest):

    def setUp(self):
        super().setUp()
        self.gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--env", "COLOUR=blue", "--", "sh", "-c",
                        f"echo up; {self.gate.wait}")
        self.assertEqual(self.muster.stream("logs", "job", "-f").line(), "[main] up")

    def exec(self, *words, **options):
        return self.muster.run("exec", "job", *words, **options)

    def test_the_program_runs_in_the_task_and_its_exit_code_is_that_of_the_command(self):
        ran = self.exec("--", "sh", "-c", "hostname; echo $COLOUR; pwd; echo err >&2; exit 7", code=7)

        self.assertEqual(ran.stdout, f"job-main\nblue\n{self.muster.work}\n")
        self.assertEqual(ran.stderr, "err\n")
        self.exec("--", "sh", "-c", "kill -9 $$", code=137)

    def test_every_byte_of_its_input_and_output_arrives(self):
        data = os.urandom(5_000_000)

        ran = self.exec("--", "cat", input=data, text=False)

        self.assertEqual(len(ran.stdout), len(data))
        self.assertEqual(ran.stdout, data)

    def test_its_input_may_be_a_file(self):
        path = self.muster.script("input", "one\ntwo\n")

        with open(path, "rb") as file:
            lines = self.muster.stream("exec", "job", "--", "wc", "-l", stdin=file)
            self.assertEqual(lines.line().strip(), "2")
            self.assertEqual(lines.finish(), 0)

    def test_output_and_signals_are_handled_although_the_program_reads_no_input(self):
        path = self.muster.work / "large"
        path.write_bytes(bytes(16 << 20))

        with open(path, "rb") as file:
            ran = self.muster.stream("exec", "job", "--", "sh", "-c", "while echo line; do sleep 0.01; done",
                                     stdin=file)
            # By then, every buffer between the file and the program is full.
            for _ in range(200):
                self.assertEqual(ran.line(), "line")
            self.assertLess(os.lseek(file.fileno(), 0, os.SEEK_CUR), 16 << 20)
            ran.interrupt()
            self.assertEqual(ran.finish(), 130)

    def test_a_program_that_cannot_be_run_is_reported(self):
        self.assertIn("the task has no program 'no-such-program'",
                      self.exec("--", "no-such-program", code=3).stderr)
        self.assertIn("has no task 'worker-9'",
                      self.exec("--task", "worker-9", "--", "true", code=3).stderr)
        self.assertIn("give a program after", self.exec(code=2).stderr)
        self.gate.open()
        self.muster.ended("job")
        self.assertIn("does not run", self.exec("--", "true", code=4).stderr)

    def test_a_shell_on_a_terminal_behaves_like_a_local_shell(self):
        typed = Typed(self.muster, "exec", "-t", "job", "--", "sh", rows=33, columns=101)
        self.addCleanup(typed.close)
        typed.type(b"stty size\n")
        typed.until(b"33 101\r\n")
        self.assertFalse(typed.echoes())

        typed.resize(50, 132)
        typed.type(b"stty size\n")
        typed.until(b"50 132\r\n")
        typed.type(b"sh -c 'echo sleeps; exec sleep 1000'\n")
        typed.until(b"sleeps\r\n")
        typed.type(b"\x03")  # Ctrl-C ends the sleep there, and not the command here
        typed.type(b"echo again\nexit 5\n")
        typed.until(b"again\r\n")

        self.assertEqual(typed.finish(), 5, typed.text)

    def test_the_program_ends_when_the_command_does(self):
        mark = f"1234567890.{os.getpid():07}"  # in no other run of this test
        command = self.muster.stream("exec", "job", "--", "sh", "-c", f"echo up; sleep {mark}")
        self.assertEqual(command.line(), "up")

        command.process.kill()
        command.close()

        await_no_process(f"sleep\0{mark}", BOUND)
        self.assertEqual(self.muster.job("job")["phase"], "Running")

    def test_the_program_ends_when_the_job_does(self):
        command = self.muster.stream("exec", "job", "--", "sh", "-c", "echo up; sleep 1000000")
        self.assertEqual(command.line(), "up")

        self.muster.run("stop", "--now", "job")

        self.assertEqual(command.finish(), 137)


if __name__ == "__main__":
    main()
