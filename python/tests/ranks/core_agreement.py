"""On every rank: operations match by name, in any order; a mismatch fails one operation on all ranks."""

import threading
import unittest

from muster.common import basics, handles, operations
from muster.common.exceptions import MismatchError
from muster.common.process_sets import global_process_set
from muster.common.reduce_ops import Average, Max, Sum

from .core_world import Memory, all_reduce, pack, unpack


def setUpModule():
    basics.init()


def begin(name, values, op=Sum, kind="float32", **more):
    """An all_reduce in place, as a handle whose value is the list of its elements."""
    memory = Memory(pack(kind, values))
    pending = operations.submit("all_reduce", name, process_set=global_process_set, type=kind, op=op,
                                buffers=[(memory.address, memory.address, len(values))], keep=memory, **more)
    return handles.add(pending, lambda _: unpack(kind, memory.data))


class Agreement(unittest.TestCase):
    def setUp(self):
        self.rank, self.size = basics.rank(), basics.size()
        self.total = sum(range(1, self.size + 1))

    def test_every_rank_may_submit_in_its_own_order(self):
        order = list(range(50))
        order = order[7 * self.rank:] + order[:7 * self.rank]
        if self.rank % 2:
            order.reverse()
        found = {each: begin(f"order {each}", [each * (self.rank + 1)]) for each in order}
        for each in range(50):
            self.assertEqual(handles.synchronize(found[each]), [each * self.total])

    def test_an_operation_that_waits_for_a_rank_does_not_delay_others(self):
        first = begin("late", [1.0]) if self.rank == 0 else None
        basics.barrier()
        if first is not None:
            self.assertFalse(handles.poll(first))
        basics.barrier()
        if first is None:
            first = begin("late", [1.0])
        self.assertEqual(handles.synchronize(first), [self.size])

    def test_poll_turns_true_without_a_wait(self):
        handle = begin("polled", [1.0] * 100_000)
        while not handles.poll(handle):
            pass
        self.assertEqual(handles.synchronize(handle), [self.size] * 100_000)

    def test_a_pending_name_is_refused_when_it_is_submitted_again(self):
        other = begin("twice", [1.0]) if self.rank == 0 else None
        if self.rank == 0:
            with self.assertRaisesRegex(ValueError, "'twice'.* in flight"):
                begin("twice", [1.0])
        basics.barrier()
        handle = begin("twice", [1.0]) if other is None else other
        self.assertEqual(handles.synchronize(handle), [self.size])

    def test_a_handle_has_its_result_once(self):
        handle = begin("once", [1.0])
        self.assertEqual(handles.synchronize(handle), [self.size])
        self.assertIsNone(handles.synchronize(handle))
        with self.assertRaisesRegex(ValueError, f"pending with the handle {handle}"):
            handles.poll(handle)

    def test_names_that_the_library_chooses_match_on_all_ranks(self):
        for _ in range(3):
            handle = begin(handles.next_name("allreduce"), [self.rank + 1.0])
            self.assertEqual(handles.synchronize(handle), [self.total])

    def test_many_threads_at_once(self):
        failed = []

        def work(thread):
            try:
                for each in range(20):
                    got = all_reduce(f"thread {thread} {each}", pack("int32", [self.rank + thread]), "int32", Sum)
                    if unpack("int32", got) != [sum(rank + thread for rank in range(self.size))]:
                        failed.append((thread, each, got))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(failed, [])

    def test_a_dropped_handle_keeps_its_memory_until_the_operation_ends(self):
        # Rank 0 drops all references before the others submit. If its memory were freed, the sums would be
        # written into other memory.
        if self.rank == 0:
            memory = Memory(pack("float32", [1.0] * 50_000))
            watched = operations.submit("all_reduce", "dropped", process_set=global_process_set, type="float32", op=Sum,
                                        buffers=[(memory.address, memory.address, 50_000)], keep=memory)
            array = memory.array
            del watched, memory
        basics.barrier()
        if self.rank != 0:
            handles.synchronize(begin("dropped", [1.0] * 50_000))
        basics.barrier()
        if self.rank == 0:
            # It was executed, as the others have their results, and is removed with the next submission.
            session = global_process_set._session
            while session.dropped:
                session.reap()
            self.assertEqual(unpack("float32", bytes(array)[:4]), [self.size])
        basics.barrier()

    def test_a_prepared_operation_runs_again_and_again(self):
        memory = Memory(pack("int64", [0]))
        prepared = operations.prepare("all_reduce", "prepared", process_set=global_process_set, type="int64", op=Max,
                                      buffers=[(memory.address, memory.address, 1)], keep=memory)
        for step in range(100):
            memory.array[:8] = pack("int64", [step * 10 + self.rank])
            prepared.run()
            self.assertEqual(unpack("int64", memory.data), [step * 10 + self.size - 1])
        other = Memory(pack("int64", [7]))
        prepared.set_buffers([(other.address, other.address, 1)], keep=other)
        prepared.submit().wait()
        self.assertEqual(unpack("int64", other.data), [7])
        with self.assertRaisesRegex(ValueError, "1 buffers, not 2"):
            prepared.set_buffers([(None, None, 0)] * 2)


