"""Secrets, from `muster secret set` to the ranks of a job, and nowhere else."""

import base64
import hashlib
import json
import secrets
import stat

from muster_harness import MPIRUN, MusterTest, all_below, all_pids, main, mode_of, read_bytes


def disguises(value):
    """The value itself, and its encodings in JSON, hexadecimal and base64."""
    raw = value.encode()
    return {raw, json.dumps(value)[1:-1].encode(), raw.hex().encode(),
            base64.b64encode(raw).rstrip(b"=")[:-1]}


def sha256(value):
    return hashlib.sha256(value.encode()).hexdigest()


class Secrets(MusterTest):

    def setUp(self):
        super().setUp()
        # Contains characters that shells, YAML and JSON treat specially.
        self.key = f"k'{secrets.token_hex(12)}\" $HOME \\n"
        self.certificate = f"-----BEGIN-----\n{secrets.token_hex(12)}\n-----END-----\n"
        self.values = (self.key, self.certificate)
        self.set_secret("KEY", self.key)
        pem = self.muster.home / "ca.pem"
        pem.write_text(self.certificate)
        self.muster.run("secret", "set", "CA", "--project", "default", "--from-file", pem)
        pem.unlink()

    def set_secret(self, name, value):
        ran = self.muster.run("secret", "set", name, "--project", "default", input=value)
        self.assertNotIn(value, ran.stdout + ran.stderr)

    def program(self, gate):
        """A script that prints the hash of each value, then waits."""
        return self.muster.script("find.sh", "\n".join([
            "#!/bin/sh",
            # printf is a shell builtin, so the values appear in no command line.
            'variable=$(printf %s "$API_KEY" | sha256sum | cut -c 1-64)',
            'file=$(sha256sum < "$MUSTER_GENERATED/secrets/tls/ca.pem" | cut -c 1-64)',
            'echo "$1 variable=$variable file=$file"',
            gate.wait]))

    def launcher(self, program):
        """The script of the launcher of an MPI job, which checks the values and starts ranks that check them, too."""
        return self.muster.script("launch.sh", "\n".join([
            "#!/bin/sh", f"{program} launcher", f"exec {' '.join(MPIRUN)} {program} rank"]))

    def found(self, who):
        return f"{who} variable={sha256(self.key)} file={sha256(self.certificate)}"

    def holds_a_value(self, data):
        return any(form in data for value in self.values for form in disguises(value))

    def files_with_values(self):
        return [path for path in all_below(self.muster.folder)
                if path.is_file() and not path.is_symlink() and self.holds_a_value(read_bytes(path))]

    def command_lines_with_values(self):
        return [pid for pid in all_pids() if self.holds_a_value(read_bytes(f"/proc/{pid}/cmdline"))]

    def assert_nobody_says_them(self, *jobs):
        """No command prints a value."""
        commands = [("list", "-o", "json"), ("secret", "list", "--project", "default", "-o", "json"),
                    ("audit", "-o", "json"), ("events",), ("queue",), ("project", "list", "-o", "json")]
        for job in jobs:
            commands += [("get", job, "-o", "json"), ("get", job), ("explain", job), ("events", job),
                         ("logs", job)]
        for words in commands:
            ran = self.muster.run(*words)
            self.assertFalse(self.holds_a_value((ran.stdout + ran.stderr).encode()), words)

    def assert_only_closed_files_of(self, job, tasks):
        """The values are in files of the running tasks, which no other account can read."""
        folders = [self.muster.task_folder(job, task) for task in tasks]
        files = self.files_with_values()
        self.assertTrue(files)
        for path in files:
            self.assertTrue(any(folder in path.parents for folder in folders), path)
            self.assertEqual(mode_of(path) & 0o077, 0, path)
            self.assertIn(path.relative_to(next(folder for folder in folders
                                                if folder in path.parents)).parts[0],
                          ("plan", "generated"), path)

    def test_the_launcher_and_every_rank_of_an_mpi_job_have_the_secrets(self):
        gate = self.muster.gate()
        follow = self.muster.stream(
            "submit", "mpi", "dist", "--workers", 2, "--follow", "--secret", "KEY=API_KEY",
            "--secret-file", "CA=tls/ca.pem", "--", self.launcher(self.program(gate)))
        follow.until(self.found("launcher"))
        gate.open()
        for _ in range(2):
            follow.until(self.found("rank"))
        job = self.muster.job("dist")

        tasks = ("launcher", "worker-0", "worker-1")
        self.assert_only_closed_files_of(job, tasks)
        for task in tasks:
            file = self.muster.task_folder(job, task) / "generated" / "secrets" / "tls" / "ca.pem"
            self.assertEqual(file.read_text(), self.certificate)
            self.assertEqual(mode_of(file), stat.S_IRUSR | stat.S_IWUSR)
        self.assertEqual(self.command_lines_with_values(), [])
        self.assertFalse(self.holds_a_value(
            read_bytes(f"/proc/{self.muster.server_pid()}/environ")))
        self.assert_nobody_says_them("dist")

        gate.open(times=2)
        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(self.files_with_values(), [])
        self.assert_nobody_says_them("dist")

    def test_jobs_without_a_sandbox_and_jobs_of_job_files_have_the_secrets(self):
        gate = self.muster.gate()
        file = self.muster.work / "job.yaml"
        file.write_text(f"name: plain\nsandbox: none\ncommand: [{self.program(gate)}, main]\n"
                        "secrets:\n  - {name: KEY, variable: API_KEY}\n"
                        "  - {name: CA, file: tls/ca.pem}\n")
        follow = self.muster.stream("submit", "-f", file, "--follow")
        follow.until(self.found("main"))
        job = self.muster.job("plain")
        self.assertEqual(job["spec"]["secrets"], [{"name": "KEY", "variable": "API_KEY"},
                                                  {"name": "CA", "file": "tls/ca.pem"}])
        self.assert_only_closed_files_of(job, ("main",))
        self.assertEqual(self.command_lines_with_values(), [])

        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(self.files_with_values(), [])

    def test_secrets_outlive_a_killed_server_which_leaves_no_files(self):
        gate = self.muster.gate()
        program = self.program(gate)
        flags = ("--secret", "KEY=API_KEY", "--secret-file", "CA=tls/ca.pem")
        self.muster.run("submit", "single", "first", *flags, "--", program, "first")
        self.muster.stream("logs", "first", "-f").until(self.found("first"))

        self.muster.kill_server()

        gate.open()
        self.assertEqual(self.muster.ended("first")["phase"], "Succeeded")
        self.assertEqual(self.files_with_values(), [])
        follow = self.muster.stream("submit", "single", "second", "--follow", *flags, "--", program,
                                    "second")
        follow.until(self.found("second"))
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(mode_of(self.muster.state / "secret.key"), 0o600)

    def test_a_killed_job_leaves_no_secret_files(self):
        gate = self.muster.gate()
        follow = self.muster.stream(
            "submit", "single", "one", "--follow", "--secret", "KEY=API_KEY", "--secret-file",
            "CA=tls/ca.pem", "--", self.program(gate), "one")
        follow.until(self.found("one"))
        self.assertTrue(self.files_with_values())

        self.muster.run("stop", "--now", "one")

        self.assertEqual(self.muster.ended("one")["phase"], "Stopped")
        self.assertEqual(self.files_with_values(), [])

    def test_a_missing_secret_is_reported_before_anything_starts(self):
        ran = self.muster.run("submit", "single", "one", "--secret", "KEY", "--secret", "NONE",
                              "--secret-file", "NEITHER", "--", "true", code=3)

        self.assertIn("there is no secret 'NONE'", ran.stderr)
        self.assertIn("there is no secret 'NEITHER'", ran.stderr)
        self.assertNotIn("'KEY'", ran.stderr)
        self.assertEqual(self.muster.jobs(), [])

    def test_a_faulty_value_is_not_repeated(self):
        value = secrets.token_hex(40 << 10)
        ran = self.muster.run("secret", "set", "KEY", "--project", "default", input=value, code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn(value[:32], ran.stdout + ran.stderr)
        self.assertNotIn(value[:32].encode(), read_bytes(self.muster.state / "server.log"))


if __name__ == "__main__":
    main()
