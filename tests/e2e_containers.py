"""Jobs in containers, as their users see them: the documents' MPI commands in an image, and the messages of failed
jobs. After each test, nothing of a job may remain in the engine."""

import json
import tempfile
from pathlib import Path

from container_hosts import Lan, PodmanService, Registry
from containers_harness import ContainerTest, MPICH, OPEN_MPI, OPEN_MPI_WITHOUT_SSHD, hangs_in_finalize
from engine_machine import Machine
from gradient_harness import GradientTest
from muster_harness import BOUND, DOCUMENTS_MPIRUN, MPIRUN, MusterTest, main

BASE = "localhost/muster-test-base"
NO_SHELL = "localhost/muster-test-noshell"
OTHER_PROCESSOR = "localhost/muster-test-arm64"

PASSWORD = "se:cret"


def ranks_of(text):
    """[(rank, host)] as tests/mpi_where.c prints them."""
    return sorted((line.partition("rank ")[2].split()[0], line.partition(" on ")[2].split()[0])
                  for line in text.splitlines() if " of 2 on " in line)


class TheDocumentsCommands(ContainerTest, GradientTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"

    def experiment(self, image, command, code=0):
        workspace = self.muster.workspace(image)
        return self.run_to_its_end(
            "--name", "dist", "--experimentType", "MPI", "--workerContainer", image,
            "--workerMachineType", "C3", "--workerCount", 2, "--masterContainer", image,
            "--masterMachineType", "C3", "--masterCount", 1, "--masterCommand", command,
            "--workspace", workspace, kind="multinode", code=code)

    def test_gradients_mpi_experiment_runs_on_open_mpi_by_ssh(self):
        lines = self.experiment(OPEN_MPI, " ".join(DOCUMENTS_MPIRUN) + " ./where")

        self.assertEqual(ranks_of("\n".join(lines)), [("0", "dist-worker-0"), ("1", "dist-worker-1")])
        launch = self.muster.job("dist")["launch"]
        self.assertEqual(launch["by"], "ssh")
        self.assertEqual(launch["why"], "the images have sshd and ssh")
        self.assertRegex(launch["mpi"], r"\AOpen MPI 4\.")
        self.assertIn(launch["mpi"], self.muster.run("get", "dist").stdout)

    def test_gradients_mpi_experiment_runs_on_mpich_with_a_command_that_mpich_knows(self):
        lines = self.experiment(MPICH, "mpirun -np 2 ./where", code=None)

        self.assertTrue(self.muster.job("dist")["phase"] == "Succeeded" or hangs_in_finalize(self.muster, "dist"))
        self.assertEqual(ranks_of("\n".join(lines)), [("0", "dist-worker-0"), ("1", "dist-worker-1")])
        self.assertRegex(self.muster.job("dist")["launch"]["mpi"], r"\AMPICH 4\.")

    def test_open_mpis_flags_on_mpich_are_explained(self):
        self.experiment(MPICH, " ".join(DOCUMENTS_MPIRUN) + " ./where", code=255)

        failure = self.muster.job("dist")["failure"]
        self.assertEqual(failure["cause"],
                         "launcher exited with code 255: its mpirun is not Open MPI's")
        self.assertIn("an image with Open MPI", failure["advice"])

    def test_run_ais_mpi_job_runs_in_an_image_without_sshd(self):
        program = self.muster.workspace(OPEN_MPI_WITHOUT_SSHD)
        self.muster.run("runai", "submit-mpi", "dist", "--processes=2", "-g", "1", "-i",
                        OPEN_MPI_WITHOUT_SSHD, "-v", f"{program}:/program", "--", *MPIRUN,
                        "/program/where")

        job = self.muster.ended("dist")

        self.assertEqual(job["phase"], "Succeeded", job)
        self.assertEqual(ranks_of(self.muster.logs("dist")),
                         [("0", "dist-worker-0"), ("1", "dist-worker-1")])
        self.assertEqual(job["launch"]["by"], "agent")

    def test_ranks_that_all_run_on_the_launcher_end_the_job_while_they_run(self):
        workspace = self.muster.workspace()
        mpirun = workspace / "mpirun"  # of an image without a hostfile
        mpirun.write_text("#!/bin/sh\nexec env -u OMPI_MCA_orte_default_hostfile /usr/bin/mpirun "
                          "--allow-run-as-root --host localhost:2 \"$@\"\n")
        mpirun.chmod(0o755)

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "-i", OPEN_MPI, "--workspace",
                              workspace, "--follow", "--", "./mpirun", "-np", "2", "sleep", "infinity",
                              code=None)

        self.assertIn("all 2 ranks run on the launcher and none on a worker: mpirun did not use the "
                      "hostfile", ran.stderr)
        self.assertIn("launcher: ranks 0 to 1", ran.stderr)
        self.assertEqual(self.muster.job("dist")["phase"], "Failed")


