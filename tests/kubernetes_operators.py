"""Third-party controllers that tests and benchmarks run beside a cluster (kubernetes_cluster.py), as its administrator.

    start_mpi_operator(cluster)            # Kubeflow's MPIJobs
    start_kueue(cluster)                   # queues for Jobs and pods with the label kueue.x-k8s.io/queue-name
    start_kwok(cluster)                    # simulated nodes
    add_simulated_nodes(cluster, 1000)
    with Webhook(cluster, "no pods today"):  # refuses pods

scripts/kubernetes_programs.sh builds them on demand. They end with the cluster; cluster.kill("kueue") ends one earlier,
and cluster.log("kueue") is its log.
"""

import base64
import http.server
import json
import os
import ssl
import subprocess
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kubernetes_settings import HOST

# Cluster() moves the calling thread to the network of the cluster, from which nothing can be downloaded.
_NETWORK_OF_THE_MACHINE = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
_SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "kubernetes_programs.sh"
_KUEUE_PORT = 9443
_KUEUE_HEALTH = "127.0.0.1:9444"


def _built(name):
    """The folder of a program, which is built if it does not exist."""
    made = subprocess.run(["nsenter", f"--net=/proc/self/fd/{_NETWORK_OF_THE_MACHINE}", _SCRIPT, name],
                          pass_fds=[_NETWORK_OF_THE_MACHINE], stdout=subprocess.PIPE, text=True, check=True)
    return Path(made.stdout.strip())


def _objects(cluster, manifests, kinds):
    """The objects of these kinds in YAML."""
    # Python's library has no YAML parser, so kubectl translates it.
    text = cluster.kubectl("annotate", "--local", "-f", "-", "-o", "json", "translated=yes", stdin=manifests).strip()
    found = []
    while text:
        one, end = json.JSONDecoder().raw_decode(text)
        found.append(one)
        text = text[end:].strip()
    return [each for each in found if each["kind"] in kinds]


