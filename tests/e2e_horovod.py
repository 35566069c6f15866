"""Scripts for Horovod, unchanged, as jobs: by `muster`, `gradient` and `runai`, by mpirun and by horovodrun, and an
elastic one that loses a worker. `make test-horovod` runs it."""

import json
import re

from frameworks_harness import TORCH, accuracy_in, checksums_in
from muster_harness import MusterTest, ROOT, descendants, kill_and_wait, main

EXAMPLES = ROOT / "examples" / "horovod"
TRAIN = EXAMPLES / "torch_digits.py"
BENCHMARK = EXAMPLES / "torch_synthetic_benchmark.py"
ELASTIC = EXAMPLES / "torch_digits_elastic.py"

# Files that `pip install` would create.
PACKAGES = f"{ROOT / 'python'}:{ROOT / 'python' / 'horovod-shim'}"
HOROVODRUN = f"#!{TORCH}\nfrom horovod.runner.launch import run_commandline\nrun_commandline()\n"

MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2"]


class HorovodTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.horovodrun = self.muster.script("horovodrun", HOROVODRUN)
        self.settings = {"PYTHONPATH": PACKAGES, "OMP_NUM_THREADS": "1"}

    def submit(self, *words, workers=2):
        """Submits an MPI job; returns its output."""
        settings = [word for name, value in self.settings.items() for word in ("-e", f"{name}={value}")]
        return self.muster.stream("submit", "mpi", "dist", "--workers", workers, *settings, "--follow", *words)

    def assert_it_learned(self, run, ranks=2):
        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assert_learned(run.text, ranks)

    def assert_learned(self, text, ranks):
        self.assertGreater(accuracy_in(text), 90, text)
        self.assertIn(f"on {ranks} ranks", text)
        checksums = checksums_in(text)
        self.assertEqual(sorted(checksums), [f"rank {rank}" for rank in range(ranks)])
        self.assertEqual(len(set(checksums.values())), 1, "all have the same weights")


class Jobs(HorovodTest):

    def test_mpirun_starts_the_ranks(self):
        self.assert_it_learned(self.submit("--", *MPIRUN, TORCH, TRAIN))

        rows = self.muster.run("metrics", "dist", "accuracy", "--output", "csv").stdout
        self.assertGreater(float(rows.splitlines()[-1].split(",")[-1]), 0.9)

    def test_horovodrun_starts_them_on_the_workers_of_the_job(self):
        self.assert_it_learned(self.submit("--", self.horovodrun, "-np", 2, TORCH, TRAIN))

    def test_gradient_starts_them(self):
        settings = json.dumps(self.settings)
        run = self.muster.stream(
            "gradient", "experiments", "run", "multinode", "--name", "dist", "--projectId", "default",
            "--experimentType", "MPI", "--workerContainer", "image", "--workerMachineType", "C3", "--workerCount", 2,
            "--masterContainer", "image", "--masterMachineType", "C3", "--masterCount", 1,
            "--workerCommand", "sleep infinity", "--experimentEnv", settings,
            "--masterCommand", " ".join([*MPIRUN, TORCH, str(TRAIN)]))

        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assert_learned(run.text, ranks=2)

    def test_runai_starts_them(self):
        settings = [word for name, value in self.settings.items() for word in ("-e", f"{name}={value}")]
        self.muster.run("runai", "submit-mpi", "dist", "--processes", 2, "-i", "image", *settings, "--",
                        *MPIRUN, TORCH, TRAIN)
        run = self.muster.stream("runai", "logs", "dist", "-f")

        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assert_learned(run.text, ranks=2)

    def test_the_synthetic_benchmark_prints_the_number_of_images(self):
        run = self.submit("--", self.horovodrun, "-np", 2, TORCH, BENCHMARK, "--batch-size", 4, "--image-size", 32,
                          "--width", 8, "--num-warmup-batches", 1, "--num-batches-per-iter", 2, "--num-iters", 3)

        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertRegex(run.text, r"Total img/sec on 2 ranks: [0-9.]+ \+-[0-9.]+")

    def test_a_rank_that_is_killed_ends_the_job_and_is_named(self):
        run = self.submit("--", self.horovodrun, "-np", 2, TORCH, TRAIN, "--epochs", 100000)
        run.until("epoch=1")

        kill_and_wait(self.one_that_trains())

        self.assertNotEqual(run.finish(), 0)
        self.assertRegex(run.text, r"rank [01] .*(SIGKILL|signal 9)")

    def test_an_elastic_job_goes_on_without_a_worker_that_is_lost(self):
        run = self.submit("--min-workers", 1, "--max-workers", 2, "--", self.horovodrun, "--min-np", 1, "--max-np", 2,
                          "-np", 2, "--host-discovery-script", "/generated/discover_hosts.sh",
                          TORCH, ELASTIC, "--epochs", 30, "--batches-per-commit", 1)
        run.until("epoch=2 ")

        kill_and_wait(self.one_that_trains())

        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertGreater(accuracy_in(run.text), 90)
        begun = [int(epoch) for epoch in re.findall(r"begins in epoch (\d+)", run.text)]
        self.assertEqual(min(begun), 1)
        self.assertGreater(max(begun), 1, "it did not begin anew after the loss")
        # Two ranks need half of the batches that one rank needs alone. An epoch that had lost its record of the
        # trained images would train all of them again.
        batches = [int(number) for number in re.findall(r"epochs=30 batches=(\d+)", run.text)]
        self.assertLessEqual(max(batches), 2 * batches[0], run.text)

    def one_that_trains(self):
        """The process of a rank of the job, which runs the example."""
        ranks = [pid for pid in descendants(self.muster.server_pid()) if self.runs_example(pid)]
        self.assertTrue(ranks, "no rank is there")
        return ranks[-1]

    @staticmethod
    def runs_example(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            return False
        return words[0] == TORCH.encode() and len(words) > 1 and words[1].startswith(str(EXAMPLES).encode())


class ByHand(HorovodTest):

    def horovodrun_stream(self, *words):
        return self.muster.stream_of([str(word) for word in (self.horovodrun, *words)], environment=self.settings)

    def test_horovodrun_needs_no_server(self):
        run = self.horovodrun_stream("-np", 2, TORCH, TRAIN)

        self.assert_it_learned(run)

    def test_adasum_and_sixteen_bits_learn_too(self):
        for flags in (["--adasum"], ["--fp16"], ["--predivide", "2"]):
            with self.subTest(flags):
                self.assert_it_learned(self.horovodrun_stream("-np", 2, TORCH, TRAIN, *flags))

    def test_a_program_without_a_launcher_is_one_rank(self):
        run = self.muster.stream_of([TORCH, str(TRAIN), "--epochs", "3"], environment=self.settings)

        self.assert_it_learned(run, ranks=1)


if __name__ == "__main__":
    main()
