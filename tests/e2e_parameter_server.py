"""digits with parameter servers, as GRPC experiments and as programs that are started by hand: the accuracy, and the
message of each process when another process is lost."""

import json
import re

from gradient_harness import GradientTest, grpc
from muster_harness import DIGITS, descendants, kill_and_wait, main, read_bytes
from programs_harness import KEY, OTHER_KEY, OWN_ADDRESS, ProgramsTest

TRAIN = f"{DIGITS} --strategy parameter-server"
# The test ends it; it never ends by itself.
ENDLESS = f"{TRAIN} --epochs 1000000"


def accuracy_in(lines):
    """The accuracy in per cent that the chief prints at the end."""
    found = [line for line in lines if "test accuracy:" in line]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} lines with a test accuracy in:\n" + "\n".join(lines))
    return float(re.search(r"test accuracy: ([0-9.]+) %", found[0]).group(1))


class Experiments(GradientTest):

    def experiment(self, command, **counts):
        """Starts an experiment. Returns the running command, which prints its output."""
        return self.muster.stream("gradient", "experiments", "run", "multinode", "--name", "digits",
                                  *grpc(command, **counts))

    def pid_of(self, task):
        """The program of a task."""
        shim = self.muster.shim_of(self.muster.job("digits"), task)
        found = [pid for pid in descendants(shim)
                 if read_bytes(f"/proc/{pid}/cmdline").startswith(bytes(DIGITS))]
        self.assertEqual(len(found), 1, task)
        return found[0]

    def assert_learns(self, workers, servers):
        lines = self.run_to_its_end("--name", "digits", *grpc(TRAIN, workers, servers),
                                    kind="multinode")

        self.assertGreater(accuracy_in(lines), 90)
        self.assertTrue(any(re.match(r"\[chief\] weights checksum: 0x[0-9a-f]{16} ", line)
                            for line in lines), lines)
        for worker in range(workers):
            task = "chief" if worker == 0 else f"worker-{worker - 1}"
            self.assertTrue(any(line.startswith(f"[{task}] worker {worker} of {workers}")
                                for line in lines), lines)
        job = self.muster.job("digits")
        self.assertEqual(job["phase"], "Succeeded")
        exits = {task["name"]: task["exit"] for task in job["tasks"]}
        for server in range(servers):
            self.assertTrue(exits[f"ps-{server}"]["stopped"], "it stays until its chief has ended")
            self.assertEqual(exits[f"ps-{server}"]["code"], 0, exits)
            self.assertTrue(any(re.match(rf"\[ps-{server}\] parameter server {server}: \d+ steps", line)
                                for line in lines), lines)

    def test_two_workers_and_a_parameter_server_learn_to_read_digits(self):
        self.assert_learns(workers=2, servers=1)

        # Muster has the metrics of this training, too.
        rows = self.muster.run("metrics", "digits", "accuracy", "--output", "csv").stdout
        self.assertGreater(float(rows.splitlines()[-1].split(",")[-1]), 0.9)

    def test_three_workers_and_two_parameter_servers_learn_to_read_digits(self):
        self.assert_learns(workers=3, servers=2)

    def assert_fails_without(self, task):
        run = self.experiment(ENDLESS)
        run.until("[chief] epoch ")

        kill_and_wait(self.pid_of(task))

        self.assertNotEqual(run.finish(), 0)
        job = self.muster.job("digits")
        self.assertEqual((job["phase"], job["failure"]["task"]), ("Failed", task))

    def test_the_experiment_fails_and_names_it_when_a_parameter_server_is_killed(self):
        self.assert_fails_without("ps-0")

    def test_the_experiment_fails_and_names_it_when_the_chief_is_killed(self):
        self.assert_fails_without("chief")

    def test_the_experiment_fails_and_names_it_when_a_worker_is_killed(self):
        self.assert_fails_without("worker-0")

    def late(self, command):
        """Wraps a command so that the second worker waits at a gate before it runs the command."""
        gate = self.muster.gate()
        return f"if [ $TYPE$INDEX = worker1 ]; then {gate.wait}; echo starts; fi; exec {command}", gate

    def test_the_others_wait_for_a_worker_that_comes_late(self):
        command, gate = self.late(TRAIN)
        run = self.experiment(command)
        run.until("[chief] worker 0 of 2, the chief: ")

        gate.open()

        self.assertEqual(run.finish(), 0, run.errors)
        lines = [line.split("\t")[-1] for line in run.text.splitlines()]
        self.assertGreater(accuracy_in(lines), 90)
        first_step = next(i for i, line in enumerate(lines) if line.startswith("[chief] epoch "))
        # It prints its first line after it has joined and read its data: other workers may have taken steps
        # by then.
        start = lines.index("[worker-0] starts")
        self.assertLess(start, first_step, "the chief trained without worker 1")

    def test_a_worker_joins_a_training_that_does_not_wait_for_it(self):
        command, gate = self.late(f"{ENDLESS} --start-with 1")
        run = self.experiment(command)
        run.until("[chief] epoch ")

        gate.open()

        run.until("[worker-0] worker 1 of 2: ")
        run.until("[chief] epoch ")
        self.experiments("stop", "--id", self.muster.job("digits")["id"])
        run.finish()
        self.assertEqual(self.muster.job("digits")["phase"], "Stopped")

    def test_a_tf_config_of_the_user_is_used_and_checked(self):
        # It does not matter which task ends first and which are then stopped.
        run = self.experiments("run", "multinode", "--name", "digits", "--experimentEnv",
                               json.dumps({"TF_CONFIG": json.dumps({"cluster": {"ps": []}})}),
                               *grpc(TRAIN), code=None)

        self.assertIn("digits: TF_CONFIG: cluster.ps names no parameter server", run.stdout)
        self.assertEqual(self.muster.job("digits")["phase"], "Failed")

    def test_a_task_of_another_job_is_refused_by_the_server(self):
        run = self.experiment(f"getent hosts $(hostname); {ENDLESS}")
        address = run.until("digits-ps-0").split("\t")[-1].split()[1]
        port = run.until("parameter server 0 of 1 serves on ").rsplit(":", 1)[1]
        run.until("[chief] epoch ")

        cluster = {"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"],
                               "ps": [f"{address}:{port}"]},
                   "task": {"type": "worker", "index": 2}}
        stranger = self.muster.run("submit", "single", "stranger", "--follow", "-e",
                                   f"TF_CONFIG={json.dumps(cluster)}", "--", *TRAIN.split(), code=1)

        self.assertRegex(stranger.stdout, "(?i)key")
        self.assertIn(f"{address}:{port}", stranger.stdout)
        run.until("[chief] epoch ")