class BadLuck(ContainerTest):

    def run_line(self, line, *flags, image=BASE, code=None):
        """Runs a line of shell: (the job, what its submission printed)."""
        ran = self.muster.run("submit", "single", "job", "-i", image, *flags, "--follow", "--", "sh",
                              "-c", line, code=code)
        return self.muster.job("job"), ran

    def fails(self, line, *flags, image=BASE, cause, advice=""):
        job, ran = self.run_line(line, *flags, image=image)
        self.assertEqual(job["phase"], "Failed", ran.stdout + ran.stderr)
        self.assertIn(cause, job["failure"]["cause"])
        self.assertIn(cause, ran.stderr)
        self.assertIn(advice, job["failure"]["advice"])
        self.muster.run("delete", "job")
        return job

    def at_the_gate(self):
        """Starts a job that runs until its gate opens. Returns the gate and the command that follows the log."""
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "-i", BASE, "-v",
                                    f"{self.muster.work}/gate:/gate", "--follow", "--", "sh", "-c",
                                    "echo begun; head -c 1 /gate >/dev/null; echo over")
        follow.until("begun")
        return gate, follow

    def container_of(self, name, task="main"):
        job = self.muster.job(name)
        return f"muster-{job['id']}-{job['attempt']}-{task}"

    def test_an_image_for_another_processor_is_named_as_such(self):
        self.fails("true", image=OTHER_PROCESSOR, cause=f"image '{OTHER_PROCESSOR}' is for arm64")

    def test_an_image_that_must_not_be_fetched_and_is_not_there_is_named(self):
        self.fails("true", "--image-pull-policy", "never", image="localhost/no-such-image",
                   cause="has no image 'localhost/no-such-image'", advice="--image-pull-policy")

    def test_a_line_of_shell_in_an_image_without_one_is_refused_before_it_starts(self):
        job = self.fails("echo hi", image=NO_SHELL, cause="has no shell (/bin/sh)",
                         advice="an image with a shell")
        self.assertIsNone(job["tasks"][0].get("exit"))

    def test_an_image_without_a_shell_runs_its_program(self):
        ran = self.muster.run("submit", "single", "hello", "-i", NO_SHELL, "--follow")

        self.assertIn("hello from an image without a shell", ran.stdout)

    def test_a_program_that_the_image_lacks_is_named_and_so_is_the_image(self):
        ran = self.muster.run("submit", "single", "job", "-i", BASE, "--follow", "--",
                              "no-such-program", code=127)

        self.assertIn(f"main exited with code 127: the command was not found in image '{BASE}' "
                      "('no-such-program' was not found)", ran.stderr)
        self.assertIn("an image that has the program", ran.stderr)

    def test_a_read_only_root_is_reported_with_the_flag_that_changes_it(self):
        self.fails("touch /opt/mine && echo written", cause="main exited with code 1",
                   advice="--writable-root")

        _, ran = self.run_line("touch /opt/mine && echo written", "--writable-root", code=0)
        self.assertIn("written", ran.stdout)

    def test_a_container_that_runs_out_of_memory_is_reported_with_its_limit(self):
        job = self.fails("exec tail /dev/zero", "--memory", "64M",
                         cause="main was killed: out of memory (its limit is 64Mi", advice="--memory")
        end = job["tasks"][0]["exit"]
        self.assertTrue(end["out_of_memory"])
        self.assertEqual((end["limit"]["limit"], end["limit"]["bound"]), ("memory", 64 << 20))

    def test_a_container_is_held_to_the_limits_of_tasks(self):
        self.muster.configure("tasks: {processes: 60, open_files: 50, file_size: 1Mi}\n")

        _, ran = self.run_line("ulimit -n; head -c 5000000 /dev/zero > /tmp/big; wc -c < /tmp/big; cat "
                               "/sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; for i in $(seq 100); "
                               "do sleep 30 & done; echo was not stopped")

        self.assertRegex(ran.stdout, rf"\b50\n(.*\n)*.*\b{1 << 20}\n")
        self.assertRegex(ran.stdout + ran.stderr, r"(?i)can't fork|cannot fork|resource temporarily unavailable|\b60\b")

    def test_a_container_killed_from_outside_is_reported(self):
        _, follow = self.at_the_gate()

        self.engine.podman("kill", self.container_of("job"))

        self.assertNotEqual(follow.finish(), 0)
        failure = self.muster.job("job")["failure"]
        self.assertRegex(failure["cause"], r"\Amain was (killed by signal 9 \(SIGKILL\)|lost: )")
        self.assertIn("begun", follow.text)

    def test_a_job_continues_after_its_server_was_killed_and_its_log_is_complete(self):
        gate, follow = self.at_the_gate()
        self.muster.kill_server()
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(self.muster.job("job")["attempt"], 1)
        self.assertEqual(self.muster.logs("job").splitlines(), ["[main] begun", "[main] over"])

    def test_a_job_goes_on_while_its_engine_is_restarted(self):
        gate, follow = self.at_the_gate()
        self.engine.restart()
        gate.open()

        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(self.muster.logs("job").splitlines(), ["[main] begun", "[main] over"])

    def test_a_foreign_container_with_the_name_of_one_of_musters_is_left_alone(self):
        said = self.muster.run("gradient", "experiments", "create", "singlenode", "--name", "job",
                               "--container", BASE, "--machineType", "C3", "--command", "true").stdout
        id = said.split()[-1]
        strangers = self.engine.podman("create", "--name", f"muster-{id}-1-main", NO_SHELL).strip()

        self.muster.run("resume", "job")

        self.assertEqual(self.muster.ended("job")["phase"], "Succeeded")
        state = self.engine.podman("inspect", "--format", "{{.State.Status}}", strangers).strip()
        self.assertEqual(state, "created")
        self.engine.podman("rm", strangers)

    def test_a_job_stopped_while_its_image_is_fetched_leaves_nothing(self):
        self.muster.run("submit", "single", "job", "-i", BASE, "--", "sleep", "infinity")
        self.muster.run("stop", "--now", "job")

        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")


