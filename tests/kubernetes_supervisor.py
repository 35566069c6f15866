"""The processes of a Kubernetes cluster for tests. kubernetes_cluster.py starts this program and sends it requests.

    kubernetes_supervisor.py hold FOLDER [--detached]

`hold` creates namespaces (processes, mounts, network) and starts a second copy of this program in them, the supervisor.
The supervisor starts the cluster's programs, and kills, stops and restarts them on requests at a Unix socket in FOLDER.
When the standard input of `hold` or the supervisor ends, everything is removed: the namespaces with all their
processes, mounts and network devices, the control groups, and FOLDER. So nothing remains even if a test is killed. If
`hold` itself is killed, the namespaces end, and the next `hold` removes the control groups and the folder.
"""

import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import re
import select
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

from kubernetes_api import BOUND, Api, until
from kubernetes_settings import (API_SERVICE, API_URL, AUDIT_POLICY, DOMAIN, HOST, IMAGES, Certificates, Node, Options,
                                 apiserver_flags, containerd_settings, controllers_flags, corefile, etcd_flags,
                                 kubeconfig, kubelet_flags, kubelet_settings, network_settings, proxy_settings,
                                 scheduler_flags)
from machine_state import matching

PREFIX = "muster-kubernetes-"
_CGROUPS = Path("/sys/fs/cgroup")
_PR_SET_PDEATHSIG = 1
# The seconds for which a program that is slowed runs at a time.
_MOMENT = 0.05


# --- outside: control groups and namespaces

def start_of(pid):
    """The start of a process in ticks since the boot of the machine, which together with the pid identifies the
    process. None if the process has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else words[19]


def hierarchies():
    """The mounted hierarchies of control groups: several of version 1, or one of version 2."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return sorted({Path(os.path.realpath(each)) for each in _CGROUPS.iterdir() if (each / "cgroup.procs").exists()})


def group_name(holder):
    """The control group of a cluster, in each hierarchy."""
    return f"{PREFIX}{holder}-{start_of(holder)}"


def _make_cgroups(name):
    """Creates a group of this name in each hierarchy, in which the kubelets create their own groups."""
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir()
        if hierarchy == _CGROUPS:
            enabled = " ".join(f"+{each}" for each in (hierarchy / "cgroup.controllers").read_text().split())
            for group in (hierarchy, hierarchy / name):
                (group / "cgroup.subtree_control").write_text(enabled)
        _copy_cpuset(hierarchy / name)


