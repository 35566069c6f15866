"""Elastic state and the loop around a training, in one process; and the messages between a worker and a driver, with
a driver that the test plays."""

import os
import select
import subprocess
import sys
import unittest
from unittest import mock

from muster.common import wire
from muster.common.elastic import HostUpdateResult, NotificationManager, ObjectState, places, protocol, run_fn
from muster.common.elastic import run as run_module
from muster.common.elastic import state as state_module
from muster.common.elastic.driver_link import RoundEnd
from muster.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt, MismatchError
from muster.common.wire_server import WireServer

LONG = 60.0


class Isolated(unittest.TestCase):
    """Each test has its own notification manager and worker."""

    def setUp(self):
        self.manager = NotificationManager()
        for module in (run_module, state_module, places):
            patch = mock.patch.object(module, "notification_manager", self.manager)
            patch.start()
            self.addCleanup(patch.stop)
        worker = mock.patch.object(places, "_worker", places._Worker())
        worker.start()
        self.addCleanup(worker.stop)

    def state(self, rank=0, given=None, **attributes):
        return ObjectState(lambda value: value if given is None else given, lambda: rank, **attributes)


class Saved(Isolated):
    def test_restoring_goes_back_to_the_last_commit(self):
        state = self.state(epoch=1, history=[])
        state.epoch, state.history = 2, ["a"]
        state.commit()
        state.epoch = 3
        state.history.append("b")
        state.restore()
        self.assertEqual((state.epoch, state.history), (2, ["a"]))

    def test_before_the_first_commit_restoring_goes_back_to_the_initial_values(self):
        history = [1]
        state = self.state(history=history)
        state.history.append(2)
        state.restore()
        self.assertEqual(state.history, [1])

    def test_a_restored_state_can_be_restored_again(self):
        state = self.state(history=[1])
        for _ in range(3):
            state.restore()
            state.history.append(2)
        state.restore()
        self.assertEqual(state.history, [1])

    def test_syncing_takes_rank_0s_and_saves_it(self):
        state = self.state(rank=1, given={"epoch": 7}, epoch=1)
        state.sync()
        self.assertEqual(state.epoch, 7)
        state.epoch = 8
        state.restore()
        self.assertEqual(state.epoch, 7)

    def test_a_rank_without_attributes_takes_part_and_gets_rank_0s(self):
        state = self.state(rank=1, given={"epoch": 7, "history": [1]})
        state.sync()
        self.assertEqual((state.epoch, state.history), (7, [1]))
        state.epoch = 8
        state.history.append(2)
        state.restore()
        self.assertEqual((state.epoch, state.history), (7, [1]))

    def test_rank_0_without_attributes_takes_part(self):
        given = []
        ObjectState(lambda value: given.append(dict(value)) or value, lambda: 0).sync()
        self.assertEqual(given, [{}])

    def test_rank_0_synchronizes_its_present_values_and_not_its_commit(self):
        given = []
        state = ObjectState(lambda value: given.append(dict(value)) or value, lambda: 0, epoch=1)
        state.epoch = 2
        state.sync()
        self.assertEqual(given, [{"epoch": 2}])


class Updates(Isolated):
    def test_a_change_of_hosts_interrupts_the_next_commit_and_that_is_saved(self):
        state = self.state(epoch=1)
        state.epoch = 2
        state.on_hosts_updated(1, HostUpdateResult.added)
        with self.assertRaises(HostsUpdatedInterrupt) as caught:
            state.commit()
        self.assertFalse(caught.exception.skip_sync)
        state.epoch = 3
        state.restore()
        self.assertEqual(state.epoch, 2)

    def test_only_removals_leave_the_state_equal(self):
        for results, skip in (([HostUpdateResult.removed], True), ([1, 1], True), ([1, 2], False), ([3], False)):
            state = self.state()
            for number, result in enumerate(results, 1):
                state.on_hosts_updated(number, result)
            with self.assertRaises(HostsUpdatedInterrupt) as caught:
                state.check_host_updates()
            self.assertEqual(caught.exception.skip_sync, skip)

    def test_only_changes_after_the_new_world_interrupt_it(self):
        state = self.state()
        self.manager.register_listener(state)
        self.manager.handle_hosts_updated(1, 2)
        self.manager.handle_hosts_updated(2, 2)
        self.manager.handle_place(1)
        state.on_reset()
        with self.assertRaises(HostsUpdatedInterrupt):
            state.check_host_updates()
        self.manager.handle_place(2)
        state.on_reset()
        state.check_host_updates()

    def test_a_late_listener_gets_changes_that_are_still_pending(self):
        self.manager.handle_hosts_updated(1, 1)
        self.manager.handle_hosts_updated(2, 2)
        self.manager.handle_place(1)
        heard = []
        self.manager.register_listener(mock.Mock(on_hosts_updated=lambda *message: heard.append(message)))
        self.assertEqual(heard, [(2, HostUpdateResult.added)])

    def test_a_removed_listener_gets_no_more_changes(self):
        listener = mock.Mock()
        self.manager.register_listener(listener)
        self.manager.remove_listener(listener)
        self.manager.handle_hosts_updated(1, 1)
        listener.on_hosts_updated.assert_not_called()

    def test_all_ranks_follow_the_rank_that_got_the_change(self):
        self.manager.handle_place(0)
        state = self.state()
        with mock.patch.object(state_module, "agree_on_update", return_value=(4.0, HostUpdateResult.removed)):
            with self.assertRaises(HostsUpdatedInterrupt) as caught:
                state.check_host_updates()
        self.assertTrue(caught.exception.skip_sync)


