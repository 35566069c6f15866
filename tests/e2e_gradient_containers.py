"""The containers of an experiment: their cluster, hostfile, files and machines."""

import ast
import base64
import json
import sys

from gradient_harness import MASTER, SINGLE, WORKER, GradientTest, grpc
from muster_harness import main

# Each task of a TensorFlow cluster prints its variables, and the chief connects to the addresses of the
# others. A pipe in /storage shows that they listen.
CLUSTER_PROGRAM = """
import json, os, socket, sys

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
name = task["type"] + "-" + str(task["index"])
told = ("TF_CONFIG", "PS_CONFIG", "TYPE", "INDEX", "MASTER", "WORKER_HOSTS", "PS_HOSTS")
print(json.dumps({"name": name, "folder": os.getcwd()} | {key: os.environ[key] for key in told}),
      flush=True)

pipe = "/storage/listening"
try:
    os.mkfifo(pipe)
except FileExistsError:
    pass
listening = os.open(pipe, os.O_RDWR)

def address(text):
    host, port = text.split(":")
    return host, int(port)

def answer(server):
    peer = server.accept()[0]
    with peer:
        peer.sendall((name + " heard " + peer.makefile().readline()).encode())

server = socket.create_server(address(cluster[task["type"]][task["index"]]))
if task["type"] == "chief":
    peers = cluster.get("worker", []) + cluster["ps"]
    left = len(peers)
    while left:
        left -= len(os.read(listening, left))
    for peer in peers:
        with socket.create_connection(address(peer)) as connection:
            connection.sendall(b"hello from the chief\\n")
            print(connection.makefile().readline(), end="", flush=True)
    sys.exit(int(os.environ.get("CHIEF_ENDS_WITH", "0")))
os.write(listening, b"x")
answer(server)
while task["type"] == "ps":
    answer(server)
"""


class TensorFlowClusters(GradientTest):

    def setUp(self):
        super().setUp()
        self.workspace = self.folder("tree", **{"train.py": CLUSTER_PROGRAM})
        self.command = f"{sys.executable} train.py"

    def test_each_task_has_the_addresses_at_which_its_peers_answer(self):
        lines = self.run_to_its_end("--name", "mnist", "--workspace", self.workspace,
                                    *grpc(self.command, workers=2, servers=2), kind="multinode")

        job = self.muster.job("mnist")
        told = {}
        for line in lines:
            task, _, text = line.partition("] ")
            if text.startswith("{"):
                told[task.lstrip("[")] = json.loads(text)
        self.assertEqual(set(told), {"chief", "worker-0", "ps-0", "ps-1"})
        hosts = json.loads(told["chief"]["TF_CONFIG"])["cluster"]
        self.assertEqual({name: len(each) for name, each in hosts.items()},
                         {"chief": 1, "worker": 1, "ps": 2})
        for host, task in zip(hosts["chief"] + hosts["worker"] + hosts["ps"], job["tasks"]):
            self.assertRegex(host, rf"\A{task['hostname']}:\d+\Z")
        places = {"chief": ("chief", 0, "master", 0), "worker-0": ("worker", 0, "worker", 1),
                  "ps-0": ("ps", 0, "ps", 0), "ps-1": ("ps", 1, "ps", 1)}
        for task, (kind, index, gradient_type, gradient_index) in places.items():
            with self.subTest(task):
                self.assert_told(told[task], hosts, {"type": kind, "index": index},
                                 {"type": gradient_type, "index": gradient_index})
        for peer in ("worker-0", "ps-0", "ps-1"):
            self.assertIn(f"[chief] {peer} heard hello from the chief", lines)

        # The parameter servers wait forever, and were stopped when the chief had ended.
        exits = {task["name"]: task["exit"] for task in job["tasks"]}
        self.assertEqual(job["phase"], "Succeeded")
        self.assertFalse(exits["chief"]["stopped"] or exits["worker-0"]["stopped"], exits)
        self.assertTrue(exits["ps-0"]["stopped"] and exits["ps-1"]["stopped"], exits)

    def assert_told(self, told, hosts, task, gradient_task):
        workers = hosts["chief"] + hosts["worker"]
        self.assertEqual(json.loads(told["TF_CONFIG"]), {"cluster": hosts, "task": task})
        decoded = json.loads(base64.urlsafe_b64decode(told["PS_CONFIG"]))
        self.assertEqual(decoded, {
            "cluster": {"master": hosts["chief"], "worker": workers, "ps": hosts["ps"]},
            "task": gradient_task, "environment": "cloud"})
        self.assertEqual((told["TYPE"], told["INDEX"]),
                         (gradient_task["type"], str(gradient_task["index"])))
        self.assertEqual(ast.literal_eval(told["MASTER"]), hosts["chief"])
        self.assertEqual(ast.literal_eval(told["WORKER_HOSTS"]), workers)
        self.assertEqual(ast.literal_eval(told["PS_HOSTS"]), hosts["ps"])
        self.assertEqual(told["folder"], "/home/paperspace")

    def test_the_experiment_has_the_result_of_its_chief(self):
        self.run_to_its_end("--name", "mnist", "--workspace", self.workspace, "--experimentEnv",
                            '{"CHIEF_ENDS_WITH": 7}', *grpc(self.command), kind="multinode", code=7)

        job = self.muster.job("mnist")
        self.assertEqual((job["phase"], job["exit_code"]), ("Failed", 7))
        self.assertIn("| State                         | failed ",
                      self.experiments("details", "--id", "mnist").stdout)