def _copy_cpuset(group):
    """Copies the parent's CPUs and memory nodes: a new cpuset of version 1 has none, and accepts no process."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (group / file).exists() and not (group / file).read_text().strip():
            (group / file).write_text((group.parent / file).read_text())


def _remove_cgroups(name):
    """Removes the groups. Their processes have ended, but the kernel may refuse the removal for a moment."""
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            until(lambda folder=folder: _is_removed(folder), f"the control group {folder} is empty", bound=10)


def _is_removed(folder):
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(folder)
    return True


def _sweep():
    """Removes the control groups and folders of clusters whose holder was killed."""
    for hierarchy in hierarchies():
        for group in matching(hierarchy, f"{PREFIX}*-*"):
            pid, start = group.name.removeprefix(PREFIX).split("-")[:2]
            if start_of(pid) != start:
                with contextlib.suppress(OSError, AssertionError):
                    _remove_cgroups(group.name)
    for folder in matching(os.environ.get("TMPDIR", "/tmp"), f"{PREFIX}*"):
        with contextlib.suppress(OSError), open(folder / "lock", "rb") as lock:
            if time.time() - folder.stat().st_mtime < BOUND:
                continue  # it is being made
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _hold(folder, detached):
    # After one of these signals, the program cleans up before it ends.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    with open(folder / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _sweep()
        cgroup = group_name(os.getpid())
        inside = None
        try:
            _make_cgroups(cgroup)
            # The shell is the first process of the namespace: it reaps orphans.
            inside = subprocess.Popen(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "sh", "-c", '"$@"; exit', "sh", sys.executable, "-B", __file__, "inside", str(folder), cgroup],
                stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
            ended = os.pidfd_open(inside.pid)
            select.select([ended] if detached else [ended, sys.stdin], [], [])
        finally:
            if inside:
                inside.kill()
                inside.wait()
            _remove_cgroups(cgroup)
            shutil.rmtree(folder)


# --- inside

# A kubelet would set these settings of the whole machine. It finds files with the desired values in their place.
_DECOYS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def _run(*argv, **options):
    ran = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=BOUND, check=False, **options)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit code {ran.returncode}\n{ran.stderr}")
    return ran.stdout


# Each node has private folders, a host name and a network. The shell holds them, and ends with the supervisor.
_NODE = """
set -e
hostname "$1"
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$folder"; done
mkdir /run/lock /var/lib/kubelet
mount --bind "$2" /var/lib/kubelet
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo ready
exec cat
"""


class Supervisor:
    """The programs of a cluster, by name: etcd, apiserver, controllers, scheduler, coredns, policies, and for each node
    containerd-N, kubelet-N, proxy-N and gpus-N."""

    def __init__(self, folder, cgroup):
        self.folder = folder
        self.cgroup = cgroup
        self.options = Options.from_json((folder / "options.json").read_text())
        self.programs = Path((folder / "programs").read_text())
        self.api_programs = Path((folder / "api-programs").read_text())
        self.containerd = Path((folder / "containerd").read_text())
        self.images = Path((folder / "images").read_text())
        self.nodes = [Node(number + 1, folder / f"node-{number + 1}") for number in range(self.options.nodes)]
        self.certificates = Certificates(folder / "pki")
        self.gpus = {node.number: self.options.gpus for node in self.nodes}
        self._holders = {}
        self._added = {}  # name -> argv
        self._running = {}
        self._slowed = {}  # name -> (an event that ends it, its thread)
        self._lock = threading.RLock()

    # --- start

    def up(self):
        _tell("makes networks and certificates")
        self._furnish()
        self._make_nodes()
        self._make_certificates()
        self._write_settings()
        _tell("starts etcd, the API server and containerd")
        self.start("etcd")
        self.start("apiserver")
        for node in self.nodes:
            self.start(f"containerd-{node.number}")
        _tell(f"gives the nodes their images: {', '.join(self.options.images)}")
        self.import_images([self.images / f"muster-test-{name}.tar" for name in ("pause", *self.options.images)])
        self.await_api()
        _tell("starts the controllers, the scheduler and the kubelets")
        for name in ("controllers", "scheduler", "coredns", *(["policies"] if self.options.policies else [])):
            self.start(name)
        for node in self.nodes:
            self.start(f"kubelet-{node.number}")
            if self.options.kube_proxy:
                self.start(f"proxy-{node.number}")
        self._await_nodes()

    def _furnish(self):
        (self.folder / "tmp").mkdir()
        for name, value in _DECOYS.items():
            if os.path.exists(f"/proc/sys/{name}"):
                decoy = self.folder / "tmp" / name.replace("/", ".")
                decoy.write_text(f"{value}\n")
                _run("mount", "--bind", decoy, f"/proc/sys/{name}")

    def _make_nodes(self):
        """A switch, to which this network and each node are connected, and a route to each node's pods."""
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "switch", "type", "bridge")
        _run("ip", "address", "add", f"{HOST}/24", "dev", "switch")
        _run("ip", "address", "add", f"{API_SERVICE}/32", "dev", "lo")
        _run("ip", "link", "set", "switch", "up")
        for node in self.nodes:
            for name in ("cni", "opt", "kubelet", "pod-logs", "volume-plugins", "gpus"):
                (node.folder / name).mkdir(parents=True)
            holder = subprocess.Popen(
                ["unshare", "--mount", "--uts", "--net", "sh", "-c", _NODE, "sh", node.name, node.folder / "kubelet"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            if holder.stdout.readline() != b"ready\n":
                raise RuntimeError(f"no namespaces for {node.name}")
            self._holders[node.number] = holder
            (node.folder / "holder").write_text(str(holder.pid))
            _run("ip", "link", "add", node.name, "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
            _run("ip", "link", "set", node.name, "master", "switch", "up")
            _run("ip", "route", "add", node.pods, "via", node.address)
            _run(*self._in(node, "ip", "address", "add", f"{node.address}/24", "dev", "eth0"))
            _run(*self._in(node, "ip", "link", "set", "eth0", "up"))
            _run(*self._in(node, "ip", "route", "add", "default", "via", HOST))
            for other in self.nodes:
                if other is not node:
                    _run(*self._in(node, "ip", "route", "add", other.pods, "via", other.address))

    def _in(self, node, *argv):
        """The command with a prefix that runs it on a node."""
        return ["nsenter", "--target", str(self._holders[node.number].pid), "--mount", "--uts", "--net",
                *map(str, argv)]

    def _make_certificates(self):
        own = self.certificates
        own.make_authority()
        own.make_server("apiserver", ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                                      f"kubernetes.default.svc.{DOMAIN}", HOST, API_SERVICE, "127.0.0.1"])
        users = {"admin": ("admin", ["system:masters"]), "coredns": ("coredns", ["system:masters"]),
                 "controllers": ("system:kube-controller-manager", []), "scheduler": ("system:kube-scheduler", []),
                 "proxy": ("system:kube-proxy", [])}
        for name, (user, groups) in users.items():
            own.make_client(name, user, groups)
            own.path(f"{name}.kubeconfig").write_text(kubeconfig(own, user, client=name))
        shutil.copy(own.path("admin.kubeconfig"), self.folder / "kubeconfig")
        for node in self.nodes:
            own.make_client(node.name, f"system:node:{node.name}", ["system:nodes"])
            own.make_server(f"{node.name}-server", [node.name, node.address])

    def _write_settings(self):
        (self.folder / "Corefile").write_text(corefile(self.folder))
        (self.folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        for node in self.nodes:
            group = f"/{self.cgroup}/{node.name}"
            self._make_group_of(node)
            (node.folder / "containerd.toml").write_text(containerd_settings(node))
            (node.folder / "cni" / "10-pods.conflist").write_text(network_settings(node))
            (node.folder / "kubelet.json").write_text(
                kubelet_settings(node, self.certificates.folder, group, self.options))
            (node.folder / "kubeconfig").write_text(
                kubeconfig(self.certificates, f"system:node:{node.name}", client=node.name))
            (node.folder / "proxy.json").write_text(proxy_settings(node))
            shutil.copy(self.certificates.path("proxy.kubeconfig"), node.folder)

    def _make_group_of(self, node):
        for hierarchy in hierarchies():
            group = hierarchy / self.cgroup / node.name
            group.mkdir()
            _copy_cpuset(group)

    # --- waiting

    def await_api(self):
        admin = Api(self.certificates, client="admin")
        until(lambda: self._is_alive("apiserver") and admin.get("/readyz") == "ok", "the API server is ready")

    def _await_nodes(self):
        admin = Api(self.certificates, client="admin")

        def are_ready():
            for node in self.nodes:
                self._is_alive(f"kubelet-{node.number}")
            nodes = admin.get("/api/v1/nodes")["items"]
            return len(nodes) == len(self.nodes) and all(
                _is_ready(node) and _gpus_of(node) == self.options.gpus for node in nodes)

        until(are_ready, "every node is Ready")
        # The API server refuses pods until the default service account exists.
        until(lambda: admin.get("/api/v1/namespaces/default/serviceaccounts/default"), "the default service account")
        # CoreDNS refuses connections until it has read the Services.

        def names_are_served():
            connection = http.client.HTTPConnection(HOST, 8181, timeout=BOUND)
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200

        until(names_are_served, "CoreDNS is ready")

    def _is_alive(self, name):
        """Whether a program runs. Raises an error with the end of its log if it ended by itself."""
        process = self._running.get(name)
        if process is None or process.poll() is not None:
            raise RuntimeError(f"{name} has ended:\n{self.log_end(name)}")
        return True

    def log_end(self, name, size=3000):
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace")[-size:] if path.exists() else ""

    # --- requests of kubernetes_cluster.py

    def start(self, name):
        """Starts a program that does not run, and with a kubelet also its GPU stand-ins."""
        with self._lock:
            process = self._running.get(name)
            if process and process.poll() is None:
                raise RuntimeError(f"{name} runs already")
            if name.startswith("kubelet-"):
                self._await_containerd(self._node_of(name))  # without it, a kubelet ends
            since = time.time()
            with open(self.folder / "log" / f"{name}.log", "ab") as log:
                self._running[name] = subprocess.Popen(
                    [str(word) for word in self._argv(name)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    cwd="/", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder),
                                  "TMPDIR": str(self.folder / "tmp")})
            if name.startswith("kubelet-"):
                self._start_gpus(self._node_of(name), since)

    def end(self, name, number=signal.SIGKILL):
        """Sends a signal to a program and waits for its end."""
        with self._lock:
            process = self._running[name]
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(BOUND)
            if name.startswith("kubelet-"):
                self._end_gpus(self._node_of(name))

    def add(self, name, argv):
        """Starts another program in the network of the control plane. From now on start() and end() accept its name."""
        self._added[name] = argv
        self.start(name)

    def slow(self, name, seconds):
        """Lets a program run for a moment only every `seconds`, until it is thawed."""
        self._thaw(name)
        ended = threading.Event()
        thread = threading.Thread(target=_alternate, args=(self._running[name], seconds, ended))
        self._slowed[name] = ended, thread
        thread.start()

    def _thaw(self, name):
        if name in self._slowed:
            ended, thread = self._slowed.pop(name)
            ended.set()
            thread.join()

    def signal(self, name, number):
        if number in (signal.SIGCONT, signal.SIGSTOP):
            self._thaw(name)
        self._running[name].send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self._running[name].pid, os.WSTOPPED | os.WNOWAIT)

    def running(self):
        return sorted(name for name, process in self._running.items() if process.poll() is None)

    def import_images(self, paths):
        """Gives every node the images of docker archives."""
        imports = [subprocess.Popen(
            [self.containerd / "ctr", "--address", str(node.containerd_socket), "--namespace", "k8s.io", "images", "import", str(path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for path in paths for node in self.nodes if self._await_containerd(node)]
        for each in imports:
            output = each.communicate()[0]
            if each.returncode != 0:
                raise RuntimeError(f"{' '.join(each.args)}:\n{output}")

    def set_gpus(self, number, count):
        """Sets the number of GPU stand-ins of a node."""
        node = self.nodes[number - 1]
        with self._lock:
            self._end_gpus(node)
            self.gpus[number] = count
            self._start_gpus(node)

    def cut_node(self, number):
        """Disconnects a node from the network, like a pulled cable. Its processes continue."""
        _run("ip", "link", "set", self.nodes[number - 1].name, "down")

    def join_node(self, number):
        _run("ip", "link", "set", self.nodes[number - 1].name, "up")

    def kill_node(self, number):
        """Kills every process of a node, like a power failure."""
        node = self.nodes[number - 1]
        for kind in ("kubelet", "containerd", "proxy"):
            if f"{kind}-{number}" in self.running():
                self.end(f"{kind}-{number}")
        for pid in _containers_of(node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not _containers_of(node), f"every process of {node.name} has ended")

    def start_node(self, number):
        for kind in ("containerd", "kubelet", *(["proxy"] if self.options.kube_proxy else [])):
            self.start(f"{kind}-{number}")

    def cut_address(self, number, address):
        """Drops every packet from or to the address of a pod, including those of open connections."""
        node = self.nodes[number - 1]
        rules = ["add table inet cut", "add set inet cut pods { type ipv4_addr; }"]
        for chain in ("forward", "input", "output"):
            rules += [f"add chain inet cut {chain} {{ type filter hook {chain} priority -10; }}",
                      f"flush chain inet cut {chain}",
                      f"add rule inet cut {chain} ip saddr @pods drop",
                      f"add rule inet cut {chain} ip daddr @pods drop"]
        _run(*self._in(node, "nft", "\n".join([*rules, f"add element inet cut pods {{ {address} }}"])))

    def join_address(self, number, address):
        _run(*self._in(self.nodes[number - 1], "nft", f"delete element inet cut pods {{ {address} }}"))

    # --- parts

    def _node_of(self, name):
        return self.nodes[int(name.rpartition("-")[2]) - 1]

    def _argv(self, name):
        kind = name.partition("-")[0]
        more = self.options.flags.get(kind, [])
        if name in self._added:
            return self._added[name]
        if name in ("etcd", "apiserver", "controllers", "scheduler", "coredns", "policies"):
            return [*self._control_plane(name), *more]
        node = self._node_of(name)
        return [*self._in(node, *self._on_node(kind, node)), *more]

    def _control_plane(self, name):
        programs = self.programs
        return {
            "etcd": lambda: [programs / "etcd", *etcd_flags(self.folder)],
            "apiserver": lambda: [self.api_programs / "kube-apiserver", *apiserver_flags(self.folder, self.options)],
            "controllers": lambda: [programs / "kube-controller-manager",
                                    *controllers_flags(self.folder, self.options)],
            "scheduler": lambda: [self.api_programs / "kube-scheduler", *scheduler_flags(self.folder)],
            "coredns": lambda: [programs / "coredns", "-conf", self.folder / "Corefile"],
            "policies": lambda: [sys.executable, "-B", Path(__file__).with_name("kubernetes_policies.py"), self.folder],
        }[name]()

    def _on_node(self, kind, node):
        return {
            # containerd finds its shim on PATH.
            "containerd": lambda: ["env", f"PATH={self.containerd}:/usr/sbin:/usr/bin:/sbin:/bin",
                                   self.containerd / "containerd", "--config", node.folder / "containerd.toml"],
            "kubelet": lambda: [self.api_programs / "kubelet", *kubelet_flags(node)],
            "proxy": lambda: [self.programs / "kube-proxy", f"--config={node.folder}/proxy.json"],
            "gpus": lambda: [self.programs / "gpu-stand-ins", f"--count={self.gpus[node.number]}",
                             f"--devices={node.folder}/gpus", f"--plugins={node.plugins}"],
        }[kind]()

    def _await_containerd(self, node):
        def answers():
            self._is_alive(f"containerd-{node.number}")
            with contextlib.suppress(RuntimeError):
                return _run(self.containerd / "ctr", "--address", node.containerd_socket, "version")

        until(answers, f"containerd of {node.name} answers")
        return True

    def _start_gpus(self, node, since=0):
        if self.gpus[node.number] == 0:
            return
        for number in range(self.gpus[node.number]):
            path = node.folder / "gpus" / f"nvidia{number}"
            if not path.exists():
                os.mknod(path, 0o020666, os.makedev(1, 3))  # another /dev/null
        # A kubelet that starts removes all sockets of the folder, and then makes its own.
        until(lambda: self._is_alive(f"kubelet-{node.number}") and _made_since(node.plugins / "kubelet.sock", since),
              "the kubelet's socket for plug-ins")
        self.start(f"gpus-{node.number}")

    def _end_gpus(self, node):
        process = self._running.get(f"gpus-{node.number}")
        if process and process.poll() is None:
            process.kill()
            process.wait()


def _tell(what):
    """Progress, for kubernetes_cluster.py."""
    print(json.dumps({"progress": what}), flush=True)


def _alternate(process, seconds, ended):
    while process.poll() is None and not ended.is_set():
        process.send_signal(signal.SIGSTOP)
        ended.wait(seconds)
        process.send_signal(signal.SIGCONT)
        ended.wait(_MOMENT)


def _made_since(path, moment):
    # Times of files may be a few milliseconds behind the clock.
    return path.exists() and path.stat().st_mtime >= moment - 0.1


def _is_ready(node):
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def _gpus_of(node):
    return int(node["status"]["allocatable"].get("nvidia.com/gpu", 0))


def _containers_of(node):
    """The shims of a node's containers, and all of their descendants."""
    parents, shims = {}, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"-address" in words and str(node.containerd_socket).encode() in words:
                    shims.append(int(entry.name))
    found, pending = [], shims
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending += parents.get(pid, [])
    return found


class _Answering(socketserver.StreamRequestHandler):
    """Handles the one request of a connection: a line {"call": NAME, "with": [ARGUMENTS]}, which is answered by a line
    {"result": ...} or {"error": ...}."""

    def handle(self):
        line = self.rfile.readline()
        if not line:
            return  # ClusterClient.enter() connects without a request
        request = json.loads(line)
        try:
            if not re.fullmatch("[a-z][a-z_]*", request["call"]):
                raise ValueError(f"no such call: {request['call']}")
            answer = {"result": getattr(self.server.supervisor, request["call"])(*request["with"])}
        except Exception as error:  # pylint: disable=broad-exception-caught
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def _inside(folder, cgroup):
    supervisor = Supervisor(folder, cgroup)
    try:
        supervisor.up()
    except BaseException as error:  # pylint: disable=broad-exception-caught
        ended = [name for name in supervisor._running if name not in supervisor.running()]
        print(json.dumps({"error": f"{type(error).__name__}: {error}\n" +
                          "".join(f"--- {name}:\n{supervisor.log_end(name)}" for name in ended)}), flush=True)
        raise SystemExit(1) from None
    with _Server(str(folder / "socket"), _Answering) as server:
        server.supervisor = supervisor
        print(json.dumps({"ready": API_URL}), flush=True)
        supervisor.quit = lambda: threading.Thread(target=server.shutdown).start()
        server.serve_forever()


def main():
    kind, folder, *rest = sys.argv[1:]
    if kind == "hold":
        _hold(Path(folder), "--detached" in rest)
    else:
        _inside(Path(folder), rest[0])


if __name__ == "__main__":
    main()
