"""A server that is to run containers where no engine answers: what it says, and that it does not wait
for ever. No engine is needed here; what one does is tested by e2e_containers.py."""

import shutil
import socket

from muster_harness import MusterTest, main

SOCKETS = ["/podman/podman.sock", "/docker.sock", "/run/podman/podman.sock", "/run/docker.sock"]


class WithoutAnEngine(MusterTest):

    def new_muster(self, **options):
        if not shutil.which("bwrap"):
            self.fail("bubblewrap is not installed")
        # Whatever engine this machine has, it is not seen.
        return super().new_muster(prefix=["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run"], **options)

    def chosen(self):
        return {"MUSTER_ENGINE": "container", "DOCKER_HOST": ""}

    def assert_helps(self, text):
        self.assertIn("no Docker or Podman was found on this machine", text)
        for path in SOCKETS:
            self.assertIn(path, text)
        self.assertIn("systemctl --user start podman.socket", text)
        self.assertIn("DOCKER_HOST", text)

    def test_a_server_says_which_sockets_it_tried_and_how_an_engine_is_started(self):
        ran = self.muster.run("server", "--engine", "container", code=1, environment={"DOCKER_HOST": ""})

        self.assert_helps(ran.stderr)

    def test_a_command_that_starts_the_server_says_so_too(self):
        ran = self.muster.run("submit", "single", "hello", "-i", "train", "--", "true", code=5,
                              environment=self.chosen())

        self.assert_helps(ran.stderr)


class HostsThatDoNotAnswer(MusterTest):

    def serve(self, *flags, code=1):
        return self.muster.run("server", "--engine", "container", *flags, code=code)

    def test_an_engine_that_hangs_does_not_hold_the_server_up_for_ever(self):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(self.muster.work / "silent.sock"))
            silent.listen()

            ran = self.serve("--host", f"a={self.muster.work}/silent.sock")

        self.assertIn("none of the hosts for containers answers", ran.stderr)
        self.assertIn("a: said nothing for too long", ran.stderr)

    def test_each_host_says_why(self):
        ran = self.serve("--host", "a=ssh://no-such-host.invalid/run/x.sock",
                         "--host", "b=ssh://-no-host", code=2)
        self.assertIn("container_hosts.b: 'ssh://-no-host' names no host", ran.stderr)

        ran = self.serve("--host", f"a={self.muster.work}/none.sock")
        self.assertIn("host 'a' cannot be used", ran.stderr)
        self.assertIn(f"{self.muster.work}/none.sock", ran.stderr)

    def test_hosts_are_for_containers_alone(self):
        ran = self.muster.run("server", "--host", "a=ssh://a", code=2)

        self.assertIn("container_hosts: is for containers", ran.stderr)


if __name__ == "__main__":
    main()
