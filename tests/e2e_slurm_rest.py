"""Slurm through slurmrestd: the tests of jobs, queue and faults of the other files, and the token, which is private
and in no listing."""

import e2e_slurm
import e2e_slurm_queue
from muster_harness import all_pids, main, read_bytes
from slurm_harness import SlurmTest


class ByRest(SlurmTest):
    CLUSTER = {"rest": True}

    def settings(self):
        return {"rest": f"unix://{self.cluster.rest_socket}"}


class ByTcp(SlurmTest):
    CLUSTER = {"rest": True}

    def settings(self):
        return {"rest": self.cluster.rest_url}

    def test_a_job_runs(self):
        ran = self.muster.run("submit", "single", "hello", "--follow", "--", "hostname")

        self.assertEqual(ran.stdout, "[main] hello-main\n")

    def test_the_token_is_in_nobodys_arguments_and_in_no_file_of_the_server(self):
        gate, follow = self.at_the_gate()
        head = b"eyJhbGci"  # the beginning of every token of Slurm

        self.assertEqual([pid for pid in all_pids() if head in read_bytes(f"/proc/{pid}/cmdline")], [])
        self.assertEqual([path for path in self.muster.state.rglob("*")
                          if path.is_file() and head in read_bytes(path, 1 << 22)], [])
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)


class Jobs(e2e_slurm.Jobs, ByRest):
    pass


class Waiting(ByRest, e2e_slurm_queue.Waiting):
    pass


class BehindItsBack(ByRest, e2e_slurm_queue.BehindItsBack):
    pass


if __name__ == "__main__":
    main()
