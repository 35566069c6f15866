"""Muster's server on a large Kubernetes cluster: 1,000 nodes, and 500 gangs of 20 pods each.

The API server, etcd, the controllers and the scheduler are real. kwok simulates the nodes and their kubelets, so the
pods run no program. Muster waits for the muster-node of each pod before it starts a gang. Here one process,
bench/kubernetes/fake_nodes.cc, imitates all muster-nodes: for each pod that kwok reports as running, it connects to the
server (kubernetes.connect: call) and uses the real protocol, with the key from the Secret of the gang. So the server
does the same work as with real pods, except for logs and metrics, which the fake nodes do not send.

The benchmark prints: the time from the first submit until all pods are created, until all run, and until all tasks have
started; memory, open files and CPU time of the server; the number of requests of the server to the API server in total,
per minute and per pod (from the audit log), and of its lists without a page limit; the time from stopping the jobs
until all pods are gone. Aim: at most 10 requests per pod, and no unpaged list.

Requires root. --nodes, --gangs and --pods reduce the size.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import BUILD, MUSTER, print_table, verdict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from kubernetes_cluster import Cluster  # noqa: E402
from kubernetes_operators import add_simulated_nodes, start_kwok  # noqa: E402

SPACE = "default"
PORT = 7445
AIM_CALLS = 10
OTHER_FILES = 200  # of the server
MOST_DOCUMENTS = 100  # of a job file
JOB = """kind: torch
name: gang-{number}
image: localhost/any:1
workers: {workers}
resources: {{cpus: 1}}
command: ["true"]
"""
FAKE_NODES = BUILD / "bench" / "kubernetes" / "fake_nodes"


class Server:
    def __init__(self, cluster, folder):
        home = Path(folder) / "home"
        settings = home / ".config" / "muster"
        settings.mkdir(parents=True)
        (settings / "server.yaml").write_text(
            f"kubernetes:\n  namespace: {SPACE}\n  connect: call\n  callback: '{cluster.address}:{PORT}'\n"
            "  pod_timeout: 1h\n  tolerations: ['kwok.x-k8s.io/node']\n")
        self.environment = os.environ | cluster.environment | {
            "MUSTER_ENGINE": "kubernetes", "MUSTER_STATE_DIR": f"{folder}/state", "HOME": str(home)}
        self.muster("list")

    def muster(self, *words):
        ran = subprocess.run([MUSTER, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise SystemExit(f"muster {' '.join(map(str, words))}: {ran.stderr}")
        return ran.stdout

    def _process(self):
        return Path(f"/proc/{json.loads(self.muster('version', '-o', 'json'))['server']['pid']}")

    def megabytes(self):
        return int((self._process() / "status").read_text().split("VmRSS:")[1].split()[0]) / 1024

    def open_files(self):
        return len(list((self._process() / "fd").iterdir()))

    def cpu_seconds(self):
        fields = (self._process() / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class FakeNodes:
    """Watches the pods of the namespace, and connects a fake muster-node for each running pod."""

    def __init__(self, cluster, total):
        self._cluster = cluster
        self._total = total
        self._briefs = {}
        self._seen = set()
        self._ends = False
        self.created = self.running = self.started = None
        self._process = subprocess.Popen([FAKE_NODES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._follow, self._count)]
        for thread in self._threads:
            thread.start()

    def are_gone(self):
        return not self._cluster.api.get(f"/api/v1/namespaces/{SPACE}/pods?limit=1")["items"]

    def _brief(self, gang):
        if gang not in self._briefs:
            import base64
            secret = self._cluster.api.get(f"/api/v1/namespaces/{SPACE}/secrets/{gang}")
            self._briefs[gang] = base64.b64decode(secret["data"]["brief"]).decode()
        return self._briefs[gang]

    def _follow(self):
        created = set()
        while not self._ends:
            for kind, pod in self._cluster.api.watch(f"/api/v1/namespaces/{SPACE}/pods"):
                if self._ends:
                    return
                if kind in ("ADDED", "MODIFIED"):
                    created.add(pod["metadata"]["uid"])
                    self._take(pod)
                if len(created) >= self._total and not self.created:
                    self.created = time.monotonic()

    def _take(self, pod):
        uid = pod["metadata"]["uid"]
        if pod["status"]["phase"] != "Running" or uid in self._seen:
            return
        self._seen.add(uid)
        variables = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        self._process.stdin.write(json.dumps({
            "brief": self._brief(pod["metadata"]["labels"]["muster.dev/gang"]), "uid": uid,
            "index": int(variables["MUSTER_POD_INDEX"]), "node": pod["spec"]["nodeName"]}) + "\n")
        self._process.stdin.flush()
        if len(self._seen) >= self._total:
            self.running = time.monotonic()

    def _count(self):
        for number, _ in enumerate(self._process.stdout, 1):
            if number == self._total:
                self.started = time.monotonic()

    def close(self):
        self._ends = True  # the thread of the watch ends with this process
        self._process.stdin.close()
        self._process.wait()


def requests_of_server(cluster):
    """The server's requests by verb and resource, and its lists without a page limit."""
    found, unpaged = {}, []
    for line in open(cluster.folder / "log" / "audit.log"):
        if '"userAgent":"muster' not in line or not line.endswith("\n"):
            continue
        entry = json.loads(line)
        what = entry.get("objectRef", {})
        is_begin = entry["verb"] == "watch" and entry["stage"] == "ResponseStarted"
        if entry["stage"] != "ResponseComplete" and not is_begin:
            continue
        key = f"{entry['verb']} {what.get('resource', '')}"
        if entry["verb"] != "watch" or is_begin:
            found[key] = found.get(key, 0) + 1
        if entry["verb"] == "list" and "limit=" not in entry["requestURI"]:
            unpaged.append(entry["requestURI"])
    return found, unpaged


