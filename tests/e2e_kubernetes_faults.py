#!/usr/bin/env python3
"""Failures around a job on Kubernetes. No job is lost or runs twice, and each failure is reported with the message of
Kubernetes."""

from kubernetes_harness import NAMESPACE, WAIT, KubernetesTest
from muster_harness import main

HOG = "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo not stopped"


class Pods(KubernetesTest):

    def test_a_deleted_pod_is_a_lost_task_with_that_reason(self):
        self.submit("job", f"echo up; {WAIT}")
        self.muster.await_phase("job", "Running")

        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")

        job = self.muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        self.assertEqual(job["tasks"][0]["exit"]["pod"]["cause"], "deleted")
        self.assertIn("was deleted", job["failure"]["cause"])

    def test_a_deleted_pod_does_not_use_up_a_retry(self):
        self.submit("job", f"echo up; {WAIT}", "--retries", 1)
        self.muster.await_phase("job", "Running")
        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")

        self.cluster.until(lambda: self.muster.job("job")["attempt"] == 2, "it runs again")
        self.muster.await_phase("job", "Running")
        self.go("job")
        self.ends_well("job")

    def test_a_task_that_exceeds_its_memory_fails_with_that_reason(self):
        self.muster.run("submit", "single", "hog", *self.SMALL, "--memory", "40Mi", "--", "sh", "-c", HOG)

        job = self.muster.ended("hog")
        self.assertEqual(job["phase"], "Failed")
        self.assertTrue(job["tasks"][0]["exit"]["out_of_memory"], job["tasks"][0])

    def test_a_missing_image_fails_the_job_with_the_error_of_the_node(self):
        self.muster.run("submit", "single", "job", "--image", "localhost/nothing:1", "--image-pull-policy", "never", "--",
                        "true")

        job = self.muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        self.assertIn("cannot get image localhost/nothing:1", job["failure"]["cause"])
        self.assertIn("ErrImageNeverPull", job["failure"]["cause"])

    def test_explain_shows_why_an_image_cannot_be_pulled(self):
        self.submit("job", "true", image=["--image", "registry.invalid/x:1"])

        self.muster.await_words("job", "waits for image registry.invalid/x:1")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")

    def test_a_quota_is_reported_as_the_reason_of_a_wait(self):
        self.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                            "metadata": {"name": "few", "namespace": NAMESPACE}, "spec": {"hard": {"pods": "0"}}})
        try:
            self.submit("job", "true")
            self.muster.await_words("job", "exceeded quota: few")
        finally:
            self.cluster.kubectl("delete", "resourcequota", "few", "-n", NAMESPACE)
        self.ends_well("job")

    def test_the_refusal_of_pod_security_names_the_forbidden_setting(self):
        self.muster.run("submit", "single", "root", *self.SMALL, "--user", "0", "--", "id")

        job = self.muster.ended("root")
        self.assertEqual(job["phase"], "Failed")
        self.assertIn("violates PodSecurity", job["failure"]["cause"])


class TheServer(KubernetesTest):

    def test_a_restarted_server_finds_its_jobs_and_every_line_of_their_logs(self):
        self.submit("job", f"i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); echo line $i; sleep 0.01; done; echo last $i")
        self.muster.await_phase("job", "Running")
        for _ in range(2):
            self.muster.kill_server()
            self.muster.run("list")
            self.assertEqual(self.muster.job("job")["phase"], "Running")
        self.go("job")
        self.ends_well("job")
        lines = self.muster.logs("job").split("\n")
        numbers = [int(line.split()[-1]) for line in lines if "line " in line]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertTrue(lines[-2].endswith(f"last {len(numbers)}"), lines[-3:])
        self.assertEqual(self.muster.job("job")["attempt"], 1)

    def test_a_server_that_is_killed_while_pods_start_leaves_no_pod_behind(self):
        self.submit("job", "true", image=["--image", "registry.invalid/x:1"])
        self.muster.await_words("job", "waits for image")
        self.muster.kill_server()
        self.muster.run("list")
        self.cluster.until(lambda: self.muster.job("job")["attempt"] == 2, "another attempt has begun")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")

    def test_a_server_continues_after_the_api_server_was_unreachable(self):
        self.submit("job", f"echo up; {WAIT}; echo over")
        self.muster.await_phase("job", "Running")
        self.cluster.kill("apiserver")
        self.assertEqual(self.muster.job("job")["phase"], "Running")
        self.cluster.start("apiserver")
        self.cluster.until(lambda: self.muster.run("exec", "job", "--", "true", code=None).returncode == 0,
                           "its pod is reached again")
        self.go("job")
        self.ends_well("job")
        self.assertEqual(self.muster.job("job")["attempt"], 1)


class Nodes(KubernetesTest):

    def test_a_cordoned_node_gets_no_jobs_and_a_job_on_a_lost_node_waits_until_the_node_is_deleted(self):
        self.cluster.kubectl("cordon", "node-1")
        self.submit("job", f"echo up; {WAIT}", "--retries", 1)
        self.muster.await_phase("job", "Running")
        self.assertEqual(self.muster.job("job")["tasks"][0]["node"], "node-2")

        self.cluster.kubectl("uncordon", "node-1")
        self.cluster.kill_node("node-2")
        self.muster.await_words("job", "node node-2 does not answer")
        self.assertEqual(self.muster.job("job")["attempt"], 1)
        self.cluster.kubectl("delete", "node", "node-2")

        self.cluster.until(lambda: self.muster.job("job")["attempt"] == 2, "it runs elsewhere")
        self.muster.await_phase("job", "Running")
        self.assertEqual(self.muster.job("job")["tasks"][0]["node"], "node-1")
        self.go("job")
        self.ends_well("job")


if __name__ == "__main__":
    main()
