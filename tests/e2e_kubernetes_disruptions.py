#!/usr/bin/env python3
"""Disruptions of the pods of a job by administrators and other jobs: preemption, drains, taints, a node that is
declared out of service, a restart of containerd, a finaliser that hangs, a namespace that is deleted."""

from kubernetes_harness import NAMESPACE, WAIT, KubernetesTest
from muster_harness import main

SEAT = "example.com/seat"


class Disruptions(KubernetesTest):

    def begin(self, name, *flags, node=None):
        """Starts a job and waits until it runs on this node."""
        if node:
            flags = [*flags, "--kubernetes-node-selector", f"kubernetes.io/hostname={node}"]
        self.submit(name, f"echo up; {WAIT}", *flags)
        return self.muster.await_phase(name, "Running")

    def cause(self, name):
        """The reported cause for which Kubernetes ended the only task of a failed job."""
        job = self.muster.ended(name)
        self.assertEqual(job["phase"], "Failed", job)
        return job["tasks"][0]["exit"]["pod"]["cause"]

    def runs_elsewhere(self, name, node):
        self.cluster.until(lambda: self.muster.job(name)["attempt"] == 2, f"{name} runs again")
        self.muster.await_phase(name, "Running")
        self.assertEqual(self.muster.job(name)["tasks"][0]["node"], node)
        self.go(name)
        self.ends_well(name)

    def test_a_pod_that_is_preempted_on_its_node_is_reported_as_the_cause_of_the_loss(self):
        self.cluster.set_capacity("node-1", {SEAT: 1})
        self.cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                            "metadata": {"name": "urgent"}, "value": 1000})
        self.begin("job", "--kubernetes-device", f"{SEAT}=1")
        one = {"requests": {SEAT: "1"}, "limits": {SEAT: "1"}}
        self.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "default"},
                            "spec": {"priorityClassName": "urgent", "terminationGracePeriodSeconds": 1, "containers": [{
                                "name": "main", "image": self.SMALL[1], "command": ["sleep", "1000"],
                                "resources": one}]}})
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "other")

        self.assertEqual(self.cause("job"), "preempted")

    def test_a_drained_node_is_reported_as_the_cause_of_the_loss_and_a_job_with_retries_moves(self):
        self.begin("once", node="node-1")
        self.cluster.cordon("node-2")
        self.begin("again", "--retries", 1)
        self.cluster.uncordon("node-2")

        self.cluster.drain("node-1")
        self.addCleanup(self.cluster.uncordon, "node-1")
        self.assertEqual(self.cause("once"), "drained")
        self.runs_elsewhere("again", "node-2")

    def test_a_taint_that_evicts_is_reported_as_the_cause_of_the_loss_and_a_job_with_retries_moves(self):
        self.begin("once", node="node-1")
        self.cluster.cordon("node-2")
        self.begin("again", "--retries", 1)
        self.cluster.uncordon("node-2")

        self.cluster.taint("node-1", "broken=yes:NoExecute")
        self.addCleanup(self.cluster.taint, "node-1")
        self.assertEqual(self.cause("once"), "tainted")
        self.runs_elsewhere("again", "node-2")

    def test_a_job_outlives_a_restart_of_containerd(self):
        self.submit("job", f"i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); echo line $i; sleep 0.05; done; echo last $i",
                    "--kubernetes-node-selector", "kubernetes.io/hostname=node-1")
        self.muster.await_phase("job", "Running")

        self.cluster.restart("containerd-1")
        self.cluster.until(lambda: self.muster.run("exec", "job", "--", "touch", "/tmp/go", code=None).returncode == 0,
                           "a program starts in the pod")
        self.ends_well("job")
        numbers = [int(line.split()[-1]) for line in self.muster.logs("job").splitlines() if "line " in line]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertEqual(self.muster.job("job")["attempt"], 1)

    def test_a_finaliser_that_hangs_does_not_delay_the_job(self):
        self.begin("job")
        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}"
        self.cluster.api.patch(path, {"metadata": {"finalizers": ["example.com/hangs"]}})

        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")
        self.muster.run("delete", "job")
        self.submit("job", "true")
        self.ends_well("job")
        left = self.cluster.until(lambda: self.cluster.api.get(path)["metadata"].get("deletionTimestamp"),
                                  "the pod is being deleted")
        self.assertTrue(left)
        self.cluster.api.patch(path, {"metadata": {"finalizers": None}})

    def test_a_deleted_namespace_ends_its_jobs_and_refuses_others_in_the_api_servers_words(self):
        self.cluster.make_namespace("doomed")
        muster = self.new_muster_in("doomed")
        muster.run("submit", "single", "job", *self.SMALL, "--", "sh", "-c", f"echo up; {WAIT}")
        muster.await_phase("job", "Running")
        # Without this, the namespace would be gone at once.
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "holds", "namespace": "doomed", "finalizers": ["example.com/hangs"]}})

        self.cluster.kubectl("delete", "namespace", "doomed", "--wait=false")
        job = muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        self.assertEqual(job["tasks"][0]["exit"]["pod"]["cause"], "deleted")
        muster.run("submit", "single", "late", *self.SMALL, "--", "true")
        late = muster.ended("late")
        self.assertEqual(late["phase"], "Failed")
        self.assertIn("because it is being terminated", late["failure"]["cause"])
        self.cluster.kubectl("patch", "configmap", "holds", "-n", "doomed", "--type=merge", "-p",
                             '{"metadata": {"finalizers": null}}')


class OutOfService(KubernetesTest):

    def test_a_node_that_is_declared_out_of_service_frees_the_job_that_waits_for_it(self):
        self.cluster.cordon("node-1")
        self.submit("job", f"echo up; {WAIT}", "--retries", 1)
        self.muster.await_phase("job", "Running")
        self.cluster.uncordon("node-1")
        self.cluster.kill_node("node-2")
        self.muster.await_words("job", "node node-2 does not answer")
        self.assertEqual(self.muster.job("job")["attempt"], 1)

        self.cluster.kubectl("taint", "node", "node-2", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
        self.cluster.until(lambda: self.muster.job("job")["attempt"] == 2, "it runs again")
        self.muster.await_phase("job", "Running")
        self.assertEqual(self.muster.job("job")["tasks"][0]["node"], "node-1")
        self.go("job")
        self.ends_well("job")


if __name__ == "__main__":
    main()
