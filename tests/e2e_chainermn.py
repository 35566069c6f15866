"""ChainerMN as an MPI job: its MNIST-shaped example on the handwritten digits, by mpirun and mpi4py, on two workers.
`make test-horovod` runs it; scripts/python_env.sh chainer creates the Python environment."""

import re

from frameworks_harness import accuracy_in
from muster_harness import MPIRUN, MusterTest, ROOT, main

CHAINER = ROOT / "build" / "chainer" / "bin" / "python"
TRAIN = ROOT / "examples" / "chainermn" / "train_digits.py"


class ChainerMNTest(MusterTest):

    def test_two_workers_train_the_same_weights(self):
        self.assertTrue(CHAINER.exists(), f"{CHAINER} is missing: scripts/python_env.sh chainer makes it")

        ran = self.muster.run("submit", "mpi", "chainer", "--workers", 2, "--follow", "-e", "OMP_NUM_THREADS=1", "--",
                              *MPIRUN, "--hostfile", "/generated/hostfile", CHAINER, TRAIN)

        weights = dict(re.findall(r"rank (\d) of 2 ends with weights of ([0-9.]+)", ran.stdout))
        self.assertEqual(sorted(weights), ["0", "1"], ran.stdout)
        self.assertEqual(weights["0"], weights["1"])
        self.assertGreaterEqual(accuracy_in(ran.stdout), 95)
        self.assertRegex(ran.stderr, r"chainer +Succeeded +0 +\d")


if __name__ == "__main__":
    main()
