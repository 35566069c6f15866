"""A Muster server in a real Kubernetes cluster, installed by the chart of packaging/kubernetes: its users, its rights,
its volume, and what an upgrade, an eviction and a removal leave alone."""

import os
import signal
import subprocess
from pathlib import Path

from kubernetes_server_harness import ACCOUNT, PACKAGING, ServerTest
from muster_harness import BOUND, all_below, main

RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
              "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


def pod_of(name, command, labels=None, image="localhost/muster-test-busybox:test", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": image, "command": command, "securityContext": RESTRICTED}], **spec}}


class TheServer(ServerTest):

    def pod_like_a_job(self, server, name="worker"):
        """Starts a pod with the labels of a job's pod, in the namespace of jobs."""
        path = f"/api/v1/namespaces/{server.jobs_space}/pods"
        self.cluster.api.post(path, pod_of(name, ["sleep", "1000"], {"app.kubernetes.io/managed-by": "muster"}))
        return self.until(lambda: self.running(f"{path}/{name}"), "the pod runs")

    def running(self, path):
        pod = self.cluster.api.get(path)
        return pod if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] else None

    def assert_untouched(self, pod):
        now = self.cluster.api.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")
        self.assertEqual(now["metadata"]["uid"], pod["metadata"]["uid"])
        self.assertEqual(now["status"]["containerStatuses"], pod["status"]["containerStatuses"])

    def test_serves_users_outside_of_the_cluster(self):
        server = self.install()

        eve = server.user("eve", "--role", "admin")

        self.assertIn("eve", eve.run("whoami"))
        eve.run("project", "create", "team-a")
        ada = server.user("ada", "--project", "team-a=member")
        self.assertIn("team-a", ada.run("project", "list"))
        ada.run("user", "create", "mallory", code=4)
        log = server.log()
        self.assertNotRegex(log, r"muster_[a-z0-9]{8}", "a token in the log")
        self.assertNotIn("/healthz", log, "probes fill the log")

    def test_serves_pods_of_other_namespaces_by_the_name_of_its_service(self):
        server = self.install()
        invitation = server.invitation("ada")
        space = f"{server.space}-client"
        self.cluster.make_namespace(space)
        self.addCleanup(self.cluster.kubectl, "delete", "namespace", space, "--wait=false")
        secret = {"metadata": {"name": "invitation"}, "stringData": {"invitation": invitation}}
        self.cluster.api.post(f"/api/v1/namespaces/{space}/secrets", secret)
        pod = pod_of("client", ["muster", "login", f"https://muster.{server.space}.svc:7443",
                                "--fingerprint", server.fingerprint(), "--token-file", "/invitation/invitation"],
                     image="localhost/muster-server:test",
                     volumes=[{"name": "invitation", "secret": {"secretName": "invitation"}},
                              {"name": "scratch", "emptyDir": {}}])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "invitation", "mountPath": "/invitation"},
                                                        {"name": "scratch", "mountPath": "/tmp"}]

        self.cluster.api.post(f"/api/v1/namespaces/{space}/pods", pod)

        path = f"/api/v1/namespaces/{space}/pods/client"
        ended = self.until(lambda: self.ended(path), "the client has ended")
        self.assertEqual(ended, "Succeeded", self.cluster.kubectl("--namespace", space, "logs", "client"))

    def ended(self, path):
        phase = self.cluster.api.get(path)["status"]["phase"]
        return phase if phase in ("Succeeded", "Failed") else None

    def test_runs_without_any_right_on_its_node(self):
        server = self.install()

        lines = Path(f"/proc/{server.process()}/status").read_text(encoding="utf-8").splitlines()
        status = dict(line.split(":\t", 1) for line in lines)

        self.assertEqual(status["Uid"].split(), [str(ACCOUNT)] * 4)
        self.assertEqual({int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")}, {0})
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))

    def test_an_upgrade_leaves_running_jobs_alone(self):
        server = self.install()
        job = self.pod_like_a_job(server)
        before = server.pod()["metadata"]["uid"]

        server.upgrade({"config": {"keep_jobs_for": "30d"}})

        self.assertNotEqual(server.pod()["metadata"]["uid"], before)
        self.assertIn("keep_jobs_for: 30d", server.kubectl("get", "configmap", "muster", "-o", "yaml"))
        self.assert_untouched(job)

    def test_never_do_two_servers_use_one_volume(self):
        """Even if the old server takes long to end, the new server starts only after that."""
        server = self.install()
        before = server.pod()["metadata"]["name"]
        process = server.process()
        os.kill(process, signal.SIGSTOP)

        server.kubectl("rollout", "restart", "deployment/muster")

        self.until(lambda: "deletionTimestamp" in self.cluster.pod(before, server.space)["metadata"], "it shall end")
        self.assertEqual(server.pods(), [])
        os.kill(process, signal.SIGCONT)
        server.await_ready()

    def test_a_new_pod_has_the_state_of_the_old_one(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        fingerprint = server.fingerprint()
        modes = self.modes(server)
        self.assertEqual([each for each in modes.values() if each & 0o077], [], modes)

        server.kubectl("delete", f"pod/{server.pod()['metadata']['name']}", "--wait=true")
        server.await_ready()
        eve.connect()

        self.assertIn("eve", eve.run("whoami"))
        self.assertEqual(server.fingerprint(), fingerprint)
        self.assertEqual({name: mode for name, mode in self.modes(server).items() if name in modes}, modes)

    def modes(self, server):
        """The modes of the files in the volume, except for its root, which belongs to the cluster."""
        return {str(path.relative_to(server.volume)): path.lstat().st_mode & 0o7777
                for path in all_below(server.volume) if path.suffix not in (".sock", ".db-shm", ".db-wal")}

    def test_a_server_that_hangs_gets_no_requests_and_is_restarted(self):
        server = self.install()
        server.make_probes_quick()

        os.kill(server.process(), signal.SIGSTOP)

        self.until(lambda: not server.is_ready(), "it is not ready")
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{server.space}/endpointslices"
        self.until(lambda: not any(each["conditions"]["ready"] for found in self.cluster.api.get(slices)["items"]
                                   for each in found.get("endpoints") or []), "the Service selects no pod")
        self.until(lambda: server.pod()["status"]["containerStatuses"][0]["restartCount"] == 1, "it was restarted")
        server.await_ready()

    def test_a_drain_evicts_the_server_and_no_more(self):
        server = self.install()
        pod = server.pod()["metadata"]["name"]
        budget = f"/apis/policy/v1/namespaces/{server.space}/poddisruptionbudgets/muster"
        self.until(lambda: self.cluster.api.get(budget)["status"]["expectedPods"] == 1, "the budget counts the server")

        self.cluster.api.post(f"/api/v1/namespaces/{server.space}/pods/{pod}/eviction",
                              {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})

        self.until(lambda: server.pods() and server.pod()["metadata"]["name"] != pod, "the next pod")
        server.await_ready()

    def test_a_configuration_with_faults_is_explained_in_the_log(self):
        server = self.install()

        server.upgrade({"config": {"limits": {"connections": "many"}, "listn": "x"}}, wait=False)

        self.until(lambda: "listn: unknown key" in server.log(), "the log has the fault")
        self.assertIn("limits.connections: 'many'", server.log())
        server.helm("rollback", "muster", "--wait")
        server.await_ready()

    def test_a_removed_release_leaves_the_state_and_the_jobs(self):
        server = self.install()
        eve = server.user("eve", "--role", "admin")
        job = self.pod_like_a_job(server)

        server.helm("uninstall", "muster", "--wait")

        self.assert_untouched(job)
        left = "deployments,services,configmaps,roles,networkpolicies,poddisruptionbudgets,pods"
        self.until(lambda: server.kubectl("get", left, "-o", "name").split() == ["configmap/kube-root-ca.crt"],
                   "the release is gone")
        self.assertNotIn(server.space, self.cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name"))
        server.install()
        eve.connect()
        self.assertIn("eve", eve.run("whoami"))
        self.assert_untouched(job)

    def test_a_certificate_of_a_secret_is_used(self):
        self.cluster.certificates.make_server("muster-tls", ["localhost"])
        chart = {"tls": {"secretName": "muster-tls"}}
        server = self.place()
        server.kubectl("create", "secret", "tls", "muster-tls",
                       f"--cert={self.cluster.certificates.path('muster-tls.crt')}",
                       f"--key={self.cluster.certificates.path('muster-tls.key')}")

        server.install(chart)

        given = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in",
                                self.cluster.certificates.path("muster-tls.crt")],
                               capture_output=True, text=True, check=True).stdout.strip().rpartition("=")[2]
        self.assertIn(given, server.fingerprint())
        server.user("eve", "--role", "admin")