class Loop(Isolated):
    def run_through(self, *outcomes, may_skip=False, **attributes):
        """Runs a training with the given outcomes, one after the other. Returns the calls, in order."""
        calls, left = [], list(outcomes)
        state = self.state(**attributes)
        for name in ("restore", "sync", "on_reset", "on_sync_skipped"):
            real = getattr(state, name)
            setattr(state, name, lambda name=name, real=real: (calls.append(name), real()))

        def train(state):
            calls.append("train")
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        with mock.patch.object(places, "may_skip_sync", return_value=may_skip):
            try:
                calls.append(run_fn(train, lambda: calls.append("reset"))(state))
            except Exception as error:
                calls.append(error)
        return calls

    def test_a_lost_rank(self):
        self.assertEqual(self.run_through(HorovodInternalError("x"), "end"),
                         ["sync", "train", "restore", "reset", "on_reset", "sync", "train", "end"])

    def test_hosts_that_come(self):
        self.assertEqual(self.run_through(HostsUpdatedInterrupt(False), "end", may_skip=True),
                         ["sync", "train", "reset", "on_reset", "sync", "train", "end"])

    def test_hosts_that_go(self):
        self.assertEqual(self.run_through(HostsUpdatedInterrupt(True), "end", may_skip=True),
                         ["sync", "train", "reset", "on_reset", "on_sync_skipped", "train", "end"])

    def test_hosts_that_go_while_others_come_or_fail(self):
        self.assertEqual(self.run_through(HostsUpdatedInterrupt(True), "end", may_skip=False),
                         ["sync", "train", "reset", "on_reset", "sync", "train", "end"])

    def test_a_skipped_sync_is_not_skipped_after_a_failure(self):
        self.assertEqual(self.run_through(HostsUpdatedInterrupt(True), HorovodInternalError("x"), "end", may_skip=True),
                         ["sync", "train", "reset", "on_reset", "on_sync_skipped", "train", "restore", "reset",
                          "on_reset", "sync", "train", "end"])

    def test_an_error_of_the_program_is_raised_and_nothing_is_tried_again(self):
        error = ValueError("x")
        self.assertEqual(self.run_through(error), ["sync", "train", error])

    def test_ranks_that_disagree_begin_again_once(self):
        again = ["sync", "train", "restore", "reset", "on_reset", "sync", "train"]
        self.assertEqual(self.run_through(MismatchError("x"), "end"), [*again, "end"])
        error = MismatchError("x")
        self.assertEqual(self.run_through(MismatchError("x"), error), [*again, error])

    def test_callbacks_are_called_in_order_when_the_world_is_new(self):
        state, called = self.state(), []
        state.register_reset_callbacks([lambda: called.append(1), lambda: called.append(2)])
        state.reset = lambda: called.append(0)
        state.on_reset()
        self.assertEqual(called, [0, 1, 2])

    def test_without_a_driver_a_world_that_cannot_be_restored_ends_the_training(self):
        def reset():
            raise HorovodInternalError("rank 1 did not come")

        def train(state):
            raise HorovodInternalError("rank 1 is gone")

        with self.assertRaisesRegex(RuntimeError, "cannot be restored: rank 1 did not come; .*horovodrun"):
            run_fn(train, reset)(self.state())


