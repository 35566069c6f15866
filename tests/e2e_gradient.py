"""Gradient's dialect, from outside: what an experiment's containers find, what the commands print,
and what is said of wrong ones."""

import ast
import base64
import json
import sys

from muster_harness import MusterTest, main, mode_of

# What each task of a TensorFlow cluster is told; and that its peers answer where it was told. The
# chief calls the others once they listen, which they say through a pipe in /storage.
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

OPTIONS_OF_SINGLENODE = r"""container: "python:3"
machineType: C3
command: "cat word && echo \"$WORD $MORE\""
containerUser: ~
registryUsername: ~
registryPassword: ~
registryUrl: ~
name: "from a file"
projectId: ~
clusterId: ~
tag:
  - nightly
  - small
tags: ~
workspace: tree
workspaceRef: ~
workspaceUsername: ~
workspacePassword: ~
ignoreFiles: ~
workingDirectory: ~
artifactDirectory: ~
datasetUri: ~
datasetName: ~
datasetId: ~
datasetAwsAccessKeyId: ~
datasetAwsSecretAccessKey: ~
datasetAwsEndpoint: ~
datasetVersionId: ~
datasetEtag: ~
datasetVolumeKind: ~
datasetVolumeSize: ~
experimentEnv: "{\"WORD\": \"said\", \"MORE\": 5}"
isPreemptible: false
ports: ~
modelType: ~
modelPath: ~
tensorboard: ~
no-logs: false
apiKey: ~
"""

WORKER = ["--workerContainer", "image", "--workerMachineType", "C3"]
MASTER = ["--masterContainer", "image", "--masterMachineType", "C3", "--masterCount", 1]
SINGLE = ["--container", "image", "--machineType", "C3"]


class GradientTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "5"

    def gradient(self, *words, **options):
        return self.muster.run("gradient", *words, **options)

    def experiments(self, *words, **options):
        return self.gradient("experiments", *words, **options)

    def create(self, *words, verb="create", kind="singlenode"):
        """The ID of a new experiment, which nobody follows."""
        more = ["--no-logs"] if verb == "run" else []
        said = self.experiments(verb, kind, *words, *more).stdout
        done = "created and started" if verb == "run" else "created"
        self.assertRegex(said, rf"\ANew experiment {done} with ID: [a-z0-9]{{12}}\n\Z")
        return said.split()[-1]

    def run_to_its_end(self, *words, kind="singlenode", code=0):
        """The lines that its tasks have printed, without what Gradient puts before them."""
        ran = self.experiments("run", kind, *words, code=code)
        first, second, *lines = ran.stdout.splitlines()
        self.assertRegex(first, r"\ANew experiment created and started with ID: \w+\Z")
        self.assertEqual(second, "Awaiting logs...")
        return [line.split("\t", 2)[2] for line in lines]

    def folder(self, name, **files):
        path = self.muster.work / name
        path.mkdir()
        for file, text in files.items():
            (path / file).write_text(text)
        return path


def grpc(command, workers=2, servers=1):
    return ["--experimentType", "GRPC", *WORKER, "--workerCommand", command, "--workerCount",
            workers, "--parameterServerContainer", "image", "--parameterServerMachineType", "C3",
            "--parameterServerCommand", command, "--parameterServerCount", servers]


class TensorFlowClusters(GradientTest):

    def setUp(self):
        super().setUp()
        self.workspace = self.folder("tree", **{"train.py": CLUSTER_PROGRAM})
        self.command = f"{sys.executable} train.py"

    def test_each_task_is_told_of_its_peers_and_they_answer_where_they_are_said_to_be(self):
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

        # The parameter servers wait for ever, and were stopped when the chief had ended.
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

    def test_the_experiment_ends_as_its_chief_does(self):
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
            "--masterCommand", "cat /generated/hostfile; ! cmp /generated/hostfile /dev/null",
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

    def test_a_data_set_is_a_folder_that_nobody_can_write_to(self):
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

    def test_the_path_of_the_model_is_where_gradient_has_it(self):
        say = "echo at $PS_MODEL_PATH"
        self.assertEqual(self.run_to_its_end(*SINGLE, "--command", say), ["at /artifacts"])
        self.assertEqual(self.run_to_its_end(*SINGLE, "--command", say, "--modelType", "Custom",
                                             "--modelPath", "/storage/mine"), ["at /storage/mine"])
        several = self.run_to_its_end("--name", "dist", "--experimentType", "MPI", *WORKER,
                                      "--workerCount", 1, *MASTER, "--masterCommand",
                                      say + " && mkdir -p $PS_MODEL_PATH && touch $PS_MODEL_PATH/model",
                                      kind="multinode")
        self.assertEqual(several, [f"[launcher] at /storage/models/{self.muster.job('dist')['id']}"])

    def test_variables_are_those_of_the_experiment_and_not_those_of_the_caller(self):
        self.muster.environment["OF_THE_CALLER"] = "x"
        lines = self.run_to_its_end(
            *SINGLE, "--experimentEnv", '{"EPOCHS": 5, "TEXT": "a b", "YES": true}', "--command",
            'echo "$EPOCHS,$TEXT,$YES,$OF_THE_CALLER,$HOME"')

        self.assertEqual(lines, ["5,a b,true,,/home/paperspace"])


