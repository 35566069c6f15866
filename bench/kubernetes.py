"""Jobs on Kubernetes through Muster, compared with Kubeflow's MPI operator and with plain Kubernetes.

  start     from submit to the first line of rank 0, with 4 and with 16 workers:
              muster, mpi       muster submit mpi --follow -- mpirun ..., by Muster's own remote shell
              mpi-operator      an MPIJob of mpi-operator 0.6.0: sshd in the workers, mpirun in the launcher
              muster, plain     muster submit torch --follow -- echo ...: the same number of pods, no MPI
              indexed job       an Indexed Job with the same number of pods, by hand
            Aims: faster than the operator; at most 1.2 times the Indexed Job.
  calls     requests to the API server during the life of a job of 5 pods, from the audit log. Aim: at most 10 per pod.
  logs      one task prints 20 MB of lines: MB/s until the last byte has arrived at
              muster            muster submit --follow
              kubectl           kubectl logs --follow of the same program in a pod
            Aim: not slower than kubectl.
  jobs      100 short jobs, submitted one after the other: jobs a minute until the last has ended; and 100 Jobs of one
            pod by hand, which the cluster deletes when they have ended. Aim: 100.

The cluster is started for the benchmark (tests/kubernetes_cluster.py): etcd, the API server and two nodes on this
machine, with kube-proxy unless --no-kube-proxy is given. The subjects take turns. A job is deleted, and its pods are
gone, before the next one begins. No pod has requests or limits: runc is throttled while it starts a container with a
small CPU limit, so the benchmark would measure the limit. Requires root.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import MUSTER, interleaved, print_table, row, verdict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from kubernetes_cluster import Cluster  # noqa: E402
from kubernetes_engine import NODE_IMAGE, node_image  # noqa: E402
from kubernetes_operators import start_mpi_operator  # noqa: E402
from kubernetes_settings import IMAGES  # noqa: E402

SPACE = "default"
WORKERS = (4, 16)
ROUNDS = 3
LOG_BYTES = 20_000_000
JOBS = 100
AIM_RATIO = 1.2
AIM_CALLS = 10
AIM_JOBS = 100
FIRST = "first line"
LINES = f"yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c {LOG_BYTES}"
# Ranks and their launchers share two cores: a waiting process yields.
MPIRUN = ["mpirun", "--allow-run-as-root", "-bind-to", "none", "-mca", "pml", "ob1", "-mca", "btl", "tcp,self",
          "-mca", "mpi_yield_when_idle", "1"]


class Server:
    """A Muster server outside of the cluster."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="muster-bench-")
        home = Path(self._folder.name) / "home"
        settings = home / ".config" / "muster"
        settings.mkdir(parents=True)
        (settings / "server.yaml").write_text(f"kubernetes:\n  namespace: {SPACE}\n  node_image: {NODE_IMAGE}\n")
        self.environment = os.environ | self._cluster.environment | {
            "MUSTER_ENGINE": "kubernetes", "MUSTER_STATE_DIR": f"{self._folder.name}/state", "HOME": str(home)}
        self.muster("list")
        return self

    def __exit__(self, *ignored):
        self.muster("server", "--stop")
        self._folder.cleanup()

    def muster(self, *words):
        ran = subprocess.run([MUSTER, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise SystemExit(f"muster {' '.join(map(str, words))}: {ran.stderr}")
        return ran.stdout

    def first_line(self, *words):
        """Seconds from the command to the first line of rank 0."""
        start = time.monotonic()
        took = None
        with subprocess.Popen([MUSTER, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if took is None and FIRST in line:
                    took = time.monotonic() - start
            errors = process.stderr.read()
        if took is None or process.returncode != 0:
            raise SystemExit(f"muster {words}: {process.returncode} {errors}")
        return took

    def bytes_per_second(self, *words):
        start = time.monotonic()
        with subprocess.Popen([MUSTER, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            return speed_of(process.stdout, start, "muster")


def speed_of(stream, start, who):
    """MB/s of the program's bytes, counted from the first one that arrives."""
    received = 0
    while more := os.read(stream.fileno(), 1 << 20):
        if received == 0:
            start = time.monotonic()
        received += len(more)
    if received < LOG_BYTES:
        print(f"{who}: only {received} of {LOG_BYTES} bytes arrived", file=sys.stderr)
    return LOG_BYTES / (time.monotonic() - start) / 1e6


def pods(cluster, selector=""):
    query = f"?labelSelector={selector.replace('=', '%3D').replace(',', '%2C')}" if selector else ""
    return cluster.api.get(f"/api/v1/namespaces/{SPACE}/pods{query}")["items"]


def no_pods(cluster):
    cluster.until(lambda: not pods(cluster), "no pods are left", bound=300)


def follow(cluster, selector):
    """Starts `kubectl logs --follow` of the first pod with these labels once the pod runs."""
    def running():
        return next((pod["metadata"]["name"] for pod in pods(cluster, selector)
                     if pod["status"]["phase"] in ("Running", "Succeeded")), None)
    name = cluster.until(running, f"a pod with {selector} runs", bound=300)
    return subprocess.Popen([cluster.programs / "kubectl", "logs", "--follow", "-n", SPACE, name],
                            env=os.environ | cluster.environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def seconds_by_kubectl(cluster, created, selector, remove):
    """Seconds from the creation of an object to the first line of one of its pods; None if it failed. (On a busy
    machine a launcher of the operator fails if the name of a worker cannot be resolved in time.)"""
    start = time.monotonic()
    created()
    lines = []
    with follow(cluster, selector) as process:
        took = None
        for line in process.stdout:
            lines.append(line)
            if took is None and FIRST.encode() in line:
                took = time.monotonic() - start
    remove()
    no_pods(cluster)
    if took is None:
        print(f"a pod with {selector} ended without its line: {b''.join(lines[-20:]).decode()}", file=sys.stderr)
    return took


def indexed_job(name, count):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": SPACE}, "spec": {
        "completionMode": "Indexed", "completions": count, "parallelism": count, "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": IMAGES["busybox"], "imagePullPolicy": "IfNotPresent",
            "command": ["echo", FIRST]}]}}}}


def mpi_job(name, count):
    # The launcher is created when the workers are ready: without a probe, before their sshd listens.
    probe = {"readinessProbe": {"tcpSocket": {"port": 22}, "periodSeconds": 1}}

    def replica(number, command, more=None):
        return {"replicas": number, "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": IMAGES["debian"], "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", command]} | (more or {})]}}}
    # The image of the tests has no host keys. One key is quicker than the three of `ssh-keygen -A`.
    serve = ("mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; "
             "exec /usr/sbin/sshd -De -o StrictModes=no")
    launch = ("echo 'StrictHostKeyChecking no' >>/etc/ssh/ssh_config; exec " +
              " ".join([*MPIRUN, "-np", str(count), "echo", f"'{FIRST}'"]))
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name, "namespace": SPACE},
            "spec": {"launcherCreationPolicy": "WaitForWorkersReady", "slotsPerWorker": 1, "mpiReplicaSpecs": {
                "Launcher": replica(1, launch),
                "Worker": replica(count, serve, probe)}}}


