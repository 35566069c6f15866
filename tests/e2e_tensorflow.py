"""Real TensorFlow as GRPC experiments: both of its strategies for several tasks, and experiments that lose a task.
`make test-tensorflow` runs it."""

import json
import subprocess

from frameworks_harness import TENSORFLOW, accuracy_in, add_examples
from gradient_harness import GradientTest, grpc
from muster_harness import ROOT, main

MIRRORED = "python tensorflow/digits_mirrored.py --epochs 5"
PARAMETER_SERVER = "python tensorflow/digits_parameter_server.py"
# The test ends it; it never ends by itself.
ENDLESS = f"{PARAMETER_SERVER} --epochs 1000000"

ENVIRONMENT = {
    "PATH": f"{TENSORFLOW.parent}:/usr/bin:/bin",
    # Limits the threads of each task, because several tasks share few CPUs.
    "TF_NUM_INTRAOP_THREADS": 1,
    # Makes TensorFlow print warnings and errors, without its messages about the machine.
    "TF_CPP_MIN_LOG_LEVEL": 1,
}


class TensorFlowTest(GradientTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([ROOT / "scripts" / "python_env.sh", "tensorflow"], check=True)

    def setUp(self):
        super().setUp()
        self.tree = self.muster.work / "tree"
        add_examples(self.tree, "tensorflow")

    def run_experiment(self, *words, **variables):
        """Starts an experiment. Returns the running command, which prints its output."""
        return self.muster.stream(
            "gradient", "experiments", "run", "multinode", "--name", "mnist", "--workspace", self.tree,
            "--experimentEnv", json.dumps(ENVIRONMENT | variables), *words)

    def succeeded(self, run):
        """The output of its tasks, after it has succeeded."""
        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertEqual(self.muster.job("mnist")["phase"], "Succeeded")
        return run.text

    def assert_each_has_spoken(self, text, *tasks):
        for task in tasks:
            self.assertIn(f"\t[{task}] ", text)

    def assert_it_learned(self, text):
        self.assertGreater(accuracy_in(text), 90)
        # Muster has the metrics of this training, too.
        rows = self.muster.run("metrics", "mnist", "accuracy", "--output", "csv").stdout
        self.assertAlmostEqual(float(rows.splitlines()[-1].split(",")[-1]) * 100, accuracy_in(text), delta=0.01)


class Strategies(TensorFlowTest):

    def test_the_documents_experiment_trains_in_step_on_two_workers(self):
        # The command of the page, with our programs instead of its own, which needs TensorFlow 1.
        run = self.run_experiment(
            "--projectId", "default", "--experimentType", "GRPC",
            "--workerContainer", "tensorflow/tensorflow:1.13.1-gpu-py3", "--workerMachineType", "K80",
            "--workerCommand", f"python --version && {MIRRORED}", "--workerCount", 2,
            "--parameterServerContainer", "tensorflow/tensorflow:1.13.1-py3", "--parameterServerMachineType", "K80",
            "--parameterServerCommand", f"python --version && {MIRRORED}", "--parameterServerCount", 1)

        text = self.succeeded(run)
        self.assertRegex(text, r"weights checksum: 0x[0-9a-f]{8} on all 2 workers")
        self.assert_it_learned(text)
        self.assert_each_has_spoken(text, "chief", "worker-0", "ps-0")
        self.assertRegex(self.experiments("details", "--id", self.muster.job("mnist")["id"]).stdout,
                         r"\| State +\| stopped ")

    def test_a_parameter_server_trains_with_two_workers(self):
        text = self.succeeded(self.run_experiment(*grpc(PARAMETER_SERVER, workers=3)))

        self.assertRegex(text, r"with 2 workers and 1 parameter server\b")
        self.assert_it_learned(text)
        self.assert_each_has_spoken(text, "chief", "worker-0", "worker-1", "ps-0")
        exits = {task["name"]: task["exit"] for task in self.muster.job("mnist")["tasks"]}
        for server in ("worker-0", "worker-1", "ps-0"):
            self.assertTrue(exits[server]["stopped"], f"{server} serves until its chief has ended")

    def test_the_others_wait_for_a_worker_that_comes_late(self):
        gate = self.muster.gate()
        run = self.run_experiment(*grpc(f"if [ $TYPE = worker ]; then {gate.wait}; fi; exec {PARAMETER_SERVER}"))
        run.until("[chief] TensorFlow ")

        gate.open()

        text = self.succeeded(run)
        self.assertLess(text.index("[worker-0] TensorFlow "), text.index("[chief] ::metrics epoch=1 "))
        self.assert_it_learned(text)

    def test_a_tf_config_of_the_user_is_used_and_reported(self):
        text = self.succeeded(self.run_experiment(
            *grpc(MIRRORED)[:-4], "--parameterServerCommand", "exec sleep infinity", "--parameterServerCount", 1,
            TF_CONFIG="{}"))

        self.assertIn("on all 1 workers", text, "that TF_CONFIG names no others")
        events = [event["text"] for event in self.muster.job("mnist")["events"]]
        self.assertEqual(sum("the job itself sets TF_CONFIG, so" in event for event in events), 1, events)


class OnATeamServer(TensorFlowTest):

    def test_workers_train_under_the_filter_and_in_a_network_of_their_own(self):
        self.muster.start_server("--listen", "127.0.0.1:0")

        text = self.succeeded(self.run_experiment(*grpc(PARAMETER_SERVER)))

        self.assert_it_learned(text)
        self.assert_each_has_spoken(text, "chief", "worker-0", "ps-0")


class Losses(TensorFlowTest):

    def assert_it_fails_without(self, task):
        run = self.run_experiment(*grpc(ENDLESS))
        run.until("[chief] ::metrics epoch=2 ")

        self.muster.kill_program(self.muster.job("mnist"), task)

        self.assert_it_fails_over(run, task, f"{task} was killed by signal 9 (SIGKILL)")

    def assert_it_fails_over(self, run, task, sentence):
        self.assertNotEqual(run.finish(), 0)
        job = self.muster.job("mnist")
        self.assertEqual((job["phase"], job["failure"]["task"]), ("Failed", task))
        self.assertIn(sentence, job["failure"]["cause"])
        self.assertIn(sentence, run.errors)

    def test_a_killed_parameter_server_fails_the_experiment_and_is_named(self):
        self.assert_it_fails_without("ps-0")

    def test_a_killed_chief_fails_the_experiment_and_is_named(self):
        self.assert_it_fails_without("chief")

    def test_a_killed_worker_fails_the_experiment_and_is_named(self):
        self.assert_it_fails_without("worker-0")

    def test_an_elastic_training_goes_on_without_the_worker_that_is_killed(self):
        variables = [word for name, value in ENVIRONMENT.items() for word in ("-e", f"{name}={value}")]
        run = self.muster.stream("submit", "grpc", "mnist", "--workers", 2, "--min-workers", 1, "--resize", "live",
                                 "--parameter-servers", 1, "--folder", self.tree, *variables, "--follow", "--",
                                 *ENDLESS.split())
        run.until("[chief] ::metrics epoch=2 ")

        self.muster.kill_program(self.muster.job("mnist"), "worker-0")

        after = self.muster.stream("logs", "mnist", "--follow", "--tail", 0)
        for _ in range(3):
            after.until("[chief] ::metrics epoch=")
        job = self.muster.job("mnist")
        self.assertEqual((job["phase"], job["attempt"]), ("Running", 1))
        lost = "worker-0 was lost: it was killed by signal 9 (SIGKILL); the job continues with 1 of 2 workers"
        self.assertIn(lost, [event["text"] for event in job["events"]])

    def test_a_worker_that_never_serves_fails_the_experiment_that_would_wait_for_it(self):
        run = self.run_experiment(*grpc(f"if [ $TYPE = worker ]; then echo no disk >&2; exit 3; fi; {ENDLESS}"))

        self.assert_it_fails_over(run, "worker-0", "worker-0 exited with code 3")
        self.assertIn("[worker-0] no disk", run.text)


if __name__ == "__main__":
    main()