class Rounds(unittest.TestCase):
    def is_readable(self, descriptor):
        return bool(select.select([descriptor], [], [], 0)[0])

    def test_a_round_that_is_called_off_is_seen_whenever_that_came(self):
        end = RoundEnd()
        first = end.descriptor_of(1)
        self.assertFalse(self.is_readable(first))
        end.call_off(1)
        self.assertTrue(self.is_readable(first))
        self.assertFalse(self.is_readable(end.descriptor_of(2)))
        end.call_off(3)
        self.assertTrue(self.is_readable(end.descriptor_of(3)))
        self.assertFalse(self.is_readable(end.descriptor_of(4)))


WORKER = """
from muster.common.elastic import places
place = places.ask()
print("place", place.rank, place.size, place.rendezvous, place.listener, flush=True)
"""


class Worker(unittest.TestCase):
    """A real process, and a driver that is played by the test."""

    def setUp(self):
        self.key = wire.new_key()
        self.server = WireServer(self.key)
        self.pending = []
        self.addCleanup(self.server.close)

    def start(self, program, key=None):
        environment = {**os.environ, protocol.DRIVER_VARIABLE: self.server.address,
                       protocol.KEY_VARIABLE: key or self.key,
                       protocol.WORKER_VARIABLE: "7", "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        return process

    def until(self, kind):
        """Waits for the next message of that kind, and returns it with its connection."""
        while True:
            while self.pending:
                event = self.pending.pop(0)
                if event.message.get("kind") == kind:
                    return event
            self.pending = self.server.events(LONG)
            self.assertTrue(self.pending, f"no message {kind!r} came")

    def place(self, rank, size, **fields):
        return {"kind": protocol.PLACE, "round": 1, "rank": rank, "size": size, "local_rank": rank, "local_size": size,
                "cross_rank": 0, "cross_size": 1, "may_skip_sync": False, "announced": 0, **fields}

    def test_a_worker_announces_itself_and_gets_its_place(self):
        process = self.start(WORKER)
        self.assertEqual(self.until(protocol.HELLO).message["worker"], "7")
        self.until(protocol.READY).connection.send(self.place(1, 2, endpoint="127.0.0.1:5"))
        self.assertEqual(process.communicate(timeout=LONG)[0], "place 1 2 127.0.0.1:5 -1\n")

    def test_rank_0_opens_a_port_and_reports_it(self):
        process = self.start(WORKER)
        self.until(protocol.READY).connection.send(self.place(0, 2, listen_at="127.0.0.1"))
        endpoint = self.until(protocol.LISTENING).message["endpoint"]
        self.assertRegex(process.communicate(timeout=LONG)[0], rf"place 0 2 {endpoint} \d+\n")

    def test_a_superfluous_worker_leaves_with_a_message(self):
        process = self.start(WORKER)
        self.until(protocol.READY).connection.send({"kind": protocol.LEAVE, "why": "host a is gone"})
        self.assertEqual(process.communicate(timeout=LONG)[0], "muster: this worker leaves: host a is gone\n")
        self.assertEqual(process.returncode, 0)

    def test_without_its_driver_it_ends(self):
        process = self.start(WORKER)
        self.until(protocol.READY).connection.close()
        self.assertIn("the driver of this job is gone", process.communicate(timeout=LONG)[0])
        self.assertEqual(process.returncode, -15)

    def test_without_its_driver_a_busy_worker_that_ignores_signals_ends(self):
        process = self.start("import signal, threading\nfrom muster.common.elastic import driver_link\n"
                             "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndriver_link.END_GRACE = 0\n"
                             + WORKER + "threading.Event().wait()")
        ready = self.until(protocol.READY)
        ready.connection.send(self.place(0, 1))
        self.assertIn("place 0 1", process.stdout.readline())
        ready.connection.close()
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, -9)

    def test_a_driver_of_another_run_is_rejected(self):
        process = self.start(WORKER, key=wire.new_key())
        while not self.server.strangers_refused:
            self.server.events(0.1)
        self.assertIn("does not hold this job's key", process.communicate(timeout=LONG)[0])

    def test_a_child_that_lives_on_does_not_keep_the_connection(self):
        process = self.start(WORKER + "import os, sys\nif os.fork() == 0:\n    os.close(1); os.close(2)\n"
                             "    os.read(0, 1)\nelse:\n    os._exit(0)\n")
        self.until(protocol.READY).connection.send(self.place(0, 1))
        while not any(event.kind == "left" for event in self.server.events(LONG)):
            pass
        process.wait(LONG)


if __name__ == "__main__":
    unittest.main()
