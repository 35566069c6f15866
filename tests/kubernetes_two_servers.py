"""Two Muster servers in a real Kubernetes cluster, with one PostgreSQL database. The Service selects the leader, also
after the leader dies, is frozen, is evicted or is replaced by an upgrade."""

import os
import secrets
import signal

from kubernetes_server_harness import VALUES, ServerTest
from muster_harness import main
from postgres_harness import Postgres


class TwoServers(ServerTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # In the network of the cluster.
        cls.postgres = Postgres(address=cls.cluster.address)
        cls.addClassCleanup(cls.postgres.close)
        cls.cluster.certificates.make_server("two-servers", ["localhost"])

    def install_both(self):
        server = self.place(file=VALUES / "postgresql.yaml", shared=True)
        path = self.cluster.certificates.path
        server.kubectl("create", "secret", "generic", "muster-store", f"--from-literal=url={self.postgres.new_url()}")
        server.kubectl("create", "secret", "generic", "muster-secret-key",
                       f"--from-literal=secret-key={secrets.token_hex(32)}")
        server.kubectl("create", "secret", "tls", "muster-tls", f"--cert={path('two-servers.crt')}",
                       f"--key={path('two-servers.key')}")
        server.install()
        return server

    def leader(self, server):
        """The pod that the Service selects."""
        return self.until(lambda: self.selected(server), "one server leads and is ready")

    def selected(self, server):
        addresses = [address for each in self.slices(server) for endpoint in each.get("endpoints") or []
                     if endpoint["conditions"]["ready"] for address in endpoint["addresses"]]
        pods = [pod for pod in server.pods() if pod["status"].get("podIP") in addresses]
        return pods[0] if len(addresses) == len(pods) == 1 else None

    def slices(self, server):
        return self.cluster.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{server.space}/endpointslices?labelSelector="
                                    "kubernetes.io%2Fservice-name%3Dmuster")["items"]

    def name(self, pod):
        return pod["metadata"]["name"]

    def process(self, pod):
        return pod["status"]["containerStatuses"][0]["containerID"]

    def assert_another_leads(self, server, before, user):
        """Checks that another process leads: in the other pod, or in the same pod if the kubelet has restarted it."""
        self.until(lambda: self.selected(server) and self.process(self.selected(server)) != self.process(before),
                   "another server leads")
        user.connect()
        self.assertIn(user.name, user.run("whoami"))

    def test_both_are_ready_and_the_service_leads_to_one(self):
        server = self.install_both()

        self.assertEqual([server.is_ready(pod) for pod in server.pods()], [True, True])
        eve = server.user("eve", "--role", "admin")
        self.assertIn("eve", eve.run("whoami"))
        labels = [pod["metadata"]["labels"].get("muster.dev/leads") for pod in server.pods()]
        self.assertEqual(sorted(labels, key=str), [None, "true"])
        self.assertEqual(self.name(self.leader(server)),
                         [self.name(pod) for pod in server.pods() if "muster.dev/leads" in pod["metadata"]["labels"]][0])

    def test_another_leads_when_the_first_is_killed(self):
        server = self.install_both()
        eve = server.user("eve", "--role", "admin")
        before = self.leader(server)

        os.kill(server.process(before), signal.SIGKILL)

        self.assert_another_leads(server, before, eve)
        self.until(lambda: len([pod for pod in server.pods() if server.is_ready(pod)]) == 2, "both serve again")
        self.leader(server)

    def test_a_job_outlives_the_server_that_started_it(self):
        server = self.install_both()
        eve = server.user("eve", "--role", "admin")
        job = self.waiting_job(server, eve)
        before = self.leader(server)

        server.kubectl("delete", f"pod/{self.name(before)}", "--grace-period=0", "--force")

        self.assert_another_leads(server, before, eve)
        self.assert_runs_on(server, eve, job)

    def test_the_other_leads_when_the_first_is_evicted(self):
        server = self.install_both()
        eve = server.user("eve", "--role", "admin")
        before = self.leader(server)

        self.cluster.api.post(f"/api/v1/namespaces/{server.space}/pods/{self.name(before)}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": self.name(before)}})

        self.assert_another_leads(server, before, eve)

    def test_another_leads_when_the_first_hangs(self):
        """The hanging server holds the lock of the jobs' folder until the kubelet kills it."""
        server = self.install_both()
        eve = server.user("eve", "--role", "admin")
        server.make_probes_quick()
        before = self.leader(server)

        os.kill(server.process(before), signal.SIGSTOP)

        self.assert_another_leads(server, before, eve)

    def test_an_upgrade_replaces_one_after_the_other(self):
        server = self.install_both()
        eve = server.user("eve", "--role", "admin")
        before = {pod["metadata"]["uid"] for pod in server.pods()}

        server.upgrade({"config": {"keep_jobs_for": "30d"}})
        server.kubectl("rollout", "status", "deployment/muster", "--timeout=90s")

        self.assertFalse(before & {pod["metadata"]["uid"] for pod in server.pods()})
        self.leader(server)
        eve.connect()
        self.assertIn("eve", eve.run("whoami"))


if __name__ == "__main__":
    main()
