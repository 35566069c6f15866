#!/usr/bin/env python3
"""Jobs on Kubernetes, as their users see them: every kind of job with its host names, files, ranks and GPUs, in pods
that meet the level "restricted" of Pod Security."""

import json
import math
import os
import re
import resource
import subprocess
import tempfile
from pathlib import Path

from docs_pages import blocks_of
from kubernetes_engine import make_storage
from kubernetes_harness import NAMESPACE, WAIT, KubernetesTest, renamed
from muster_harness import BOUND, DOCUMENTS_MPIRUN, MPIRUN, MUSTER, ROOT, main


class Jobs(KubernetesTest):
    CLUSTER = {"gpus": 2}

    def test_a_task_has_a_hostname_and_files_of_its_own_and_its_exit_code_is_the_jobs(self):
        ran = self.muster.run("submit", "single", "hello", *self.SMALL, "--follow", "--", "sh", "-c",
                              "hostname; id -u; echo err >&2; ls -d /generated; exit 7", code=7)

        self.assertEqual(sorted(ran.stdout.splitlines()),
                         ["[main] /generated", "[main] 1000", "[main] err", "[main] hello-main"])
        self.assertRegex(ran.stderr, r"hello +Failed +7 ")

    def test_the_documents_command_runs_each_rank_on_a_node_of_its_own(self):
        self.cluster.label("node-1", **{"topology.kubernetes.io/zone": "a"})
        ran = self.muster.run("submit", "mpi", "dist", *self.IMAGE, "--workers", 2, "--packing", "spread", "--launch",
                              "agent", "--cpus", "0.2", "--memory", "200Mi", "--follow", "--", *DOCUMENTS_MPIRUN, "sh",
                              "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"
                              "; cat /generated/hostfile")

        ranks = [line for line in ran.stdout.splitlines() if not line.startswith("[launcher]")]
        self.assertEqual(sorted(ranks), sorted(
            line for rank in (0, 1) for line in (
                f"[{rank}@dist-worker-{rank}] rank {rank} of 2 on dist-worker-{rank}",
                f"[{rank}@dist-worker-{rank}] dist-worker-0 slots=1",
                f"[{rank}@dist-worker-{rank}] dist-worker-1 slots=1")))
        tasks = {task["name"]: task["node"] for task in self.muster.job("dist")["tasks"]}
        self.assertNotEqual(tasks["worker-0"], tasks["worker-1"])

    def test_ssh_needs_an_account_that_the_image_knows(self):
        ran = self.muster.run("submit", "mpi", "dist", *self.IMAGE, "--workers", 2, "--launch", "ssh", "--follow", "--",
                              *MPIRUN, "hostname", code=1)

        self.assertIn("has no name for user 1000, which ssh requires", ran.stderr)

    def test_a_tensorflow_cluster_has_the_addresses_of_its_tasks(self):
        # The others are stopped soon after the chief ends.
        self.muster.run("submit", "grpc", "net", *self.SMALL, "--workers", 1, "--parameter-servers", 1, "--", "sh", "-c",
                        f"echo \"$TF_CONFIG\"; case $MUSTER_TASK in ps-*) sleep 1000;; chief) {WAIT};; esac")
        logs = self.muster.stream("logs", "net", "-f")
        for _ in range(3):
            logs.until("{")
        self.muster.run("exec", "net", "--task", "chief", "--", "touch", "/tmp/go")
        self.assertEqual(logs.finish(), 0)

        said = dict(re.findall(r"^\[(\S+)\] (\{.*\})$", logs.text, re.MULTILINE))
        self.assertEqual(set(said), {"chief", "worker-0", "ps-0"})
        for task, text in said.items():
            self.assertEqual(json.loads(text)["task"]["type"], task.partition("-")[0])

    def test_the_ranks_of_a_torch_job_meet_at_the_master_by_its_name(self):
        meet = ("import os, socket\n"
                "where = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
                "if os.environ['RANK'] == '0':\n"
                "    with socket.create_server(('', where[1])) as server:\n"
                "        print('heard', server.accept()[0].recv(100).decode(), flush=True)\n"
                "else:\n"
                "    while True:\n"
                "        try:\n"
                "            socket.create_connection(where).sendall(b'rank ' + os.environ['RANK'].encode())\n"
                "            break\n"
                "        except ConnectionRefusedError:\n"
                "            pass\n")
        ran = self.muster.run("submit", "torch", "ddp", *self.IMAGE, "--workers", 1, "--follow", "--", "python3", "-c",
                              meet)

        self.assertIn("heard rank 1", ran.stdout)

    def test_a_task_gets_the_gpus_of_its_pod_and_the_scheduler_counts_them(self):
        ran = self.muster.run("submit", "single", "gpus", *self.SMALL, "--gpus", 2, "--follow", "--", "sh", "-c",
                              "echo sees $CUDA_VISIBLE_DEVICES")

        # The device plug-in has chosen the GPUs and given their names.
        seen = re.search(r"sees (\S+)", ran.stdout)[1]
        self.assertEqual(set(seen.split(",")), {"GPU-stand-in-0", "GPU-stand-in-1"})
        refused = self.muster.run("submit", "single", "many", *self.SMALL, "--gpus", 3, "--", "true", code=None)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("can never start here", refused.stderr)

    def test_files_of_a_workspace_go_to_the_pod_and_artifacts_come_back(self):
        folder = self.muster.work / "code"
        folder.mkdir()
        (folder / "data.txt").write_text("from here\n")

        self.muster.run("submit", "single", "files", *self.SMALL, "--workspace", folder, "--artifacts", "--follow", "--", "sh", "-c", "cat data.txt > /artifacts/copy")

        self.muster.run("artifacts", "get", "files", "copy", "--to", self.muster.work / "out")
        self.assertEqual((self.muster.work / "out" / "copy").read_text(), "from here\n")

    def test_bash_exec_logs_explain_and_stop_work_in_a_pod(self):
        self.submit("job", f"echo up; {WAIT}; echo over")
        self.muster.await_phase("job", "Running")

        self.assertEqual(self.muster.run("exec", "job", "--", "hostname").stdout, "job-main\n")
        self.cluster.until(lambda: "up" in self.muster.logs("job"), "its output is in the log")
        self.assertIn("Running", self.muster.run("explain", "job").stdout)
        pod = self.muster.pods("job")["main"]
        self.assertEqual(pod["metadata"]["labels"]["muster.dev/job-name"], "job")
        services = self.cluster.kubectl("get", "services", "-n", NAMESPACE, "-o", "name")
        self.assertEqual(services, "", "a single task has no Service, because no other task looks its name up")
        self.muster.run("stop", "job")
        self.assertEqual(self.muster.ended("job")["phase"], "Stopped")
        self.cluster.until(lambda: not self.muster.pods("job"), "its pods are gone")
        self.muster.run("delete", "job")

    def test_a_command_that_ends_its_own_job_returns_its_exit_code_and_output(self):
        # The job ends once the command has ended, so no exit code but that of the command is right.
        self.submit("job", "while [ ! -s /tmp/pid ]; do sleep 0.02; done; "
                           "while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.02; done")
        self.muster.await_phase("job", "Running")

        ran = self.muster.run("exec", "job", "--", "sh", "-c", "echo $$ >/tmp/pid; echo bye; exit 7", code=7)

        self.assertEqual(ran.stdout, "bye\n")
        self.ends_well("job")

    def test_a_job_waits_while_the_server_has_too_few_descriptors_for_its_pods(self):
        self.muster.run("node", "list")
        server = self.muster.server_pid()
        limits = resource.prlimit(server, resource.RLIMIT_NOFILE)
        self.assertEqual(limits[0], limits[1], "the server raises its soft limit")
        # Seven of eight are for connections to pods; of these, five are left.
        few = math.ceil((len(os.listdir(f"/proc/{server}/fd")) + 5) * 8 / 7)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (few, limits[1]))

        self.submit("job", "true", "--workers", 9, kind="torch")

        self.muster.await_words("job", f"the server's limit of open files, {few}, leaves too few for its 10 pods")
        self.assertEqual(self.muster.pods("job"), {})
        resource.prlimit(server, resource.RLIMIT_NOFILE, limits)
        self.ends_well("job")

    def test_options_for_kubernetes_select_the_node_of_a_job(self):
        self.cluster.label("node-2", disk="ssd")
        self.cluster.taint("node-2", "dedicated=train:NoSchedule")
        try:
            flags = ["--kubernetes-node-selector", "disk=ssd", "--kubernetes-label", "team=blue",
                     "--kubernetes-annotation", "example.com/note=a note"]
            # A server that has just started does not know the nodes yet, and would accept the job.
            self.cluster.until(lambda: "node-2" in self.muster.run("node", "list").stdout, "the server knows the nodes")
            refused = self.muster.run("submit", "single", "never", *self.SMALL, *flags, "--", "true", code=4)
            self.assertIn("can never start here", refused.stderr)
            self.submit("job", f"echo on; {WAIT}", *flags, "--kubernetes-toleration", "dedicated=train:NoSchedule")
            self.muster.await_phase("job", "Running")
            pod = self.muster.pods("job")["main"]
            self.assertEqual(pod["spec"]["nodeName"], "node-2")
            self.assertEqual(pod["metadata"]["labels"]["team"], "blue")
            self.go("job")
            self.ends_well("job")
        finally:
            self.cluster.taint("node-2")
            self.cluster.label("node-2", disk=None)

    def test_settings_that_kubernetes_does_not_support_are_refused_and_named(self):
        cases = (
            (["--user", "ada"], "not a number"),
            (["--gpu-share", "0.5"], "whole GPUs only"),
            (["--sandbox", "none"], "always isolates"),
        )
        for flags, words in cases:
            ran = self.muster.run("submit", "single", "no", *self.SMALL, *flags, "--", "true", code=None)
            self.assertNotEqual(ran.returncode, 0, flags)
            self.assertIn(words, ran.stderr)
        ran = self.muster.run("submit", "single", "no", *self.SMALL, code=None)
        self.assertIn("the command of an image cannot be read", ran.stderr)


