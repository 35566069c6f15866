#!/usr/bin/env python3
"""Runs the resnet20 program like its users: alone, under mpirun, killed and resumed.

    resnet20_test.py PROGRAM [unittest's arguments]

No check depends on times; limits only catch hangs.
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
LIMIT = 600  # seconds; only a hang reaches it, also of two ranks on busy cores
SMALL = ("--batch_size=2", "--num_warmup_batches=1", "--display_every=2")
LINE = re.compile(r"^(\d+)\timages/sec: [0-9.]+ \+/- [0-9.]+ \(jitter = [0-9.]+\)\t[0-9.]+$", re.M)


def environment(**more):
    """The environment of an independent program: no launcher's variables, one thread."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "PMI", "MUSTER_", "SLURM_"))}
    return dict(kept, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


def run(*arguments, ranks=1):
    launcher = ["mpirun", "--oversubscribe", "-np", str(ranks)] if ranks > 1 else []
    return subprocess.run(launcher + [PROGRAM, *arguments], env=environment(), text=True,
                          capture_output=True, timeout=LIMIT, check=False)


def start_world(size, *arguments):
    """Starts the ranks as child processes, so that the test can end one of them by its id."""
    # An address of this test's own (all of 127.0.0.0/8 is this host), so that no other process takes the port.
    own = f"127.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}.2"
    with socket.create_server((own, 0)) as free:
        address = f"{own}:{free.getsockname()[1]}"
    key = secrets.token_hex(32)
    return [subprocess.Popen(
        [PROGRAM, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(MUSTER_RANK=str(rank), MUSTER_WORLD_SIZE=str(size), MUSTER_RENDEZVOUS=address,
                        MUSTER_RENDEZVOUS_KEY=key))
        for rank in range(size)]


def outcome(done):
    """The last line of --output json."""
    return json.loads(done.stdout.splitlines()[-1])


class ResNet20(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def test_alone(self):
        done = run(*SMALL, "--num_batches=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([match.group(1) for match in LINE.finditer(done.stdout)], ["1", "2", "4"])
        self.assertRegex(done.stdout, r"(?m)^total images/sec: [0-9.]+$")
        self.assertIn("Step\tImg/sec\ttotal_loss\n", done.stdout)

    def test_all_ranks_have_the_same_weights(self):
        for ranks, more in ((2, ()), (3, ("--sync_batch_norm",)), (2, ("--compress=float16", "--optimizer=adam"))):
            done = run(*SMALL, "--num_batches=3", "--output=json", *more, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            checksums = outcome(done)["weights_checksums"]
            self.assertEqual(len(checksums), ranks)
            self.assertEqual(len(set(checksums)), 1, checksums)

    def test_cifar_is_learned_and_bad_files_are_rejected_on_all_ranks(self):
        for name in ("data_batch_1.bin", "test_batch.bin"):
            with open(os.path.join(self.folder, name), "wb") as file:
                for label in range(8):
                    file.write(bytes([label]) + bytes([25 * label]) * 3072)
        done = run(*SMALL, "--num_batches=4", f"--data={self.folder}", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cifar10, 8 training images", done.stdout)
        self.assertRegex(done.stdout, r"test accuracy: [0-9.]+ %")
        with open(os.path.join(self.folder, "test_batch.bin"), "ab") as file:
            file.write(b"x")
        done = run(*SMALL, "--num_batches=4", f"--data={self.folder}", ranks=2)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("test_batch.bin has 24585 bytes", done.stderr)

    def test_bad_usage(self):
        done = run("--batch_size=0", "--nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--batch_size is '0'", done.stderr)
        self.assertIn("unknown flag --nonsense", done.stderr)

    def test_a_killed_rank_is_named_and_the_training_continues_from_its_checkpoint(self):
        kept = os.path.join(self.folder, "kept")
        common = (*SMALL, "--checkpoint_every=2", "--output=json")
        world = start_world(2, *common, "--num_batches=1000000", f"--checkpoint={kept}")
        try:
            # The second line follows the first checkpoint.
            lines = [world[0].stdout.readline() for _ in range(2)]
            self.assertEqual([json.loads(line)["step"] for line in lines], [1, 2])
            world[1].send_signal(signal.SIGKILL)
            _, error = world[0].communicate(timeout=LIMIT)
            self.assertEqual(world[0].returncode, 1)
            self.assertRegex(error, "rank 1 on host .* is gone")
        finally:
            for rank in world:
                rank.kill()
                rank.communicate()

        # The step of the checkpoint depends on the machine. After three more steps the training must be where it would
        # have been without the interruption.
        with open(os.path.join(kept, "checkpoint"), "rb") as file:
            step = int(re.search(rb"progress \d+ (\d+) \d+\n", file.read()).group(1))
        self.assertEqual(step % 2, 0)
        steps = f"--num_batches={step + 3 - 1}"  # one step is the warm-up
        whole = run(*common, steps, ranks=2)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        resumed = run(*common, steps, f"--checkpoint={kept}", "--resume", ranks=2)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(outcome(resumed)["weights_checksums"], outcome(whole)["weights_checksums"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
