"""The core in a world of one, which needs no launcher: all functions work there, too."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from unittest import mock

from muster.common import basics, data_types, exceptions, handles, objects, operations, reduce_ops
from muster.common.exceptions import ConfigurationError, HorovodInternalError
from muster.common.process_sets import add_process_set, global_process_set, remove_process_set
from muster.common.reduce_ops import Average, Max, Sum
from ranks.core_world import Memory, all_gather, all_reduce, pack, unpack

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (basics.rank, basics.size, basics.local_rank, basics.local_size, basics.cross_rank, basics.cross_size,
             basics.is_homogeneous, basics.mpi_threads_supported)


class Alone(unittest.TestCase):
    def setUp(self):
        clean = {name: value for name, value in os.environ.items()
                 if not re.match(r"(MUSTER_(?!COLLECTIVE_LIBRARY)|HOROVOD_|OMPI_|PMI_|SLURM_)|RANK$|WORLD_SIZE$", name)}
        patch = mock.patch.dict(os.environ, clean, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(basics.shutdown)

    def test_all_functions_fail_before_init_and_after_shutdown(self):
        for _ in range(2):
            self.assertFalse(basics.is_initialized())
            for ask in (*QUESTIONS, basics.barrier, basics.join, basics.stop_timeline, lambda: handles.next_name("x"),
                        lambda: add_process_set([0]), lambda: remove_process_set(global_process_set),
                        lambda: all_reduce("x", b"1234", "float32", Sum)):
                with self.assertRaises(ValueError) as caught:
                    ask()
                self.assertEqual(str(caught.exception), "Horovod has not been initialized; use hvd.init().")
            basics.init()
            basics.shutdown()
        basics.shutdown()

    def test_the_only_rank(self):
        basics.init()
        self.assertEqual([ask() for ask in QUESTIONS], [0, 1, 0, 1, 0, 1, True, True])

    def test_operations(self):
        basics.init()
        for kind in data_types.NAMES:
            data = pack(kind, [1, 0, 1])
            for in_place in (False, True):
                self.assertEqual(all_reduce(kind, data, kind, Max, in_place=in_place), data)
        self.assertEqual(unpack("int32", all_reduce("scaled", pack("int32", [3]), "int32", Average, prescale=2.0)), [6])
        self.assertEqual(all_gather("g", b"abc"), [b"abc"])
        memory = Memory(b"to itself")
        result = operations.run("all_to_all", "a", process_set=global_process_set, counts=[9], keep=memory,
                                buffers=[(memory.address, None, 9)])
        self.assertEqual((result.bytes_of_rank, bytes(result.buffer())), ((9,), b"to itself"))
        operations.run("broadcast", "b", process_set=global_process_set, buffers=[(None, memory.address, 9)])
        basics.barrier()
        self.assertEqual(basics.join(), 0)

    def test_invalid_arguments_are_refused(self):
        basics.init()

        def fails(words, kind="all_reduce", buffers=((None, None, 0),), **more):
            with self.assertRaisesRegex(ValueError, words):
                operations.run(kind, more.pop("name", "x"), process_set=global_process_set, buffers=list(buffers), **more)

        fails("unknown operation 'reduce'; valid operations are all_reduce", kind="reduce")
        fails("Tensor type complex64 is not supported", type="complex64", op=Sum)
        fails("'a.x00b': the name of an operation must not contain a NUL", name="a\0b", type="int8", op=Sum)
        fails("requires a name", name="", type="int8", op=Sum)
        fails("bools have no average", type="bool", op=Average)
        fails("adasum requires floats", type="int8", op=reduce_ops.Adasum)
        fails("null", type="float32", op=Sum, buffers=[(None, None, 1)])
        fails("the root is rank 1, which is not in the process set of ranks 0", kind="broadcast", root=1)
        fails("has 2 counts for 1 ranks", kind="all_to_all", counts=[1, 2])

    def test_handles(self):
        basics.init()
        memory = Memory(pack("float32", [5.0]))
        first, second = (handles.add(operations.submit(
            "all_reduce", name, process_set=global_process_set, type="float32", op=Sum,
            buffers=[(memory.address, memory.address, 1)], keep=memory), lambda result: (name, result))
            for name in ("one", "two"))
        self.assertNotEqual(first, second)
        self.assertTrue(handles.poll(second))
        self.assertEqual(handles.synchronize(second), ("two", None))
        self.assertIsNone(handles.synchronize(second))  # as in Horovod
        with self.assertRaisesRegex(ValueError, "no operation is pending with the handle"):
            handles.poll(second)
        for handle in (second + 100, -1, "x"):
            with self.assertRaisesRegex(ValueError, "no operation is pending with the handle"):
                handles.synchronize(handle)
        basics.shutdown()
        basics.init()
        for use in (handles.poll, handles.synchronize):
            with self.assertRaisesRegex(ValueError, "no operation is pending"):
                use(first)

    def test_a_signal_handler_may_add_a_handle_in_the_middle_of_add(self):
        basics.init()
        found = []

        def at_each_line(frame, event, argument):
            if event == "line":
                found.append(handles.add(None, None))  # is not traced: tracing is off within a trace function
            return at_each_line

        def run():
            sys.settrace(lambda frame, event, argument: at_each_line if frame.f_code is handles.add.__code__ else None)
            found.append(handles.add(None, None))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        self.assertFalse(thread.is_alive(), "add() waits for itself")
        self.assertGreater(len(found), 2)
        self.assertEqual(len(set(found)), len(found))

    def test_ctrl_c_at_the_beginning_of_a_wait_leaves_the_handle_pending(self):
        basics.init()
        handle = handles.add(operations.submit("barrier", "b", process_set=global_process_set, buffers=()),
                             lambda result: "ended")

        def interrupt(frame, event, argument):
            if event == "line" and handle not in handles._in_flight:
                sys.settrace(None)
                raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(lambda frame, event, argument: interrupt if frame.f_code is handles.synchronize.__code__ else None)
        try:
            with self.assertRaises(KeyboardInterrupt):
                handles.synchronize(handle)
        finally:
            sys.settrace(before)
        self.assertEqual(handles.synchronize(handle), "ended")

    def test_an_exception_of_finish_is_raised(self):
        basics.init()

        def finish(result):
            raise KeyError("of finish")

        pending = operations.submit("barrier", "b", process_set=global_process_set, buffers=())
        with self.assertRaises(KeyError):
            handles.synchronize(handles.add(pending, finish))
        with self.assertRaisesRegex(ValueError, "'b' was already waited for"):
            pending.wait()

    def test_an_invalid_environment_is_refused(self):
        os.environ.update({"HOROVOD_AUTOTUNE": "perhaps", "HOROVOD_RANK": "0"})
        with self.assertRaises(ConfigurationError) as caught:
            basics.init()
        for words in ("HOROVOD_AUTOTUNE is 'perhaps'", "HOROVOD_RANK is set, but HOROVOD_SIZE is not"):
            self.assertIn(words, str(caught.exception))
        self.assertFalse(basics.is_initialized())

    def test_process_sets_may_be_switched_off(self):
        os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "0"
        basics.init()
        for use in (lambda: add_process_set([0]), lambda: remove_process_set(global_process_set)):
            with self.assertRaisesRegex(ValueError, "HOROVOD_DYNAMIC_PROCESS_SETS is 0"):
                use()

    def test_a_timeline_by_the_program(self):
        basics.init()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "timeline.json")
            for use in (lambda: basics.start_timeline(path), basics.stop_timeline):
                with self.assertRaisesRegex(ValueError, "HOROVOD_TIMELINE is DYNAMIC"):
                    use()
            basics.shutdown()
            os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
            basics.init()
            basics.barrier()
            basics.start_timeline(path, mark_cycles=True)
            all_reduce("in the timeline", pack("float32", [1.0]), "float32", Sum)
            following = os.path.join(folder, "following.json")
            basics.start_timeline(following)
            all_reduce("in the next timeline", pack("float32", [1.0]), "float32", Sum)
            basics.stop_timeline()
            names = [event["name"] for event in json.loads(Path(path).read_text())]
            for name in ("NEGOTIATE_ALLREDUCE", "ALLREDUCE", "QUEUE", "EXECUTE", "CYCLE_START"):
                self.assertIn(name, names)
            text = Path(following).read_text()
            self.assertIn("in the next timeline", json.dumps(json.loads(text)))
            self.assertNotIn("CYCLE_START", text)

    def test_a_timeline_by_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.environ["HOROVOD_TIMELINE"] = os.path.join(folder, "timeline.json")
            basics.init()
            all_reduce("in the timeline", pack("float32", [1.0]), "float32", Sum)
            basics.shutdown()
            self.assertIn("in the timeline", json.dumps(json.loads(Path(path).read_text())))

    def test_a_name_stays_in_flight_until_its_rank_has_waited(self):
        basics.init()
        memory = Memory(pack("float32", [1.0]))

        def begin():
            return operations.submit("all_reduce", "twice", process_set=global_process_set, type="float32", op=Sum,
                                     buffers=[(memory.address, memory.address, 1)], keep=memory)

        pending = begin()
        for again in (begin, lambda: all_reduce("twice", pack("float32", [1.0]), "float32", Sum)):
            with self.assertRaisesRegex(ValueError, "'twice'.* in flight"):
                again()
        pending.wait()
        dropped = begin()
        basics.barrier()
        begin().wait()
        del dropped

    def test_mpi_is_in_use_where_it_has_started_the_process(self):
        for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
            with mock.patch.dict(os.environ, {rank: "0", size: "1"}):
                self.assertEqual([basics.mpi_built(), basics.mpi_enabled(), basics.gloo_enabled()], [True, True, False])
                with mock.patch.dict(os.environ, {"HOROVOD_RANK": "0", "HOROVOD_SIZE": "1"}):
                    self.assertEqual([basics.mpi_enabled(), basics.gloo_enabled()], [False, True])

    def test_what_is_built_in(self):
        self.assertIs(basics.gloo_built(), True)
        self.assertIs(basics.gloo_enabled(), True)
        self.assertIsInstance(basics.nccl_built(), int)
        self.assertEqual([basics.ddl_built(), basics.ccl_built(), basics.rocm_built()], [False] * 3)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MUSTER_COLLECTIVE_PLUGIN_PATH"] = folder
            before = basics.mpi_built()
            Path(folder, "muster_collective_mpich.so").touch()
            self.assertTrue(basics.mpi_built())
            self.assertFalse(basics.mpi_enabled())
            os.environ["MUSTER_COLLECTIVE_TRANSPORT"] = "mpi"
            self.assertEqual((basics.mpi_enabled(), basics.gloo_enabled()), (True, False))
        self.assertEqual(basics.mpi_built(), before)

    def test_memory_of_a_dropped_operation_is_let_go_in_the_end(self):
        basics.init()
        freed = []

        class Owner:
            def __del__(self):
                freed.append(True)

        operations.submit("barrier", "dropped", process_set=global_process_set, buffers=(), keep=Owner())
        operations.run("barrier", "next", process_set=global_process_set, buffers=())
        self.assertEqual(freed, [True])


class Reductions(unittest.TestCase):
    def test_op_and_average(self):
        self.assertEqual(reduce_ops.choose(None), Average)
        self.assertEqual(reduce_ops.choose(3), reduce_ops.Min)
        self.assertEqual([int(op) for op in reduce_ops.ReduceOp], [0, 1, 2, 3, 4, 5])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(reduce_ops.choose(None, average=False), Sum)
            self.assertEqual(reduce_ops.choose(None, average=True), Average)
        self.assertEqual([each.category for each in caught], [DeprecationWarning] * 2)
        self.assertIn("Parameter `average` has been replaced with `op`", str(caught[0].message))
        with self.assertRaisesRegex(ValueError, "supersedes average"):
            reduce_ops.choose(Sum, average=True)
        for wrong in (6, -1, "sum"):
            with self.assertRaisesRegex(ValueError, r"is not a reduction; valid reductions are Average \(0\)"):
                reduce_ops.choose(wrong)


class Others(unittest.TestCase):
    def test_objects(self):
        for value in (None, {"a": [1, 2.5, b"x"]}, exceptions.HostsUpdatedInterrupt(True)):
            self.assertEqual(repr(objects.loads(memoryview(objects.dumps(value)))), repr(value))

    def test_exceptions(self):
        self.assertTrue(issubclass(exceptions.HorovodVersionMismatchError, ImportError))
        error = HorovodInternalError("x", rank=3, host="n1")
        self.assertEqual((error.rank, error.host, isinstance(error, RuntimeError)), (3, "n1", True))
        self.assertTrue(exceptions.HostsUpdatedInterrupt(skip_sync=True).skip_sync)

    def test_every_python_that_is_here(self):
        program = ("from muster.common import basics, operations, process_sets\nimport muster\nmuster.Client\n"
                   "basics.init(); basics.barrier(); print(basics.size()); basics.shutdown()\n")
        found = [sys.executable]
        versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        for version in sorted(versions.glob("3.*")) if versions.is_dir() else []:
            if tuple(map(int, version.name.split(".")[:2])) >= (3, 9):
                found.append(str(version / "bin" / "python3"))
        for python in found:
            with self.subTest(python):
                ran = subprocess.run([python, "-B", "-W", "error", "-c", program], stdout=subprocess.PIPE, text=True,
                                     stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
                self.assertEqual((ran.returncode, ran.stdout), (0, "1\n"))


if __name__ == "__main__":
    unittest.main()