def measure_start(cluster, server, rounds, sizes):
    numbers = itertools.count()

    def muster(kind, count, image, *command):
        name = f"start-{next(numbers)}"
        # A torch job of N tasks has a master and N - 1 workers.
        workers = count if kind == "mpi" else count - 1
        took = server.first_line("submit", kind, name, "--image", IMAGES[image], "--workers", workers, "--follow", "--",
                                 *command)
        server.muster("delete", name)
        no_pods(cluster)
        return took

    def by_hand(made, count, path, labels):
        while True:
            name = f"start-{next(numbers)}"
            took = seconds_by_kubectl(
                cluster, lambda: cluster.api.post(path, made(name, count)), labels.format(name),
                lambda: cluster.api.delete(f"{path}/{name}", {"propagationPolicy": "Background"}))
            if took is not None:
                return took

    rows = []
    for count in sizes:
        samples = interleaved({
            "muster, mpi": lambda: muster("mpi", count, "debian", *MPIRUN, "-np", count, "echo", FIRST),
            "mpi-operator": lambda: by_hand(
                mpi_job, count, f"/apis/kubeflow.org/v2beta1/namespaces/{SPACE}/mpijobs",
                "training.kubeflow.org/job-name={},training.kubeflow.org/job-role=launcher"),
            "muster, plain": lambda: muster("torch", count, "busybox", "echo", FIRST),
            "indexed job": lambda: by_hand(
                indexed_job, count, f"/apis/batch/v1/namespaces/{SPACE}/jobs",
                "job-name={},batch.kubernetes.io/job-completion-index=0")}, rounds)
        medians = {name: statistics.median(figures) for name, figures in samples.items()}
        rows += [row(f"{name}, {count} workers: to the first line", figures, "s", 2)
                 for name, figures in samples.items()]
        for ours, other, aim in (("muster, mpi", "mpi-operator", 1.0), ("muster, plain", "indexed job", AIM_RATIO)):
            ratio = medians[ours] / medians[other]
            rows.append([f"{ours} / {other}, {count} workers", f"{ratio:.2f}", "", "", "ratio",
                         f"at most {aim}  {verdict(ratio <= aim)}"])
    return rows


def requests_by(cluster, agent, since):
    """The number of requests of a program in the audit log, from byte `since` on."""
    found = {}
    with open(cluster.folder / "log" / "audit.log") as log:
        log.seek(since)
        for line in log:
            entry = json.loads(line) if line.endswith("\n") else {}
            if entry.get("stage") == "ResponseComplete" and entry.get("userAgent", "").startswith(agent):
                what = entry.get("objectRef", {})
                key = f"{entry['verb']} {what.get('resource', '')}" + (
                    f"/{what['subresource']}" if what.get("subresource") else "")
                found[key] = found.get(key, 0) + 1
    return found