class TheNetworkPolicy(ServerTest):

    OPTIONS = {"kube_proxy": True, "policies": True}

    def start_pod(self, space, name, labels=None):
        path = f"/api/v1/namespaces/{space}/pods"
        self.cluster.api.post(path, pod_of(name, ["sleep", "1000"], labels))
        self.until(lambda: self.cluster.api.get(f"{path}/{name}")["status"]["phase"] == "Running", f"{name} runs")
        return space, name

    def reaches(self, pod, server, port):
        space, name = pod
        address = server.pod()["status"]["podIP"]
        ran = subprocess.run([str(self.cluster.programs / "kubectl"), "--namespace", space, "exec", name, "--", "nc", "-w",
                              "5", address, str(port)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             env=os.environ | self.cluster.environment, timeout=BOUND, check=False)
        return ran.returncode == 0

    def test_admits_only_pods_of_jobs_to_their_port(self):
        server = self.install()
        managed = {"app.kubernetes.io/managed-by": "muster"}
        job = self.start_pod(server.jobs_space, "job", managed)
        others = [self.start_pod(server.jobs_space, "other"), self.start_pod(server.space, "liar", managed)]

        self.until(lambda: self.reaches(job, server, 7445), "the pod of a job reaches the port")
        self.assertEqual([self.reaches(pod, server, 7445) for pod in others], [False, False])
        self.assertEqual([self.reaches(pod, server, 7443) for pod in (job, *others)], [True, True, True])

    def test_limits_who_can_reach_the_api(self):
        client = {"podSelector": {"matchLabels": {"role": "client"}}}
        server = self.install({"networkPolicy": {"clients": [client]}})
        one = self.start_pod(server.space, "one", {"role": "client"})
        other = self.start_pod(server.space, "other")

        self.until(lambda: self.reaches(one, server, 7443), "a client reaches the API")
        self.assertFalse(self.reaches(other, server, 7443))
        self.assertTrue(server.is_ready(), "the kubelet's probes are admitted")


class ThePlainManifests(ServerTest):

    def test_are_accepted_by_the_api_server(self):
        for folder in sorted((PACKAGING / "manifests").iterdir()):
            namespaces, *others = sorted(folder.glob("*.yaml"))
            self.cluster.kubectl("apply", "-f", namespaces)
            for file in others:
                with self.subTest(file):
                    printed = self.cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", file)
                    self.assertNotIn("Warning", printed)

    def test_install_a_server_and_remove_it_without_its_state(self):
        folder = PACKAGING / "manifests" / "sqlite"
        volume = self.cluster.folder / "volumes" / "plain"
        volume.mkdir(parents=True)
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "plain"}, "spec": {
            "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": str(volume)},
            "claimRef": {"namespace": "muster", "name": "muster"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}]}]}}}})

        self.cluster.kubectl("apply", "-f", folder)

        self.cluster.kubectl("--namespace", "muster", "rollout", "status", "deployment/muster", f"--timeout={BOUND}s")
        self.assertRegex(self.cluster.kubectl("--namespace", "muster", "exec", "service/muster", "--", "muster", "user",
                                              "create", "eve", "--role", "admin"), "invitation +muster_")
        self.cluster.kubectl("delete", "-f", folder / "3-server.yaml")
        self.assertEqual(self.cluster.kubectl("--namespace", "muster", "get", "persistentvolumeclaims", "-o",
                                              "jsonpath={.items[*].status.phase}"), "Bound")


if __name__ == "__main__":
    main()