class Mismatches(unittest.TestCase):
    """Rank 0 differs from the others. All ranks get an error with both values, and the world remains usable."""

    def setUp(self):
        self.odd = basics.rank() == 0

    def fails(self, words, run):
        with self.assertRaises(MismatchError) as caught:
            run()
        for each in words:
            self.assertIn(each, str(caught.exception))
        self.assertEqual(unpack("float32", all_reduce("after it", pack("float32", [1.0]), "float32", Sum)),
                         [basics.size()])

    def reduce(self, name, kind="float32", op=Sum, count=4, **more):
        return lambda: all_reduce(name, pack(kind, [1] * count), kind, op, **more)

    def test_type(self):
        self.fails(["float64", "float32"], self.reduce("type", kind="float64" if self.odd else "float32"))

    def test_length(self):
        self.fails(["5", "4"], self.reduce("length", count=5 if self.odd else 4))

    def test_operation_of_the_reduction(self):
        self.fails(["average", "sum"], self.reduce("op", op=Average if self.odd else Sum))

    def test_scale(self):
        self.fails(["0.5"], self.reduce("scale", prescale=0.5 if self.odd else 1.0))

    def test_shape(self):
        self.fails(["float32[2, 2]", "float32[4]"], self.reduce("shape", shape="float32[2, 2]" if self.odd
                                                                 else "float32[4]"))

    def test_kind(self):
        memory = Memory(bytes(16))

        def run():
            if self.odd:
                operations.run("broadcast", "kind", process_set=global_process_set,
                               buffers=[(None, memory.address, 16)], keep=memory)
            else:
                self.reduce("kind")()

        self.fails(["broadcast", "all_reduce"], run)

    def test_root(self):
        memory = Memory(bytes(16))
        self.fails(["root"], lambda: operations.run(
            "broadcast", "root", process_set=global_process_set, buffers=[(None, memory.address, 16)],
            root=1 if self.odd else 0, keep=memory))


class Joining(unittest.TestCase):
    def test_a_joined_rank_takes_part_with_zeros_and_join_returns_the_last_rank(self):
        own, size = basics.rank(), basics.size()
        # Rank r has r batches.
        for batch in range(own):
            wanted = sum(rank + 1 for rank in range(size) if rank > batch)
            self.assertEqual(unpack("float32", all_reduce(f"batch {batch}", pack("float32", [own + 1.0]), "float32",
                                                          Sum)), [wanted])
        self.assertIn(basics.join(), range(size))
        basics.barrier()

    def test_an_average_is_over_all_ranks(self):
        if basics.rank() == 0:
            got = all_reduce("average of one", pack("float32", [6.0]), "float32", Average)
            self.assertAlmostEqual(unpack("float32", got)[0], 6.0 / basics.size(), places=6)
        last = basics.join()
        basics.barrier()
        self.assertEqual(unpack("int32", all_reduce("last", pack("int32", [last]), "int32", Max)), [last])

    def test_other_operations_fail_while_a_rank_has_joined(self):
        if basics.rank() == 0:
            with self.assertRaisesRegex(MismatchError, "join"):
                memory = Memory(b"x")
                operations.run("all_gather", "with joined", process_set=global_process_set,
                               buffers=[(memory.address, None, 1)], keep=memory)
        basics.join()
        basics.barrier()


if __name__ == "__main__":
    unittest.main()
