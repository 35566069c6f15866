"""Shared by the tests of a Muster server in a Kubernetes cluster: an installation of the chart, and users outside of
the cluster.

    class MyTest(ServerTest):
        def test_a_sentence_that_holds(self):
            server = self.install()
            ada = server.user("ada", role="admin")
            ada.run("list")
"""

import contextlib
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from kubernetes_chart import CHART, PACKAGING, helm_program
from kubernetes_cluster import Cluster
from muster_harness import BOUND, MUSTER, ROOT, Stream

SERVER_IMAGE = ROOT / "build" / "muster-server.tar"
NODE_IMAGE = ROOT / "build" / "muster-node.tar"
VALUES = PACKAGING / "values"

# The account of the server in its pod.
ACCOUNT = 10001

# An image with a shell, for jobs.
IMAGE = "localhost/muster-test-busybox:test"
# Prints lines until /tmp/go exists.
WAITS = "echo before; until test -e /tmp/go; do sleep 0.1; done; echo behind"


class ServerTest(unittest.TestCase):
    """The tests of a class share one cluster; each test has namespaces of its own."""

    OPTIONS = {"kube_proxy": True}

    @classmethod
    def setUpClass(cls):
        for archive, target in ((SERVER_IMAGE, "image-server"), (NODE_IMAGE, "image-node")):
            if not archive.exists():
                raise RuntimeError(f"{archive} is not there: make {target}")
        cls.cluster = Cluster(**cls.OPTIONS)
        cls.addClassCleanup(cls.cluster.close)
        for archive in (SERVER_IMAGE, NODE_IMAGE):
            cls.cluster.import_image(archive)
        cls.made = 0

    def place(self, file=VALUES / "sqlite.yaml", **options):
        """Creates two namespaces, one for the server, with a volume, and one for its jobs."""
        type(self).made += 1
        installation = Installation(self, f"team-{self.made}", file)
        self.addCleanup(installation.close)
        installation.make_volume(**options)
        return installation

    def install(self, values=None):
        """Installs the chart in the namespaces of a new place()."""
        installation = self.place()
        installation.install(values)
        return installation

    def until(self, condition, what, bound=BOUND):
        return self.cluster.until(condition, what, bound)

    # --- jobs

    def submit(self, user, name, *command, flags=()):
        user.run("submit", "single", name, "--image", IMAGE, *flags, "--", *command)

    def job(self, user, name):
        return json.loads(user.run("get", name, "-o", "json"))

    def pods_of_jobs(self, server):
        return self.cluster.api.get(f"/api/v1/namespaces/{server.jobs_space}/pods")["items"]

    def waiting_job(self, server, user):
        """A job that runs until assert_runs_on() ends it. Returns its pod."""
        self.submit(user, "steady", "sh", "-c", WAITS)
        self.until(lambda: "before" in user.run("logs", "steady", code=None), "the job has begun")
        return self.pods_of_jobs(server)[0]

    def assert_runs_on(self, server, user, pod):
        """The job of waiting_job() ends as if nothing had happened."""
        now = self.pods_of_jobs(server)[0]
        self.assertEqual(now["metadata"]["uid"], pod["metadata"]["uid"])
        self.assertEqual(now["status"]["containerStatuses"], pod["status"]["containerStatuses"])
        user.run("exec", "steady", "--", "touch", "/tmp/go")
        self.assertEqual(user.run("logs", "-f", "steady"), "[main] before\n[main] behind\n")
        job = self.job(user, "steady")
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", 1), job["events"])