class PrivateRegistry(ContainerTest):

    @classmethod
    def setUpClass(cls):
        MusterTest.setUpClass()
        name = tempfile.TemporaryDirectory(prefix="mt-")
        cls.addClassCleanup(name.cleanup)
        folder = Path(name.name)
        lan = cls.enterClassContext(Lan())
        cls.engine = cls.enterClassContext(PodmanService(folder / "e", Machine(lan, folder / "m")))
        registry = cls.enterClassContext(Registry(lan, folder, "ann", PASSWORD))
        cls.engine.allow_registries(registry.address)
        cls.engine.restart()
        cls.image = registry.push(cls.engine, "muster-test-noshell")

    def submit(self, *flags, image=None, code):
        return self.muster.run("submit", "single", "job", "-i", image or self.image, *flags,
                               "--follow", code=code)

    def test_a_refusal_of_a_registry_explains_the_login(self):
        ran = self.submit(code=1)

        self.assertIn("--registry-username USER --registry-secret NAME", ran.stderr)
        self.assertIn("without a login", ran.stderr)

    def test_a_password_comes_from_a_secret_and_is_shown_nowhere(self):
        self.muster.run("secret", "set", "registry", input=PASSWORD)
        flags = ["--registry-username", "ann", "--registry-secret", "registry"]

        ran = self.submit(*flags, code=0)

        self.assertIn("hello from an image without a shell", ran.stdout)
        shown = ran.stdout + ran.stderr
        for words in (["get", "job", "-o", "json"], ["events", "job"], ["list", "-o", "json"]):
            shown += self.muster.run(*words).stdout
        self.assertNotIn(PASSWORD, shown)
        self.engine.podman("rmi", self.image)

    def test_an_image_that_the_registry_does_not_have_is_named(self):
        self.muster.run("secret", "set", "registry", input=PASSWORD)

        ran = self.submit("--registry-username", "ann", "--registry-secret", "registry",
                          image=self.image.replace("noshell", "nothing"), code=1)

        self.assertIn("muster-test-nothing", ran.stderr)
        self.assertIn("check its name and tag", ran.stderr)


class NoEngine(MusterTest):

    def test_a_server_starts_and_names_the_socket_that_does_not_answer(self):
        socket = self.muster.work / "none.sock"

        self.muster.start_server("--engine", "container", environment={"DOCKER_HOST": f"unix://{socket}"})

        node = json.loads(self.muster.run("node", "list", "--output", "json").stdout)["nodes"][0]
        self.assertEqual(node["state"], "gone")
        self.assertIn(str(socket), node["labels"]["fault"])


if __name__ == "__main__":
    main()
