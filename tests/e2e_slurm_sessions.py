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

# Elsewhere what is found of ssh is used by itself; there it is asked for.
BY_SSH = ("--launch", "ssh")


class TheDocumentsMpiJob(SlurmTest, e2e_mpi_job.TheDocumentsCommand):
    pass


class WhatTasksSee(SlurmTest, e2e_mpi_job.WhatTasksSee):
    FLAGS = BY_SSH


class Gradient(SlurmTest, e2e_gradient.Flows):
    pass


class RunAi(SlurmTest, e2e_runai.Inside):
    submit = e2e_runai.Inside.submit


class Shells(SlurmTest, e2e_sessions.AShell):
    pass


class ShellsOfMpiJobs(SlurmTest, e2e_sessions.AShellOfAnMpiJob):
    FLAGS = BY_SSH

    def test_an_mpirun_in_one_needs_no_ssh(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--interactive")

        ran = self.muster.run("bash", "dist", input="mpirun --allow-run-as-root -np 2 hostname\n")

        self.assertEqual(sorted(ran.stdout.split()), ["dist-worker-0", "dist-worker-1"])


class Attaching(SlurmTest, e2e_sessions.Attaching):
    submit = e2e_sessions.Attaching.submit


class Programs(SlurmTest, e2e_exec.RunningProgramsInTasks):
    pass


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