class Installation:
    def __init__(self, test, space, file):
        self.test = test
        self.cluster = test.cluster
        self.space = space
        self.jobs_space = f"{space}-jobs"
        self.file = file
        self.volume = self.cluster.folder / "volumes" / space
        self.folder = Path(tempfile.mkdtemp(prefix="muster-chart-"))
        for name in (self.space, self.jobs_space):
            self.cluster.make_namespace(name)

    def close(self):
        with contextlib.suppress(RuntimeError):
            self.helm("uninstall", "muster", "--wait")
        for name in (self.space, self.jobs_space):
            self.kubectl("delete", "namespace", name, "--wait=false")
        self.kubectl("delete", "persistentvolume", self.space, "--wait=false")
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def make_volume(self, node="node-1", shared=False):
        """Creates a volume on a folder of a node. The kubelet gives its files the pod's group, as on a disk. `shared`:
        all nodes have the volume, as with NFS."""
        self.volume.mkdir(parents=True)
        spec = {"capacity": {"storage": "20Gi"}, "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": self.space, "name": "muster"}}
        if shared:
            os.chown(self.volume, ACCOUNT, ACCOUNT)
            spec |= {"accessModes": ["ReadWriteMany"], "hostPath": {"path": str(self.volume)}}
        else:
            spec |= {"accessModes": ["ReadWriteOnce"], "local": {"path": str(self.volume)}, "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.space},
                            "spec": spec})

    # --- Helm

    def helm(self, *words):
        ran = subprocess.run([helm_program(), "--namespace", self.space, *map(str, words)], capture_output=True,
                             text=True, env=os.environ | self.cluster.environment, check=False, timeout=3 * BOUND)
        if ran.returncode != 0:
            raise RuntimeError(f"helm {' '.join(map(str, words))}: {ran.stderr}{ran.stdout}\n{self.state()}")
        return ran.stdout

    def install(self, values=None, wait=True):
        return self._set("install", values, wait)

    def upgrade(self, values=None, wait=True):
        return self._set("upgrade", values, wait)

    def _set(self, verb, values, wait):
        path = self.folder / "values.json"
        path.write_text(json.dumps({"jobs": {"namespace": self.jobs_space}} | (values or {})))
        return self.helm(verb, "muster", CHART, "--values", self.file, "--values", path,
                         *(["--wait", f"--timeout={BOUND}s"] if wait else []))

    # --- Kubernetes

    def kubectl(self, *words, **options):
        return self.cluster.kubectl("--namespace", self.space, *words, **options)

    def pods(self):
        found = self.cluster.api.get(f"/api/v1/namespaces/{self.space}/pods?labelSelector="
                                     "app.kubernetes.io/component%3Dserver")["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def pod(self):
        return self.cluster.until(lambda: self.pods()[0], "the server has a pod")

    def is_ready(self, pod=None):
        status = (pod or self.pod())["status"]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in status["conditions"])

    def await_ready(self):
        self.cluster.until(lambda: all(self.is_ready(pod) for pod in self.pods()) and self.pods(), "the server is ready")
        return self.pod()

    def make_probes_quick(self):
        """Shortens the times of the probes, so that a server that hangs is killed within seconds instead of minutes."""
        container = "/spec/template/spec/containers/0/livenessProbe"
        self.kubectl("patch", "deployment/muster", "--type=json", "--patch", json.dumps([
            {"op": "replace", "path": "/spec/template/spec/terminationGracePeriodSeconds", "value": 5},
            *({"op": "replace", "path": f"{container}/{name}", "value": value}
              for name, value in (("periodSeconds", 2), ("timeoutSeconds", 1), ("failureThreshold", 8)))]))
        self.kubectl("rollout", "status", "deployment/muster", f"--timeout={BOUND}s")

    def log(self):
        """The log of the server's container; empty if the container has not started."""
        return self.kubectl("logs", f"pod/{self.pod()['metadata']['name']}", check=False)

    def process(self, pod=None):
        """The server's process on this machine."""
        identity = (pod or self.pod())["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if (identity in (entry / "cgroup").read_text()
                            and (entry / "cmdline").read_bytes().startswith(b"/usr/bin/muster\0server")):
                        return int(entry.name)
        raise AssertionError(f"no process of container {identity}")

    def state(self):
        """The objects and the log of the server, for the message of a failed check."""
        with contextlib.suppress(RuntimeError, AssertionError):
            return (self.kubectl("get", "all,events") + self.kubectl("describe", "pods") +
                    self.kubectl("logs", "deployment/muster", check=False))
        return ""

    # --- Muster

    def muster(self, *words, check=True):
        """Runs a command of muster in the server's container, under the server's account."""
        return self.kubectl("exec", "service/muster", "--", "muster", *words, check=check)

    def fingerprint(self):
        return self.muster("server", "--fingerprint", "--config", "/etc/muster/muster.yaml").strip()

    def invitation(self, name, *flags):
        made = self.muster("user", "create", name, *flags)
        return next(line.split()[1] for line in made.splitlines() if line.startswith("invitation"))

    def user(self, name, *flags):
        """Creates a user, who logs in from outside of the cluster."""
        user = User(self, name)
        self.test.addCleanup(user.close)
        user.connect()
        user.run("login", user.url, "--fingerprint", self.fingerprint(), "--token-stdin",
                 stdin=self.invitation(name, *flags))
        return user


class User:
    """A user outside of the cluster, whose `muster` reaches the server through kubectl port-forward."""

    def __init__(self, installation, name):
        self.installation = installation
        self.name = name
        self.home = Path(tempfile.mkdtemp(prefix=f"muster-{name}-"))
        self.environment = os.environ | {
            "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"), "XDG_STATE_HOME": str(self.home / "state")}
        self.url = None
        self._forward = None

    def connect(self):
        """Starts to forward the server's port, or restarts that if the server has a new pod."""
        port = self.url.rpartition(":")[2] if self.url else ""
        self.disconnect()
        cluster = self.installation.cluster
        self._forward = Stream([str(cluster.programs / "kubectl"), "--namespace", self.installation.space, "port-forward",
                                "service/muster", f"{port}:7443"], os.environ | cluster.environment)
        line = self._forward.until("Forwarding from 127.0.0.1:")
        self.url = "https://localhost:" + line.split(" ->")[0].rpartition(":")[2]

    def disconnect(self):
        if self._forward:
            self._forward.close()
            self._forward = None

    def run(self, *words, stdin="", code=0):
        ran = subprocess.run([MUSTER, *map(str, words)], input=stdin, capture_output=True, text=True,
                             env=self.environment, timeout=BOUND, check=False)
        if code is not None and ran.returncode != code:
            raise AssertionError(f"{self.name}: muster {' '.join(map(str, words))}: exit code {ran.returncode}\n"
                                 f"{ran.stdout}{ran.stderr}{self._forward.errors if self._forward else ''}")
        return ran.stdout

    def close(self):
        self.disconnect()
        subprocess.run(["rm", "-rf", self.home], check=True)
