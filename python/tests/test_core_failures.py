"""Failures of ranks, seen from Python: killed, stopped, interrupted, forked, ended with operations pending.

Each test starts its own ranks. No test waits for time to pass: a rank prints when it reaches a point, and whether
it sleeps there is read from /proc.
"""

import queue
import select
import signal
import socket
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from muster.common import connecting
from run_on_ranks import BOUND, Ranks

COMMON = """
import ctypes, os, signal, sys, threading, time
from muster.common import basics, handles, operations
from muster.common.exceptions import *
from muster.common.process_sets import global_process_set as everybody
from muster.common.reduce_ops import Sum

def submit(name, count=1000):
    memory = (ctypes.c_float * count)(*[1.0] * count)
    at = ctypes.addressof(memory)
    return operations.submit("all_reduce", name, process_set=everybody, type="float32", op=Sum,
                             buffers=[(at, at, count)], keep=memory)

def caught(call):
    try:
        call()
    except BaseException as error:
        print(type(error).__name__, getattr(error, "rank", None), error, flush=True)
    else:
        print("nothing was raised", flush=True)

rank = int(os.environ["MUSTER_RANK"])
"""


def start(program, size, **more):
    return Ranks([sys.executable, "-c", COMMON + textwrap.dedent(program)], size, **more)


def wait_until_asleep(pid):
    """Waits until the main thread of the process sleeps."""
    deadline = time.monotonic() + BOUND
    while True:
        state = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "S":
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"the process does not sleep: it is in state {state}")