class ObjectsOfTheNamespace(KubernetesTest):
    """Secrets and ConfigMaps of the namespace, and job files of Kubernetes with init containers and sidecars."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hf", "namespace": NAMESPACE},
             "stringData": {"token": "abc", "other": "xyz"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code", "namespace": NAMESPACE},
             "data": {"train.sh": "echo trains with $(cat /etc/hf/token)"}})

    def test_secrets_and_config_maps_are_mounted_whole_or_by_key(self):
        ran = self.muster.run("submit", "single", "job", *self.SMALL, "--kubernetes-claim", "secret:hf/token:/etc/hf/token",
                              "--kubernetes-claim", "secret:hf:/all", "--kubernetes-claim", "configmap:code:/code",
                              "--follow", "--", "sh", "-c", "ls /all /etc/hf; sh /code/train.sh; echo x > /code/new || echo read-only")

        lines = [line.removeprefix("[main] ") for line in ran.stdout.splitlines()]
        self.assertEqual(lines.count("token"), 2)
        self.assertEqual(lines.count("other"), 1)
        self.assertIn("trains with abc", lines)
        self.assertIn("read-only", lines)

    def test_a_job_waits_until_its_missing_config_map_exists(self):
        self.submit("job", "cat /later/file", "--kubernetes-claim", "configmap:later:/later")
        self.muster.await_words("job", 'configmap "later" not found')

        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later", "namespace": NAMESPACE},
                            "data": {"file": "here\n"}})

        self.ends_well("job")
        self.assertIn("here", self.muster.logs("job"))

    FILE = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: beside}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          volumes: [{{name: data, emptyDir: {{}}}}]
          initContainers:
          - name: fetch
            image: {image}
            imagePullPolicy: IfNotPresent
            command: [sh, -c, '{fetch}']
            env: [{{name: WHAT, value: fetched}}]
            volumeMounts: [{{name: data, mountPath: /out}}]
          containers:
          - name: pytorch
            image: {image}
            imagePullPolicy: IfNotPresent
            command: [sh, -c, 'until [ -e /data/beside ]; do sleep 0.1; done; cat /data/file']
            volumeMounts: [{{name: data, mountPath: /data}}]
          - name: log
            image: {image}
            imagePullPolicy: IfNotPresent
            command: [sh, -c, 'touch /data/beside; exec sleep 100000']
            volumeMounts: [{{name: data, mountPath: /data}}]
"""

    def submit_beside(self, fetch):
        text = self.FILE.format(image=self.SMALL[1], fetch=fetch)
        return self.muster.run("submit", "-f", "-", input=text)

    def test_init_containers_run_before_the_tasks_and_sidecars_beside_them(self):
        self.submit_beside("echo $WHAT $(hostname) > /out/file; touch /out/ready")

        self.ends_well("beside")
        logs = self.muster.logs("beside")
        for host in ("beside-master", "beside-worker-0"):
            self.assertIn(f"fetched {host}", logs)
        self.cluster.until(lambda: not self.muster.pods("beside"), "its sidecars are gone")

    def test_an_init_container_that_fails_is_named_with_its_last_words(self):
        self.submit_beside("echo there is no data; exit 3")

        self.muster.await_words("beside", "ended with code 3: there is no data")
        # Of the task whose container failed first.
        self.assertRegex(self.muster.run("explain", "beside").stdout, "init container fetch of (master|worker-0) ended")
        self.muster.run("stop", "beside")

    def test_explain_names_an_init_container_that_runs(self):
        self.submit_beside("until [ -e /out/go ]; do sleep 0.1; done")

        self.muster.await_words("beside", "runs init container fetch")
        self.muster.run("stop", "beside")
        self.assertEqual(self.muster.ended("beside")["phase"], "Stopped")


