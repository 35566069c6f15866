"""Real PyTorch as torch jobs: DistributedDataParallel over gloo, with torchrun and without it, and trainings that lose
a worker. `make test-tensorflow` runs it."""

import re

from frameworks_harness import TORCH, TORCHRUN, accuracy_in, checksums_in
from muster_harness import MusterTest, ROOT, main

TRAIN = ROOT / "examples" / "torch" / "digits_ddp.py"
# The test ends it; it never ends by itself.
ENDLESS = [TRAIN, "--epochs", 1000000]

# Makes worker-0 wait in its second epoch, where the test kills it, and the master in its last epoch, until the test has
# checked which workers continue.
HELD_TRAINING = f"""
import os, signal, socket, sys
sys.path.insert(0, {str(TRAIN.parent)!r})
import digits_ddp

host = socket.gethostname()
here = os.path.dirname(os.path.abspath(__file__))
train_epoch = digits_ddp.train_epoch

def hold_some(model, optimizer, batches):
    epoch = batches.sampler.epoch
    if host == "ddp-worker-0" and epoch == 1 and not os.path.exists(here + "/held"):
        open(here + "/held", "w").close()
        print("worker-0 is held", flush=True)
        signal.pause()
    if host == "ddp-master" and epoch == 9:
        open(here + "/gate").read(1)
    return train_epoch(model, optimizer, batches)

digits_ddp.train_epoch = hold_some
digits_ddp.main()
"""


# Batches come from two processes, through shared memory.
LOADERS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.arange(500))
    loader = DataLoader(data, batch_size=50, num_workers=2)
    print("sum", sum(int(batch.sum()) for batch, in loader), flush=True)
"""


class TorchTest(MusterTest):

    def submit(self, workers, *words):
        """Starts a job, with few threads for each task because the tasks share few CPUs. Returns the running command,
        which prints the output."""
        return self.muster.stream("submit", "torch", "ddp", "--workers", workers, "-e", "OMP_NUM_THREADS=1",
                                  "--follow", *words)

    def assert_it_learned(self, run, ranks):
        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertEqual(self.muster.job("ddp")["phase"], "Succeeded")
        self.assertGreater(accuracy_in(run.text), 90)
        self.assertIn(f"on {ranks} ranks", run.text)
        checksums = checksums_in(run.text)
        self.assertEqual(sorted(checksums), [f"rank {rank}" for rank in range(ranks)])
        self.assertEqual(len(set(checksums.values())), 1, "all have the same weights")

    def ranks_by_task(self, run):
        return sorted(re.findall(r"\[([^ \]]+)\] rank (\d+) of \d+", run.text))


class Trainings(TorchTest):

    def test_torchrun_needs_no_arguments(self):
        run = self.submit(1, "--", TORCHRUN, TRAIN)

        self.assert_it_learned(run, ranks=2)
        self.assertEqual({task for task, _ in self.ranks_by_task(run)}, {"master", "worker-0"})
        rows = self.muster.run("metrics", "ddp", "accuracy", "--output", "csv").stdout
        self.assertAlmostEqual(float(rows.splitlines()[-1].split(",")[-1]) * 100, accuracy_in(run.text), delta=0.01)

    def test_torchrun_starts_as_many_processes_as_a_task_has_slots(self):
        run = self.submit(1, "--slots-per-worker", 2, "--", TORCHRUN, TRAIN)

        self.assert_it_learned(run, ranks=4)
        tasks = [task for task, _ in self.ranks_by_task(run)]
        self.assertEqual(tasks, ["master", "master", "worker-0", "worker-0"])

    def test_three_tasks_meet_without_torchrun(self):
        run = self.submit(2, "--", TORCH, TRAIN)

        self.assert_it_learned(run, ranks=3)
        self.assertEqual(self.ranks_by_task(run), [("master", "0"), ("worker-0", "1"), ("worker-1", "2")])

    def test_a_training_goes_on_from_the_checkpoint_of_another_job(self):
        checkpoint = ["--checkpoint", self.muster.work / "digits.pt"]
        first = self.submit(1, "--", TORCH, TRAIN, *checkpoint, "--epochs", 3)
        self.assertEqual(first.finish(), 0, first.errors)
        self.muster.run("delete", "ddp")

        run = self.submit(1, "--", TORCH, TRAIN, *checkpoint)

        self.assert_it_learned(run, ranks=2)
        self.assertIn("continues after epoch 3", run.text)


class OnATeamServer(TorchTest):
    """Under the filter of system calls, in a network, a /dev and limits of the job's own."""

    def test_a_training_runs_as_elsewhere(self):
        self.muster.start_server("--listen", "127.0.0.1:0")

        run = self.submit(1, "--memory", "2Gi", "--", TORCHRUN, TRAIN)

        self.assert_it_learned(run, ranks=2)

    def test_loader_processes_share_memory(self):
        self.muster.start_server("--listen", "127.0.0.1:0")
        script = self.muster.script("load.py", LOADERS)

        ran = self.muster.run("submit", "single", "load", "--memory", "1Gi", "--follow", "--", TORCH, script)

        self.assertIn("sum 124750", ran.stdout)