class Killed(unittest.TestCase):
    def test_a_rank_that_is_killed_in_the_middle_is_an_error_on_the_others_that_names_it(self):
        with start("""
            basics.init()
            print("ready", flush=True)
            def work():
                step = 0
                while True:
                    submit(f"step {step}", 100_000).wait()
                    step += 1
            caught(work)
            basics.shutdown()
            print("left", flush=True)
        """, 3) as ranks:
            for rank in range(3):
                ranks.until(rank, "ready")
            ranks.signal(2, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertEqual([outcome.code for outcome in outcomes], [0, 0, -signal.SIGKILL])
        for outcome in outcomes[:2]:
            self.assertRegex(outcome.output, "HorovodInternalError 2 rank 2 on host .* is gone")
            self.assertIn("left", outcome.output)

    def test_a_rank_that_waits_for_a_killed_rank_gets_an_error(self):
        with start("""
            basics.init()
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: submit("x").wait())
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "ready")
            wait_until_asleep(ranks.pid(0))
            ranks.signal(1, signal.SIGKILL)
            self.assertRegex(ranks.line(0), "HorovodInternalError 1 rank 1 on host .* is gone")
            self.assertEqual(ranks.finish()[0].code, 0)

    def test_a_stopped_rank_is_distinguished_from_a_computing_rank(self):
        with start("""
            basics.init()
            print("ready", flush=True)
            if rank == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            caught(lambda: submit("x").wait())
        """, 2) as ranks:
            ranks.until(0, "ready")
            self.assertRegex(ranks.line(0), "HorovodInternalError 1 rank 1 .*")
            ranks.signal(1, signal.SIGKILL)
            self.assertEqual(ranks.finish()[0].code, 0)


class Stalled(unittest.TestCase):
    def test_a_stalled_operation_fails_after_the_configured_time_and_names_the_missing_ranks(self):
        with start("""
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            basics.init()
            if rank == 1:
                signal.sigwait([signal.SIGUSR1])
            else:
                caught(lambda: submit("x").wait())
        """, 3, environment={"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3"}) as ranks:
            for rank in (0, 2):
                self.assertRegex(ranks.line(rank), "HorovodInternalError 1 'x' has waited .* for rank 1 .on host .* "
                                                   "and failed")
            ranks.signal(1, signal.SIGUSR1)
            self.assertEqual([outcome.code for outcome in ranks.finish()], [0, 0, 0])

    def test_rank_0_reports_stalled_operations(self):
        with start("""
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            basics.init()
            if rank == 0:
                signal.sigwait([signal.SIGUSR1])
            submit("x").wait()
        """, 2, environment={"HOROVOD_STALL_CHECK_TIME_SECONDS": "0.1"}) as ranks:
            self.assertRegex(ranks.until(0, "has waited"), "'x' has waited .* for rank 0 ")
            ranks.signal(0, signal.SIGUSR1)
            self.assertEqual([outcome.code for outcome in ranks.finish()], [0, 0])


class Slow(unittest.TestCase):
    def test_a_slow_rank_is_named_and_is_in_the_metrics(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as metrics:
            metrics.bind(f"{folder}/metrics")
            metrics.settimeout(BOUND)
            with start("""
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
                basics.init()
                while signal.SIGUSR1 not in signal.sigpending():
                    if rank == 1:
                        time.sleep(0.02)  # what makes the rank slow
                    submit("x").wait()
            """, 2, environment={"MUSTER_COLLECTIVE_SLOW_SECONDS": "0.5",
                                 "MUSTER_METRICS": f"{folder}/metrics"}) as ranks:
                self.assertRegex(ranks.until(0, "is slow"),
                                 "^muster: rank 1 on host .* is slow: the other ranks waited for it in [0-9]+ % of the "
                                 "last [0-9]+ s; it was the last rank of [0-9]+ of [0-9]+ operations, [0-9]+ ms after")
                self.assertRegex(metrics.recv(1000).decode(), "^rank=1 waited_for_percent=[0-9.]+$")
                for rank in (0, 1):
                    ranks.signal(rank, signal.SIGUSR1)


class NotThere(unittest.TestCase):
    def test_a_rank_that_does_not_come_is_named(self):
        with start("""
            if rank == 1:
                sys.exit()
            caught(basics.init)
            print(basics.is_initialized())
        """, 3, environment={"HOROVOD_GLOO_TIMEOUT_SECONDS": "0.5"}) as ranks:
            outcomes = ranks.finish()
        self.assertRegex(outcomes[0].output, "HorovodInternalError .*rank 1.*\n(.*\n)*False")
        self.assertRegex(outcomes[2].output, "HorovodInternalError .*\n(.*\n)*False")

    def test_ranks_of_different_worlds_do_not_join(self):
        with start("""
            if rank == 1:
                os.environ.update(MUSTER_WORLD_SIZE="3", HOROVOD_SIZE="3")
            caught(basics.init)
        """, 2, environment={"HOROVOD_GLOO_TIMEOUT_SECONDS": "5"}) as ranks:
            outcomes = ranks.finish()
        for outcome in outcomes:
            self.assertRegex(outcome.output, "(MismatchError|HorovodInternalError) .*(2|3)")


class Interrupted(unittest.TestCase):
    """Ctrl-C during a wait that the other rank never ends."""

    def check(self, wait, before="basics.init()"):
        with start(f"""
            {before}
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: {wait})
            print("goes on", flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "ready")
            wait_until_asleep(ranks.pid(0))
            ranks.signal(0, signal.SIGINT)
            self.assertEqual(ranks.line(0), "KeyboardInterrupt None ")
            ranks.until(0, "goes on")
            ranks.signal(1, signal.SIGTERM)
            outcome = ranks.finish()[0]
        self.assertEqual((outcome.code, "Traceback" in outcome.output), (0, False), outcome.output)

    def test_in_init(self):
        self.check("basics.init()", before="")

    def test_in_init_which_can_be_called_again(self):
        with start("""
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            print("ready", flush=True)
            if rank == 0:
                caught(basics.init)
            else:
                signal.sigwait([signal.SIGUSR1])
            basics.init()
            basics.barrier()
            print("joined", flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "ready")
            wait_until_asleep(ranks.pid(0))
            ranks.signal(0, signal.SIGINT)
            self.assertEqual(ranks.line(0), "KeyboardInterrupt None ")
            ranks.signal(1, signal.SIGUSR1)
            for rank in range(2):
                ranks.until(rank, "joined")
            self.assertEqual([outcome.code for outcome in ranks.finish()], [0, 0])

    def test_in_a_wait(self):
        self.check('submit("x").wait()')

    def test_in_synchronize(self):
        self.check('handles.synchronize(handles.add(submit("x"), lambda result: None))')

    def test_in_run(self):
        self.check('operations.run("barrier", "b", process_set=everybody, buffers=())')

    def test_in_a_barrier(self):
        self.check("basics.barrier()")

    def test_in_join(self):
        self.check("basics.join()")

    def test_while_a_process_set_is_added(self):
        self.check("__import__('muster.common.process_sets').common.process_sets.add_process_set([0])")

    def test_the_operation_goes_on_and_can_be_waited_for_again(self):
        with start("""
            basics.init()
            if rank == 0:
                handle = handles.add(submit("x"), lambda result: "the value")
                caught(lambda: (print("ready", flush=True), handles.synchronize(handle)))
                basics.barrier()
                print(handles.synchronize(handle), flush=True)
            else:
                basics.barrier()
                submit("x").wait()
        """, 2) as ranks:
            ranks.until(0, "ready")
            ranks.signal(0, signal.SIGINT)
            self.assertEqual(ranks.line(0), "KeyboardInterrupt None ")
            self.assertEqual(ranks.line(0), "the value")
            self.assertEqual([outcome.code for outcome in ranks.finish()], [0, 0])

    def test_twice_in_init_leaves_the_descriptor_that_the_library_still_looks_at(self):
        released = threading.Event()
        attempt = connecting._Attempt(released.wait, discard=lambda made: None)
        attempt._done = mock.Mock(wait=mock.Mock(side_effect=KeyboardInterrupt))
        with self.assertRaises(KeyboardInterrupt), connecting.Cancellation() as cancellation:
            attempt.result(cancellation)
        self.assertEqual(select.select([cancellation.descriptor], [], [], 0)[0], [cancellation.descriptor])
        released.set()
        cancellation.is_abandoned = False
        cancellation.__exit__()

    def test_while_init_begins_leaves_no_world_behind(self):
        discarded = queue.Queue()

        def start_and_interrupt(thread):
            start_thread(thread)
            raise KeyboardInterrupt

        start_thread = threading.Thread.start
        with mock.patch.object(threading.Thread, "start", start_and_interrupt), self.assertRaises(KeyboardInterrupt):
            connecting.interruptible(lambda: "a world", discarded.put)
        self.assertEqual(discarded.get(timeout=BOUND), "a world")

    def test_as_init_ends_leaves_the_world_once(self):
        discarded = []
        attempt = connecting._Attempt(lambda: "a world", discarded.append)

        class Lock:
            """A lock at whose release by the other thread Ctrl-C comes."""

            def __enter__(self):
                pass

            def __exit__(self, *_):
                attempt._lock = mock.MagicMock()
                attempt._abandon(None)

        attempt._lock = Lock()
        attempt._carry_out()
        self.assertEqual(discarded, ["a world"])

    def test_memory_into_which_other_ranks_still_write_stays_alive(self):
        with start("""
            import weakref
            import muster.torch as hvd, torch
            hvd.init()
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            owners = []
            def reduce(name):
                tensor = torch.ones(1000)
                owners.append(weakref.ref(tensor))
                hvd.allreduce_(tensor, name=name)
            for name in (None, "x"):
                caught(lambda: (print("reduces", flush=True), reduce(name)))
            print([owner() is not None for owner in owners], flush=True)
            hvd.shutdown()
            print([owner() is not None for owner in owners], flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            for _ in range(2):
                ranks.until(0, "reduces")
                wait_until_asleep(ranks.pid(0))
                ranks.signal(0, signal.SIGINT)
                self.assertEqual(ranks.line(0), "KeyboardInterrupt None ")
            self.assertEqual([ranks.line(0) for _ in range(2)], ["[True, True]", "[False, False]"])
            ranks.signal(1, signal.SIGTERM)
            ranks.finish()

    def test_a_signal_handler_may_shut_the_world_down(self):
        with start("""
            basics.init()
            signal.signal(signal.SIGTERM, lambda *_: basics.shutdown())
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: submit("x").wait())
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "ready")
            wait_until_asleep(ranks.pid(0))
            ranks.signal(0, signal.SIGTERM)
            self.assertEqual(ranks.line(0), "HorovodInternalError None the world was shut down")
            ranks.signal(1, signal.SIGTERM)
            self.assertEqual([(outcome.code, "Traceback" in outcome.output) for outcome in ranks.finish()],
                             [(0, False)] * 2)


class Exits(unittest.TestCase):
    """A program may end with operations pending: with its own code, and without a message."""

    def check(self, program, codes=(0, 0), size=2):
        with start(program, size) as ranks:
            outcomes = ranks.finish()
        self.assertEqual([(outcome.code, outcome.output) for outcome in outcomes], [(code, "") for code in codes])

    def test_with_operations_pending_that_are_held(self):
        self.check("""
            basics.init()
            held = [submit(f"of {rank}, {each}", 100_000) for each in range(10)]
            basics.barrier()
        """)

    def test_with_operations_pending_that_were_dropped(self):
        self.check("""
            basics.init()
            for each in range(10):
                submit(f"of {rank}, {each}", 100_000)
            basics.barrier()
        """)

    def test_with_handles_and_a_code_of_its_own(self):
        self.check("""
            basics.init()
            handle = handles.add(submit(f"of {rank}"), lambda result: None)
            basics.barrier()
            sys.exit(5)
        """, codes=(5, 5))

    def test_with_a_daemon_thread_that_waits(self):
        self.check("""
            basics.init()
            waits = threading.Event()
            def wait():
                pending = submit(f"of {rank}")
                waits.set()
                try:
                    pending.wait()
                except HorovodInternalError:
                    pass
            threading.Thread(target=wait, daemon=True).start()
            waits.wait()
            basics.barrier()
        """)

    def test_with_a_thread_that_waits_for_a_rank_that_leaves(self):
        # The interpreter waits for this thread first; the wait ends when the other rank leaves.
        self.check("""
            basics.init()
            def wait():
                try:
                    submit("only here").wait()
                except HorovodInternalError as error:
                    assert error.rank == 1, error
            if rank == 0:
                threading.Thread(target=wait).start()
            basics.barrier()
        """)

    def test_after_a_rank_was_killed(self):
        self.check("""
            basics.init()
            held = submit(f"of {rank}")
            basics.barrier()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        """, codes=(0, -signal.SIGKILL))

    def test_in_the_middle_of_an_exception(self):
        with start("""
            basics.init()
            held = submit(f"of {rank}")
            raise SystemError("of the program itself")
        """, 2) as ranks:
            for outcome in ranks.finish():
                self.assertEqual(outcome.code, 1)
                self.assertEqual(outcome.output.count("Traceback"), 1)
                self.assertTrue(outcome.output.endswith("SystemError: of the program itself\n"), outcome.output)


class Forked(unittest.TestCase):
    def test_a_process_that_was_forked_after_init_is_refused_with_a_reason(self):
        with start("""
            basics.init()
            pending = submit("before the fork")
            prepared = operations.prepare("barrier", "prepared", process_set=everybody, buffers=())
            child = os.fork()
            if child == 0:
                for use in (basics.rank, basics.barrier, pending.wait, pending.done, prepared.run,
                            lambda: submit("x"), lambda: handles.next_name("x")):
                    caught(use)
                print(basics.is_initialized(), flush=True)
                basics.shutdown()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            pending.wait()
            basics.barrier()
            print("the parent goes on", flush=True)
        """, 2) as ranks:
            for outcome in ranks.finish():
                self.assertEqual(outcome.code, 0, outcome.output)
                lines = outcome.output.splitlines()
                self.assertEqual(lines[-1], "the parent goes on")
                refusals = [line for line in lines if line.startswith("RuntimeError")]
                self.assertEqual(len(refusals), 7, outcome.output)
                for line in refusals:
                    self.assertIn("was forked from a rank after init()", line)
                    self.assertIn("'spawn'", line)
                self.assertIn("False", lines)

    def test_a_child_with_a_place_of_its_own_may_join_a_world(self):
        with start("""
            basics.init()
            child = os.fork()
            if child == 0:
                os.environ.update(MUSTER_WORLD_SIZE="1", MUSTER_RANK="0", HOROVOD_SIZE="1", HOROVOD_RANK="0")
                basics.init()
                print("size", basics.size(), flush=True)
                basics.barrier()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            basics.barrier()
        """, 2) as ranks:
            for outcome in ranks.finish():
                self.assertEqual((outcome.code, outcome.output), (0, "size 1\n"))


if __name__ == "__main__":
    unittest.main()
