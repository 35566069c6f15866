#!/usr/bin/env python3
"""Tests the cluster of the Kubernetes tests (kubernetes_cluster.py): it behaves like a real cluster, fails as
requested, and leaves nothing behind.

The tests of SharedCluster share one cluster and restore its state; those of OwnClusters start clusters of their own.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import kubernetes_supervisor
from kubernetes_api import BOUND, ApiError
from kubernetes_cluster import Cluster
from kubernetes_operators import Webhook
from kubernetes_settings import API_SERVICE, IMAGES
from muster_harness import Stream, await_end, descendants, read_bytes

CLUSTER = [sys.executable, "-B", str(Path(__file__).with_name("kubernetes_cluster.py"))]

# Answers each connection on port 8080 with its name.
SERVER = "while true; do hostname | nc -l -p 8080; done"


def pod(name, command, image="busybox", gpus=0, **spec):
    """A pod that meets the level "restricted" of Pod Security."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                     "automountServiceAccountToken": False,
                     "containers": [{
                         "name": "main", "image": IMAGES[image], "command": ["sh", "-c", command],
                         "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {},
                         "securityContext": {
                             "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                             "runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}}],
                     **spec}}


def indexed_job(name, pods, command):
    """A Job of pods that find each other as NAME-0.NAME, ..., spread over the nodes."""
    template = pod(name, command)
    template["spec"]["subdomain"] = name
    template["spec"]["topologySpreadConstraints"] = [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job-name": name}}}]
    return [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
         "spec": {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0,
                  "template": {"spec": template["spec"]}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
         "spec": {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True}}]


class SharedCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(gpus=2, policies=True)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.namespace = "test-" + self.id().rpartition(".")[2].replace("_", "-")[5:40].strip("-")
        self.cluster.make_namespace(self.namespace)
        self.addCleanup(self.cluster.kubectl, "delete", "namespace", self.namespace, "--wait=false")

    def path(self, kind="pods", name=""):
        return f"/api/v1/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def kubectl(self, *words, **options):
        return self.cluster.kubectl("-n", self.namespace, *words, **options)

    def phase(self, name):
        return self.cluster.pod(name, self.namespace)["status"]["phase"]

    def run_pod(self, *arguments, phase="Running", **options):
        created = self.cluster.api.post(self.path(), pod(*arguments, **options))
        name = created["metadata"]["name"]
        self.cluster.until(lambda: self.phase(name) == phase, f"{name} is {phase}")
        return name

    def run_job(self, name, pods, command):
        """The pods' names, in order, once all of them are ready."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": indexed_job(name, pods, command)}))
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        self.cluster.until(lambda: self.cluster.api.get(path)["status"].get("ready") == pods, f"{name} is ready")
        return sorted(each["metadata"]["name"] for each in self.cluster.api.get(self.path())["items"])

    # --- what it can do

    def test_both_nodes_are_ready(self):
        self.assertEqual(["node-1", "node-2"], [each["metadata"]["name"]
                                                for each in self.cluster.api.get("/api/v1/nodes")["items"]])
        for node in self.cluster.nodes:
            self.assertTrue(self.cluster.is_ready(node))
            self.assertEqual("2", self.cluster.capacity(node)["nvidia.com/gpu"])

    def test_the_pods_of_a_job_find_each_other_by_name_on_both_nodes(self):
        pods = self.run_job("ring", 4, SERVER)
        nodes = [self.cluster.pod(each, self.namespace)["spec"]["nodeName"] for each in pods]
        self.assertEqual({"node-1", "node-2"}, set(nodes))
        for number in range(4):
            asks = ["exec", pods[0], "--", "nc", "-w", "5", f"ring-{number}.ring", "8080"]
            answer = self.cluster.until(lambda asks=asks: self.kubectl(*asks), "the name is known")
            self.assertEqual(f"ring-{number}", answer.strip())

    def test_logs_exec_and_port_forward(self):
        name = self.run_pod("server", f"echo said; {SERVER}")
        self.assertEqual("said\n", self.kubectl("logs", name))
        self.assertEqual("heard", self.kubectl("exec", "-i", name, "--", "cat", stdin="heard"))
        forward = Stream([str(self.cluster.programs / "kubectl"), "-n", self.namespace, "port-forward", name, ":8080"],
                         os.environ | self.cluster.environment)
        self.addCleanup(forward.close)
        port = int(forward.until("Forwarding from 127.0.0.1").split("->")[0].rpartition(":")[2])
        answer = subprocess.run(["busybox", "nc", "127.0.0.1", str(port)], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertEqual("server", answer.strip())

    def test_a_pod_reaches_the_api_server_and_servers_beside_the_cluster(self):
        name = self.run_pod("client", "sleep 1000")
        self.kubectl("exec", name, "--", "nc", "-w", "5", API_SERVICE, "443")
        with socket.create_server(("", 18080)) as server:
            server.settimeout(BOUND)
            client = Stream([str(self.cluster.programs / "kubectl"), "-n", self.namespace, "exec", name, "--",
                             "sh", "-c", f"echo said | nc {self.cluster.address} 18080"], os.environ | self.cluster.environment)
            self.addCleanup(client.close)
            with server.accept()[0] as connection, connection.makefile("rw") as stream:
                self.assertEqual("said\n", stream.readline())
                stream.write("heard\n")
        self.assertEqual("heard", client.line())

    def test_gpu_stand_ins_are_devices_that_no_two_pods_share(self):
        command = "ls /dev | grep nvidia; echo $NVIDIA_VISIBLE_DEVICES"
        chosen = {"nodeName": "node-1"}
        logs = [self.kubectl("logs", self.run_pod(name, command, gpus=1, phase="Succeeded", **chosen)).split()
                for name in ("first", "second")]
        for device, variable in logs:
            self.assertEqual(device.removeprefix("nvidia"), variable.removeprefix("GPU-stand-in-"))
        self.run_pod("holder", "sleep 1000", gpus=2, **chosen)
        self.run_pod("third", command, gpus=1, phase="Failed", **chosen)
        self.cluster.set_gpus("node-2", 5)
        self.run_pod("wide", "sleep 1000", gpus=5)
        self.kubectl("delete", "pod", "wide")
        self.cluster.set_gpus("node-2", 2)

    def test_resources_labels_and_taints_of_a_node(self):
        self.cluster.set_capacity("node-2", {"example.com/fpga": 3})
        self.cluster.label("node-2", rack="b")
        self.cluster.taint("node-2", "mine=yes:NoSchedule")
        node = self.cluster.api.get("/api/v1/nodes/node-2")
        self.assertEqual("b", node["metadata"]["labels"]["rack"])
        self.assertEqual([{"key": "mine", "value": "yes", "effect": "NoSchedule"}], node["spec"]["taints"])
        self.cluster.until(lambda: self.cluster.capacity("node-2")["example.com/fpga"] == "3", "it has 3")
        self.cluster.label("node-2", rack=None)
        self.cluster.taint("node-2")
        self.cluster.set_capacity("node-2", {"example.com/fpga": 0})

    def test_a_drained_node_is_empty_and_a_deleted_one_comes_back(self):
        name = self.run_pod("evicted", "sleep 1000", nodeName="node-2")
        self.cluster.drain("node-2")
        with self.assertRaises(ApiError) as refused:
            self.cluster.pod(name, self.namespace)
        self.assertEqual(404, refused.exception.code)
        self.assertTrue(self.cluster.api.get("/api/v1/nodes/node-2")["spec"]["unschedulable"])
        self.cluster.uncordon("node-2")
        self.run_pod("again", "sleep 1000", nodeSelector={"kubernetes.io/hostname": "node-2"})
        self.cluster.delete_node("node-2")
        self.assertEqual(1, len(self.cluster.api.get("/api/v1/nodes")["items"]))
        self.cluster.restart("kubelet-2")
        self.cluster.until(lambda: self.cluster.is_ready("node-2"), "the node is back")
        self.cluster.until(lambda: self.cluster.capacity("node-2")["nvidia.com/gpu"] == "2", "its GPUs are back")

    def test_a_network_policy_is_enforced(self):
        pods = self.run_job("pair", 3, SERVER)
        self.kubectl("label", "pod", pods[0], "role=friend")
        asks = ["nc", "-w", "2", "pair-1.pair", "8080"]

        def answer(asker=pods[0]):
            return self.kubectl("exec", asker, "--", *asks, check=False)

        def restrict(**spec):
            self.kubectl("apply", "-f", "-", stdin=json.dumps({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "own"},
                "spec": {"podSelector": {}} | spec}))

        self.cluster.until(lambda: answer() == "pair-1\n", "it answers")
        restrict(ingress=[])
        self.cluster.until(lambda: answer() == "", "nothing comes in")
        restrict(ingress=[{"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}],
                           "ports": [{"protocol": "TCP", "port": 8080}]}])
        self.cluster.until(lambda: answer() == "pair-1\n", "a friend comes in")
        self.assertEqual("", answer(pods[2]))
        restrict(policyTypes=["Egress"], egress=[{"to": [{"ipBlock": {"cidr": "10.80.0.0/24"}}]}])
        self.cluster.until(lambda: answer() == "", "nothing but the name server is reached")
        self.kubectl("exec", pods[0], "--", "nslookup", f"pair-1.pair.{self.namespace}.svc.cluster.local")
        self.kubectl("delete", "networkpolicy", "own")
        self.cluster.until(lambda: answer() == "pair-1\n", "it answers again")

    # --- access

    def test_an_account_has_exactly_the_rights_that_it_was_given(self):
        account = self.cluster.make_account(
            "reader", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}], self.namespace)
        self.assertEqual([], account.get(self.path())["items"])
        self.assertEqual("", self.cluster.kubectl("--kubeconfig", account.kubeconfig, "get", "pods", "-o", "name"))
        for call in (lambda: account.post(self.path(), pod("mine", "true")), lambda: account.get("/api/v1/nodes")):
            with self.assertRaises(ApiError) as refused:
                call()
            self.assertEqual(403, refused.exception.code)

    def test_an_account_with_too_many_requests_is_told_when_to_come_back(self):
        account = self.cluster.make_account(
            "eager", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}], self.namespace)

        def code():
            try:
                account.get(self.path())
            except ApiError as error:
                return error.code
            return 200

        self.cluster.refuse("eager", self.namespace)
        self.cluster.until(lambda: code() == 429, "it is refused")
        self.cluster.accept("eager", self.namespace)
        self.cluster.until(lambda: code() == 200, "it is accepted")

    def test_a_webhook_refuses_pods(self):
        with Webhook(self.cluster, "no pods today", self.namespace):
            def message():
                try:
                    self.cluster.api.post(self.path() + "?dryRun=All", pod("mine", "true"))
                except ApiError as error:
                    return error.message
                return ""

            self.cluster.until(lambda: "denied the request: no pods today" in message(), "it is refused")
        self.cluster.until(lambda: message() == "", "it is accepted")

    def test_a_user_is_known_by_a_certificate_that_has_not_expired(self):
        for expired in (False, True):
            config = self.cluster.make_user("ann", ["system:masters"], expired=expired)
            answer = self.cluster.kubectl("--kubeconfig", config, "auth", "whoami", check=not expired)
            self.assertEqual(not expired, "ann" in answer)

    def test_a_pod_that_the_namespace_forbids_is_refused(self):
        forbidden = pod("root", "true")
        del forbidden["spec"]["containers"][0]["securityContext"]
        with self.assertRaises(ApiError) as refused:
            self.cluster.api.post(self.path(), forbidden)
        self.assertIn('violates PodSecurity "restricted', refused.exception.message)

    # --- failures

    def test_the_api_server_and_etcd_are_killed_frozen_and_come_back(self):
        name = self.run_pod("stays", "sleep 1000")
        for program in ("apiserver", "etcd"):
            self.cluster.kill(program)
            self.assertNotIn(program, self.cluster.running())
            with self.assertRaises((ApiError, OSError)):
                self.cluster.api.call("GET", self.path(), bound=2)
            self.cluster.start(program)
            self.assertEqual("Running", self.phase(name))
        self.cluster.freeze("apiserver")
        with self.assertRaises(TimeoutError):
            self.cluster.api.call("GET", self.path(), bound=0.5)
        self.cluster.thaw("apiserver")
        self.cluster.until(lambda: self.phase(name) == "Running", "it answers again")

    def test_etcd_is_slow(self):
        def seconds():
            since = time.monotonic()
            self.cluster.api.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"asked": f"at-{since}"}}})
            return time.monotonic() - since

        self.cluster.slow("etcd", 2)
        self.cluster.until(lambda: seconds() > 1, "a request waits for etcd")
        self.cluster.thaw("etcd")
        self.cluster.until(lambda: seconds() < 1, "requests are quick again")

    def test_a_watch_from_before_the_history_is_gone(self):
        watch = f"{self.path()}?watch=1&timeoutSeconds=1&resourceVersion="
        before = self.cluster.api.get(self.path())["metadata"]["resourceVersion"]
        self.run_pod("one", "true", phase="Succeeded")
        self.cluster.forget_history()
        with self.assertRaises(ApiError) as refused:
            answer = self.cluster.api.get(watch + before)
            # The server may begin a successful answer before it detects this; then the first event is the error.
            raise ApiError("GET", watch, answer["object"]["code"], answer["object"])
        self.assertEqual(410, refused.exception.code)

    def test_a_program_beside_the_cluster_has_another_clock(self):
        shown = subprocess.run(["date", "+%s"], env=os.environ | self.cluster.other_clock(600), capture_output=True,
                               text=True, check=True).stdout
        self.assertAlmostEqual(time.time() + 600, int(shown), delta=60)

    def test_a_node_without_kubelet_is_not_ready_and_its_pods_run(self):
        name = self.run_pod("stays", "while true; do echo beat; sleep 0.2; done", nodeName="node-2")
        self.cluster.kill("kubelet-2")
        self.cluster.until(lambda: not self.cluster.is_ready("node-2"), "the node is NotReady")
        self.cluster.start("kubelet-2")
        self.cluster.until(lambda: self.cluster.is_ready("node-2"), "the node is Ready")
        self.cluster.until(lambda: self.cluster.capacity("node-2")["nvidia.com/gpu"] == "2", "its GPUs are back")
        self.assertEqual(0, self.cluster.pod(name, self.namespace)["status"]["containerStatuses"][0]["restartCount"])
        self.assertEqual("Running", self.phase(name))

    def test_containerd_is_restarted_under_a_pod(self):
        name = self.run_pod("stays", "sleep 1000", nodeName="node-1")
        self.cluster.restart("containerd-1")
        self.cluster.until(lambda: self.kubectl("exec", name, "--", "echo", "here", check=False) == "here\n",
                           "it is reached")

    def test_a_node_that_is_cut_off_keeps_its_pods_and_one_that_dies_loses_them(self):
        name = self.run_pod("stays", SERVER, nodeName="node-2")
        address = self.cluster.pod(name, self.namespace)["status"]["podIP"]
        asks = ["busybox", "nc", "-w", "2", address, "8080"]

        def answer():
            return subprocess.run(asks, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout

        self.assertEqual("stays\n", answer())
        self.cluster.cut_node("node-2")
        self.assertEqual("", answer())
        self.cluster.join_node("node-2")
        self.cluster.until(lambda: answer() == "stays\n", "the node is joined")
        self.cluster.kill_node("node-2")
        self.assertEqual("", answer())
        self.cluster.start_node("node-2")
        self.cluster.until(lambda: self.phase(name) == "Failed", "the kubelet finds the pod dead")
        self.cluster.until(lambda: self.cluster.is_ready("node-2"), "the node is Ready")

    def test_a_pod_that_is_cut_off_answers_nobody_but_exec(self):
        pods = self.run_job("pair", 2, SERVER)
        asks = ["exec", pods[0], "--", "nc", "-w", "2", "pair-1.pair", "8080"]
        self.cluster.until(lambda: self.kubectl(*asks, check=False) == "pair-1\n", "it answers")
        self.cluster.cut(pods[1], self.namespace)
        self.assertEqual("", self.kubectl(*asks, check=False))
        self.assertEqual("pair-1\n", self.kubectl("exec", pods[1], "--", "hostname"))
        self.cluster.join(pods[1], self.namespace)
        self.cluster.until(lambda: self.kubectl(*asks, check=False) == "pair-1\n", "it answers again")


class Traces:
    """The traces on this machine of the cluster that `pid` or a descendant of it has started."""

    def __init__(self, pid):
        self.holder, self.folder = next(
            (each, Path(words[words.index(b"hold") + 1].decode())) for each in descendants(pid)
            if b"hold" in (words := read_bytes(f"/proc/{each}/cmdline").split(b"\0")))
        self.processes = [self.holder, *descendants(self.holder)]
        self.group = kubernetes_supervisor.group_name(self.holder)

    def left(self):
        """The traces that still exist. Those of other clusters do not count."""
        groups = [each / self.group for each in kubernetes_supervisor.hierarchies()]
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.folder) in line]
        return [each for each in [self.folder, *groups] if each.exists()] + mounts + [
            each for each in self.processes if kubernetes_supervisor.start_of(each)]


class OwnClusters(unittest.TestCase):
    def test_two_clusters_do_not_see_each_other_and_leave_nothing(self):
        settings = {name: Path(f"/proc/sys/{name}").read_text() for name in ("vm/overcommit_memory", "kernel/panic")}
        with Cluster(nodes=1, images=[]) as first:
            traces = Traces(os.getpid())
            first.make_namespace("mine")
            first.leave()
            with Cluster(nodes=1, images=[]) as second:
                with self.assertRaises(ApiError) as refused:
                    second.api.get("/api/v1/namespaces/mine")
                self.assertEqual(404, refused.exception.code)
            first.enter()
            self.assertEqual("mine", first.api.get("/api/v1/namespaces/mine")["metadata"]["name"])
            self.assertGreater(len(traces.left()), 10)
        self.assertEqual([], traces.left())
        for name, value in settings.items():
            self.assertEqual(value, Path(f"/proc/sys/{name}").read_text())

    def test_a_cluster_ends_with_the_program_that_is_killed(self):
        run = Stream([*CLUSTER, "run", "--nodes", "1", "--", "sh", "-c",
                      "kubectl get nodes -o name; echo $$; exec sleep 1000"], os.environ)
        self.addCleanup(run.close)
        self.assertEqual("node/node-1", run.line())
        command = int(run.line())
        traces = Traces(run.process.pid)
        run.process.kill()
        os.kill(command, signal.SIGKILL)
        for pid in traces.processes:
            await_end(pid)
        self.assertEqual([], traces.left())

    def test_what_a_killed_holder_leaves_is_removed_by_the_next_cluster(self):
        cluster = Cluster(nodes=1, images=[])
        self.addCleanup(cluster.close)
        traces = Traces(os.getpid())
        os.kill(traces.holder, signal.SIGKILL)
        for pid in traces.processes[1:]:
            await_end(pid)
        cluster.leave()
        self.assertTrue(traces.left())
        os.utime(traces.folder, (0, 0))  # folders that are new are left alone
        with Cluster(nodes=1, images=[]):
            pass
        cluster.close()
        self.assertEqual([], traces.left())

    def test_the_oldest_version_runs_pods(self):
        with Cluster(nodes=1, api_version="1.29") as cluster:
            self.assertEqual("29", cluster.api.get("/version")["minor"])
            node = cluster.api.get("/api/v1/nodes/node-1")
            self.assertEqual("v1.29.15", node["status"]["nodeInfo"]["kubeletVersion"])
            cluster.api.post("/api/v1/namespaces/default/pods", pod("old", "true"))
            cluster.until(lambda: cluster.pod("old")["status"]["phase"] == "Succeeded", "the pod has run")

    def test_a_cluster_stays_until_it_is_told_to_go(self):
        with tempfile.TemporaryDirectory() as folder:
            state = f"{folder}/cluster"
            ran = subprocess.run([*CLUSTER, "up", "--state", state, "--nodes", "1", "--images", ""], check=True,
                                 capture_output=True, text=True)
            self.assertIn("shell --state", ran.stdout)
            self.addCleanup(subprocess.run, [*CLUSTER, "down", "--state", state], check=False, capture_output=True)
            for words, expected in ((["shell", "--state", state, "kubectl", "get", "nodes", "-o", "name"],
                                     "node/node-1\n"),
                                    (["call", "--state", state, "is_ready", "node-1"], "true\n")):
                ran = subprocess.run([*CLUSTER, *words], check=True, capture_output=True, text=True)
                self.assertEqual(expected, ran.stdout)
            subprocess.run([*CLUSTER, "down", "--state", state], check=True)
            self.assertFalse(Path(state).exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