def most_gangs(pods):
    """The number of gangs for which the server has descriptors: one for each task, except for an eighth of the
    limit."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = (files - files // 8 - OTHER_FILES) // pods
    print(f"at most {most} gangs: the limit of open files is {files}", file=sys.stderr)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=500)
    parser.add_argument("--pods", type=int, default=20, help="of each gang")
    arguments = parser.parse_args()
    arguments.gangs = min(arguments.gangs, most_gangs(arguments.pods))
    total = arguments.gangs * arguments.pods
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(nodes=0, grace_seconds=100000, audit=True))
        start_kwok(cluster)
        add_simulated_nodes(cluster, arguments.nodes, {"nvidia.com/gpu": "8"})
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-"))
        server = Server(cluster, folder)
        stack.callback(server.muster, "server", "--stop")
        before = server.megabytes()
        cpu_before = server.cpu_seconds()
        nodes = FakeNodes(cluster, total)
        stack.callback(nodes.close)
        begin = time.monotonic()
        jobs = Path(folder) / "jobs.yaml"
        for first in range(0, arguments.gangs, MOST_DOCUMENTS):
            jobs.write_text("---\n".join(JOB.format(number=number, workers=arguments.pods - 1) for number in range(
                first, min(first + MOST_DOCUMENTS, arguments.gangs))))
            server.muster("submit", "-f", jobs)
        submitted = time.monotonic()
        cluster.until(lambda: nodes.started, "all tasks have started", bound=3600)
        memory = server.megabytes()
        files = server.open_files()
        cpu = server.cpu_seconds() - cpu_before
        requests, unpaged = requests_of_server(cluster)
        minutes = (nodes.started - begin) / 60
        stopping = time.monotonic()
        server.muster("stop", *(f"gang-{number}" for number in range(arguments.gangs)))
        cluster.until(nodes.are_gone, "all pods are gone", bound=3600)
        gone = time.monotonic() - stopping
        whole, unpaged = requests_of_server(cluster)
        print("requests:", json.dumps(whole, sort_keys=True), file=sys.stderr)
        calls = sum(whole.values())
        print_table([
            [f"{arguments.nodes} nodes, {arguments.gangs} gangs of {arguments.pods} pods: submitted",
             f"{submitted - begin:.1f}", "", "", "s", ""],
            ["all pods created", f"{nodes.created - begin:.1f}", "", "", "s", ""],
            ["all pods run", f"{nodes.running - begin:.1f}", "", "", "s", ""],
            ["all tasks started", f"{nodes.started - begin:.1f}", "", "", "s", ""],
            ["all pods gone after the stop", f"{gone:.1f}", "", "", "s", ""],
            ["memory of the server before", f"{before:.0f}", "", "", "MB", ""],
            ["memory of the server, all running", f"{memory:.0f}", "", "", "MB", ""],
            ["open files of the server, all running", str(files), "", "", "", ""],
            ["CPU time of the server until all have started", f"{cpu:.1f}", "", "", "s", ""],
            ["requests a minute until all have started", f"{sum(requests.values()) / minutes:.0f}", "", "", "", ""],
            ["requests a pod over its life", f"{calls / total:.2f}", "", "", "",
             f"at most {AIM_CALLS}  {verdict(calls / total <= AIM_CALLS)}"],
            ["lists without a page limit", str(len(unpaged)), "", "", "", f"0  {verdict(not unpaged)}"]])


if __name__ == "__main__":
    main()
