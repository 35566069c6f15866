"""Slurm through slurmrestd: runs tests of jobs and of the queue from the other files, and checks that the token stays
private."""

import e2e_slurm
import e2e_slurm_queue
from muster_harness import all_below, main, processes_naming, read_bytes
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

    def test_no_command_line_and_no_file_of_the_server_contains_the_token(self):
        gate, follow = self.at_the_gate()
        head = b"eyJhbGci"  # the beginning of every token of Slurm

        # The environment of the server, of its commands and of the daemons names the folder of the cluster.
        pids = processes_naming(str(self.cluster.folder))
        self.assertIn(self.muster.server_pid(), pids)
        self.assertEqual([pid for pid in pids if head in read_bytes(f"/proc/{pid}/cmdline")], [])
        self.assertEqual([path for path in all_below(self.muster.state)
                          if path.is_file() and head in read_bytes(path, 1 << 22)], [])
        gate.open()
        self.assertEqual(follow.finish(), 0, follow.errors)


class Jobs(e2e_slurm.Jobs, ByRest):
    pass


class Waiting(ByRest, e2e_slurm_queue.Waiting):
    pass


class ActionsOfSlurm(ByRest, e2e_slurm_queue.ActionsOfSlurm):
    pass


if __name__ == "__main__":
    main()
