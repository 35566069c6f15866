"""Shared by the end-to-end tests of Kubernetes: a server whose jobs are pods of a private cluster
(kubernetes_cluster.py), and a check that nothing of them remains there.

    class MyTest(KubernetesTest):
        CLUSTER = {"gpus": 2}                       # one for all tests of the class
        SETTINGS = {"user": "1000:1000"}            # below `kubernetes:` of the server's file

        def test_a_sentence_that_holds(self):
            ran = self.muster.run("submit", "single", "job", *self.IMAGE, "--follow", "--", "hostname")

Each class has a namespace of its own, which enforces a level of Pod Security.
"""

import io
import json
import tarfile
import tempfile
from pathlib import Path

from kubernetes_cluster import Cluster
from kubernetes_engine import NODE_IMAGE, left_in, node_image
from kubernetes_settings import IMAGES
from muster_harness import Muster, MusterTest

NAMESPACE = "training"
# A program that waits until `muster exec JOB -- touch /tmp/go`.
WAIT = "until [ -e /tmp/go ]; do sleep 0.05; done"


def renamed(archive, target, *names):
    """Copies a docker archive. The image in the copy has these names."""
    with tarfile.open(archive) as old, tarfile.open(target, "w") as new:
        for member in old:
            content = old.extractfile(member).read() if member.isfile() else None
            if member.name == "manifest.json":
                manifest = json.loads(content)
                manifest[0]["RepoTags"] = list(names)
                content = json.dumps(manifest).encode()
                member.size = len(content)
            new.addfile(member, io.BytesIO(content) if content is not None else None)
    return target


class KubernetesMuster(Muster):
    """A private Muster on a cluster. `settings`: keys below `kubernetes:` of its configuration; `more`: further lines
    of the file."""

    def __init__(self, cluster, settings=None, more=""):
        super().__init__()
        self.cluster = cluster
        self.environment |= {"MUSTER_ENGINE": "kubernetes"} | cluster.environment
        settings = {"namespace": NAMESPACE, "node_image": NODE_IMAGE} | (settings or {})
        lines = [f"  {key}: {json.dumps(value)}" for key, value in settings.items()]
        self.configure("\n".join(["kubernetes:", *lines, more, ""]))

    def close(self):
        try:
            if not self._closed:
                self._end_jobs()
                self.cluster.until(lambda: not left_in(self.cluster, NAMESPACE), "nothing is left in the cluster")
        finally:
            super().close()

    def pods(self, job):
        """The pods of a job's present attempt, by task."""
        identity = self.job(job)["id"]
        listed = self.cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=muster.dev/job%3D{identity}")
        return {pod["metadata"]["labels"]["muster.dev/task"]: pod for pod in listed["items"]}

    def pods_of(self, job):
        """The uids of all pods of a job, by name."""
        identity = self.job(job)["id"]
        listed = self.cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=muster.dev/job%3D{identity}")
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in listed["items"]}

    def await_phase(self, name, *phases):
        """Waits until the job is in one of these phases and returns it."""
        def there():
            job = self.job(name)
            return job if job["phase"] in phases else None
        return self._until(there, name, f"{name} is {' or '.join(phases)}")

    def _until(self, condition, name, what):
        try:
            return self.cluster.until(condition, what)
        except AssertionError as error:
            said = self.run("explain", name, code=None)
            raise AssertionError(f"{error}\n{said.stdout}{said.stderr}") from error

    def await_words(self, name, words):
        """Waits until `muster explain` prints these words."""
        return self._until(lambda: words in self.run("explain", name).stdout, name, f"{name} waits: {words}")


class KubernetesTest(MusterTest):
    """One server for each test, one cluster for all."""

    CLUSTER: dict = {}
    SETTINGS: dict = {}
    MORE = ""
    POD_SECURITY = "restricted"
    IMAGE = ["--image", IMAGES["debian"]]
    SMALL = ["--image", IMAGES["busybox"]]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cls.enterClassContext(Cluster(**({"images": ["busybox", "debian"]} | cls.CLUSTER)))
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="mk-")))
        cls.cluster.import_image(node_image(folder))
        cls.cluster.make_namespace(NAMESPACE, cls.POD_SECURITY)

    def new_muster(self, **options):
        muster = KubernetesMuster(self.cluster, self.settings(), self.MORE, **options)
        self.addCleanup(muster.close)
        return muster

    def new_muster_in(self, namespace, **settings):
        """A further server, with additional settings below `kubernetes:`."""
        muster = KubernetesMuster(self.cluster, self.settings() | {"namespace": namespace} | settings, self.MORE)
        self.addCleanup(muster.close)
        return muster

    def settings(self):
        return dict(self.SETTINGS)

    def submit(self, name, script, *flags, kind="single", image=None):
        """Submits a job without following it."""
        self.muster.run("submit", kind, name, *(image or self.SMALL), *flags, "--", "sh", "-c", script)

    def go(self, name, task=()):
        """Ends the wait of a job that runs WAIT. The task may end before `muster exec` does, so its exit code is
        ignored."""
        self.muster.run("exec", name, *task, "--", "touch", "/tmp/go", code=None)

    def ends_well(self, name):
        job = self.muster.ended(name)
        self.assertEqual(job["phase"], "Succeeded", json.dumps(job, indent=1)[:2000] + self.muster.logs(name))
        return job
