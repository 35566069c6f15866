"""What people do with jobs is on Slurm what it is elsewhere: the tests of the dialects, of shells, of programs
beside a task, of copies and of ports, as they stand, with nodes that see the jobs' folder and, for those that
go over the network, with nodes that do not."""

import e2e_copy
import e2e_exec
import e2e_gradient
import e2e_mpi_job
import e2e_port_forward
import e2e_runai
import e2e_sessions
from muster_harness import main
from slurm_harness import SlurmTest


class TheDocumentsMpiJob(SlurmTest, e2e_mpi_job.TheDocumentsCommand):
    pass


class WhatTasksSee(SlurmTest, e2e_mpi_job.WhatTasksSee):
    pass


class Gradient(SlurmTest, e2e_gradient.Flows):
    pass


class RunAi(SlurmTest, e2e_runai.Inside):
    submit = e2e_runai.Inside.submit


class Shells(SlurmTest, e2e_sessions.AShell):
    pass


class ShellsOfMpiJobs(SlurmTest, e2e_sessions.AShellOfAnMpiJob):
    pass


class Attaching(SlurmTest, e2e_sessions.Attaching):
    submit = e2e_sessions.Attaching.submit


class Programs(SlurmTest, e2e_exec.RunningProgramsInTasks):

    def test_what_cannot_be_run_is_told(self):
        # That there is no such program its node finds out, when the conversation has begun.
        self.assertIn("the task has no program 'no-such-program'",
                      self.exec("--", "no-such-program", code=127).stderr)
        self.assertIn("has no task 'worker-9'",
                      self.exec("--task", "worker-9", "--", "true", code=3).stderr)
        self.assertIn("say which program to run", self.exec(code=2).stderr)
        self.gate.open()
        self.muster.ended("job")
        self.assertIn("does not run", self.exec("--", "true", code=4).stderr)


class Copies(SlurmTest, e2e_copy.CopyingFiles):
    pass


class Ports(SlurmTest, e2e_port_forward.ForwardingPorts):
    pass


class ShellsElsewhere(SlurmTest, e2e_sessions.AShell):
    CLUSTER = {"apart": True}


class ProgramsElsewhere(Programs):
    CLUSTER = {"apart": True}


class PortsElsewhere(SlurmTest, e2e_port_forward.ForwardingPorts):
    CLUSTER = {"apart": True}


if __name__ == "__main__":
    main()
