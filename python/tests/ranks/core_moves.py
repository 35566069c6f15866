"""On every rank: all_gather, broadcast and all_to_all of every size, byte by byte."""

import unittest

from muster.common import basics, operations
from muster.common.process_sets import global_process_set

from .core_world import Memory, all_gather

SIZES = (0, 1, 17, 1000, 1_000_003)


def setUpModule():
    basics.init()


def bytes_of(rank, size):
    return (bytes(range(rank, rank + 31)) * (size // 31 + 1))[:size]


class Moves(unittest.TestCase):
    def test_all_gather_of_parts_of_any_length(self):
        for size in SIZES:
            lengths = [size * (rank + 1) for rank in range(basics.size())]
            parts = all_gather(f"gather {size}", bytes_of(basics.rank(), lengths[basics.rank()]))
            self.assertTrue(parts == [bytes_of(rank, each) for rank, each in enumerate(lengths)], size)

    def test_all_gather_with_one_rank_without_bytes(self):
        for empty in range(basics.size()):
            mine = b"" if basics.rank() == empty else b"%d" % basics.rank()
            self.assertEqual(all_gather(f"empty {empty}", mine),
                             [b"" if rank == empty else b"%d" % rank for rank in range(basics.size())])

    def test_a_buffer_of_a_result_outlives_everything_else(self):
        memory = Memory(b"ab")
        buffer = operations.run("all_gather", "outlives", process_set=global_process_set,
                                buffers=[(memory.address, None, 2)], keep=memory).buffer()
        all_gather("something else", b"cd" * 1000)
        self.assertEqual(bytes(buffer), b"ab" * basics.size())

    def test_broadcast_from_every_rank(self):
        for root in range(basics.size()):
            for size in SIZES:
                memory = Memory(bytes_of(basics.rank(), size))
                operations.run("broadcast", f"broadcast {root} {size}", process_set=global_process_set,
                               buffers=[(None, memory.address, size)], root=root, keep=memory)
                self.assertTrue(memory.data == bytes_of(root, size), (root, size))

    def test_all_to_all_with_a_length_for_every_pair(self):
        size, own = basics.size(), basics.rank()
        for unit in SIZES[:4]:
            def between(source, target):
                return bytes_of(source * size + target, unit * ((source + 2 * target) % 3))

            sent = [between(own, target) for target in range(size)]
            memory = Memory(b"".join(sent))
            result = operations.run("all_to_all", f"all_to_all {unit}", process_set=global_process_set,
                                    buffers=[(memory.address, None, memory.size)], counts=[len(each) for each in sent],
                                    keep=memory)
            self.assertEqual(result.parts(), [between(source, own) for source in range(size)])


if __name__ == "__main__":
    unittest.main()
