"""The shim's names: every module horovod.X is muster.X, whichever name is imported first.

Each test runs in its own interpreter, because it checks the first import. Needs no framework."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent
SHIM = PYTHON / "horovod-shim"


def run(program, *path, arguments=("-c",)):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, SHIM, PYTHON])),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    words = [textwrap.dedent(program)] if program is not None else []
    return subprocess.run([sys.executable, *arguments, *words], env=environment, capture_output=True, text=True,
                          timeout=60)


class NamesTest(unittest.TestCase):
    def passes(self, program):
        done = run(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_module_is_one_object_under_both_names(self):
        self.passes("""
            import horovod.common.process_sets, horovod.common.exceptions
            import muster.common.exceptions, muster.common.process_sets
            assert horovod.common is muster.common
            assert horovod.common.process_sets is muster.common.process_sets
            from horovod.common.exceptions import HorovodInternalError
            assert HorovodInternalError is muster.common.exceptions.HorovodInternalError
        """)

    def test_what_is_patched_under_one_name_is_patched_under_the_other(self):
        self.passes("""
            from unittest import mock
            import muster.common.reduce_ops as ours
            was = ours.ReduceOp
            with mock.patch("horovod.common.reduce_ops.ReduceOp", "patched"):
                assert ours.ReduceOp == "patched"
            assert ours.ReduceOp is was
        """)

    def test_a_module_keeps_the_spec_it_was_loaded_by(self):
        self.passes("""
            import importlib, horovod.common.exceptions
            module = horovod.common.exceptions
            assert module.__spec__.name == module.__name__ == "muster.common.exceptions"
            assert importlib.reload(module) is module
        """)

    def test_finding_a_module_does_not_load_it(self):
        self.passes("""
            import importlib.util, sys
            import horovod
            assert importlib.util.find_spec("horovod.common.exceptions").origin.endswith("exceptions.py")
            assert importlib.util.find_spec("horovod.common.nothing") is None
            assert importlib.util.find_spec("horovod.client") is None
            assert "muster.common.exceptions" not in sys.modules
        """)

    def test_importing_horovod_loads_no_framework_and_no_training_side(self):
        self.passes("""
            import sys, horovod
            assert horovod.__version__ == "0.28.1"
            assert not [name for name in sys.modules if name.split(".")[0] in ("muster", "torch", "numpy")], sys.modules
            import muster
            assert horovod.__muster_version__ == muster.__version__
        """)

    def test_a_missing_part_is_an_error_with_advice(self):
        done = run("import horovod.spark")
        self.assertIn("Muster's horovod has no spark: submit the program as a job of Muster", done.stderr)

    def test_names_that_programs_import_work(self):
        self.passes("""
            from horovod.common.util import (check_extension, env, extension_available, gloo_built, mpi_built,
                                             nccl_built, num_rank_is_power_2, split_list)
            from horovod.common.elastic import ObjectState, run_fn
            from horovod.common.process_sets import ProcessSet, global_process_set
            from horovod.runner.common.util import codec, host_hash, secret, timeout
            from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
            from horovod.runner.elastic.discovery import HostDiscovery, HostDiscoveryScript
            from horovod.runner.util.threads import in_thread, on_event
            import os, threading

            check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __name__, "mpi_lib_v2")
            assert gloo_built() is True and not extension_available("mxnet")
            assert split_list([1, 2, 3], 2) == [[1, 2], [3]] and num_rank_is_power_2(8) and not num_rank_is_power_2(6)
            with env(A_VARIABLE="1", ANOTHER=None):
                assert os.environ["A_VARIABLE"] == "1"
            assert "A_VARIABLE" not in os.environ
            assert codec.loads_base64(codec.dumps_base64({"a": 1})) == {"a": 1}
            key = secret.make_secret_key()
            assert secret.check_digest(key, b"m", secret.compute_digest(key, b"m"))
            assert host_hash.host_hash() == host_hash.host_hash() != host_hash.host_hash("salt")
            try:
                timeout.Timeout(-1, "no {activity}").check_time_out_for("start")
            except timeout.TimeoutException as error:
                assert "no start" in str(error)
            else:
                raise AssertionError("the time is over")
            places = get_host_assignments(parse_hosts("a:2,b:1"), 3)
            assert [(each.hostname, each.rank, each.local_rank, each.cross_rank, each.local_size, each.cross_size)
                    for each in places] == [("a", 0, 0, 0, 2, 2), ("a", 1, 1, 0, 2, 1), ("b", 2, 0, 1, 1, 2)]
            script = HostDiscoveryScript("printf 'a:2\\nb\\n'", 4)
            assert script.find_available_hosts_and_slots() == {"a": 2, "b": 4}
            event, called = threading.Event(), []
            thread = on_event(event, called.append, (1,))
            event.set()
            thread.join()
            in_thread(called.append, (2,)).join()
            assert called == [1, 2]
        """)

    def test_a_missing_name_is_an_error_that_names_the_nearest_public_one(self):
        for program, words in (
                ("from horovod.runner.http.http_server import RendezvousServer", "MUSTER_RENDEZVOUS"),
                ("from horovod.runner.gloo_run import gloo_run", "horovod.run()"),
                ("from horovod.runner.common.util import config_parser", "horovod.run()"),
                ("from horovod.runner import _HorovodArgs", "horovod.run()"),
                ("from horovod.common.basics import HorovodBasics", "as functions"),
                ("from horovod.common.util import get_extension_full_path", "find()")):
            with self.subTest(program):
                self.assertIn(words, run(program).stderr.splitlines()[-1])

    def test_a_module_that_fails_to_load_fails_as_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "muster" / "torch"
            package.mkdir(parents=True)
            (package.parent / "__init__.py").touch()
            (package / "__init__.py").write_text("import a_framework_that_is_not_here\n")
            done = run("import horovod.torch", folder)
        self.assertIn("No module named 'a_framework_that_is_not_here'", done.stderr)

    def test_a_module_runs_as_a_program(self):
        done = run(None, arguments=("-m", "horovod.runner.launch", "--version"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("0.", done.stdout)


class RefusalTest(unittest.TestCase):
    def test_import_is_refused_where_horovods_own_distribution_is_in_the_same_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "horovod").symlink_to(SHIM / "horovod")
            self.assertEqual(run("import horovod", folder).returncode, 0)
            (Path(folder) / "muster_horovod-0.1.0.dist-info").mkdir()
            self.assertEqual(run("import horovod", folder).returncode, 0)
            (Path(folder) / "horovod-0.28.1.dist-info").mkdir()
            done = run("import horovod", folder)
        self.assertIn(f"Horovod 0.28.1 and muster-horovod are both installed in {folder}", done.stderr)
        self.assertIn("pip uninstall -y horovod muster-horovod", done.stderr)


if __name__ == "__main__":
    unittest.main()
