#!/usr/bin/env python3
"""Faults between the server and the cluster: an API server that is busy or slow or has lost its history; a network
policy that cuts pods off; a wrong clock; credentials that are missing, expired or without rights; two servers in one
namespace."""

from kubernetes_harness import NAMESPACE, WAIT, KubernetesTest
from kubernetes_settings import IMAGES
from muster_harness import main

EVERY = ["get", "list", "watch", "create", "delete"]
ALL_RIGHTS = [{"apiGroups": [""], "resources": ["pods", "secrets", "services", "events", "pods/portforward"],
               "verbs": EVERY},
              {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": EVERY}]
CLUSTER_RIGHTS = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]


class FaultTest(KubernetesTest):

    def go_when_reached(self, muster):
        """Ends the wait of a job that runs WAIT, once its pod can be reached again. The task may end, and thereby kill
        `touch`, as soon as `touch` has created the file. After that no program can run in the pod."""
        def has_gone():
            touched = muster.run("exec", "job", "--", "touch", "/tmp/go", code=None)
            return touched.returncode == 0 or muster.job("job")["phase"] == "Succeeded"
        self.cluster.until(has_gone, "its pod is reached again")


class TheApiServer(FaultTest):

    def test_lists_are_repeated_after_the_api_server_has_lost_its_history(self):
        self.submit("job", f"echo up; {WAIT}")
        self.muster.await_phase("job", "Running")
        self.cluster.forget_history()

        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")
        job = self.muster.ended("job")
        self.assertEqual(job["tasks"][0]["exit"]["pod"]["cause"], "deleted")

    def test_a_slow_api_server_only_delays_a_job(self):
        self.cluster.slow("etcd", 1)
        self.addCleanup(self.cluster.thaw, "etcd")
        self.muster.run("submit", "single", "job", *self.SMALL, "--", "echo", "hi", bound=300)
        job = self.cluster.until(lambda: self.muster.job("job")["phase"] in ("Succeeded", "Failed")
                                 and self.muster.job("job"), "it has ended", bound=300)

        self.assertEqual(job["phase"], "Succeeded", job)
        self.assertEqual(job["attempt"], 1)

    def test_running_jobs_survive_a_frozen_etcd(self):
        self.submit("job", f"echo up; {WAIT}")
        self.muster.await_phase("job", "Running")
        self.cluster.freeze("etcd")
        try:
            self.submit("late", "true")
            self.assertEqual(self.muster.job("job")["phase"], "Running")
        finally:
            self.cluster.thaw("etcd")
        self.ends_well("late")
        self.go_when_reached(self.muster)
        self.ends_well("job")
        self.assertEqual(self.muster.job("job")["attempt"], 1)


class Accounts(KubernetesTest):

    def muster_of(self, account, **more):
        return self.new_muster_in(NAMESPACE, kubeconfig=str(account), **more)

    def test_jobs_start_once_the_api_server_accepts_requests_again(self):
        account = self.cluster.make_account("busy", ALL_RIGHTS, NAMESPACE, CLUSTER_RIGHTS)
        muster = self.muster_of(account.kubeconfig)
        muster.run("submit", "single", "first", *self.SMALL, "--follow", "--", "echo", "hi")
        self.cluster.refuse("busy", NAMESPACE)
        try:
            muster.run("submit", "single", "job", *self.SMALL, "--", "echo", "hi")
            self.cluster.until(lambda: muster.job("job")["phase"] == "Starting", "it is being started")
        finally:
            self.cluster.accept("busy", NAMESPACE)
        self.assertEqual(muster.ended("job")["phase"], "Succeeded")

    def test_a_missing_right_is_named_with_its_resource_and_namespace(self):
        rights = [{"apiGroups": [""], "resources": ["pods", "services", "events", "pods/portforward"], "verbs": EVERY}]
        account = self.cluster.make_account("poor", rights, NAMESPACE, CLUSTER_RIGHTS)
        muster = self.muster_of(account.kubeconfig)
        muster.run("submit", "single", "job", *self.SMALL, "--", "true")

        job = muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        for word in ("create", "secrets", NAMESPACE):
            self.assertIn(word, job["failure"]["cause"])

    def test_an_expired_certificate_is_reported(self):
        user = self.cluster.make_user("late", ["system:masters"], expired=True)
        ran = self.muster_of(user).run("doctor", "--engine", "kubernetes", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("expired", ran.stdout + ran.stderr)

    def test_a_missing_kubeconfig_or_context_is_reported(self):
        for flags, word in ((["--kubeconfig", "/no/such/kubeconfig"], "/no/such/kubeconfig"),
                            (["--kubernetes-context", "nowhere"], "context 'nowhere'")):
            ran = self.muster.run("server", "--engine", "kubernetes", *flags, code=None)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(word, ran.stderr)


class Clocks(KubernetesTest):

    def test_a_server_whose_clock_is_ten_minutes_ahead_runs_jobs(self):
        muster = self.new_muster()
        muster.environment |= self.cluster.other_clock(600)
        muster.run("submit", "single", "job", *self.SMALL, "--follow", "--", "echo", "hi")

        self.assertEqual(muster.job("job")["phase"], "Succeeded")

    def test_a_server_whose_clock_is_ten_minutes_behind_names_the_certificate_that_is_not_valid_yet(self):
        muster = self.new_muster()
        muster.environment |= self.cluster.other_clock(-600)
        ran = muster.run("doctor", "--engine", "kubernetes", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("not yet valid", ran.stdout + ran.stderr)


class TwoServers(FaultTest):

    def test_two_servers_in_one_namespace_do_not_touch_each_others_jobs(self):
        other = self.new_muster()
        for each in (self.muster, other):
            each.run("submit", "single", "job", *self.SMALL, "--", "sh", "-c", f"echo up; {WAIT}")
            each.await_phase("job", "Running")
        other.kill_server()
        other.run("list")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")
        self.assertEqual(other.job("job")["phase"], "Running")
        self.go_when_reached(other)

        self.assertEqual(other.ended("job")["phase"], "Succeeded")
        self.assertEqual(other.job("job")["attempt"], 1)


class Policies(KubernetesTest):
    CLUSTER = {"policies": True}
    PORT = 7445
    # The init container holds the pod at a gate: it has an address, and its muster-node does not run yet.
    GATED = f"""
kind: single
name: job
image: {IMAGES["busybox"]}
command: [echo, hi]
kubernetes:
  containers:
  - name: gate
    image: {IMAGES["busybox"]}
    command: [sh, -c, "until [ -e /dev/shm/go ]; do sleep 0.05; done"]
"""

    def policy(self, name, spec):
        self.cluster.apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
        return name

    def await_enforcement(self, muster):
        """Waits until the firewall has rules for packets from the pod of the job. Returns the name of the pod."""
        def enforced():
            pod = muster.pods("job")["main"]
            chain = f"Egress-{pod['status']['podIP'].replace('.', '-')}"
            return f"jump {chain}\n" in self.cluster.log("policies") and pod["metadata"]["name"]
        return self.cluster.until(enforced, "the policy is in force for the pod of the job")

    def test_a_job_waits_while_a_policy_cuts_its_pods_off_from_the_server(self):
        muster = self.new_muster_in(NAMESPACE, connect="call", callback=f"{self.cluster.address}:{self.PORT}")
        self.policy("cut", {"podSelector": {}, "policyTypes": ["Egress"]})
        try:
            muster.run("submit", "-f", "-", input=self.GATED)
            pod = self.await_enforcement(muster)
            self.cluster.kubectl("exec", pod, "-n", NAMESPACE, "-c", "gate", "--", "touch", "/dev/shm/go")
            muster.await_words("job", "its muster-node does not answer yet")
        finally:
            self.cluster.kubectl("delete", "networkpolicy", "cut", "-n", NAMESPACE)
        self.assertEqual(muster.ended("job")["phase"], "Succeeded")

    def test_a_policy_that_forbids_ingress_does_not_cut_the_connection_through_the_api_server(self):
        self.policy("closed", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
        self.addCleanup(self.cluster.kubectl, "delete", "networkpolicy", "closed", "-n", NAMESPACE)

        ran = self.muster.run("submit", "single", "job", *self.SMALL, "--follow", "--", "echo", "hi")
        self.assertIn("[main] hi", ran.stdout)


if __name__ == "__main__":
    main()
