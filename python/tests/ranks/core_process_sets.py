"""On every rank: process sets that overlap, come and go."""

import unittest

from muster.common import basics, operations, process_sets
from muster.common.exceptions import MismatchError
from muster.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from muster.common.reduce_ops import Sum

from .core_world import Memory, all_gather, all_reduce, pack, unpack


def setUpModule():
    basics.init()


class ProcessSets(unittest.TestCase):
    def setUp(self):
        self.rank, self.size = basics.rank(), basics.size()
        self.ranks = list(range(self.size))

    def added(self, ranks):
        process_set = add_process_set(ranks)
        self.addCleanup(remove_process_set, process_set)
        return process_set

    def test_overlapping_sets_have_separate_names(self):
        lists = {tuple(ranks) for ranks in ([0], self.ranks[1:], self.ranks[:-1])}  # two of them are one of 2 ranks
        sets = [self.added(ranks) for ranks in sorted(lists)]
        pending = []
        for each in sets:
            if each.included():
                memory = Memory(pack("float32", [self.rank + 1.0]))
                pending.append((each, memory, operations.submit(
                    "all_reduce", "same name", process_set=each, type="float32", op=Sum,
                    buffers=[(memory.address, memory.address, 1)], keep=memory)))
        self.assertEqual(unpack("float32", all_reduce("same name", pack("float32", [1.0]), "float32", Sum)), [self.size])
        for each, memory, operation in reversed(pending):
            operation.wait()
            self.assertEqual(unpack("float32", memory.data), [sum(rank + 1 for rank in each.ranks)])

    def test_numbers_within_a_set_follow_the_ranks(self):
        process_set = self.added(list(reversed(self.ranks[1:])))
        self.assertEqual(process_set.ranks, self.ranks[1:])
        self.assertEqual(process_set.size(), self.size - 1)
        self.assertEqual(process_set.included(), self.rank > 0)
        if self.rank > 0:
            self.assertEqual(process_set.rank(), self.rank - 1)
            self.assertEqual(all_gather("parts", b"%d" % self.rank, process_set),
                             [b"%d" % rank for rank in self.ranks[1:]])
        else:
            with self.assertRaisesRegex(ValueError, "rank 0 is not in the process set"):
                process_set.rank()

    def test_a_root_is_named_by_its_number_in_the_world(self):
        process_set = self.added(self.ranks[1:])
        if self.rank > 0:
            for root in self.ranks[1:]:
                memory = Memory(b"%d" % self.rank)
                operations.run("broadcast", f"from {root}", process_set=process_set, root=root, keep=memory,
                               buffers=[(None, memory.address, 1)])
                self.assertEqual(memory.data, b"%d" % root)
            with self.assertRaisesRegex(ValueError, "root is rank 0, which is not in the process set"):
                operations.run("broadcast", "from outside", process_set=process_set, root=0,
                               buffers=[(None, memory.address, 1)])

    def test_a_rank_outside_a_set_gets_an_error(self):
        process_set = self.added([0])
        if self.rank != 0:
            with self.assertRaisesRegex(ValueError, f"rank {self.rank} is not in the process set of ranks 0"):
                all_reduce("outside", pack("float32", [1.0]), "float32", Sum, process_set)

    def test_invalid_sets_are_refused(self):
        for ranks, words in (([], "is empty"), ([0, self.size], f"contains {self.size}, which is not in"),
                             ([0, 0], "contains 0 twice"), (self.ranks, "is already registered with the number 0")):
            with self.assertRaisesRegex(ValueError, words):
                add_process_set(ranks)
        with self.assertRaisesRegex(ValueError, "needs a list of ranks or an mpi4py communicator"):
            ProcessSet(3)

    def test_a_set_that_is_not_registered(self):
        process_set = ProcessSet([0])
        self.assertEqual((process_set.size(), process_set.rank(), process_set.included()), (None, None, None))
        with self.assertRaisesRegex(ValueError, "is not registered"):
            operations.run("barrier", "b", process_set=process_set, buffers=())
        self.assertFalse(remove_process_set(process_set))
        self.assertFalse(remove_process_set(global_process_set))

    def test_a_set_can_be_added_again_after_it_was_removed(self):
        for _ in range(5):
            process_set = add_process_set([0])
            number = process_set.process_set_id
            self.assertEqual(process_sets.process_set_ids_and_ranks(), {0: self.ranks, number: [0]})
            self.assertTrue(remove_process_set(process_set))
            self.assertIsNone(process_set.process_set_id)
        self.assertEqual(process_sets.process_set_ids_and_ranks(), {0: self.ranks})

    def test_pending_operations_of_a_removed_set_fail(self):
        process_set = add_process_set(self.ranks[:2] if self.size > 2 else [0])
        pending = None
        if self.rank == 0 and self.size > 2:
            memory = Memory(pack("float32", [1.0]))
            pending = operations.submit("all_reduce", "left alone", process_set=process_set, type="float32", op=Sum,
                                        buffers=[(memory.address, memory.address, 1)], keep=memory)
        remove_process_set(process_set)
        if pending is not None:
            self.assertTrue(pending.done())
            with self.assertRaisesRegex(RuntimeError, "was shut down"):
                pending.wait()

    def test_ranks_that_add_different_sets_see_both_in_the_error(self):
        with self.assertRaises(MismatchError) as caught:
            add_process_set([0] if self.rank == 0 else [1])
        self.assertIn("ranks 0", str(caught.exception))
        self.assertIn("ranks 1", str(caught.exception))
        self.assertEqual(process_sets.process_set_ids_and_ranks(), {0: self.ranks})

    def test_ranks_that_change_different_sets_see_both_in_the_error(self):
        first, second = self.added([0]), self.added([1])
        changes = [lambda: remove_process_set(first if self.rank == 0 else second)]
        if self.size > 2:
            changes.append(lambda: remove_process_set(first) if self.rank == 0 else add_process_set([0, 1]))
        for change in changes:
            with self.assertRaises(MismatchError) as caught:
                change()
            self.assertIn("remove set", str(caught.exception))
            self.assertIn("of ranks 0", str(caught.exception))
            self.assertEqual((first.ranks, second.ranks), ([0], [1]))


if __name__ == "__main__":
    unittest.main()
