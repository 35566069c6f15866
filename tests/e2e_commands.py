"""Listing, stopping and deleting jobs, running a job in the foreground, and shell completion."""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from muster_harness import DOCUMENTS_MPIRUN, MusterTest, main


def read_yaml(text):
    """Reads the used part of YAML: block maps, lists and scalars, with strings quoted as in JSON."""
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        content = line.strip()
        while content.startswith("- "):
            lines.append((indent, "-"))
            content, indent = content[2:].lstrip(), indent + 2
        lines.append((indent, content))
    value = read_block(lines)
    if lines:
        raise AssertionError(f"cannot be read as YAML: {lines[0]}")
    return value


def read_block(lines):
    indent, first = lines[0]
    if first == "-":
        items = []
        while lines and lines[0] == (indent, "-"):
            lines.pop(0)
            items.append(read_block(lines))
        return items
    if not re.match(r"[^\"]\S*:( |$)", first):
        return scalar(lines.pop(0)[1])
    entries = {}
    while lines and lines[0][0] == indent and lines[0][1] != "-":
        key, value = re.fullmatch(r"(\S+):(?: (.*))?", lines.pop(0)[1]).groups()
        entries[key] = read_block(lines) if value is None else scalar(value)
    return entries


def scalar(text):
    return json.loads(text) if re.match(r'["\[{\d-]|(true|false|null)$', text) else text


class Looking(MusterTest):

    def test_list_and_get_print_json_and_yaml_with_the_same_content(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--allow-launcher-only", "--follow", "--", "true")
        self.muster.run("submit", "single", "alone", "--follow", "--", "sh", "-c", "exit 3", code=3)

        jobs = json.loads(self.muster.run("list", "--sort", "submitted", "--output", "json").stdout)["jobs"]
        job = json.loads(self.muster.run("get", "alone", "--output", "json").stdout)

        self.assertEqual([(job["spec"]["name"], job["phase"], job["exit_code"]) for job in jobs],
                         [("dist", "Succeeded", 0), ("alone", "Failed", 3)])
        self.assertEqual(job, jobs[1])
        self.assertEqual([task["name"] for task in jobs[0]["tasks"]], ["launcher", "worker-0", "worker-1"])
        self.assertEqual(self.from_yaml("get", "alone"), job)
        self.assertEqual(self.from_yaml("list", "--sort", "submitted"), {"jobs": jobs})

    def from_yaml(self, *words):
        return read_yaml(self.muster.run(*words, "--output", "yaml").stdout)

    def test_get_shows_the_ends_of_tasks_and_the_events(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "no-such-program", code=127)

        page = self.muster.run("get", "job").stdout

        self.assertRegex(page, r"PHASE +Failed")
        self.assertRegex(page, r"main +single +job-main +\S+ +Ended +exited with code 127: the command was")
        for words in ("FAILURE", "EVENTS", "submitted", "Failed"):
            self.assertIn(words, page)

    def test_the_list_is_a_table_with_a_row_for_each_job_newest_first(self):
        self.muster.run("run", "--name", "one", "--", "true")
        self.muster.run("run", "--name", "two", "--", "false", code=1)

        rows = self.muster.run("list").stdout.splitlines()

        self.assertEqual([row.split()[:4] for row in rows],
                         [["NAME", "PROJECT", "KIND", "PHASE"], ["two", "default", "single", "Failed"],
                          ["one", "default", "single", "Succeeded"]])

    def test_the_version_is_printed(self):
        self.assertRegex(self.muster.run("version").stdout, r"^muster \d+\.\d+\.\d+")
        self.assertRegex(self.muster.run("--version").stdout, r"\d+\.\d+\.\d+")


class Ending(MusterTest):

    def start(self, script, *flags):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", *flags, "--", "sh", "-c",
                                    script.replace("WAIT", gate.wait))
        follow.until("ready")
        return gate, follow

    def test_stop_asks_the_program_with_sigterm_and_lets_it_finish(self):
        _, follow = self.start("trap 'echo saves; exit 0' TERM; echo ready; WAIT & wait")

        self.muster.run("stop", "job")
        follow.finish()

        self.assertIn("[main] saves", follow.text)
        self.assertEqual(self.muster.job("job")["phase"], "Succeeded")

    def test_stop_kills_a_program_that_heeds_no_sigterm_after_its_grace(self):
        _, follow = self.start("trap '' TERM; echo ready; while :; do WAIT; done", "--grace", "200ms")

        self.muster.run("stop", "job")

        self.assertNotEqual(follow.finish(), 0)
        job = self.muster.job("job")
        self.assertEqual((job["phase"], job["exit_code"]), ("Stopped", 137))
        self.assertTrue(job["tasks"][0]["exit"]["stopped"])

    def test_stop_now_kills_at_once(self):
        _, follow = self.start("trap 'echo saves' TERM; echo ready; while :; do WAIT; done",
                               "--grace", "1h")

        self.muster.run("stop", "--now", "job")

        self.assertNotEqual(follow.finish(), 0)
        self.assertNotIn("saves", follow.text)
        self.assertEqual(self.muster.job("job")["phase"], "Stopped")

    def test_stop_ends_an_mpi_job_with_all_its_ranks(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "mpi", "dist", "--workers", 2, "--follow", "--",
                                    *DOCUMENTS_MPIRUN, "sh", "-c", f"echo ready; {gate.wait}")
        follow.until("ready")
        follow.until("ready")

        self.muster.run("stop", "dist")

        self.assertNotEqual(follow.finish(), 0)
        self.assertEqual(self.muster.job("dist")["phase"], "Stopped")

    def test_a_running_job_is_not_deleted_until_it_is_stopped(self):
        _, follow = self.start("echo ready; WAIT")

        said = self.muster.run("delete", "job", code=4).stderr

        self.assertIn("job 'job' has not ended", said)
        self.assertIn("muster stop job", said)
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        self.muster.run("delete", "--force", "job")
        follow.finish()
        self.assertEqual(self.muster.jobs(), [])
        self.muster.run("delete", "job", code=3)
        self.muster.run("delete", "--ignore-missing", "job")

    def test_delete_waits_for_a_job_that_is_being_stopped(self):
        gate, follow = self.start("trap 'echo saves; WAIT; exit 0' TERM; echo ready; "
                                  "sleep infinity & wait", "--grace", "1h")
        self.muster.run("stop", "job")
        follow.until("saves")

        deleting = self.muster.stream("delete", "job")
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        gate.open()

        self.assertEqual(deleting.finish(), 0)
        follow.finish()
        self.assertEqual(self.muster.jobs(), [])

    def test_a_name_is_free_again_once_its_job_is_deleted(self):
        for word in ("first", "second"):
            ran = self.muster.run("submit", "single", "job", "--follow", "--", "echo", word)
            self.assertEqual(ran.stdout, f"[main] {word}\n")
            self.muster.run("delete", "job")

    def test_submitting_again_with_the_same_key_makes_no_second_job(self):
        for _ in range(2):
            self.muster.run("submit", "single", "job", "--idempotency-key", "k1", "--", "sh", "-c",
                            "echo x >> ran")
        self.muster.ended("job")

        self.assertEqual(len(self.muster.jobs()), 1)
        self.assertEqual((self.muster.work / "ran").read_text(), "x\n")


