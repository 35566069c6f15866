#!/usr/bin/env python3
"""Tests the controllers that other tests and benchmarks run beside a cluster (kubernetes_operators.py)."""

import unittest

from kubernetes_cluster import Cluster
from kubernetes_cluster_test import pod
from kubernetes_operators import add_simulated_nodes, start_kueue, start_kwok, start_mpi_operator


def job(name, queue, command):
    template = pod(name, command)
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": queue}},
            "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": template["spec"]}}}


class Operators(unittest.TestCase):
    def cluster(self, **options):
        cluster = Cluster(**options)
        self.addCleanup(cluster.close)
        return cluster

    def test_the_mpi_operator_makes_the_pods_of_an_mpi_job(self):
        cluster = self.cluster(nodes=1)
        start_mpi_operator(cluster)
        template = {"spec": pod("any", "sleep 1000")["spec"]}
        del template["spec"]["restartPolicy"]
        cluster.apply({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
                       "metadata": {"name": "mpi", "namespace": "default"},
                       "spec": {"launcherCreationPolicy": "AtStartup", "mpiReplicaSpecs": {
                           "Launcher": {"replicas": 1, "template": template},
                           "Worker": {"replicas": 2, "template": template}}}})
        cluster.until(lambda: len(self.running(cluster)) == 3, "a launcher and two workers run")

    def test_kueue_admits_one_job_after_the_other(self):
        cluster = self.cluster(nodes=1)
        start_kueue(cluster)
        kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1"}
        cluster.apply(
            kueue | {"kind": "ResourceFlavor", "metadata": {"name": "any"}},
            kueue | {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {
                "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                    {"name": "any", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}]}},
            kueue | {"kind": "LocalQueue", "metadata": {"name": "own", "namespace": "default"},
                     "spec": {"clusterQueue": "all"}})
        cluster.apply(job("first", "own", "sleep 1000"))
        cluster.until(lambda: len(self.running(cluster)) == 1, "the first job runs")
        cluster.apply(job("second", "own", "true"))
        path = "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/workloads"
        cluster.until(lambda: any(each["reason"] == "Pending" for workload in cluster.api.get(path)["items"]
                                  for each in workload["status"]["conditions"]), "the second job waits")
        self.assertTrue(cluster.api.get("/apis/batch/v1/namespaces/default/jobs/second")["spec"]["suspend"])
        cluster.kubectl("delete", "job", "first")
        cluster.kubectl("wait", "--for=condition=Complete", "--timeout=60s", "job/second")

    def test_kwok_plays_nodes(self):
        cluster = self.cluster(nodes=0, grace_seconds=100000)
        start_kwok(cluster)
        add_simulated_nodes(cluster, 100, {"nvidia.com/gpu": "8"})
        self.assertEqual("8", cluster.capacity("kwok-99")["nvidia.com/gpu"])
        for number in range(20):
            cluster.api.post("/api/v1/namespaces/default/pods", pod(
                f"pod-{number}", "anything", gpus=8, tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]))
        cluster.until(lambda: len(self.running(cluster)) == 20, "20 pods seem to run")
        self.assertEqual(20, len({each["spec"]["nodeName"] for each in self.running(cluster)}))

    def running(self, cluster):
        pods = cluster.api.get("/api/v1/namespaces/default/pods")["items"]
        return [each for each in pods if each["status"]["phase"] == "Running"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
