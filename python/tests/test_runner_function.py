"""run(): a function on every rank."""

import contextlib
import importlib.util
import os
import pickle
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import functions_of_ranks as functions
from launched import BOUND, PACKAGE, environment, python
from muster.runner import RankError, function, run
from muster.runner.settings import Function, Settings, SettingsError


@contextlib.contextmanager
def silence():
    """Captures the output of ranks, which goes to the descriptors, not to sys.stderr. Yields a function that reads
    it."""
    with tempfile.TemporaryFile() as file:
        before = [os.dup(1), os.dup(2)]
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: (file.seek(0), file.read().decode())[1]
        finally:
            for number, descriptor in zip((1, 2), before):
                os.dup2(descriptor, number)
                os.close(descriptor)


class Run(unittest.TestCase):
    def test_results_come_by_rank(self):
        self.assertEqual(run(functions.place, (1, "b"), {"c": None}, num_proc=3),
                         [(rank, 3, (1, "b"), {"c": None}) for rank in range(3)])

    def test_one_process_by_default_and_older_names(self):
        self.assertEqual(run(functions.place), [(0, 1, (), {})])
        self.assertEqual(len(run(functions.place, np=2)), 2)
        self.assertEqual(len(run(functions.place, hosts="localhost:2")), 2)

    def test_megabytes_go_both_ways(self):
        self.assertEqual(run(functions.place, (b"x" * (20 << 20),), num_proc=1)[0][2], (b"x" * (20 << 20),))
        self.assertEqual(run(functions.large, (20 << 20,), num_proc=2), [b"0" * (20 << 20), b"1" * (20 << 20)])

    def test_an_exception_of_a_rank_is_raised_here_with_its_traceback(self):
        with silence() as said, self.assertRaises(RankError) as caught:
            try:
                run(functions.fail_on, (1, KeyError("missing")), num_proc=3)
            finally:
                printed = said()
        self.assertEqual(caught.exception.rank, 1)
        self.assertIn("in fail_on\n", caught.exception.text)
        self.assertIn("rank 1 raised:\nTraceback", str(caught.exception))
        self.assertEqual((type(caught.exception.__cause__), caught.exception.__cause__.args), (KeyError, ("missing",)))
        self.assertIn("[1]<stderr>:KeyError: 'missing'\n", printed)

    def test_a_rank_that_ends_without_a_result_is_an_error(self):
        with silence(), self.assertRaisesRegex(RuntimeError, "the run ended with code 3"):
            run(functions.end_with, (3,), num_proc=2)

    def test_a_rank_that_leaves_in_order_without_a_result_is_an_error_too(self):
        with silence(), self.assertRaisesRegex(RuntimeError, "no result came from rank 0, 2: the function ended"):
            run(functions.leave_unless, (1,), num_proc=3)

    def test_objects_that_cannot_be_sent_are_errors(self):
        with open(os.devnull) as file, \
                self.assertRaisesRegex(TypeError, "the function or its arguments cannot be sent"):
            run(functions.place, (file,), num_proc=1)
        if not importlib.util.find_spec("cloudpickle"):
            with silence(), self.assertRaisesRegex(RankError, "the result of the function, a function, cannot be sent"):
                run(functions.lambda_result, num_proc=1)

    def test_all_faults_of_the_arguments_are_reported_together(self):
        with self.assertRaises(SettingsError) as caught:
            run("no function", num_proc=0, np=3, start_timeout="soon", use_mpi=True, min_num_proc=3, max_num_proc=2,
                ssh_port=70000, network_interfaces=["a", ""])
        for part in ("num_proc is given under two names, as 0 and 3", "num_proc 0: expected a whole number",
                     "start_timeout soon", "use_mpi: only processes that this program starts can return results",
                     "func is a str, which cannot be called",
                     "min_num_proc 3 exceeds max_num_proc 2", "ssh_port 70000",
                     "network_interfaces a,: expected names"):
            self.assertTrue(any(part in each for each in caught.exception.faults), (part, caught.exception.faults))

    def test_only_the_processes_can_access_the_function_and_its_result(self):
        # The last descriptor is that of the listed folder.
        self.assertEqual(run(functions.open_descriptors, num_proc=1), ["['0', '1', '2', '3']\n"])
        self.assertEqual(run(functions.variables, num_proc=1), [set()])

    def test_nothing_is_left_open(self):
        run(functions.place, num_proc=1)
        before = sorted(os.listdir("/proc/self/fd"))
        run(functions.place, num_proc=2)
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)

    def test_ctrl_c_ends_the_ranks_and_is_raised(self):
        program = ("import functions_of_ranks, muster.runner\n"
                   "try: muster.runner.run(functions_of_ranks.wait_for_a_signal, num_proc=2)\n"
                   "except KeyboardInterrupt: print('interrupted')\n")
        path = f"{PACKAGE}:{Path(__file__).parent}"
        with subprocess.Popen(python(program), env=environment(PYTHONPATH=path), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, start_new_session=True) as caller:
            for _ in range(2):
                self.assertIn("<stdout>:pid ", caller.stdout.readline())
            os.kill(caller.pid, signal.SIGINT)
            self.assertEqual(caller.communicate(timeout=BOUND)[0], "interrupted\n")

    def test_without_cloudpickle_a_function_of_the_main_program_is_refused_with_advice(self):
        functions_of_main = type(functions.place)(functions.place.__code__, {}, "here")
        functions_of_main.__module__ = "__main__"
        with mock.patch.dict("sys.modules", cloudpickle=None):
            with self.assertRaisesRegex(TypeError, "in the main program.*: install cloudpickle, or define it in"):
                run(functions_of_main)

    def test_with_cloudpickle_functions_of_the_main_program_go_too(self):
        # The real cloudpickle if it is installed; otherwise a minimal replacement.
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "cloudpickle.py").write_text(
                "import marshal, pickle, types\n"
                "def rebuild(code): return types.FunctionType(marshal.loads(code), {'__builtins__': __builtins__})\n"
                "class Pickler(pickle._Pickler):\n"
                "    def save_function(self, f):\n"
                "        if f.__module__ != '__main__': return pickle._Pickler.save_global(self, f)\n"
                "        self.save_reduce(rebuild, (marshal.dumps(f.__code__),), obj=f)\n"
                "    dispatch = {**pickle._Pickler.dispatch, types.FunctionType: save_function}\n"
                "def dumps(value):\n"
                "    import io; file = io.BytesIO(); Pickler(file).dump(value); return file.getvalue()\n")
            program = ("import muster.runner\ndef double(x): return 2 * x\n"
                       "print(muster.runner.run(double, (21,), num_proc=2))\n")
            ran = subprocess.run(python(program), env=environment(PYTHONPATH=f"{PACKAGE}:{folder}"),
                                 capture_output=True, text=True, timeout=BOUND)
        self.assertEqual((ran.stdout, ran.stderr), ("[42, 42]\n", ""))

    def test_an_elastic_run_returns_its_results_although_a_worker_failed_before_it_trained(self):
        with tempfile.TemporaryDirectory() as folder, silence():
            self.assertEqual(run(functions.train_unless_first, (folder,), num_proc=2, min_num_proc=2),
                             [("trained", rank, 2) for rank in range(2)])

    def test_a_rank_error_can_be_pickled(self):
        copy = pickle.loads(pickle.dumps(RankError(3, "Traceback ...")))
        self.assertEqual((copy.rank, copy.text), (3, "Traceback ..."))