class ByHand(ProgramsTest):
    """Processes without the platform: all of them must end by themselves when one of them is lost."""

    def setUp(self):
        super().setUp()
        self.ports = iter(range(29700, 29800))

    def cluster(self, workers, servers):
        self.hosts = {"worker": [self.address() for _ in range(workers)],
                      "ps": [self.address() for _ in range(servers)]}

    def address(self):
        return f"{OWN_ADDRESS}:{next(self.ports)}"

    def start_task(self, kind, index, *flags, key=KEY):
        config = {"cluster": self.hosts, "task": {"type": kind, "index": index}}
        return self.start([*TRAIN.split(), *flags],
                          {"TF_CONFIG": json.dumps(config), "MUSTER_RENDEZVOUS_KEY": key})

    def start_all(self, *flags, workers=2, servers=1):
        """The parameter servers, and the workers, the chief first."""
        self.cluster(workers, servers)
        return ([self.start_task("ps", i, *flags) for i in range(servers)],
                [self.start_task("worker", i, *flags) for i in range(workers)])

    def test_parameter_servers_end_when_all_workers_have_left(self):
        servers, workers = self.start_all("--epochs", 20, "--staleness", 2, servers=2)

        said = self.finish(*workers, *servers)

        self.assertGreater(accuracy_in(said.splitlines()), 90)
        self.assertEqual(said.count("2 workers left, 0 lost"), 2, said)

    def test_a_killed_parameter_server_ends_every_worker_with_an_error_that_names_it(self):
        servers, workers = self.start_all("--epochs", 1000000, servers=2)
        workers[0].until("epoch ")

        servers[1].process.kill()

        for number, worker in enumerate(workers):
            self.assertEqual(worker.finish(), 1)
            self.assertRegex(worker.errors, rf"\Adigits: worker {number}: .*{self.hosts['ps'][1]}")
        self.assertEqual(servers[0].finish(), 0)
        # The killed processes could not announce to the remaining server that they leave.
        self.assertRegex(servers[0].text, r"\d workers? left, \d lost")

    def test_a_killed_chief_ends_every_worker_with_an_error_that_names_it(self):
        servers, workers = self.start_all("--epochs", 1000000)
        workers[0].until("epoch ")

        workers[0].process.kill()

        self.assertEqual(workers[1].finish(), 1)
        self.assertIn("digits: worker 1: the chief was lost after ", workers[1].errors)
        self.assertEqual(servers[0].finish(), 0)

    def test_a_killed_worker_does_not_hold_the_others(self):
        servers, workers = self.start_all("--epochs", 200, "--staleness", 1, workers=3)
        workers[0].until("epoch ")

        workers[2].process.kill()

        said = self.finish(*workers[:2], *servers)
        self.assertGreater(accuracy_in(said.splitlines()), 90)
        self.assertIn("2 workers left, 1 lost", said)

    def test_a_client_with_another_key_is_refused_without_effect_on_others(self):
        servers, workers = self.start_all("--epochs", 1000000)
        self.hosts["worker"].append(self.address())
        workers[0].until("epoch ")

        stranger = self.start_task("worker", 2, key=OTHER_KEY)

        self.assertEqual(stranger.finish(), 1)
        self.assertRegex(stranger.errors, f"(?i){self.hosts['ps'][0]}.*key|key.*{self.hosts['ps'][0]}")
        self.assertNotIn(OTHER_KEY, stranger.errors)
        workers[0].until("epoch ")

    def test_an_evaluator_prints_that_it_has_nothing_to_do(self):
        self.cluster(1, 1)
        self.hosts["evaluator"] = [self.address()]

        evaluator = self.start_task("evaluator", 0)

        self.assertNotEqual(evaluator.finish(), 0)
        self.assertIn("evaluator", evaluator.errors)

    def test_a_start_without_a_cluster_names_the_missing_variable(self):
        alone = self.start(TRAIN.split())

        self.assertEqual(alone.finish(), 1)
        self.assertIn("TF_CONFIG is not set", alone.errors)

    def test_rows_of_json_contain_time_images_and_accuracy(self):
        servers, workers = self.start_all("--epochs", 5, "--output", "json")

        self.finish(*workers, *servers)

        *epochs, outcome = [json.loads(line) for line in workers[0].text.splitlines()]
        for before, after in zip(epochs, epochs[1:]):
            self.assertLess(before["seconds"], after["seconds"])
            self.assertLess(before["images"], after["images"])
        self.assertEqual(epochs[-1]["epoch"], 5)
        self.assertEqual(outcome["test_accuracy"], epochs[-1]["test_accuracy"])
        self.assertRegex(outcome["weights_checksum"], r"\A0x[0-9a-f]{16}\Z")
        self.assertEqual(workers[1].text, "")


if __name__ == "__main__":
    main()
