"""Jobs of a Muster server that runs in a real Kubernetes cluster. Their pods are in a namespace of their own, and
continue during upgrades, evictions and the removal of the server."""

import os
import signal

from kubernetes_server_harness import IMAGE, ServerTest
from muster_harness import main


class TheJobs(ServerTest):

    def test_of_a_user_outside_run_as_pods(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")

        self.submit(eve, "hello", "sh", "-c", "echo hello from $(hostname); id -u")

        self.assertEqual(eve.run("logs", "-f", "hello"), "[main] hello from hello-main\n[main] 1000\n")
        self.assertEqual(self.job(eve, "hello")["phase"], "Succeeded")
        self.until(lambda: not self.pods_of_jobs(server), "the pod is deleted")
        left = "secrets,services,networkpolicies"
        self.until(lambda: not server.cluster.kubectl("--namespace", server.jobs_space, "get", left, "-o", "name"),
                   "nothing is left of the job")
        self.assertNotIn("forbidden", server.log())

    def test_reach_each_other(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        command = ('case $RANK in 0) nc -l -p $MASTER_PORT;; '
                   '1) until echo "rank 1 of $WORLD_SIZE" | nc $MASTER_ADDR $MASTER_PORT; do sleep 0.1; done;; esac')

        eve.run("submit", "torch", "ring", "-n", "1", "--image", IMAGE, "--", "sh", "-c", command)

        printed = eve.run("logs", "-f", "ring")
        self.assertIn("[master] rank 1 of 2", printed)
        self.assertEqual(self.job(eve, "ring")["phase"], "Succeeded", printed)

    def test_outlive_an_upgrade(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        pod = self.waiting_job(server, eve)

        server.upgrade({"config": {"keep_jobs_for": "30d"}})
        eve.connect()

        self.assert_runs_on(server, eve, pod)

    def test_outlive_a_killed_server(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        pod = self.waiting_job(server, eve)

        os.kill(server.process(), signal.SIGKILL)
        self.until(lambda: server.pod()["status"]["containerStatuses"][0]["restartCount"] == 1, "it was restarted")
        server.await_ready()
        eve.connect()

        self.assert_runs_on(server, eve, pod)

    def test_outlive_a_removed_release(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        pod = self.waiting_job(server, eve)

        server.helm("uninstall", "muster", "--wait")
        server.install()
        eve.connect()

        self.assert_runs_on(server, eve, pod)

    def test_cannot_reach_the_servers_objects(self):
        """A pod of a job has no token of the cluster."""
        server = self.install()
        eve = server.user("eve", "--role", "admin")

        self.submit(eve, "curious", "sh", "-c", "ls /var/run/secrets/kubernetes.io 2>&1; env | grep -c KUBERNETES_ || true")

        printed = eve.run("logs", "-f", "curious")
        self.assertIn("No such file", printed)

    def test_are_explained_by_doctor(self):
        server = self.install()

        printed = server.muster("doctor", "--engine", "kubernetes", "--config", "/etc/muster/muster.yaml", check=False)

        self.assertIn("kubernetes (chosen): can run jobs", printed)
        self.assertNotIn("fails", printed)


if __name__ == "__main__":
    main()