def measure_calls(cluster, server):
    count = 4
    log = cluster.folder / "log" / "audit.log"
    since = log.stat().st_size
    server.muster("submit", "mpi", "calls", "--image", IMAGES["debian"], "--workers", count, "--follow", "--", *MPIRUN,
                  "-np", count, "echo", FIRST)
    server.muster("delete", "calls")
    no_pods(cluster)
    requests = {key: number for key, number in requests_by(cluster, "muster", since).items()
                if not key.startswith("watch")}
    print("requests of one job of 5 pods:", json.dumps(requests, sort_keys=True), file=sys.stderr)
    calls = sum(requests.values())
    return [["requests of a job of 5 pods", str(calls), "", "", "", ""],
            ["requests a pod", f"{calls / (count + 1):.1f}", "", "", "",
             f"at most {AIM_CALLS}  {verdict(calls / (count + 1) <= AIM_CALLS)}"]]


def measure_logs(cluster, server, rounds):
    numbers = itertools.count()

    def muster():
        name = f"logs-{next(numbers)}"
        speed = server.bytes_per_second("submit", "single", name, "--image", IMAGES["busybox"], "--follow", "--", "sh",
                                        "-c", LINES)
        server.muster("delete", name)
        no_pods(cluster)
        return speed

    def kubectl():
        name = f"logs-{next(numbers)}"
        cluster.api.post(f"/api/v1/namespaces/{SPACE}/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{
                    "name": "main", "image": IMAGES["busybox"], "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", LINES]}]}})
        with follow(cluster, f"app={name}") as process:
            speed = speed_of(process.stdout, time.monotonic(), "kubectl")
        cluster.api.delete(f"/api/v1/namespaces/{SPACE}/pods/{name}")
        no_pods(cluster)
        return speed

    samples = interleaved({"muster": muster, "kubectl": kubectl}, rounds)
    ratio = statistics.median(samples["muster"]) / statistics.median(samples["kubectl"])
    return [row(f"{name}: log of a task", figures, "MB/s", 1) for name, figures in samples.items()] + [
        ["muster / kubectl", f"{ratio:.2f}", "", "", "ratio", f"at least 1  {verdict(ratio >= 1)}"]]


def jobs_a_minute(names, submit, await_ends):
    """Submits jobs one after the other; counts until the last one has ended."""
    start = time.monotonic()
    for name in names:
        submit(name)
    await_ends()
    return len(names) / (time.monotonic() - start) * 60


def measure_jobs(cluster, server, rounds):
    rounds_begun = itertools.count()
    path = f"/apis/batch/v1/namespaces/{SPACE}/jobs"

    def names_of(kind):
        begun = next(rounds_begun)
        return [f"{kind}-{begun}-{number}" for number in range(JOBS)]

    def muster():
        names = names_of("short")
        rate = jobs_a_minute(names, lambda name: server.muster("submit", "single", name, "--image", IMAGES["busybox"],
                                                               "--", "true"),
                             lambda: server.muster("wait", *names))
        no_pods(cluster)
        server.muster("delete", *names)
        return rate

    def bare(name):
        job = indexed_job(name, 1)
        job["spec"]["template"]["spec"]["containers"][0]["command"] = ["true"]
        job["spec"]["ttlSecondsAfterFinished"] = 0  # its pod is deleted when it has ended, as Muster's are
        cluster.api.post(path, job)

    def by_hand():
        rate = jobs_a_minute(names_of("bare"), bare, lambda: cluster.until(
            lambda: not cluster.api.get(f"{path}?limit=1")["items"], "all jobs have ended", bound=600))
        no_pods(cluster)
        return rate

    samples = interleaved({"muster": muster, "job of one pod": by_hand}, rounds)
    rows = [row(f"{name}: short jobs a minute", figures, "", 0) for name, figures in samples.items()]
    rate = statistics.median(samples["muster"])
    rows[0][-1] = f"at least {AIM_JOBS}  {verdict(rate >= AIM_JOBS)}"
    ratio = rate / statistics.median(samples["job of one pod"])
    return [*rows, ["muster / job of one pod", f"{ratio:.2f}", "", "", "ratio", ""]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("parts", nargs="*", default=["start", "calls", "logs", "jobs"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    parser.add_argument("--no-kube-proxy", action="store_true")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(images=["busybox", "debian"], audit=True,
                                              kube_proxy=not arguments.no_kube_proxy))
        cluster.import_image(node_image(stack.enter_context(tempfile.TemporaryDirectory(prefix="mk-"))))
        if "start" in arguments.parts:
            start_mpi_operator(cluster)
        server = stack.enter_context(Server(cluster))
        measured = {"start": lambda: measure_start(cluster, server, arguments.rounds, arguments.workers),
                    "calls": lambda: measure_calls(cluster, server),
                    "logs": lambda: measure_logs(cluster, server, arguments.rounds),
                    "jobs": lambda: measure_jobs(cluster, server, arguments.rounds)}
        rows = []
        for part in arguments.parts:
            rows += measured[part]()
        print_table(rows)


if __name__ == "__main__":
    main()