class ElasticResults(unittest.TestCase):
    """The results of an elastic run, with a driver that the test plays."""

    def results(self, code, *outcomes):
        """`outcomes`: (round, rank, value), or an error in place of the value, in the order of the ends."""
        of_processes = Function(b"")

        def launch(_):
            for round, rank, value in outcomes:
                error = f"Traceback: {value}" if isinstance(value, Exception) else None
                of_processes.results[str(len(of_processes.results))] = pickle.dumps(
                    {"round": round, "rank": rank, "value": pickle.dumps(value), "error": error})
            return code

        with mock.patch("muster.runner.launch.launch", launch):
            return function._carry_out(Settings(min_num_proc=1, function=of_processes), of_processes)

    def test_a_worker_that_failed_and_was_replaced_does_not_count(self):
        self.assertEqual(self.results(0, (0, 1, OSError("no disk")), (2, 1, "b"), (2, 0, "a")), ["a", "b"])

    def test_only_the_workers_of_the_last_round_count(self):
        self.assertEqual(self.results(0, (1, 0, "left behind"), (3, 1, "b"), (3, 0, "a")), ["a", "b"])

    def test_workers_that_never_joined_a_world_count(self):
        self.assertEqual(self.results(0, (0, 1, "b"), (0, 0, "a")), ["a", "b"])

    def test_a_run_that_failed_raises_the_exception_of_the_worker(self):
        with self.assertRaisesRegex(RankError, "rank 1 raised:\nTraceback: no disk"):
            self.results(1, (2, 1, OSError("no disk")), (2, 0, "a"))

    def test_a_run_without_results_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "no result came from any rank"):
            self.results(0, (0, 0, OSError("no disk")))


if __name__ == "__main__":
    unittest.main()