class Foreground(MusterTest):

    def test_the_exit_code_of_run_is_that_of_the_job(self):
        for code in (0, 1, 3, 42, 255):
            self.muster.run("run", "--", "sh", "-c", f"exit {code}", code=code)

    def test_run_warns_that_it_does_not_read_its_input(self):
        warning = "'muster run' does not read standard input"
        for given in ("hello\n", ""):
            ran = self.muster.run("run", "--", "cat", input=given)
            self.assertEqual(warning in ran.stderr, given != "", ran.stderr)

    def test_run_with_several_processes_starts_them_under_mpirun(self):
        ran = self.muster.run("run", "-n", 2, "--name", "both", "--", "sh", "-c",
                              "echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE")

        self.assertEqual(sorted(line for line in ran.stdout.splitlines() if "launcher" not in line),
                         ["[0@both-worker-0] 0 of 2", "[1@both-worker-1] 1 of 2"])

    def test_the_program_runs_in_the_folder_of_the_caller(self):
        self.assertEqual(self.muster.run("run", "--no-prefix", "--", "pwd").stdout,
                         f"{self.muster.work}\n")

    def test_one_interrupt_lets_the_program_finish(self):
        gate = self.muster.gate()
        run = self.muster.stream("run", "--name", "job", "--", "sh", "-c",
                                 f"trap 'echo saves; exit 5' TERM; echo ready; {gate.wait} & wait")
        run.until("ready")

        run.interrupt()

        run.until("saves")
        self.assertIn(run.finish(), (5, 130))
        self.assertIn("press Ctrl-C again to kill it", run.errors)
        self.assertIn(self.muster.job("job")["phase"], ("Stopped", "Failed"))

    def test_a_second_interrupt_kills_a_program_that_does_not_finish(self):
        gate = self.muster.gate()
        run = self.muster.stream("run", "--name", "job", "--grace", "1h", "--", "sh", "-c",
                                 f"trap 'echo asked' TERM; echo ready; while :; do {gate.wait} & wait; done")
        run.until("ready")
        run.interrupt()
        run.until("asked")

        run.interrupt()

        self.assertEqual(run.finish(), 130)
        self.assertEqual(self.muster.job("job")["phase"], "Stopped")

    def test_an_interrupted_follow_leaves_the_job_running(self):
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", "--", "sh", "-c",
                                    f"echo ready; {gate.wait}; echo on")
        follow.until("ready")

        follow.interrupt()

        self.assertEqual(follow.finish(), 130)
        self.assertIn("muster logs -f job", follow.errors)
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        gate.open()
        self.assertEqual(self.muster.ended("job")["phase"], "Succeeded")


    def test_a_follower_of_a_waiting_job_gets_the_reason(self):
        follow = self.muster.stream_of(
            ["sh", "-c", '"$@" 2>&1', "sh",
             *self.muster.argv("submit", "single", "job", "--hold", "--follow", "--", "echo", "on")])
        follow.until("muster: job 'job': ")

        self.muster.run("resume", "job")

        self.assertEqual(follow.finish(), 0)