class Flows(GradientTest):

    def test_an_experiment_from_its_creation_to_its_deletion(self):
        gate = self.muster.gate()
        self.assertEqual(self.experiments("list").stdout, "No data found\n")
        id = self.create("--name", "My test!", *SINGLE, "--command", f"echo up; {gate.wait}; echo done",
                         "--tag", "small")
        self.assert_listed(id, "created")
        early = self.experiments("metrics", "get", "--id", id, code=4)
        self.assertEqual((early.stdout, early.stderr), ("", "Experiment has not started yet\n"))
        self.assertEqual(self.experiments("logs", "--id", id).stdout, "No logs found\n")

        started = self.experiments("start", "--id", id)
        self.assertEqual(started.stdout, "Experiment started\n")
        follow = self.muster.stream("gradient", "experiments", "logs", "--id", id, "--follow", "true")
        self.assertEqual([follow.line(), follow.line()], ["Awaiting logs...", f"{id}\t1\tup"])
        self.assert_listed(id, "running")
        gate.open()
        self.assertEqual(follow.line(), f"{id}\t2\tdone")
        self.assertEqual(follow.finish(), 0)

        self.assert_listed(id, "stopped")
        width = len(f"+{'-' * 14}+------+---------+")
        title = f"Experiment {id} logs"
        self.assertEqual(self.experiments("logs", "--id", id).stdout, (
            f"+{title}".ljust(width - 1, "-") + "+\n"
            "| JOB ID       | LINE | MESSAGE |\n"
            "+--------------+------+---------+\n"
            f"| {id} | 1    | up      |\n"
            f"| {id} | 2    | done    |\n"
            "+--------------+------+---------+\n"))
        self.assertIn("| 2    | done ", self.experiments("logs", "--id", id, "--line", 2).stdout)
        self.assertNotIn("| 1    |", self.experiments("logs", "--id", id, "--line", 2).stdout)
        self.assertEqual(self.experiments("metrics", "get", "--id", id).stdout, "{}\n")
        self.assertEqual(self.experiments("metrics", "list", "--id", id).stdout, "{}\n")
        again = self.experiments("start", "--id", id, code=1)
        self.assertIn(f"experiment {id} has ended: stopped", again.stderr)

        self.assertEqual(self.experiments("delete", "--id", id).stdout, "Experiment deleted\n")
        self.assertEqual(self.experiments("list").stdout, "No data found\n")
        self.assertEqual(self.experiments("delete", "--id", id, code=3).stderr,
                         "Failed to delete resource: Experiment not found\nObject not found\n")

    def assert_listed(self, id, state):
        rule = f"+----------+--------------+{'-' * (max(len(state), 6) + 2)}+\n"
        self.assertEqual(self.experiments("list").stdout, (
            f"{rule}| Name     | ID           | {'Status'.ljust(len(state))} |\n"
            f"{rule}| My test! | {id} | {state.ljust(6)} |\n{rule}"))

    def test_what_is_not_there_is_told_in_gradients_words_and_is_no_success(self):
        for words, doing in ((["details"], "fetch data"), (["logs"], "fetch data"),
                             (["logs", "--follow", "true"], "fetch data"),
                             (["start"], "update resource"), (["stop"], "update resource"),
                             (["delete"], "delete resource"),
                             (["tags", "add", "--tag", "x"], "update resource"),
                             (["metrics", "get"], "fetch data")):
            with self.subTest(" ".join(words)):
                ran = self.experiments(*words, "--id", "esro6mbmiulvbl", code=3)
                self.assertEqual(ran.stderr, f"Failed to {doing}: Experiment not found\n"
                                             "Object not found\n")
                self.assertEqual(ran.stdout, "")

    def test_an_experiment_that_runs_is_stopped(self):
        id = self.create("--name", "long", *SINGLE, "--command", "echo up; exec sleep infinity",
                         verb="run")
        follow = self.muster.stream("gradient", "experiments", "logs", "--id", "long", "--follow")
        follow.until("\tup")

        self.assertEqual(self.experiments("stop", "--id", id).stdout, "Experiment stopped\n")

        self.assertNotEqual(follow.finish(), 0)
        self.assertIn("| State               | stopped ",
                      self.experiments("details", "--id", id).stdout)

    def test_who_follows_and_is_interrupted_is_told_that_it_goes_on_and_how_to_stop_it(self):
        run = self.muster.stream("gradient", "experiments", "run", "singlenode", "--name", "long",
                                 *SINGLE, "--command", "echo up; exec sleep infinity")
        run.until("\tup")

        run.interrupt()

        self.assertEqual(run.finish(), 130)
        id = self.muster.job("long")["id"]
        self.assertIn(f"detached; experiment '{id}' goes on", run.errors)
        self.assertIn(f"gradient experiments stop --id {id}", run.errors)
        self.assertEqual(self.muster.job("long")["phase"], "Running")

    def test_one_that_was_created_is_cancelled_before_it_ever_ran(self):
        id = self.create("--name", "never", *SINGLE, "--command", "true")

        self.experiments("stop", "--id", id)

        self.assertIn("| State               | canceled ",
                      self.experiments("details", "--id", "never").stdout)

    def test_the_details_of_an_mpi_experiment_are_what_was_said(self):
        workspace = self.folder("tree", word="x")
        id = self.create("--name", "dist", "--experimentType", "MPI", "--workerContainer", "w:1",
                         "--workerMachineType", "p2.xlarge", "--workerCount", 2,
                         "--masterContainer", "m:1", "--masterMachineType", "p3.2xlarge",
                         "--masterCommand", "mpirun -np 2 true", "--masterCount", 1,
                         "--workspace", workspace, "--tags", "b, a", "--tag", "c", "--tag", "a",
                         kind="multinode")
        rows = [("Name", "dist"), ("ID", id), ("State", "created"), ("Artifact directory", "None"),
                ("Cluster ID", "None"), ("Experiment Env", "None"),
                ("Experiment Type", "MPI multi node"), ("Model Type", "None"),
                ("Model Path", "None"), ("Master Command", "mpirun -np 2 true"),
                ("Master Container", "m:1"), ("Master Count", "1"),
                ("Master Machine Type", "p3.2xlarge"), ("Ports", "None"),
                ("Project ID", "default"), ("Worker Command", "sleep infinity"),
                ("Worker Container", "w:1"), ("Worker Count", "2"),
                ("Worker Machine Type", "p2.xlarge"), ("Working Directory", "None"),
                ("Workspace URL", str(workspace)), ("Tags", "a, b, c")]

        self.assertEqual(self.experiments("details", "--id", id).stdout, table(rows))

    def test_tags_are_added_and_removed_and_choose_what_is_listed(self):
        first = self.create("--name", "first", *SINGLE, "--command", "true")
        second = self.create("--name", "second", *SINGLE, "--command", "true", "--tag", "big")

        added = self.experiments("tags", "add", "--id", first, "--tag", "small", "--tags", "big,new")
        self.assertEqual(added.stdout, "Tags added to experiment\n")
        listed = self.experiments("list", "--tag", "big").stdout
        self.assertTrue(first in listed and second in listed, listed)

        removed = self.experiments("tags", "remove", "--id", first, "--tags", "big")
        self.assertEqual(removed.stdout, "Tags removed from experiment\n")
        listed = self.experiments("list", "--tag", "big").stdout
        self.assertTrue(first not in listed and second in listed, listed)
        self.assertRegex(self.experiments("details", "--id", first).stdout, r"\| Tags +\| new, small ")
        self.assertEqual(self.experiments("tags", "add", "--id", first, code=2).stderr,
                         "No tags provided\n")

    def test_lists_come_in_pages(self):
        ids = [self.create("--name", f"number {i}", *SINGLE, "--command", "true") for i in range(3)]

        first = self.experiments("list", "--limit", 2)
        rest = self.experiments("list", "--limit", 2, "--offset", 2)

        self.assertTrue(ids[2] in first.stdout and ids[1] in first.stdout, first.stdout)
        self.assertNotIn(ids[0], first.stdout)
        self.assertIn("--offset 2", first.stderr)
        self.assertTrue(ids[0] in rest.stdout and ids[1] not in rest.stdout, rest.stdout)

    def test_a_name_may_be_taken_as_often_as_one_likes(self):
        ids = [self.create("--name", "My test!", *SINGLE, "--command", "true") for _ in range(3)]

        names = {job["id"]: job["spec"]["name"] for job in self.muster.jobs()}
        self.assertEqual([names[id] for id in ids], ["my-test", "my-test-2", "my-test-3"])
        self.assertEqual(self.experiments("list").stdout.count("| My test! |"), 3)
        self.assertIn(ids[1], self.experiments("details", "--id", "my-test-2").stdout)

    def test_of_those_that_are_created_at_once_each_gets_a_name_of_its_own(self):
        self.muster.run("list")
        creates = [self.muster.stream("gradient", "experiments", "create", "singlenode", "--name",
                                      "same", *SINGLE, "--command", "true") for _ in range(4)]

        self.assertEqual([create.finish() for create in creates], [0] * 4)

        self.assertEqual(sorted(job["spec"]["name"] for job in self.muster.jobs()),
                         ["same", "same-2", "same-3", "same-4"])

    def test_of_two_deletes_at_once_none_fails_over_the_other(self):
        self.create("--name", "both", *SINGLE, "--command", "echo up; exec sleep infinity", verb="run")
        self.muster.stream("logs", "both", "-f").until("up")

        deletes = [self.muster.stream("gradient", "experiments", "delete", "--id", "both")
                   for _ in range(2)]

        codes = sorted(delete.finish() for delete in deletes)
        self.assertEqual(codes[0], 0)
        self.assertIn(codes[1], (0, 3), [delete.errors for delete in deletes])
        self.assertEqual(self.muster.jobs(), [])
        for delete in deletes:
            self.assertIn((delete.text, delete.errors), (
                ("Experiment deleted\n", ""),
                ("", "Failed to delete resource: Experiment not found\nObject not found\n")))