class SharedArtifacts(KubernetesTest):
    """The tasks of a job have one /artifacts, in a claim of each attempt. A storage class without a provisioner stands in
    for one of a network file system; its volume is a folder of this machine, which all nodes see."""

    SETTINGS = {"artifacts_class": "shared", "artifacts_size": "1Gi"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="mk-"))) / "shared"
        folder.parent.chmod(0o755)
        folder.mkdir()
        folder.chmod(0o777)
        cls.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "shared"},
                           "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "shared",
                                    "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}}})

    def test_artifacts_are_seen_by_all_tasks_and_are_copied_to_the_server(self):
        each = ("cd /artifacts; mkdir $MUSTER_TASK; hostname > $MUSTER_TASK/name; "
                "until [ -e master/name ] && [ -e worker-0/name ]; do sleep 0.1; done; cat */name")
        ran = self.muster.run("submit", "torch", "job", *self.SMALL, "--workers", 1, "--packing", "spread", "--artifacts",
                              "--set", "success=all", "--follow", "--", "sh", "-c", each)

        for task in ("master", "worker-0"):
            for host in ("job-master", "job-worker-0"):
                self.assertIn(f"[{task}] {host}", ran.stdout)
        listed = self.muster.run("artifacts", "list", "job").stdout
        self.assertIn("master/name", listed)
        self.assertIn("worker-0/name", listed)
        self.cluster.until(lambda: not self.cluster.kubectl("get", "pvc", "-n", NAMESPACE, "-o", "name").split(),
                           "its claim is gone")


