"""horovodrun --mpi: the command lines of mpirun, and a real one."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from launched import horovodrun, python
from muster.runner.mpi import mpirun_words
from muster.runner.settings import Host, Settings

SETTINGS = Settings(command=("train", "--x"), num_proc=3, hosts=(Host("a", 2), Host("b", 1)), launcher="mpi",
                    environment={"HOROVOD_AUTOTUNE": "1"})


def words(is_open_mpi=True, environment=None, **changes):
    return " ".join(mpirun_words(SETTINGS._replace(**changes), is_open_mpi, environment or {}))


class CommandLines(unittest.TestCase):
    def test_open_mpi(self):
        root = " --allow-run-as-root" if os.geteuid() == 0 else ""
        self.assertEqual(words(), f"mpirun -np 3 -H a:2,b:1 -bind-to none -map-by slot{root} train --x")
        for changes, part in [({"binding_args": "-bind-to core"}, "b:1 -bind-to core"),
                              ({"tcp": True}, "-mca pml ob1 -mca btl ^openib"),
                              ({"network_interfaces": ("e0", "e1")}, "-mca btl_tcp_if_include e0,e1"),
                              ({"ssh_port": 22, "ssh_identity_file": "/k"}, "-mca plm_rsh_args -p 22 -i /k"),
                              ({"output_filename": "/o"}, "--output-filename /o"),
                              ({"prefix_output_with_timestamp": True}, "--timestamp-output"),
                              ({"mpi_args": "-x 'A B' -v"}, "-x A B -v train --x")]:
            self.assertIn(part, words(**changes))

    def test_hydra(self):
        self.assertEqual(words(False), "mpirun -np 3 -hosts a:2,b:1 train --x")
        self.assertEqual(words(False, hosts=(Host("localhost", 3),)), "mpirun -np 3 train --x")
        self.assertIn("-iface e0", words(False, network_interfaces=("e0",)))

    def names(self, is_open_mpi, environment):
        """The names of the variables on the command line, which must have no value."""
        listed = mpirun_words(SETTINGS, is_open_mpi, {name: "secret" for name in environment})
        self.assertNotIn("secret", " ".join(listed))
        if is_open_mpi:
            return [name for option, name in zip(listed, listed[1:]) if option == "-x"]
        return listed[listed.index("-genvlist") + 1].split(",")

    def test_variables_of_the_user_are_named_and_their_values_are_not_there(self):
        passed = ["AWS_PROFILE", "HOROVOD_AUTOTUNE", "LD_LIBRARY_PATH", "MUSTER_COLLECTIVE_LIBRARY", "MY_DATA", "PATH"]
        of_this_login = ["HOME", "HOSTNAME", "SSH_AUTH_SOCK", "BASH_FUNC_which%%", "A,B"]
        for is_open_mpi in (True, False):
            self.assertEqual(self.names(is_open_mpi, [*passed, *of_this_login]), passed)

    def test_open_mpi_passes_its_own_variables_itself(self):
        self.assertEqual(self.names(True, ["OMPI_MCA_btl", "PRTE_MCA_x", "PMIX_MCA_y", "PATH"]), ["PATH"])

    def test_a_task_of_a_muster_job_keeps_its_own_variables(self):
        own = ["MUSTER_GENERATED", "MUSTER_TASK", "MUSTER_GPUS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
               "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "NVIDIA_VISIBLE_DEVICES", "KUBERNETES_SERVICE_HOST", "SLURM_NODEID"]
        passed = ["CUDA_LAUNCH_BLOCKING", "HOROVOD_AUTOTUNE", "MUSTER_COLLECTIVE_LIBRARY", "MY_DATA"]
        for is_open_mpi in (True, False):
            self.assertEqual(self.names(is_open_mpi, [*own, *passed]), passed)


class Real(unittest.TestCase):
    def test_mpirun_starts_the_ranks_with_the_variables_and_its_code_is_the_runs(self):
        # Into files: mpirun passes on what ranks print in pieces, and mixes those of long lines.
        program = ("import json, os, sys\n"
                   "with open(sys.argv[1] + os.environ['OMPI_COMM_WORLD_RANK'], 'w') as file:\n"
                   "    json.dump(dict(os.environ), file)\n")
        with tempfile.TemporaryDirectory() as folder:
            ran = horovodrun("-np", 2, "--mpi", "--fusion-threshold-mb", 4, "--mpi-args", "--oversubscribe",
                             *python(program, f"{folder}/rank"))
            self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)
            seen = [json.loads(file.read_text()) for file in Path(folder).iterdir()]
        self.assertEqual(sorted(each["OMPI_COMM_WORLD_RANK"] for each in seen), ["0", "1"])
        self.assertEqual({each["HOROVOD_FUSION_THRESHOLD"] for each in seen}, {str(4 << 20)})
        self.assertEqual({name for each in seen for name in each if name in ("HOROVOD_RANK", "MUSTER_RANK")}, set())
        self.assertEqual(horovodrun("-np", 1, "--mpi", "sh", "-c", "exit 5").returncode, 5)

    def test_a_missing_mpirun_is_an_error(self):
        ran = horovodrun("-np", 1, "--mpi", "true", PATH="/no/such/folder")
        self.assertEqual(ran.returncode, 127)
        self.assertIn("mpirun is not in the PATH", ran.stderr)


if __name__ == "__main__":
    unittest.main()
