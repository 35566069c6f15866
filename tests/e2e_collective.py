"""The collective library without the platform: ranks connect to each other under every launcher, train the same
weights, and leave no files and no shared memory behind."""

import re
import shutil
import signal
import unittest

from muster_harness import BUILD, DIGITS, main, shared_memory, unused
from programs_harness import KEY, OWN_ADDRESS, ProgramsTest

BENCH = BUILD / "collective" / "tools" / "muster-collective-bench"


class CollectiveTest(ProgramsTest):

    def start_ranks(self, argv, variables_of, common=None):
        """Starts two ranks, each with its own variables. Returns the processes in the order of the ranks."""
        return [self.start(argv, variables_of(rank) | (common or {})) for rank in (0, 1)]

    def muster_variables(self):
        """The variables that Muster sets."""
        return lambda rank: {"MUSTER_RANK": str(rank), "MUSTER_WORLD_SIZE": "2",
                             "MUSTER_RENDEZVOUS": f"{OWN_ADDRESS}:29600",
                             "MUSTER_RENDEZVOUS_KEY": KEY}


def slurm_variables(rank):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_JOB_ID": "4711",
            "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_NNODES": "3"}


class ProgramsUnderALauncher(CollectiveTest):

    def weights_of(self, output):
        """The checksum that rank 0 prints if all ranks have the same weights."""
        self.assertIn("rank 0 of 2 on ", output)
        self.assertIn("rank 1 of 2 on ", output)
        found = re.findall(r"weights checksum: (0x[0-9a-f]{16}) on all 2 ranks", output)
        self.assertEqual(len(found), 1, output)
        return found[0]

    def digits(self, variables_of, common=None):
        return self.weights_of(self.finish(*self.start_ranks([DIGITS], variables_of, common)))

    @property
    def expected(self):
        """The weights of two ranks with all variables."""
        return self.digits(self.muster_variables())

    def test_mpirun_of_open_mpi_trains_the_same_weights(self):
        ran = self.start(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2",
                          DIGITS])

        self.assertEqual(self.weights_of(self.finish(ran)), self.expected)

    @unittest.skipUnless(shutil.which("mpiexec.mpich"), "MPICH is not installed")
    def test_mpiexec_of_mpich_trains_the_same_weights(self):
        ran = self.start(["mpiexec.mpich", "-np", "2", DIGITS])

        self.assertEqual(self.weights_of(self.finish(ran)), self.expected)

    def test_srun_trains_the_same_weights(self):
        self.assertEqual(self.digits(slurm_variables), self.expected)

    def test_torchrun_on_one_host_trains_the_same_weights(self):
        weights = self.digits(lambda rank: {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"})

        self.assertEqual(weights, self.expected)

    def test_torchrun_on_two_hosts_meets_at_the_master_and_trains_the_same_weights(self):
        weights = self.digits(lambda rank: {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": OWN_ADDRESS, "MASTER_PORT": "29500",
            "MUSTER_RENDEZVOUS_KEY": KEY, "MUSTER_COLLECTIVE_HOST_ID": f"host-{rank}"})

        self.assertEqual(weights, self.expected)

    def test_every_transport_and_every_instruction_set_train_the_same_weights(self):
        choices = [{"MUSTER_COLLECTIVE_TRANSPORT": transport} for transport in ("shm", "tcp")]
        choices += [{"MUSTER_COLLECTIVE_ISA": isa} for isa in ("scalar", "sse", "avx2", "avx512")]

        weights = [self.digits(self.muster_variables(), choice) for choice in choices]

        self.assertEqual(weights, [self.expected] * len(choices))

    def test_ranks_that_are_killed_leave_nothing_in_dev_shm_and_no_file_to_meet_by(self):
        before = shared_memory()
        ranks = self.start_ranks([DIGITS, "--epochs", "1000000"], slurm_variables)
        ranks[0].until("epoch ")

        # All are stopped first, so that no rank detects the death of another.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for rank in ranks:
                rank.process.send_signal(number)

        self.assertNotIn(0, [rank.finish() for rank in ranks])
        self.assertEqual(unused(shared_memory() - before), [])
        self.assertEqual(list((self.runtime / "muster-collective").iterdir()), [])


class TheBenchmarkProgram(CollectiveTest):

    def test_explain_prints_a_line_for_each_size(self):
        said = self.finish(*self.start_ranks([BENCH, "--explain", "--sizes", "4:64M:4"],
                                             self.muster_variables()))

        lines = [line.split(maxsplit=1) for line in said.splitlines()]
        self.assertEqual([int(line[0]) for line in lines], [4 ** power for power in range(1, 14)])
        for size, how in lines:
            self.assertGreater(len(how), 10, size)

    def test_the_arena_needs_no_room_in_dev_shm(self):
        variables = self.muster_variables()
        script = ["head -c 2M /dev/zero > /dev/shm/full 2> /dev/null",
                  # A small file system that is full.
                  "if echo more > /dev/shm/more; then exit 9; fi 2> /dev/null"]
        for rank in (0, 1):
            words = [f"{name}={value}" for name, value in variables(rank).items()]
            words += [str(BENCH), "--arena", "--sizes", "16M:16M:2", "--iterations", "3"]
            script.append(" ".join(words) + f" & rank{rank}=$!")
        script += ["wait $rank0 && wait $rank1"]

        ran = self.start(["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 20), "--tmpfs",
                          "/dev/shm", "sh", "-c", "\n".join(script)])

        self.assertRegex(self.finish(ran), r"(?m)^ *16777216 ")


if __name__ == "__main__":
    main()
