#!/usr/bin/env python3
"""Faults of the way to the cluster: an API server that is busy, slow or has forgotten; a network policy that cuts pods
off; a clock that is wrong; credentials that are missing, expired or without rights; two servers in one namespace."""

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
        """Lets the job go on that waits by WAIT, once its pod is reached again. The task may end and kill `touch` after that
        has made its file; then nothing more can run in it."""
        def has_gone():
            touched = muster.run("exec", "job", "--", "touch", "/tmp/go", code=None)
            return touched.returncode == 0 or muster.job("job")["phase"] == "Succeeded"
        self.cluster.until(has_gone, "its pod is reached again")


class TheApiServer(FaultTest):

    def test_that_has_forgotten_its_history_is_asked_anew(self):
        self.submit("job", f"echo up; {WAIT}")
        self.muster.await_phase("job", "Running")
        self.cluster.forget_history()

        pod = self.muster.pods("job")["main"]["metadata"]["name"]
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")
        job = self.muster.ended("job")
        self.assertEqual(job["tasks"][0]["exit"]["pod"]["cause"], "deleted")

    def test_that_is_slow_delays_a_job_and_no_more(self):
        self.cluster.slow("etcd", 1)
        self.addCleanup(self.cluster.thaw, "etcd")
        self.muster.run("submit", "single", "job", *self.SMALL, "--", "echo", "hi", bound=300)
        job = self.cluster.until(lambda: self.muster.job("job")["phase"] in ("Succeeded", "Failed")
                                 and self.muster.job("job"), "it has ended", bound=300)

        self.assertEqual(job["phase"], "Succeeded", job)
        self.assertEqual(job["attempt"], 1)

    def test_whose_etcd_hangs_does_not_end_what_runs(self):
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

    def test_that_the_api_server_refuses_for_a_while_run_their_jobs_later(self):
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

    def test_without_a_right_name_it_with_the_resource_and_the_namespace(self):
        rights = [{"apiGroups": [""], "resources": ["pods", "services", "events", "pods/portforward"], "verbs": EVERY}]
        account = self.cluster.make_account("poor", rights, NAMESPACE, CLUSTER_RIGHTS)
        muster = self.muster_of(account.kubeconfig)
        muster.run("submit", "single", "job", *self.SMALL, "--", "true")

        job = muster.ended("job")
        self.assertEqual(job["phase"], "Failed")
        for word in ("create", "secrets", NAMESPACE):
            self.assertIn(word, job["failure"]["cause"])

    def test_whose_certificate_has_expired_learn_that(self):
        user = self.cluster.make_user("late", ["system:masters"], expired=True)
        ran = self.muster_of(user).run("doctor", "--engine", "kubernetes", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("expired", ran.stdout + ran.stderr)

    def test_of_a_kubeconfig_that_is_not_there_or_a_context_that_is_not_in_it(self):
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

    def test_in_one_namespace_do_not_touch_each_others_jobs(self):
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
        """Waits until the firewall has rules for what the pod of the job sends, and returns the pod's name."""
        def enforced():
            pod = muster.pods("job")["main"]
            chain = f"Egress-{pod['status']['podIP'].replace('.', '-')}"
            return f"jump {chain}\n" in self.cluster.log("policies") and pod["metadata"]["name"]
        return self.cluster.until(enforced, "the policy is in force for the pod of the job")

    def test_that_cut_the_way_to_the_server_are_waited_for(self):
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

    def test_that_let_nothing_into_pods_do_not_cut_the_way_through_the_api_server(self):
        self.policy("closed", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
        self.addCleanup(self.cluster.kubectl, "delete", "networkpolicy", "closed", "-n", NAMESPACE)

        ran = self.muster.run("submit", "single", "job", *self.SMALL, "--follow", "--", "echo", "hi")
        self.assertIn("[main] hi", ran.stdout)


if __name__ == "__main__":
    main()
