"""A server with the container engine on a machine where no Docker or Podman answers: it prints a helpful error, or starts
without resources if its hosts are named. e2e_containers.py tests the server with a real engine."""

import json
import shutil
import socket

from muster_harness import MusterTest, main

SOCKETS = ["/podman/podman.sock", "/docker.sock", "/run/podman/podman.sock", "/run/docker.sock"]


class WithoutAnEngine(MusterTest):

    def new_muster(self, **options):
        if not shutil.which("bwrap"):
            self.fail("bubblewrap is not installed")
        # Hides engines that run on this machine.
        return super().new_muster(prefix=["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run"], **options)

    def chosen(self):
        return {"MUSTER_ENGINE": "container", "DOCKER_HOST": ""}

    def assert_helps(self, text):
        self.assertIn("no Docker or Podman was found on this machine", text)
        for path in SOCKETS:
            self.assertIn(path, text)
        self.assertIn("systemctl --user start podman.socket", text)
        self.assertIn("DOCKER_HOST", text)

    def test_a_server_lists_the_tried_sockets_and_the_remedy(self):
        ran = self.muster.run("server", "--engine", "container", code=1, environment={"DOCKER_HOST": ""})

        self.assert_helps(ran.stderr)

    def test_a_command_that_starts_the_server_reports_the_same(self):
        ran = self.muster.run("submit", "single", "hello", "-i", "train", "--", "true", code=5,
                              environment=self.chosen())

        self.assert_helps(ran.stderr)


class HostsThatDoNotAnswer(MusterTest):

    def serve(self, *flags, code=1):
        return self.muster.run("server", "--engine", "container", *flags, code=code)

    def uses_host(self, path):
        self.muster.configure(f"engine: container\ncontainer_hosts:\n  a: {path}\n")

    def state_of_the_node(self):
        return [(node["name"], node["state"]) for node in
                json.loads(self.muster.run("node", "list", "--output", "json").stdout)["nodes"]]

    def test_an_engine_that_hangs_does_not_block_the_server(self):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(self.muster.work / "silent.sock"))
            silent.listen()
            self.uses_host(self.muster.work / "silent.sock")

            self.assertEqual(self.state_of_the_node(), [("a", "gone")])

    def test_a_job_waits_for_a_host_and_its_reason_has_the_fault(self):
        self.uses_host(self.muster.work / "none.sock")

        self.muster.run("submit", "single", "waits", "-i", "train", "--", "true")

        self.assertEqual(self.state_of_the_node(), [("a", "gone")])
        reason = json.loads(self.muster.run("explain", "waits", "-o", "json").stdout)["reason"]
        self.assertIn("the only node that it may use does not answer", reason)
        self.assertIn(f"{self.muster.work}/none.sock", reason)

    def test_an_invalid_address_of_a_host_is_refused(self):
        ran = self.serve("--host", "a=ssh://no-such-host.invalid/run/x.sock",
                         "--host", "b=ssh://-no-host", code=2)
        self.assertIn("container_hosts.b: 'ssh://-no-host' contains no host", ran.stderr)

    def test_hosts_are_for_containers_alone(self):
        ran = self.muster.run("server", "--host", "a=ssh://a", code=2)

        self.assertIn("container_hosts: is for containers", ran.stderr)


class ChosenByACommand(MusterTest):
    """`--engine` of the commands that start the server."""

    def test_the_server_that_a_command_starts_has_the_engine_that_it_names(self):
        self.muster.run("run", "--engine", "process", "--", "true")

        ran = self.muster.run("run", "--engine", "container", "--", "true", code=4)

        self.assertIn("uses the engine 'process', not 'container'", ran.stderr)
        self.assertIn("muster server --stop", ran.stderr)
        self.muster.run("run", "--", "true")

    def test_a_flag_overrides_settings_of_another_engine_in_the_file(self):
        self.muster.configure("engine: slurm\nslurm: {callback: head, shared: no}\n")
        self.muster.run("run", "--engine", "process", "--", "true")

    def test_running_jobs_are_not_left_to_another_engine(self):
        self.muster.run("submit", "single", "stays", "--", "sh", "-c", "echo up; exec sleep infinity")
        logs = self.muster.stream("logs", "-f", "stays")
        logs.until("up")
        logs.close()  # or it would start the next server
        self.muster.kill_server()

        ran = self.muster.run("server", "--engine", "container", "--host", "a=/none.sock", code=1)

        self.assertIn("job 'stays' runs on the engine 'process'", ran.stderr)
        self.assertIn("--engine process", ran.stderr)
        # A command without --engine uses the engine of the running jobs, whatever the default is.
        self.muster.run("stop", "stays", "--now")


class Doctor(MusterTest):

    def test_it_checks_each_engine_and_reports_whether_the_chosen_one_runs_jobs(self):
        ran = self.muster.run("doctor", "--output", "json")

        told = json.loads(ran.stdout)
        self.assertEqual(told["chosen"], "process")
        self.assertEqual([each["engine"] for each in told["engines"]], ["process", "container", "slurm", "kubernetes"])
        process = told["engines"][0]
        self.assertTrue(process["can_run"])
        found = {each["subject"]: each["verdict"] for each in process["findings"]}
        self.assertEqual(found["bubblewrap"], "fine")
        self.assertEqual(found["sandboxes"], "fine")

    def test_missing_parts_are_listed_with_a_remedy(self):
        tools = self.muster.work / "tools"
        tools.mkdir()

        ran = self.muster.run("doctor", "--engine", "process", code=1, environment={"PATH": str(tools)})

        self.assertIn("process (chosen): cannot run jobs", ran.stdout)
        self.assertIn("apt install bubblewrap", ran.stdout)
        self.assertNotIn("slurm", ran.stdout)
        self.assertEqual(ran.stderr, "")

        ran = self.muster.run("doctor", "--engine", "slurm", code=1, environment={"PATH": str(tools)})
        self.assertIn("sbatch, squeue, scancel, sinfo, scontrol, srun not found on the PATH", ran.stdout)

    def test_it_starts_no_server(self):
        self.muster.run("doctor", "--engine", "process")
        self.assertIn("no server is running", self.muster.run("version").stdout)


if __name__ == "__main__":
    main()