class Containers(GradientTest):

    def test_mpirun_finds_all_machines_in_the_hostfile_workers_first_and_slots_by_gpus(self):
        self.muster.configure("machine_types:\n  pair: {gpus: 2, gpu_model: Small}\n")
        workspace = self.folder("tree", word="of the workspace\n")
        command = ("cat /generated/hostfile && cmp /generated/hostfile /etc/mpi/hostfile && "
                   "mpirun --allow-run-as-root --hostfile /generated/hostfile "
                   "sh -c 'echo rank on $(hostname) in $(pwd): $(cat word)'")

        lines = self.run_to_its_end(
            "--name", "dist", "--experimentType", "MPI", "--workerContainer", "image",
            "--workerMachineType", "pair", "--workerCount", 2, "--masterContainer", "image",
            "--masterMachineType", "p2.xlarge", "--masterCommand", command, "--masterCount", 1,
            "--workspace", workspace, kind="multinode")

        hostfile = [line for line in lines if "slots=" in line]
        self.assertEqual(hostfile, ["[launcher] dist-worker-0 slots=2",
                                    "[launcher] dist-worker-1 slots=2",
                                    "[launcher] dist-launcher-0 slots=1"])
        ranks = [line.partition("rank on ")[2] for line in lines if "rank on " in line]
        self.assertEqual(sorted(ranks), [
            f"{host} in /home/paperspace: of the workspace" for host in
            ("dist-launcher", "dist-worker-0", "dist-worker-0", "dist-worker-1", "dist-worker-1")])

    def test_without_gpus_each_worker_has_a_slot_and_the_master_has_none(self):
        lines = self.run_to_its_end(
            "--name", "dist", "--experimentType", "mpi", *WORKER, "--workerCount", 2, *MASTER,
            "--masterCommand", "cat /generated/hostfile && mpirun --allow-run-as-root -np 2 true",
            kind="multinode")

        self.assertEqual([line for line in lines if "slots" in line],
                         ["[launcher] dist-worker-0 slots=1", "[launcher] dist-worker-1 slots=1"])

    def test_storage_is_found_by_the_next_experiment_and_artifacts_are_its_own(self):
        self.run_to_its_end("--name", "first", *SINGLE, "--command",
                            "mkdir -p /storage/models && echo weights > /storage/models/a && "
                            "echo mine > /artifacts/plot && echo scratch > here")

        lines = self.run_to_its_end("--name", "second", *SINGLE, "--command",
                                    "cat /storage/models/a; ls -A /artifacts; ls -A; echo that is all")

        self.assertEqual(lines, ["weights", "that is all"])
        artifacts = [path.read_text() for path in self.muster.state.glob("jobs/*/artifacts/plot")]
        self.assertEqual(artifacts, ["mine\n"])

    def test_a_data_set_is_a_read_only_folder(self):
        faces = self.folder("faces", one="a face\n", **{".gitignore": "one\n"})
        digits = self.folder("digits.v2", two="a digit\n")

        lines = self.run_to_its_end(
            *SINGLE, "--datasetUri", faces, "--datasetName", "people", "--datasetUri", digits,
            "--command", "cat /data/people/one /data/digits/two; ls /data; "
            "touch /data/people/new 2>&1; echo x 2>&1 >> /data/digits/two; rm -f /data/digits/two 2>&1; "
            "cat /data/digits/two")

        self.assertEqual(lines[:4], ["a face", "a digit", "digits", "people"])
        self.assertEqual(lines[-1], "a digit")
        self.assertEqual(sum("Read-only file system" in line for line in lines), 3, lines)
        self.assertEqual((digits / "two").read_text(), "a digit\n")

    def test_the_path_of_the_model_is_the_one_of_gradient(self):
        say = "echo at $PS_MODEL_PATH"
        self.assertEqual(self.run_to_its_end(*SINGLE, "--command", say), ["at /artifacts"])
        self.assertEqual(self.run_to_its_end(*SINGLE, "--command", say, "--modelType", "Custom",
                                             "--modelPath", "/storage/mine"), ["at /storage/mine"])
        several = self.run_to_its_end("--name", "dist", "--experimentType", "MPI", *WORKER,
                                      "--workerCount", 1, *MASTER, "--masterCommand",
                                      say + " && mkdir -p $PS_MODEL_PATH && touch $PS_MODEL_PATH/model"
                                      " && mpirun --allow-run-as-root -np 1 true",
                                      kind="multinode")
        # (A line of mpirun's own may follow.)
        self.assertEqual(several[0], f"[launcher] at /storage/models/{self.muster.job('dist')['id']}")

    def test_variables_come_from_the_experiment_and_not_from_the_caller(self):
        self.muster.environment["OF_THE_CALLER"] = "x"
        lines = self.run_to_its_end(
            *SINGLE, "--experimentEnv", '{"EPOCHS": 5, "TEXT": "a b", "YES": true}', "--command",
            'echo "$EPOCHS,$TEXT,$YES,$OF_THE_CALLER,$HOME"')

        self.assertEqual(lines, ["5,a b,true,,/home/paperspace"])


class MachineTypes(GradientTest):

    def test_a_container_gets_the_resources_of_its_machine_type(self):
        self.muster.configure("machine_types:\n"
                              "  Big-Box: {gpus: 3, cpus: 0.5, memory: 64M, gpu_model: Mine}\n"
                              "  V100: {gpus: 2}\n")

        listed = self.gradient("clusters", "machineTypes", "list").stdout
        self.assertRegex(listed, r"\| Big-Box +\| gpu +\| +\S* *\| 67108864 +\| 3 +\| Mine ")
        self.assertRegex(listed, r"\| V100 +\| gpu +\| None +\| None +\| 2 +\| N/A ")
        self.assertRegex(listed, r"\| p3\.2xlarge +\| gpu +\| None +\| None +\| 1 +\| Tesla V100 ")
        for machine, gpus in (("big-box", 3), ("V100", 2), ("C3", 0)):
            with self.subTest(machine):
                lines = self.run_to_its_end("--container", "image", "--machineType", machine,
                                            "--command", "echo has $MUSTER_GPUS")
                self.assertEqual(lines, [f"has {gpus}"])


if __name__ == "__main__":
    main()
