"""On every rank: worlds of all ranks, of some ranks, and of a communicator begin and end."""

import os
import socket
import struct
import unittest

from muster.common import basics, objects, operations, process_sets
from muster.common.exceptions import HorovodInternalError
from muster.common.process_sets import ProcessSet, global_process_set
from muster.common.reduce_ops import Sum

from .core_world import Memory, all_gather, all_reduce, pack, unpack

AGAIN = 200


class Communicator:
    """The part of an mpi4py communicator that init() uses, over sockets between the ranks and rank 0."""

    def __init__(self, rank, sockets):
        self.rank, self.sockets = rank, sockets

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return len(self.sockets) + 1 if self.rank == 0 else struct.unpack("<I", self._get(self.sockets[0]))[0]

    def bcast(self, value, root=0):
        assert root == 0
        if self.rank == 0:
            for each in self.sockets:
                self._put(each, objects.dumps(value))
            return value
        return objects.loads(self._get(self.sockets[0]))

    def allgather(self, value):
        if self.rank == 0:
            return self.bcast([value, *(objects.loads(self._get(each)) for each in self.sockets)])
        self._put(self.sockets[0], objects.dumps(value))
        return self.bcast(None)

    @staticmethod
    def _put(connection, data):
        connection.sendall(struct.pack("<I", len(data)) + data)

    @staticmethod
    def _get(connection):
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack("<I", data[:4])[0]:
            wanted = 4 if len(data) < 4 else 4 + struct.unpack("<I", data[:4])[0]
            piece = connection.recv(wanted - len(data))
            assert piece, "the other rank closed the connection"
            data += piece
        return data[4:]


