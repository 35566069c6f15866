"""Failures of ranks, seen from TensorFlow: killed, interrupted with Ctrl-C; and elastic training after them.

Each test starts its own ranks. No test waits for time to pass: a rank prints when it reaches a point.
"""

import signal
import sys
import textwrap
import unittest

from run_on_ranks import Ranks

COMMON = """
import os, signal, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(1)
import muster.tensorflow as hvd
from muster.tensorflow.errors import as_own

def graph_of(name):
    return tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name=name))

def has_begun(name):
    # A thread of the graph submits the operation: the test must not act on it before that.
    from muster.tensorflow import flights
    begin = flights.Site.begin
    def told(site, plan):
        token = begin(site, plan)
        if name in plan.parts[0]["name"]:
            print("waits", flush=True)
        return token
    flights.Site.begin = told

hvd.init()
rank = hvd.rank()
"""


def start(program, size, **more):
    return Ranks([sys.executable, "-c", COMMON + textwrap.dedent(program)], size, **more)


class Killed(unittest.TestCase):
    def test_in_eager_mode_the_exception_names_the_rank(self):
        with start("""
            hvd.allreduce(tf.ones(3), name="first")
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            try:
                hvd.allreduce(tf.ones(3), name="second")
            except hvd.HorovodInternalError as error:
                print("rank:", error.rank, error, flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertEqual((outcomes[0].code, outcomes[1].code), (0, -signal.SIGKILL))
        self.assertIn("rank: 1", outcomes[0].output)

    def test_in_a_graph_the_error_is_distinguished_from_others(self):
        with start("""
            graph = graph_of("summed")
            if rank == 1:
                print("ready", flush=True)
                signal.pause()
            has_begun("summed")
            try:
                graph(tf.ones(3))
            except tf.errors.OpError as error:
                own = as_own(error)
                print("own:", type(own).__name__, own.rank, flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "waits")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertEqual(outcomes[0].code, 0, outcomes[0].output)
        self.assertIn("own: HorovodInternalError 1", outcomes[0].output)


class Interrupted(unittest.TestCase):
    def test_control_c_ends_a_graph_that_waits_for_another_rank(self):
        with start("""
            if rank == 1:
                print("ready", flush=True)
                signal.pause()
            has_begun("summed")
            try:
                graph_of("summed")(tf.ones(3))
            except KeyboardInterrupt:
                print("came back", flush=True)
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "waits")
            ranks.signal(0, signal.SIGINT)
            ranks.until(0, "came back")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertEqual(outcomes[0].code, 0, outcomes[0].output)

    def test_control_c_in_eager_mode_ends_the_wait_but_not_the_operations_of_a_list(self):
        with start("""
            from muster.common import operations

            def reduced():
                return hvd.grouped_allreduce([tf.ones(3), tf.ones(3, tf.float64)], op=hvd.Sum, name="summed")

            if rank == 0:
                wait = operations.Pending.wait
                def told(pending):
                    print("waits", flush=True)
                    return wait(pending)
                operations.Pending.wait = told
                try:
                    reduced()
                except KeyboardInterrupt:
                    print("came back", flush=True)
            else:
                reading, writing = os.pipe()
                signal.signal(signal.SIGUSR1, lambda *_: os.write(writing, b"x"))
                print("ready", flush=True)
                os.read(reading, 1)
                print("sums:", [each.numpy().tolist() for each in reduced()], flush=True)
            hvd.join()
        """, 2) as ranks:
            ranks.until(1, "ready")
            ranks.until(0, "waits")
            ranks.signal(0, signal.SIGINT)
            ranks.until(0, "came back")
            ranks.signal(1, signal.SIGUSR1)
            outcomes = ranks.finish()
        self.assertEqual([each.code for each in outcomes], [0, 0], outcomes)
        self.assertIn("sums: [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]", outcomes[1].output)

    def test_the_interpreter_ends_with_an_operation_pending_in_a_graph(self):
        with start("""
            import threading
            if rank == 0:
                has_begun("summed")
                threading.Thread(target=lambda: graph_of("summed")(tf.ones(3)), daemon=True).start()
            else:
                print("ready", flush=True)
            sys.stdin.close()
        """, 1) as ranks:
            outcomes = ranks.finish()
        self.assertEqual(outcomes[0].code, 0, outcomes[0].output)


if __name__ == "__main__":
    unittest.main()