def table(rows):
    left, right = (max(len(row[i]) for row in rows) for i in range(2))
    rule = f"+-{'-' * left}-+-{'-' * right}-+\n"
    lines = [f"| {key.ljust(left)} | {value.ljust(right)} |\n" for key, value in rows]
    return rule + lines[0] + rule + "".join(lines[1:]) + rule


class OptionsFiles(GradientTest):

    def setUp(self):
        super().setUp()
        self.folder("tree", word="the word is\n")
        self.file = self.muster.work / "options.yaml"

    def write(self):
        return self.experiments(
            "run", "singlenode", "--name", "from a file", "--container", "python:3",
            "--machineType", "C3", "--command", 'cat word && echo "$WORD $MORE"', "--tag", "nightly",
            "--tag", "small", "--workspace", "tree", "--experimentEnv",
            '{"WORD": "said", "MORE": 5}', "--createOptionsFile", self.file)

    def test_a_file_that_was_written_does_what_its_command_would_have_done(self):
        written = self.write()

        self.assertEqual((written.stdout, written.stderr), ("", ""))
        self.assertEqual(self.file.read_text(), OPTIONS_OF_SINGLENODE)
        self.assertEqual(mode_of(self.file), 0o600)
        self.assertEqual(self.muster.jobs(), [])

        self.assertEqual(self.run_to_its_end("--optionsFile", self.file),
                         ["the word is", "said 5"])
        job = self.muster.job("from-a-file")
        self.assertEqual(job["spec"]["labels"], {"nightly": "", "small": ""})

    def test_the_command_line_wins_over_the_file(self):
        self.write()

        lines = self.run_to_its_end("--optionsFile", self.file, "--name", "mine", "--experimentEnv",
                                    '{"WORD": "otherwise"}')

        self.assertEqual(lines, ["the word is", "otherwise "])
        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["mine"])

    def test_a_typo_in_a_file_is_told_with_the_nearest_name_and_nothing_is_submitted(self):
        self.file.write_text("container: image\nmachineTyp: C3\ncommand: 'true'\ncomand: 'false'\n")

        ran = self.experiments("run", "singlenode", "--optionsFile", self.file, code=2)

        self.assertIn("2 faults", ran.stderr)
        self.assertIn("line 2: machineTyp: unknown key; did you mean 'machineType'?", ran.stderr)
        self.assertIn("line 4: comand: unknown key; did you mean 'command'?", ran.stderr)
        self.assertEqual(self.muster.jobs(), [])

    def test_a_file_that_is_not_there_or_not_yaml_is_named(self):
        missing = self.experiments("run", "singlenode", "--optionsFile", "nowhere.yaml", code=2)
        self.assertIn("nowhere.yaml", missing.stderr)
        self.file.write_text("container: [\n")
        broken = self.experiments("run", "singlenode", "--optionsFile", self.file, code=2)
        self.assertIn("is no YAML", broken.stderr)