class Starting(MusterTest):

    def test_a_command_loads_no_library_that_brings_many_along(self):
        """Loading the libraries of PostgreSQL's client and libarchive took a third of a short command's time."""
        listed = subprocess.run([self.muster.binary, "--version"], capture_output=True, text=True, check=True,
                                env=self.muster.environment | {"LD_TRACE_LOADED_OBJECTS": "1"}).stdout

        self.assertIn("libc.so", listed)
        for name in ("libpq", "libldap", "libgssapi", "libarchive", "libxml2", "libicu"):
            self.assertNotIn(name, listed)


class ManyJobs(MusterTest):

    def test_twenty_jobs_at_once_all_succeed_and_keep_their_logs_apart(self):
        def run(number):
            name = f"job-{number}"
            if number % 4 == 0:
                return name, self.muster.run("submit", "mpi", name, "--workers", 2, "--follow", "--",
                                             *DOCUMENTS_MPIRUN, "sh", "-c", "echo from $MUSTER_JOB")
            return name, self.muster.run("submit", "single", name, "--follow", "--", "sh", "-c",
                                         "echo from $MUSTER_JOB")

        with ThreadPoolExecutor(20) as pool:
            ran = list(pool.map(run, range(20)))

        for name, result in ran:
            said = re.findall(r"\] from (.*)", result.stdout)
            self.assertEqual(said, [name] * (2 if len(said) == 2 else 1))
            self.assertIn("Succeeded", result.stderr)
        self.assertEqual([job["phase"] for job in self.muster.jobs()], ["Succeeded"] * 20)


class Completion(MusterTest):

    def test_the_script_for_each_shell_is_accepted_by_that_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.muster.run("completion", shell).stdout
            self.assertGreater(len(script), 200)
            if not shutil.which(shell) and shell != "bash":
                continue
            checked = subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True,
                                     capture_output=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)

    def test_bash_completes_commands_flags_and_the_names_of_jobs(self):
        self.muster.run("run", "--name", "training", "--", "true")
        script = self.muster.script("complete.sh", """\
            source <("$MUSTER" completion bash)
            complete_words() {
              COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMPREPLY=()
              "$(complete -p muster | sed -E 's/.*-F ([^ ]+).*/\\1/')" muster "${@: -1}" "${@: -2:1}"
              echo "${COMPREPLY[@]}"
            }
            complete_words muster sub
            complete_words muster submit mpi --worker
            complete_words muster get train
            """)

        ran = subprocess.run(
            ["bash", str(script)], capture_output=True, text=True, cwd=self.muster.work,
            env=self.muster.environment | {
                "MUSTER": str(self.muster.binary),
                "PATH": f"{self.muster.binary.parent}:{os.environ['PATH']}"})

        self.assertEqual([line.split() for line in ran.stdout.splitlines()],
                         [["submit"], ["--workers"], ["training"]], ran.stderr)


if __name__ == "__main__":
    main()
