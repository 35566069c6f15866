"""Commands on jobs behave the same on Slurm as on other engines. Runs the unchanged tests of dialects, shells, `muster
exec`, copies and forwarded ports on nodes that share the jobs' folder. Those that use the network also run on nodes
that do not share it."""

import e2e_copy
import e2e_exec
import e2e_gradient
import e2e_mpi_job
import e2e_port_forward
import e2e_runai
import e2e_sessions
from muster_harness import main
from slurm_harness import SlurmTest

# On other engines ssh is the default; on Slurm it must be requested.
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

    def test_mpirun_in_a_shell_needs_no_ssh(self):
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
