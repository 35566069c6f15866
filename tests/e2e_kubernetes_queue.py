#!/usr/bin/env python3
"""Jobs that wait in a queue of the cluster (kubernetes.queue): Kueue, or the cluster's own scheduler, decides when and
where they run."""

import os
import signal

from kubernetes_harness import NAMESPACE, WAIT, KubernetesTest
from kubernetes_operators import start_kueue
from muster_harness import main

KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta1"}


class Kueue(KubernetesTest):
    SETTINGS = {"queue": "kueue", "local_queue": "{project}"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        start_kueue(cls.cluster)
        quota = [{"name": "cpu", "nominalQuota": 1}, {"name": "memory", "nominalQuota": "4Gi"}]
        cls.cluster.apply(
            KUEUE | {"kind": "ResourceFlavor", "metadata": {"name": "any"}},
            KUEUE | {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {
                "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"],
                                    "flavors": [{"name": "any", "resources": quota}]}]}},
            KUEUE | {"kind": "LocalQueue", "metadata": {"name": "default", "namespace": NAMESPACE},
                     "spec": {"clusterQueue": "all"}},
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
             "value": 1000, "preemptionPolicy": "Never"})

    def begin_and_wait(self):
        """Starts a job that uses the whole quota, and submits a second job, which waits for the quota."""
        self.submit("first", f"echo up; {WAIT}", "--cpus", "0.8")
        self.muster.await_phase("first", "Running")
        self.submit("second", "echo on", "--cpus", "0.8")
        self.muster.await_words("second", "waits to be admitted by the cluster's queue: couldn't assign flavors")

    def test_jobs_are_admitted_one_after_the_other_and_explain_prints_the_reason_of_kueue(self):
        self.begin_and_wait()

        labels = self.muster.pods("first")["main"]["metadata"]["labels"]
        self.assertEqual(labels["kueue.x-k8s.io/queue-name"], "default")
        self.assertEqual(self.muster.job("second")["phase"], "Queued")
        self.go("first")
        self.ends_well("first")
        self.ends_well("second")
        self.assertEqual(self.muster.job("second")["attempt"], 1)

    def test_a_gang_is_admitted_as_a_whole(self):
        self.submit("first", f"echo up; {WAIT}", "--cpus", "0.8")
        self.muster.await_phase("first", "Running")
        self.submit("gang", "mpirun -np 2 hostname", "--workers", "2", "--cpus", "0.2", "--launch", "agent",
                    kind="mpi", image=self.IMAGE)
        self.muster.await_words("gang", "couldn't assign flavors")
        pods = self.muster.pods("gang")
        self.assertEqual([bool(pod["spec"].get("nodeName")) for pod in pods.values()], [False] * len(pods))

        self.go("first")
        self.ends_well("gang")
        self.assertIn("gang-worker-1", self.muster.logs("gang"))

    def test_a_preempted_job_waits_again_without_using_up_a_retry(self):
        self.submit("low", f"echo up; {WAIT}", "--cpus", "0.8")
        self.muster.await_phase("low", "Running")
        self.submit("high", f"echo up; {WAIT}", "--cpus", "0.8", "--kubernetes-priority-class", "urgent")
        self.muster.await_phase("high", "Running")
        self.muster.await_phase("low", "Queued")
        evictions = [event["fact"] for event in self.muster.job("low")["events"]
                     if event["fact"]["kind"] == "kubernetes_ended"]
        self.assertEqual([fact["pod"]["cause"] for fact in evictions], ["queue_evicted"])

        self.go("high")
        self.ends_well("high")
        self.cluster.until(lambda: self.muster.job("low")["attempt"] == 2, "it runs again")
        self.muster.await_phase("low", "Running")
        self.go("low")
        self.ends_well("low")

    def test_a_job_keeps_its_place_in_the_queue_when_the_server_is_killed(self):
        self.begin_and_wait()
        before = self.muster.pods_of("second")

        self.muster.kill_server()
        self.muster.await_words("second", "couldn't assign flavors")
        self.assertEqual(self.muster.pods_of("second"), before)
        self.go("first")
        self.ends_well("second")
        self.assertEqual(self.muster.job("second")["attempt"], 1)

    def test_a_job_that_is_stopped_while_it_waits_leaves_the_queue(self):
        self.begin_and_wait()

        self.muster.run("stop", "second")
        self.assertEqual(self.muster.ended("second")["phase"], "Stopped")
        self.cluster.until(lambda: not self.muster.pods_of("second"), "its pods are gone")
        self.go("first")
        self.ends_well("first")

    def test_another_queue_than_the_projects_is_refused(self):
        ran = self.muster.run("submit", "single", "job", *self.SMALL, "--kubernetes-label",
                              "kueue.x-k8s.io/queue-name=other", "--", "true", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("kubernetes.local_queue", ran.stderr)

    def test_a_pod_that_is_deleted_by_hand_is_a_lost_task(self):
        self.submit("job", f"echo up; {WAIT}", "--cpus", "0.2")
        self.muster.await_phase("job", "Running")
        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")

        self.assertEqual(self.muster.ended("job")["phase"], "Failed")


class TheClustersScheduler(KubernetesTest):
    CLUSTER = {"gpus": 2}
    SETTINGS = {"queue": "default"}

    def test_the_cluster_chooses_the_node_and_a_job_that_does_not_fit_waits_with_its_reason(self):
        self.cluster.cordon("node-2")
        self.addCleanup(self.cluster.uncordon, "node-2")
        self.submit("first", f"echo up; {WAIT}", "--gpus", "2")
        self.muster.await_phase("first", "Running")
        self.assertEqual(self.muster.job("first")["tasks"][0]["node"], "node-1")
        self.submit("second", "echo on", "--gpus", "1")
        self.muster.await_words("second", "Insufficient nvidia.com/gpu")

        self.go("first")
        self.ends_well("first")
        self.ends_well("second")

    def test_a_gang_runs_wherever_there_is_room(self):
        self.submit("gang", "mpirun -np 2 hostname", "--workers", "2", "--cpus", "0.2", "--launch", "agent",
                    kind="mpi", image=self.IMAGE)

        self.ends_well("gang")
        self.assertIn("gang-worker-1", self.muster.logs("gang"))

    def test_a_job_keeps_running_when_the_server_is_killed(self):
        self.submit("job", f"echo up; {WAIT}; echo over", "--gpus", "1")
        self.muster.await_phase("job", "Running")

        os.kill(self.muster.server_pid(), signal.SIGKILL)
        self.cluster.until(lambda: self.muster.run("exec", "job", "--", "touch", "/tmp/go", code=None).returncode == 0,
                           "its pod is reached again")
        self.ends_well("job")
        self.assertEqual(self.muster.job("job")["attempt"], 1)


if __name__ == "__main__":
    main()
