"""Gradient's dialect: the commands, their output, and the errors for invalid commands."""

from gradient_harness import SINGLE, WORKER, GradientTest
from muster_harness import main, mode_of

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

    def test_a_missing_thing_is_reported_in_gradients_words_and_fails(self):
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

    def test_an_interrupted_follow_explains_that_the_experiment_continues(self):
        run = self.muster.stream("gradient", "experiments", "run", "singlenode", "--name", "long",
                                 *SINGLE, "--command", "echo up; exec sleep infinity")
        run.until("\tup")

        run.interrupt()

        self.assertEqual(run.finish(), 130)
        id = self.muster.job("long")["id"]
        self.assertIn(f"detached; experiment '{id}' continues", run.errors)
        self.assertIn(f"gradient experiments stop --id {id}", run.errors)
        self.assertEqual(self.muster.job("long")["phase"], "Running")

    def test_a_created_experiment_is_cancelled_before_it_ran(self):
        id = self.create("--name", "never", *SINGLE, "--command", "true")

        self.experiments("stop", "--id", id)

        self.assertIn("| State               | canceled ",
                      self.experiments("details", "--id", "never").stdout)

    def test_the_details_of_an_mpi_experiment_are_its_flags(self):
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

    def test_tags_are_added_and_removed_and_filter_the_list(self):
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

    def test_a_missing_artifact_is_not_a_missing_job(self):
        id = self.create("--name", "art", *SINGLE, "--command", "true")

        ran = self.gradient("jobs", "artifacts", "get", "--id", id, "--files", "nope", code=3)

        self.assertEqual(ran.stderr, f"Failed to fetch data: job '{id}' has no artifact 'nope'\n"
                                     f"list its artifacts: gradient jobs artifacts list --id {id}\n")

    def test_several_experiments_may_have_the_same_name(self):
        ids = [self.create("--name", "My test!", *SINGLE, "--command", "true") for _ in range(3)]

        names = {job["id"]: job["spec"]["name"] for job in self.muster.jobs()}
        self.assertEqual([names[id] for id in ids], ["my-test", "my-test-2", "my-test-3"])
        self.assertEqual(self.experiments("list").stdout.count("| My test! |"), 3)
        self.assertIn(ids[1], self.experiments("details", "--id", "my-test-2").stdout)

    def test_experiments_created_at_once_get_different_names(self):
        self.muster.run("list")
        creates = [self.muster.stream("gradient", "experiments", "create", "singlenode", "--name",
                                      "same", *SINGLE, "--command", "true") for _ in range(4)]

        self.assertEqual([create.finish() for create in creates], [0] * 4)

        self.assertEqual(sorted(job["spec"]["name"] for job in self.muster.jobs()),
                         ["same", "same-2", "same-3", "same-4"])

    def test_two_deletes_at_once_both_succeed(self):
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

    def test_a_written_options_file_does_the_same_as_its_command(self):
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

    def test_a_typo_in_a_file_is_reported_with_the_nearest_name(self):
        self.file.write_text("container: image\nmachineTyp: C3\ncommand: 'true'\ncomand: 'false'\n")

        ran = self.experiments("run", "singlenode", "--optionsFile", self.file, code=2)

        self.assertIn("2 faults", ran.stderr)
        self.assertIn("line 2: machineTyp: unknown key; did you mean 'machineType'?", ran.stderr)
        self.assertIn("line 4: comand: unknown key; did you mean 'command'?", ran.stderr)
        self.assertEqual(self.muster.jobs(), [])

    def test_a_file_that_is_missing_or_not_yaml_is_named(self):
        missing = self.experiments("run", "singlenode", "--optionsFile", "nowhere.yaml", code=2)
        self.assertIn("nowhere.yaml", missing.stderr)
        self.file.write_text("container: [\n")
        broken = self.experiments("run", "singlenode", "--optionsFile", self.file, code=2)
        self.assertIn("is not valid YAML", broken.stderr)


class WrongCommands(GradientTest):

    def refused(self, *words, code=2):
        ran = self.experiments(*words, code=code)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(self.muster.jobs(), [])
        return ran.stderr

    def missing(self, text):
        return [line.strip().split(":")[0] for line in text.splitlines() if "is missing" in line]

    def test_all_missing_options_of_a_type_are_reported_at_once(self):
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

    def test_faults_of_every_kind_are_reported_together(self):
        said = self.refused("run", "multinode", "--experimentType", "GRPC", *WORKER,
                            "--workerCount", "none", "--workerCommand", " ", "--modelPath", "/m",
                            "--experimentEnv", "{", "--parameterServerCount", "0",
                            "--datasetName", "a", "--artifactDirectory", "here")

        for words in ("--workerCount: 'none'", "--workerCommand: is empty",
                      "--parameterServerCount: 0 is out of range", "--parameterServerContainer: is missing",
                      "You have specified modelPath without modelType", "--experimentEnv: '{'",
                      "Too many dataset parameter sets (1) for 0 dataset URIs",
                      "--artifactDirectory: 'here'"):
            self.assertIn(words, said)

    def test_a_misspelt_option_or_command_is_reported_with_the_nearest(self):
        said = self.refused("run", "singlenode", *SINGLE, "--comand", "true")
        self.assertIn("unknown flag '--comand'; did you mean '--command'?", said)
        ran = self.gradient("experiment", "list", code=2)
        self.assertIn("did you mean 'experiments'?", ran.stderr)
        ran = self.experiments("detials", "--id", "x", code=2)
        self.assertIn("did you mean 'details'?", ran.stderr)

    def test_an_unknown_machine_is_reported_with_the_nearest(self):
        said = self.refused("run", "singlenode", "--container", "image", "--machineType", "p2.xlrage",
                            "--command", "true")
        self.assertIn("--machineType: there is no machine type 'p2.xlrage'; did you mean 'p2.xlarge'",
                      said)
        self.assertIn("machine_types in the server's configuration", said)

    def test_a_missing_project_is_named(self):
        said = self.refused("create", "singlenode", *SINGLE, "--command", "true", "--projectId",
                            "pr64wlx9c", code=3)
        self.assertIn("pr64wlx9c", said)


if __name__ == "__main__":
    main()