class Losses(TorchTest):

    def assert_it_fails_without(self, task, *command):
        run = self.submit(1, "--", *command)
        run.until("[master] ::metrics epoch=2 ")

        self.muster.kill_program(self.muster.job("ddp"), task)

        self.assertNotEqual(run.finish(), 0)
        job = self.muster.job("ddp")
        self.assertEqual((job["phase"], job["failure"]["task"]), ("Failed", task))
        self.assertIn(f"job 'ddp' failed: {task} was killed by signal 9 (SIGKILL)", run.errors)

    def test_a_killed_worker_fails_a_job_that_is_not_elastic_and_is_named(self):
        for command in ([TORCHRUN], [TORCH]):
            with self.subTest(command):
                self.assert_it_fails_without("worker-0", *command, *ENDLESS)
                self.muster.run("delete", "ddp")

    def test_a_killed_master_fails_the_job_and_is_named(self):
        self.assert_it_fails_without("master", TORCHRUN, *ENDLESS)


class ElasticTrainings(TorchTest):
    """A master and two workers; the first worker is killed during the training."""

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "3"
        self.gate = self.muster.gate()

    def held(self, *flags, by):
        script = self.muster.script("held.py", HELD_TRAINING)
        run = self.submit(2, "--min-workers", 1, "--gpus", 1, *flags, "--", by, script, "--checkpoint",
                          self.muster.work / "digits.pt")
        run.until("worker-0 is held")
        return run

    def assert_it_goes_on(self, run, ranks, attempt):
        self.gate.open()
        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertRegex(run.text, r"continues after epoch \d")
        self.assertIn(f"on {ranks} ranks", run.text)
        self.assertGreater(accuracy_in(run.text), 90)
        self.assertEqual(len(set(checksums_in(run.text).values())), 1, "all have the same weights")
        job = self.muster.job("ddp")
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", attempt))

    def test_another_worker_replaces_a_killed_one(self):
        run = self.held(by=TORCHRUN)

        self.muster.kill_program(self.muster.job("ddp"), "worker-0")

        run.until("[worker-2] rank ")
        self.assert_it_goes_on(run, ranks=3, attempt=1)

    def test_the_others_go_on_where_there_is_no_room_for_another_worker(self):
        run = self.held(by=TORCHRUN)
        other = self.muster.gate("other")
        self.muster.run("submit", "single", "other", "--gpus", 1, "--", "sh", "-c", f"echo has room; {other.wait}")
        waits = self.muster.stream("logs", "other", "-f")

        self.muster.kill_program(self.muster.job("ddp"), "worker-0")

        waits.until("has room")
        run.until("[worker-1] rank 1 of 2")
        self.assert_it_goes_on(run, ranks=2, attempt=1)
        other.open()
        self.assertEqual(waits.finish(), 0)

    def test_a_program_that_cannot_change_its_ranks_is_started_again_from_its_checkpoint(self):
        run = self.held("--retries", 1, by=TORCH)

        self.muster.kill_program(self.muster.job("ddp"), "worker-0")

        run.until("continues after epoch 1")
        self.assert_it_goes_on(run, ranks=3, attempt=2)


if __name__ == "__main__":
    main()