def _create(cluster, objects):
    """Creates objects by server-side apply, because large definitions do not fit into the annotation of `kubectl
    apply`."""
    cluster.kubectl("apply", "--server-side", "-f", "-",
                    stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    # `kubectl wait` fails if a definition has no conditions yet.
    for each in objects:
        if each["kind"] == "CustomResourceDefinition":
            name = each["metadata"]["name"]
            cluster.until(lambda name=name: _is_established(cluster, name), f"{name} is established")


def _is_established(cluster, name):
    definition = cluster.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    return any(each["type"] == "Established" and each["status"] == "True"
               for each in definition["status"]["conditions"])


def start_mpi_operator(cluster, requests_per_second=50):
    """Starts the MPI operator. `requests_per_second`: its limit of requests to the API server; the default of the
    operator itself is 5."""
    folder = _built("mpi-operator")
    manifests = (folder / "mpi-operator.yaml").read_text()
    _create(cluster, _objects(cluster, manifests, ("Namespace", "CustomResourceDefinition")))
    cluster.start_program("mpi-operator", [
        folder / "mpi-operator", f"-kubeConfig={cluster.kubeconfig}", "-alsologtostderr",
        f"-kube-api-qps={requests_per_second}", f"-kube-api-burst={2 * requests_per_second}"])
    cluster.until(lambda: cluster.api.get("/apis/coordination.k8s.io/v1/namespaces/mpi-operator/leases")["items"],
                  "the MPI operator leads")


def start_kueue(cluster, frameworks=("batch/job", "pod")):
    """Starts Kueue. From now on, the API server sends every Job and pod outside of kube-system to Kueue's webhooks."""
    folder = _built("kueue")
    manifests = cluster.kubectl("kustomize", folder / "config" / "default")
    objects = _objects(cluster, manifests, ("Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration",
                                            "ValidatingWebhookConfiguration"))
    for each in objects:
        each.get("spec", {}).pop("conversion", None)
        for webhook in each.get("webhooks", []):
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {
                "url": f"https://{HOST}:{_KUEUE_PORT}{path}",
                "caBundle": base64.b64encode(cluster.certificates.path("ca.crt").read_bytes()).decode()}
    _create(cluster, [each for each in objects if "webhooks" not in each])
    settings = cluster.folder / "kueue"
    settings.mkdir()
    cluster.certificates.make_server("kueue", [HOST])
    for ending in ("crt", "key"):
        (settings / f"tls.{ending}").symlink_to(cluster.certificates.path(f"kueue.{ending}"))
    (settings / "settings.json").write_text(json.dumps({
        "apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration",
        "health": {"healthProbeBindAddress": _KUEUE_HEALTH}, "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
        "webhook": {"host": HOST, "port": _KUEUE_PORT, "certDir": str(settings)},
        "clientConnection": {"qps": 50, "burst": 100},
        "integrations": {"frameworks": list(frameworks), "podOptions": {"namespaceSelector": {"matchExpressions": [{
            "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}]}}}}))
    cluster.start_program("kueue", [folder / "kueue", f"--config={settings}/settings.json",
                                    f"--kubeconfig={cluster.kubeconfig}", "--feature-gates=VisibilityOnDemand=false"])
    cluster.until(lambda: urllib.request.urlopen(f"http://{_KUEUE_HEALTH}/readyz").status == 200, "Kueue is ready")
    _create(cluster, [each for each in objects if "webhooks" in each])


def start_kwok(cluster, lease_seconds=0):
    """Starts kwok, which simulates the kubelets of the nodes of add_simulated_nodes(). Their pods are reported as
    running as soon as they are bound to a node, and pods of a Job as succeeded; they print nothing. Without leases,
    which cost requests, the nodes stay Ready only in a cluster with a large `grace_seconds`."""
    folder = _built("kwok")
    # By default kwok sends four patches at a time, which a busy API server answers in 0.3 s. Settings that are left out
    # of this file have no default values.
    settings = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration",
                "options": {"podPlayStageParallelism": 32, "nodePlayStageParallelism": 4,
                            "nodeLeaseParallelism": 4, "podsOnNodeSyncParallelism": 1}}
    (cluster.folder / "kwok.yaml").write_text("\n---\n".join([
        cluster.kubectl("kustomize", folder / "kustomize" / "stage" / "fast"), json.dumps(settings)]))
    cluster.start_program("kwok", [
        folder / "kwok", f"--kubeconfig={cluster.kubeconfig}", f"--config={cluster.folder}/kwok.yaml",
        "--manage-all-nodes=false", "--manage-nodes-with-label-selector=type=kwok", "--node-ip=10.82.0.1",
        f"--node-lease-duration-seconds={lease_seconds}", "--cidr=10.83.0.0/16"])


def add_simulated_nodes(cluster, count, resources=None, labels=None):
    """Nodes kwok-0, kwok-1, ...; returns when all are Ready. Their taint keeps other pods away."""
    resources = {"cpu": "32", "memory": "256Gi", "pods": "110"} | (resources or {})

    def add(number):
        name = f"kwok-{number}"
        cluster.api.post("/api/v1/nodes", {
            "metadata": {"name": name, "labels": {
                "type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"} | (labels or {})},
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": resources, "allocatable": resources}})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(count)))

    def are_ready():
        return all(any(each["type"] == "Ready" and each["status"] == "True"
                       for each in node["status"].get("conditions", []))
                   for node in cluster.api.get("/api/v1/nodes?labelSelector=type%3Dkwok")["items"])

    cluster.until(are_ready, "all simulated nodes are Ready", bound=600)


class Webhook:
    """An admission webhook that refuses new pods in one namespace with a message."""

    def __init__(self, cluster, message, namespace="default"):
        self._cluster = cluster
        self._name = f"webhook-{namespace}"
        cluster.certificates.make_server(self._name, [HOST])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*(cluster.certificates.path(f"{self._name}.{each}") for each in ("crt", "key")))
        self._server = http.server.ThreadingHTTPServer((HOST, 0), _refuser(message))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        cluster.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self._name}, "webhooks": [{
                "name": "refuses.muster.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": f"https://{HOST}:{self._server.server_address[1]}/", "caBundle":
                                 base64.b64encode(cluster.certificates.path("ca.crt").read_bytes()).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                           "resources": ["pods"]}]}]})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._cluster.kubectl("delete", "validatingwebhookconfiguration", self._name)
        self._server.shutdown()
        self._server.server_close()


def _refuser(message):
    class Refuser(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
                    "uid": request["request"]["uid"], "allowed": False, "status": {"message": message}}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    return Refuser
