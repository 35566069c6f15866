#!/usr/bin/env python3
"""A real Kubernetes cluster for tests and benchmarks on this machine: etcd, the API server, its controllers and
scheduler, CoreDNS, and nodes, each with a kubelet, containerd and a network of its own. It starts in about ten seconds.

    with Cluster(gpus=4) as cluster:
        cluster.kubectl("get", "nodes")                       # text
        cluster.api.get("/api/v1/nodes")                      # JSON
        environment |= cluster.environment                    # KUBECONFIG, and kubectl on PATH
        cluster.kill("apiserver"), cluster.start("apiserver")

As a program:

    tests/kubernetes_cluster.py run [FLAGS] -- COMMAND...     runs a command beside a cluster; exits as it does
    tests/kubernetes_cluster.py up --state DIR [FLAGS]        starts a cluster that runs until `down`
    tests/kubernetes_cluster.py shell --state DIR [COMMAND...]  runs a shell or a command beside it
    tests/kubernetes_cluster.py call --state DIR METHOD [ARGUMENTS...]  calls a method of Cluster, like `kill kubelet-1`
    tests/kubernetes_cluster.py down --state DIR              removes it

The cluster has a network of its own, without a connection to other networks. Users of the cluster must be in that
network: the constructor of Cluster moves the calling thread there, and with it all processes and threads that this
thread starts later. Pods reach them at cluster.address. Clusters do not see each other.

MUSTER_KUBERNETES_LOGS names a folder into which a cluster's logs are copied when it ends.

Requires root, and the packages, programs and images of `make deps-kubernetes`. Whether a test ends or is killed, the
whole cluster is removed: processes, mounts, networks, control groups, files (kubernetes_supervisor.py).
"""

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request
from dataclasses import fields
from pathlib import Path

import kubernetes_supervisor
from kubernetes_api import BOUND, Api, ApiError, until
from kubernetes_settings import HOST, IMAGES, Certificates, Options, kubeconfig

_SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
_CLONE_NEWNET = 0x40000000