class ThePage(KubernetesTest):
    """The commands of docs/kubernetes.md that this cluster can run as printed. TheDocuments has the commands of
    Gradient and Run:AI."""

    def type(self, beginning):
        """Types the block of the page with this beginning. Returns its output."""
        block, = (block for block in blocks_of("kubernetes.md") if block.text.startswith(beginning))
        environment = self.muster.environment | {
            "PATH": f"{MUSTER.parent}:{self.cluster.programs}:{os.environ['PATH']}"}
        del environment["MUSTER_ENGINE"]
        ran = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], env=environment, capture_output=True,
                             text=True, cwd=self.muster.work, timeout=BOUND)
        self.assertEqual(ran.returncode, 0, f"{block}:\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def test_the_first_job(self):
        self.assertIn("kubernetes", self.type("muster doctor"))
        printed = self.type("export MUSTER_ENGINE")
        self.assertIn("[main] hello from hello-main", printed)
        self.assertIn("dist-worker-1", printed)

    def test_the_pods_of_a_job_are_found_by_their_labels(self):
        self.submit("dist", f"echo up; {WAIT}")
        self.muster.await_phase("dist", "Running")

        self.assertIn("Running", self.type("kubectl get pods"))
        self.go("dist")
        self.ends_well("dist")


class TheDocuments(KubernetesTest):
    """The commands of the documents of Gradient and Run:AI. Each image that they name is replaced by Debian with Open
    MPI."""

    CLUSTER = {"gpus": 2}
    HOROVOD = "horovod/horovod:0.18.1-tf1.14.0-torch1.2.0-mxnet1.5.0-py3.6"
    SETTINGS = {"storage_claim": "storage"}
    MORE = "machine_types:\n  p2.xlarge: {gpus: 1}\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="mk-")))
        names = [f"docker.io/{cls.HOROVOD}", "docker.io/library/horovod:latest", "docker.io/library/ubuntu:latest"]
        images = Path(subprocess.run([ROOT / "scripts/kubernetes_images.sh", "--find"], capture_output=True, text=True,
                                     check=True).stdout.strip())
        folder.chmod(0o755)
        make_storage(cls.cluster, folder / "storage", NAMESPACE)
        cls.cluster.import_image(renamed(images / "muster-test-debian.tar", folder / "documents.tar", *names))

    def test_the_experiment_of_gradient_runs_on_the_pods_of_its_workers(self):
        created = self.muster.run(
            "gradient", "experiments", "create", "multinode", "--name", "mpi-test", "--experimentType", "MPI",
            "--workerContainer", self.HOROVOD, "--workerMachineType", "p2.xlarge", "--workerCount", 2,
            "--masterContainer", self.HOROVOD, "--masterMachineType", "p2.xlarge", "--masterCount", 1,
            "--masterCommand", " ".join(DOCUMENTS_MPIRUN) + " hostname")
        identity = re.search(r"\b\w{8,}\b", created.stdout.split(":")[-1])[0]

        self.muster.run("gradient", "experiments", "start", "--id", identity)

        self.assertEqual(self.muster.ended("mpi-test")["phase"], "Succeeded")
        logs = self.muster.logs("mpi-test")
        for worker in (0, 1):
            self.assertIn(f"mpi-test-worker-{worker}", logs)

    def test_the_commands_of_runai_run_an_mpi_job_and_a_shell(self):
        self.muster.run("runai", "submit-mpi", "dist", "--processes=2", "-i", "horovod", "--", "mpirun",
                        "--allow-run-as-root", "hostname")
        self.assertEqual(self.muster.ended("dist")["phase"], "Succeeded", self.muster.logs("dist"))
        self.muster.run("runai", "submit", "build1", "-i", "ubuntu", "--interactive", "--command", "--", "sleep",
                        "infinity")
        self.muster.await_phase("build1", "Running")
        self.assertEqual(self.muster.run("runai", "exec", "build1", "--", "hostname").stdout, "build1-main\n")
        self.muster.run("runai", "delete", "build1")


class OfRoot(KubernetesTest):
    """Jobs that run as root, in a namespace that permits it, and a volume claim for the storage of projects."""

    POD_SECURITY = "privileged"
    SETTINGS = {"storage_claim": "storage"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="mk-")))
        folder.chmod(0o755)
        make_storage(cls.cluster, folder / "storage", NAMESPACE)

    def test_a_launcher_reaches_its_workers_by_ssh_where_the_image_has_an_sshd(self):
        ran = self.muster.run("submit", "mpi", "dist", *self.IMAGE, "--user", "0", "--workers", 2, "--launch", "ssh",
                              "--follow", "--", *MPIRUN, "hostname")

        self.assertEqual(sorted(line for line in ran.stdout.splitlines() if "worker" in line),
                         ["[0@dist-worker-0] dist-worker-0", "[1@dist-worker-1] dist-worker-1"])

    def test_storage_of_a_project_outlives_its_jobs_in_a_volume_claim(self):
        self.muster.run("submit", "single", "write", *self.SMALL, "--volume", "storage/sets:/sets", "--follow", "--",
                        "sh", "-c", "echo kept > /sets/file")
        ran = self.muster.run("submit", "single", "read", *self.SMALL, "--volume", "storage/sets:/sets", "--follow",
                              "--", "cat", "/sets/file")

        self.assertEqual(ran.stdout, "[main] kept\n")


if __name__ == "__main__":
    main()