class WrongCommands(GradientTest):

    def refused(self, *words, code=2):
        ran = self.experiments(*words, code=code)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(self.muster.jobs(), [])
        return ran.stderr

    def missing(self, text):
        return [line.strip().split(":")[0] for line in text.splitlines() if "is missing" in line]

    def test_all_that_a_type_needs_is_named_at_once(self):
        worker = ["--workerContainer", "--workerMachineType", "--workerCount"]
        self.assertEqual(
            self.missing(self.refused("create", "multinode", "--experimentType", "MPI", "--name", "x")),
            [*worker, "--masterContainer", "--masterMachineType", "--masterCommand", "--masterCount"])
        self.assertEqual(
            self.missing(self.refused("run", "multinode", "--experimentType", "GRPC", "--name", "x")),
            [*worker, "--workerCommand", "--parameterServerContainer",
             "--parameterServerMachineType", "--parameterServerCommand", "--parameterServerCount"])
        self.assertEqual(self.missing(self.refused("create", "multinode")),
                         ["--experimentType", *worker])
        self.assertEqual(self.missing(self.refused("create", "singlenode")),
                         ["--container", "--machineType", "--command"])

    def test_faults_of_every_sort_are_told_together(self):
        said = self.refused("run", "multinode", "--experimentType", "GRPC", *WORKER,
                            "--workerCount", "none", "--workerCommand", " ", "--modelPath", "/m",
                            "--experimentEnv", "{", "--parameterServerCount", "0",
                            "--datasetName", "a", "--artifactDirectory", "here")

        for words in ("--workerCount: 'none'", "--workerCommand: is empty",
                      "--parameterServerCount: is 0", "--parameterServerContainer: is missing",
                      "You have specified modelPath without modelType", "--experimentEnv: '{'",
                      "Too many dataset parameter sets (1) for 0 dataset URIs",
                      "--artifactDirectory: 'here'"):
            self.assertIn(words, said)

    def test_a_misspelt_option_or_command_is_told_with_the_nearest(self):
        said = self.refused("run", "singlenode", *SINGLE, "--comand", "true")
        self.assertIn("unknown flag '--comand'; did you mean '--command'?", said)
        ran = self.gradient("experiment", "list", code=2)
        self.assertIn("did you mean 'experiments'?", ran.stderr)
        ran = self.experiments("detials", "--id", "x", code=2)
        self.assertIn("did you mean 'details'?", ran.stderr)

    def test_an_unknown_machine_is_told_with_the_nearest(self):
        said = self.refused("run", "singlenode", "--container", "image", "--machineType", "p2.xlrage",
                            "--command", "true")
        self.assertIn("--machineType: there is no machine type 'p2.xlrage'; did you mean 'p2.xlarge'",
                      said)
        self.assertIn("machine_types in the server's configuration", said)

    def test_a_project_that_is_not_there_is_named(self):
        said = self.refused("create", "singlenode", *SINGLE, "--command", "true", "--projectId",
                            "pr64wlx9c", code=3)
        self.assertIn("pr64wlx9c", said)


class MachineTypes(GradientTest):

    def test_a_machine_type_of_the_configuration_is_what_a_container_gets(self):
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
