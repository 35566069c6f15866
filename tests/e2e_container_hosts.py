"""A cluster of two hosts with Podman; the server reaches one over TLS and the other by ssh. Tasks use the network of
their host, with ports that are free there."""

import os
import re
import shlex
import tempfile
from pathlib import Path

from container_hosts import PodmanHosts
from containers_harness import ContainerMuster, MPICH, OPEN_MPI, assert_empty, hangs_in_finalize
from muster_harness import MPIRUN, MusterTest, main

TWO_RANKS = {OPEN_MPI: MPIRUN, MPICH: ["mpirun", "-np", "2"]}
WAYS = [(image, by) for image in (OPEN_MPI, MPICH) for by in ("ssh", "agent")]
# The time limit to detect a silent host and to give it up (docs/containers.md).
GIVEN_UP = 240


class TwoHosts(MusterTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="mt-")
        cls.addClassCleanup(folder.cleanup)
        cls.hosts = cls.enterClassContext(PodmanHosts(2, Path(folder.name)))
        cls.near, cls.far = cls.hosts

    def new_muster(self):
        muster = ContainerMuster([host.engine for host in self.hosts], {})
        self.addCleanup(muster.close)
        # The ssh configuration of the server's user: its key, and the trusted hosts.
        options = " ".join(map(shlex.quote, self.hosts.ssh_options))
        ssh = muster.script("ssh", f'#!/bin/sh\nexec /usr/bin/ssh {options} "$@"\n')
        muster.environment["PATH"] = f"{ssh.parent}:{muster.environment['PATH']}"
        muster.configure(f"container_hosts:\n  near: {self.near.tls_url}\n  far: {self.far.ssh_url}\n"
                         f"docker_cert_path: {self.hosts.certificates}\n")
        return muster

    def flags(self, image, by="auto", cpus=os.cpu_count()):
        """Flags of a job whose workers need a host each: they claim all processors of a host."""
        return ["--workers", 2, "-i", image, "--launch", by, "--cpus", cpus,
                "--workspace", self.muster.workspace(image)]

    def nodes_of(self, name):
        return {task["name"]: task["node"] for task in self.muster.job(name)["tasks"]}

    def at_the_gate(self, name, gate, **flags):
        """Starts a job whose ranks have connected to each other and wait at the gate."""
        follow = self.muster.stream(
            "submit", "mpi", name, *self.flags(OPEN_MPI, **flags), "-v", f"{gate}:/gate", "--follow",
            "--", *TWO_RANKS[OPEN_MPI], "./where", "/gate")
        for _ in range(2):
            follow.until(f" of 2 on {name}-worker-")
        return follow

    def new_gate(self, name):
        """Returns a gate and its path. The path is the same on both hosts, which share the files of this machine."""
        return self.muster.gate(name), self.muster.work / name

    def test_both_hosts_are_nodes(self):
        listed = self.muster.run("node", "list").stdout

        self.assertRegex(listed, r"(?m)^near ")
        self.assertRegex(listed, r"(?m)^far ")

    def test_a_gang_spans_both_hosts_with_each_mpi_and_each_launch_method(self):
        for image, by in WAYS:
            with self.subTest(image=image, by=by):
                ran = self.muster.run("submit", "mpi", "dist", *self.flags(image, by), "--follow",
                                      "--", *TWO_RANKS[image], "./where", code=None)

                if image != MPICH or not hangs_in_finalize(self.muster, "dist"):
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(sorted(re.findall(r"rank \d of \d on [\w-]+", ran.stdout)), [
                    f"rank {rank} of 2 on dist-worker-{rank}" for rank in (0, 1)])
                nodes = self.nodes_of("dist")
                self.assertEqual({nodes["worker-0"], nodes["worker-1"]}, {"near", "far"})
                self.assertEqual(self.muster.job("dist")["launch"]["by"], by)
                self.muster.run("delete", "dist")

    def test_two_gangs_run_side_by_side_on_ports_of_their_own(self):
        gates = {name: self.new_gate(f"gate-{name}") for name in ("one", "two")}
        follows = {name: self.at_the_gate(name, path, cpus=1) for name, (_, path) in gates.items()}

        for name, (gate, _) in gates.items():
            gate.open()
            self.assertEqual(follows[name].finish(), 0, follows[name].errors)
            self.assertEqual(follows[name].text.count("goes on"), 2)

    def test_a_host_that_is_cut_off_for_a_moment_loses_nothing(self):
        gate, path = self.new_gate("gate")
        for host in self.hosts:
            with self.subTest(host=host.address):
                follow = self.at_the_gate("dist", path)

                host.cut()
                host.join()

                gate.open()
                self.assertEqual(follow.finish(), 0, follow.errors)
                self.assertEqual(follow.text.count("goes on"), 2)
                self.muster.run("delete", "dist")

    def test_the_connections_of_a_host_may_break_while_a_job_runs(self):
        gate, path = self.new_gate("gate")
        follow = self.at_the_gate("dist", path)

        self.near.end_connections()

        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)
        self.assertEqual(follow.text.count("goes on"), 2)

    def test_a_host_that_stays_unreachable_fails_the_job_and_is_cleaned_up_when_it_returns(self):
        _, path = self.new_gate("gate")
        follow = self.at_the_gate("dist", path)
        nodes = self.nodes_of("dist")

        self.far.cut()
        try:
            code = follow.finish(bound=GIVEN_UP)

            self.assertNotEqual(code, 0)
            job = self.muster.job("dist")
            self.assertEqual(job["phase"], "Failed")
            lost = [name for name, node in nodes.items() if node == "far"]
            self.assertTrue(any(name in follow.errors for name in lost), follow.errors)
            self.assertIn("far", follow.errors)
            # The remaining host has room for another job.
            self.muster.run("submit", "single", "here", "-i", OPEN_MPI, "--follow", "--", "true")
            self.assertEqual(self.nodes_of("here"), {"main": "near"})
        finally:
            self.far.join()
        self.muster.run("delete", "dist")
        assert_empty(self.far.engine)


if __name__ == "__main__":
    main()