def _folder_of(script, *words):
    """The folder that scripts/kubernetes_programs.sh or kubernetes_images.sh has filled."""
    found = subprocess.run([_SCRIPTS / script, *words], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(found.stderr)
    return found.stdout.strip()


def _enter_network(descriptor):
    """Moves the calling thread into a network."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class ClusterClient:
    """A running cluster, whose state is in `folder`. Thread-safety: threads may share it if all are in its network."""

    # Where pods reach servers that run beside the cluster.
    address = HOST

    def __init__(self, folder):
        self.folder = Path(folder)
        self.options = Options.from_json((self.folder / "options.json").read_text())
        self.programs = Path((self.folder / "programs").read_text())
        self.kubeconfig = self.folder / "kubeconfig"
        self.certificates = Certificates(self.folder / "pki")
        self.nodes = self.options.node_names
        self.api = Api(self.certificates, client="admin")
        self._network_outside = None
        self._made = 0

    @property
    def environment(self):
        """Variables by which programs find the cluster. Of all programs of the cluster, only kubectl is on PATH."""
        return {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def enter(self):
        """Moves the calling thread into the cluster's network. Threads and processes that it starts later are there,
        too."""
        self._network_outside = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "socket"))
            # The kernel translates the supervisor's pid into the pid namespace of this process.
            pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _enter_network(network)
        finally:
            os.close(network)

    def leave(self):
        if self._network_outside is not None:
            _enter_network(self._network_outside)
            os.close(self._network_outside)
            self._network_outside = None

    # --- programs: etcd, apiserver, controllers, scheduler, coredns; kubelet-1, containerd-1, proxy-1, gpus-1, ...

    def start(self, name):
        """Starts a program that was killed. If it is the API server, returns once it is ready."""
        self._call("start", name)
        if name in ("apiserver", "etcd"):
            self._call("await_api")

    def kill(self, name):
        self._call("end", name, signal.SIGKILL)

    def stop(self, name):
        """Sends SIGTERM to a program and waits for its end. (An API server without its etcd takes minutes: use
        kill().)"""
        self._call("end", name, signal.SIGTERM)

    def restart(self, name):
        self.kill(name)
        self.start(name)

    def freeze(self, name):
        """Stops a program: it accepts connections and does not answer."""
        self._call("signal", name, signal.SIGSTOP)

    def slow(self, name, seconds):
        """Delays each answer of a program by up to `seconds`."""
        self._call("slow", name, seconds)

    def thaw(self, name):
        """Ends the effect of freeze() or slow()."""
        self._call("signal", name, signal.SIGCONT)

    def start_program(self, name, argv):
        """Starts another program beside the cluster, which ends with the cluster. The methods above accept its name."""
        self._call("add", name, [str(each) for each in argv])

    def forget_history(self):
        """Makes the API server answer 410 Gone to requests with a resourceVersion from before this call."""
        now = int(self.api.get("/api/v1/namespaces")["metadata"]["resourceVersion"])
        request = urllib.request.Request("http://127.0.0.1:2379/v3/kv/compaction", method="POST",
                                         data=json.dumps({"revision": now, "physical": True}).encode())
        urllib.request.urlopen(request, timeout=BOUND).close()
        self.restart("apiserver")  # clears its watch cache

    def running(self):
        return self._call("running")

    def log(self, name):
        return (self.folder / "log" / f"{name}.log").read_text(errors="replace")

    # --- nodes. The argument `node` is a name, like "node-1".

    def kill_node(self, node):
        """Kills the kubelet, containerd and all containers of a node, like a power failure."""
        self._call("kill_node", self._number(node))

    def start_node(self, node):
        """Starts a node again after kill_node()."""
        self._call("start_node", self._number(node))

    def cut_node(self, node):
        """Disconnects a node from the network, like a pulled cable. Its containers continue."""
        self._call("cut_node", self._number(node))

    def join_node(self, node):
        self._call("join_node", self._number(node))

    def cordon(self, node):
        """Makes a node accept no new pods until uncordon()."""
        self.kubectl("cordon", node)

    def uncordon(self, node):
        self.kubectl("uncordon", node)

    def drain(self, node):
        """Cordons a node and evicts its pods, whatever owns them. Returns when they are gone."""
        self.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={BOUND}s")

    def delete_node(self, node):
        """Deletes the Node object. The kubelet and the containers continue; restart("kubelet-N") creates the object
        again."""
        self.api.delete(f"/api/v1/nodes/{node}")

    def set_gpus(self, node, count):
        """Sets the number of a node's GPU stand-ins. `GPU-stand-in-2` is the device /dev/nvidia2 in its container."""
        self._call("set_gpus", self._number(node), count)
        self.until(lambda: self.capacity(node).get("nvidia.com/gpu", "0") == str(count),
                   f"{node} has {count} GPUs", bound=BOUND)

    def break_gpu(self, node):
        """Makes GPU 0 of a node unhealthy, as after a hardware error. A second call makes it healthy again."""
        self._call("signal", f"gpus-{self._number(node)}", signal.SIGUSR1)

    def set_capacity(self, node, resources):
        """Adds resources that only the scheduler counts, without devices: {"example.com/fpga": 2}. A restart of the
        kubelet removes them."""
        self.api.patch(f"/api/v1/nodes/{node}/status",
                       {"status": {"capacity": {name: str(count) for name, count in resources.items()}}})

    def capacity(self, node):
        """The resources of a node that the scheduler can allocate: {"cpu": "2", ...}"""
        return self.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]

    def is_ready(self, node):
        conditions = self.api.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def label(self, node, **labels):
        """Sets labels of a node; a value of None removes one. Names with special characters are passed as
        label("node-1", **{"a.b/c": "d"})."""
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})

    def taint(self, node, *taints):
        """Replaces a node's taints, each like "key=value:NoSchedule"."""
        parsed = [each.rpartition(":")[::2] for each in taints]
        self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [
            {"key": key.partition("=")[0], "value": key.partition("=")[2], "effect": effect}
            for key, effect in parsed]}})

    def import_image(self, archive):
        """Gives every node the images of a docker archive."""
        self._call("import_images", [str(archive)])

    # --- pods

    def pod(self, name, namespace="default"):
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def cut(self, name, namespace="default"):
        """Drops every packet of a pod, including those of open connections. (Logs and exec do not use its network.)"""
        pod = self.pod(name, namespace)
        self._call("cut_address", self._number(pod["spec"]["nodeName"]), pod["status"]["podIP"])

    def join(self, name, namespace="default"):
        pod = self.pod(name, namespace)
        self._call("join_address", self._number(pod["spec"]["nodeName"]), pod["status"]["podIP"])

    # --- requests

    def refuse(self, account, namespace="default"):
        """Makes the API server answer 429 Too Many Requests, with Retry-After, to a service account until accept(). One
        request at a time waits in a queue for 15 s before it is refused."""
        group = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1"}
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        self.apply(
            group | {"kind": "PriorityLevelConfiguration", "metadata": {"name": "refused"}, "spec": {
                "type": "Limited", "limited": {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0,
                                               "limitResponse": {"type": "Queue", "queuing": {
                                                   "queues": 1, "handSize": 1, "queueLengthLimit": 1}}}}},
            group | {"kind": "FlowSchema", "metadata": {"name": f"refused-{namespace}-{account}"}, "spec": {
                "matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "refused"},
                "rules": [{"subjects": [{"kind": "ServiceAccount", "serviceAccount": {
                    "name": account, "namespace": namespace}}], "resourceRules": [everything]}]}})

    def accept(self, account, namespace="default"):
        self.kubectl("delete", "flowschema", f"refused-{namespace}-{account}")

    # --- clocks

    @staticmethod
    def other_clock(seconds):
        """Environment variables that set the clock of a program ahead by `seconds` (or back, if negative). Programs
        that are linked statically or written in Go ignore them, and so do the cluster's own programs."""
        libraries = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not libraries:
            raise RuntimeError("libfaketime is missing; scripts/deps.sh --kubernetes installs it")
        return {"LD_PRELOAD": str(libraries[0]), "FAKETIME": f"{seconds:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    # --- access

    def kubectl(self, *words, stdin=None, check=True):
        """kubectl's standard output. If it fails, the error holds its standard error."""
        ran = subprocess.run([self.programs / "kubectl", *map(str, words)], env=os.environ | self.environment,
                             input=stdin or "", capture_output=True, text=True, timeout=BOUND, check=False)
        if check and ran.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, words))}: exit code {ran.returncode}\n{ran.stderr}")
        return ran.stdout

    def apply(self, *objects):
        """Creates or changes objects. Only the API server validates them: for its own validation, kubectl would load
        the schema of the whole API."""
        self.kubectl("apply", "--validate=false", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def make_namespace(self, name, pod_security="restricted"):
        """Creates a namespace. `pod_security`: the enforced level: privileged, baseline or restricted."""
        self.api.post("/api/v1/namespaces", {"metadata": {
            "name": name, "labels": {"pod-security.kubernetes.io/enforce": pod_security}}})
        self.until(lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), f"{name} takes pods")

    def make_account(self, name, rules, namespace="default", cluster_rules=(), seconds=3600):
        """Creates a service account with exactly these rights. Returns an Api that uses it; the path of its kubeconfig
        is result.kubeconfig. `rules`: rights in its namespace, as [{"apiGroups": [""], "resources": ["pods"], "verbs":
        ["get"]}]; `cluster_rules`: rights in all namespaces."""
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        group = "rbac.authorization.k8s.io"
        objects = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}]
        for kind, granted in (("Role", list(rules)), ("ClusterRole", list(cluster_rules))):
            place = {"name": name} | ({"namespace": namespace} if kind == "Role" else {})
            if granted:
                objects += [
                    {"apiVersion": f"{group}/v1", "kind": kind, "metadata": place, "rules": granted},
                    {"apiVersion": f"{group}/v1", "kind": f"{kind}Binding", "metadata": place, "subjects": [subject],
                     "roleRef": {"apiGroup": group, "kind": kind, "name": name}}]
        self.apply(*objects)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = self.api.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                     "spec": {"expirationSeconds": seconds}})["status"]["token"]
        account = Api(self.certificates, token=token)
        account.token = token
        account.kubeconfig = self._write_kubeconfig(name, kubeconfig(
            self.certificates, name, token=token, namespace=namespace))
        return account

    def make_user(self, user, groups=(), expired=False):
        """Creates a user with a client certificate, which may have expired. Returns the path of the kubeconfig. A
        member of the group `system:masters` has all rights."""
        self._made += 1
        name = f"user-{os.getpid()}-{self._made}"
        self.certificates.make_client(name, user, groups, expired)
        return self._write_kubeconfig(user, kubeconfig(self.certificates, user, client=name))

    def until(self, condition, what, bound=BOUND):
        """kubernetes_api.until()."""
        return until(condition, what, bound)

    # --- parts

    def _write_kubeconfig(self, name, text):
        self._made += 1
        path = self.folder / "kubeconfigs" / f"{name.replace('/', '_')}-{os.getpid()}-{self._made}"
        path.parent.mkdir(exist_ok=True)
        path.touch(0o600)
        path.write_text(text)
        return path

    def _number(self, node):
        if node not in self.nodes:
            raise ValueError(f"no node '{node}'; there are: {', '.join(self.nodes)}")
        return self.nodes.index(node) + 1

    def _call(self, name, *arguments):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "socket"))
            connection.sendall(json.dumps({"call": name, "with": [
                int(each) if isinstance(each, int) else each for each in arguments]}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = json.loads(stream.readline() or b'{"error": "the cluster has ended"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]


class Cluster(ClusterClient):
    """A new cluster. The keyword arguments are the fields of kubernetes_settings.Options. The calling thread enters the
    cluster's network until close(). `progress` is called with a sentence for each step of the start."""

    def __init__(self, progress=None, **options):
        self.folder = Path(tempfile.mkdtemp(prefix=kubernetes_supervisor.PREFIX))
        self._network_outside = None
        self._holder = None
        try:
            self._holder = _start(self.folder, Options(**options), detached=False, progress=progress)
            super().__init__(self.folder)
            self.enter()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.leave()
        kept = os.environ.get("MUSTER_KUBERNETES_LOGS")
        if kept and (self.folder / "log").exists():
            shutil.copytree(self.folder / "log", Path(kept) / self.folder.name)
        if self._holder:
            _end(self._holder)
            self._holder = None
        if self.folder.exists():
            shutil.rmtree(self.folder)


def _start(folder, options, detached, progress=None):
    """Starts the process that holds the namespaces. Returns it once the cluster is ready."""
    if os.geteuid() != 0:
        raise RuntimeError("a Kubernetes cluster for tests needs root")
    programs, images = (_folder_of(f"kubernetes_{kind}.sh", "--find") for kind in ("programs", "images"))
    # Compiled when it is first needed.
    api_programs = (_folder_of("kubernetes_programs.sh", f"programs-{options.api_version}") if options.api_version
                    else programs)
    is_new = not options.api_version and not options.debian_containerd
    containerd = _folder_of("kubernetes_programs.sh", "--find", "containerd") if is_new else "/usr/bin"
    (folder / "log").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "kubectl").symlink_to(f"{programs}/kubectl")
    for name, text in (("options.json", options.to_json()), ("programs", programs), ("images", images),
                       ("api-programs", api_programs), ("containerd", containerd)):
        (folder / name).write_text(text)
    holder = subprocess.Popen(
        [sys.executable, "-B", kubernetes_supervisor.__file__, "hold", str(folder),
         *(["--detached"] if detached else [])],
        stdin=subprocess.DEVNULL if detached else subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if detached else None, start_new_session=True)
    try:
        while True:
            answer = json.loads(holder.stdout.readline() or b'{"error": "its supervisor has ended"}')
            if "progress" not in answer:
                break
            if progress:
                progress(answer["progress"])
        if "error" in answer:
            raise RuntimeError(f"the Kubernetes cluster did not start: {answer['error']}")
    except BaseException:
        _end(holder)
        raise
    return holder


def _end(holder):
    if holder.stdin:
        holder.stdin.close()
    else:
        holder.terminate()
    holder.wait(BOUND)
    holder.stdout.close()


# --- as a program

def _add_options(parser):
    default = Options()
    parser.add_argument("--nodes", type=int, default=default.nodes)
    parser.add_argument("--gpus", type=int, default=default.gpus, help="GPU stand-ins of each node")
    parser.add_argument("--images", type=lambda text: [each for each in text.split(",") if each],
                        default=default.images, help=f"of {','.join(IMAGES)} (default: {','.join(default.images)})")
    parser.add_argument("--api-version", default="", help="another API server, scheduler and kubelet: 1.29")
    parser.add_argument("--archive", action="append", default=[], help="a docker archive with more images")
    parser.add_argument("--kube-proxy", action="store_true", help="cluster addresses of Services work")
    parser.add_argument("--policies", action="store_true", help="NetworkPolicies work")
    parser.add_argument("--progress", action="store_true", help="say on standard error what is being done")
    parser.add_argument("--audit", action="store_true", help="record all requests in DIR/log/audit.log")


def _options(arguments):
    names = {each.name for each in fields(Options)}
    return Options(**{name: value for name, value in vars(arguments).items() if name in names})


def _progress(arguments):
    return (lambda what: print(f"cluster: {what}", file=sys.stderr)) if arguments.progress else None


def _run_beside(cluster, command):
    """Runs a command to its end. The terminal sends its signals to the command as well, so this process only waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(command, env=os.environ | cluster.environment) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
    return 128 - code if code < 0 else code


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name in ("run", "up", "shell", "call", "down"):
        kind = kinds.add_parser(name)
        if name != "run":
            kind.add_argument("--state", type=lambda text: Path(text).resolve(), required=True)
        if name in ("run", "up"):
            _add_options(kind)
        if name in ("run", "shell", "call"):
            kind.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if getattr(options, "command", None) and options.command[0] == "--":
        del options.command[0]
    try:
        return globals()[f"_{options.kind}"](options)
    except (RuntimeError, ApiError, FileNotFoundError) as error:
        print(f"kubernetes_cluster.py: {error}", file=sys.stderr)
        return 1


def _run(options):
    if not options.command:
        raise RuntimeError("run: say what to run")
    with Cluster(_progress(options), **vars(_options(options))) as cluster:
        for each in options.archive:
            cluster.import_image(Path(each).resolve())
        return _run_beside(cluster, options.command)


def _up(options):
    options.state.mkdir(parents=True)
    try:
        _start(options.state, _options(options), detached=True, progress=_progress(options))
        for each in options.archive:
            ClusterClient(options.state).import_image(Path(each).resolve())
    except BaseException:
        with contextlib.suppress(OSError):
            ClusterClient(options.state)._call("quit")  # pylint: disable=protected-access
        shutil.rmtree(options.state, ignore_errors=True)
        raise
    print(f"a cluster of {options.nodes} nodes is up; beside it, KUBECONFIG is set:\n"
          f"  {sys.argv[0]} shell --state {options.state} kubectl get nodes")
    return 0


def _shell(options):
    cluster = ClusterClient(options.state)
    cluster.enter()
    return _run_beside(cluster, options.command or [os.environ.get("SHELL", "/bin/sh")])


def _call(options):
    if not options.command:
        raise RuntimeError("call: say which method")
    cluster = ClusterClient(options.state)
    cluster.enter()
    name, *words = options.command
    result = getattr(cluster, name)(*(int(each) if each.isdigit() else each for each in words))
    if result is not None:
        print(result if isinstance(result, (str, Path)) else json.dumps(result, indent=2))
    return 0


def _down(options):
    ClusterClient(options.state)._call("quit")  # pylint: disable=protected-access
    until(lambda: not options.state.exists(), f"{options.state} is removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
