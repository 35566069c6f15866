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

    def test_variables_are_named_and_their_values_are_not_there(self):
        environment = {"HOROVOD_AUTOTUNE": "1", "PATH": "/p", "PASSWORD": "secret", "HOROVOD_TIMELINE": "secret"}
        for is_open_mpi, part in ((True, "-x HOROVOD_AUTOTUNE -x HOROVOD_TIMELINE -x PATH"),
                                  (False, "-genvlist HOROVOD_AUTOTUNE,HOROVOD_TIMELINE,PATH")):
            said = words(is_open_mpi, environment)
            self.assertIn(part, said)
            self.assertNotIn("secret", said)
            self.assertNotIn("PASSWORD", said)


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