class Worlds(unittest.TestCase):
    def setUp(self):
        basics.init()
        self.rank, self.size = basics.rank(), basics.size()

    def tearDown(self):
        basics.shutdown()

    def sum_of_ranks(self):
        return unpack("int32", all_reduce("sum", pack("int32", [basics.rank()]), "int32", Sum))[0]

    def test_a_world_can_be_made_again_and_again(self):
        descriptors = threads = None
        for time in range(AGAIN):
            basics.shutdown()
            self.assertFalse(basics.is_initialized())
            with self.assertRaisesRegex(ValueError, "has not been initialized"):
                basics.rank()
            basics.init()
            self.assertEqual((basics.rank(), basics.size()), (self.rank, self.size))
            if time % 20 == 0:
                self.assertEqual(self.sum_of_ranks(), sum(range(self.size)))
            if time == 5:
                descriptors, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        self.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)
        # The thread that joined the last world may still be ending.
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads + 1)

    def test_ranks_sizes_and_hosts(self):
        self.assertEqual((basics.local_rank(), basics.local_size()), (self.rank, self.size))
        self.assertEqual((basics.cross_rank(), basics.cross_size()), (0, 1))
        self.assertTrue(basics.is_homogeneous())
        self.assertTrue(basics.mpi_threads_supported())
        self.assertEqual(global_process_set.ranks, list(range(self.size)))

    def test_a_second_init_has_no_effect(self):
        session = global_process_set._session
        basics.init()
        self.assertIs(global_process_set._session, session)

    def test_a_world_of_some_of_the_ranks(self):
        for listed in ([0], [0, self.size - 1], [self.size - 1, 0]):
            basics.shutdown()
            if self.rank in listed:
                basics.init(comm=listed)
                self.assertEqual((basics.rank(), basics.size()), (listed.index(self.rank), len(listed)))
                self.assertEqual(self.sum_of_ranks(), sum(range(len(listed))))
            else:
                with self.assertRaisesRegex(ValueError, f"list of ranks .* does not contain this rank, {self.rank}"):
                    basics.init(comm=listed)
        basics.shutdown()
        for listed, words in (([0, self.size], f"contains \\[{self.size}\\], not in a world of {self.size}"),
                              ([0, 0, self.rank], "contains a rank twice")):
            with self.assertRaisesRegex(ValueError, words):
                basics.init(comm=listed)
        basics.init(comm=list(range(self.size)))
        self.assertEqual(self.sum_of_ranks(), sum(range(self.size)))

    def communicator(self):
        """A communicator of all ranks in reverse order."""
        rank = self.size - 1 - self.rank
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], "communicator")
        with socket.socket(socket.AF_UNIX) as listener:
            if rank == 0:
                listener.bind(path)
                listener.listen()
            basics.barrier()
            if rank != 0:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(path)
                connection.sendall(struct.pack("<I", rank))
                self.addCleanup(connection.close)
                return Communicator(rank, [connection])
            accepted = [listener.accept()[0] for _ in range(self.size - 1)]
        os.unlink(path)
        for each in accepted:
            self.addCleanup(each.close)
        return Communicator(0, sorted(accepted, key=lambda each: struct.unpack("<I", each.recv(4))[0]))

    def test_a_world_of_a_communicator(self):
        comm = self.communicator()
        basics.shutdown()
        if comm.Get_rank() == 0:
            for each in comm.sockets:
                comm._put(each, struct.pack("<I", self.size))
            sized = comm
        else:
            size = comm.Get_size()
            sized = comm
            sized.Get_size = lambda: size
        basics.init(comm=sized)
        self.assertEqual((basics.rank(), basics.size()), (self.size - 1 - self.rank, self.size))
        self.assertEqual(self.sum_of_ranks(), sum(range(self.size)))

    def test_process_sets_from_the_beginning(self):
        basics.shutdown()
        given = [ProcessSet([0]), list(range(1, self.size))]
        if self.size > 2:
            given.append(ProcessSet([1, 0]))
        basics.init(process_sets=given)
        found = process_sets.process_set_ids_and_ranks()
        self.assertEqual([found[number] for number in sorted(found)],
                         [list(range(self.size)), [0], list(range(1, self.size)), *([[0, 1]] if self.size > 2 else [])])
        self.assertEqual(given[0].process_set_id, 1)
        basics.shutdown()
        self.assertIsNone(given[0].process_set_id)
        basics.init(process_sets="dynamic")
        self.assertEqual(process_sets.process_set_ids_and_ranks(), {0: list(range(self.size))})
        basics.shutdown()
        with self.assertRaisesRegex(ValueError, "'static'"):
            basics.init(process_sets="static")
        with self.assertRaisesRegex(ValueError, "is already registered"):
            basics.init(process_sets=[[0], [0]])
        self.assertFalse(basics.is_initialized())

    def test_pending_operations_fail_when_a_rank_leaves(self):
        memory = Memory(pack("float32", [1.0]))
        if self.rank != 0:
            pending = operations.submit("all_reduce", "never", process_set=global_process_set, type="float32", op=Sum,
                                        buffers=[(memory.address, memory.address, 1)], keep=memory)
        basics.barrier()
        if self.rank == 0:
            basics.shutdown()
            return
        with self.assertRaises(HorovodInternalError) as caught:
            pending.wait()
        # Any of the others may have been the first to leave.
        self.assertRegex(str(caught.exception), "rank [0-9] on host .* has left the session, with 'never' pending")
        self.assertIsNotNone(caught.exception.rank)

    def test_an_operation_that_outlives_its_world_has_failed(self):
        memory = Memory(pack("float32", [1.0]))
        pending = operations.submit("all_reduce", f"never {self.rank}", process_set=global_process_set, type="float32",
                                    op=Sum, buffers=[(memory.address, memory.address, 1)], keep=memory)
        prepared = operations.prepare("barrier", "later", process_set=global_process_set, buffers=())
        basics.shutdown()
        self.assertTrue(pending.done())
        for use in (pending.wait, prepared.run, prepared.submit):
            with self.assertRaisesRegex(HorovodInternalError, "the world was shut down"):
                use()
        basics.init()
        self.assertEqual(len(all_gather("next", b"x")), self.size)


if __name__ == "__main__":
    unittest.main()
