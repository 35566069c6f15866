"""On every rank: all_reduce and reduce_scatter of every type, operation and size, against float64."""

import unittest

from muster.common import basics, data_types, operations
from muster.common.process_sets import global_process_set
from muster.common.reduce_ops import Adasum, Average, Max, Min, Product, Sum

from .core_world import FLOATS, STEPS, Memory, all_gather, all_reduce, expected, pack, unpack

SIZES = (0, 1, 17, 1000)
MILLION = 1_000_003
OPS = (Sum, Average, Min, Max, Product)
PERIOD = 17


def setUpModule():
    basics.init()


def values_of(rank, op, kind):
    """Small whole numbers, so that sums and products of all ranks are exact in each type."""
    if kind == "bool":
        return [bool((rank + at) % 3) for at in range(PERIOD)]
    if op == Product:
        return [1 + (rank + at) % 2 for at in range(PERIOD)]
    least = 0 if kind.startswith("u") else -7
    return [least + (at + 5 * rank) % 15 for at in range(PERIOD)]


def repeated(values, kind, count):
    period = pack(kind, values)
    return (period * (count // PERIOD + 1))[:count * data_types.size_of(kind)]


def combinations():
    for kind in data_types.NAMES:
        for op in OPS:
            if not (kind == "bool" and op == Average):
                yield kind, op


class Reductions(unittest.TestCase):
    def check(self, got, wanted, kind, op):
        """Compares exactly; averages of floats to the last place, as they may be products with 1/n."""
        if op == Average and kind in FLOATS:
            for one, other in zip(unpack(kind, got), wanted):
                self.assertAlmostEqual(one, other, delta=STEPS[kind] * abs(other))
        else:
            self.assertEqual(got, pack(kind, wanted))

    def test_every_type_operation_and_size(self):
        ranks = range(basics.size())
        for kind, op in combinations():
            of_rank = [values_of(rank, op, kind) for rank in ranks]
            wanted = expected(op, kind, of_rank)
            for count in SIZES:
                with self.subTest(kind=kind, op=op, count=count):
                    mine = repeated(of_rank[basics.rank()], kind, count)
                    got = all_reduce(f"{kind} {op} {count}", mine, kind, op, in_place=count % 2 == 0)
                    self.check(got, (wanted * (count // PERIOD + 1))[:count], kind, op)

    def test_a_million_elements(self):
        for kind in data_types.NAMES:
            op = Max if kind == "bool" else Sum
            of_rank = [values_of(rank, op, kind) for rank in range(basics.size())]
            got = all_reduce(f"million {kind}", repeated(of_rank[basics.rank()], kind, MILLION), kind, op)
            self.assertTrue(got == repeated(expected(op, kind, of_rank), kind, MILLION), kind)

    def test_every_rank_has_the_same_bits(self):
        for kind in FLOATS:
            mine = repeated([0.1 * (basics.rank() + 1) + at / 7 for at in range(PERIOD)], kind, 5000)
            got = all_reduce(f"bits {kind}", mine, kind, Average)
            self.assertEqual(set(all_gather(f"all bits {kind}", got)), {got})

    def test_scales_before_and_after(self):
        for kind in FLOATS + ("int32", "int64"):
            mine = pack(kind, [2 * (basics.rank() + 1)] * 3)
            got = all_reduce(f"scaled {kind}", mine, kind, Sum, prescale=0.5, postscale=3.0)
            self.assertEqual(unpack(kind, got), [3 * sum(range(1, basics.size() + 1))] * 3)

    def test_a_list_of_tensors_is_reduced_in_one_operation(self):
        sizes = (3, 0, 1000, 1)
        sources = [Memory(pack("float32", [basics.rank() + each] * each)) for each in sizes]
        targets = [Memory(b"\xee" * 4 * each) for each in sizes]
        operations.run("all_reduce", "list", process_set=global_process_set, type="float32", op=Sum,
                       buffers=[(one.address, other.address, each)
                                for one, other, each in zip(sources, targets, sizes)], keep=(sources, targets))
        for each, target in zip(sizes, targets):
            total = sum(rank + each for rank in range(basics.size()))
            self.assertEqual(unpack("float32", target.data), [total] * each)

    def test_adasum_of_equal_gradients_is_one_of_them_and_of_orthogonal_ones_their_sum(self):
        if basics.size() & (basics.size() - 1):
            return  # the expected tree is defined for powers of two
        for kind in ("float32", "float64"):
            equal = all_reduce(f"equal {kind}", pack(kind, [3.0, 4.0]), kind, Adasum)
            self.assertEqual(unpack(kind, equal), [3.0, 4.0])
            mine = [float(at == basics.rank()) * 5 for at in range(basics.size())]
            self.assertEqual(unpack(kind, all_reduce(f"orthogonal {kind}", pack(kind, mine), kind, Adasum)),
                             [5.0] * basics.size())

    def test_reduce_scatter_gives_each_rank_its_part(self):
        size, rank = basics.size(), basics.rank()
        for kind, op in combinations():
            of_rank = [values_of(each, op, kind) for each in range(size)]
            wanted = expected(op, kind, of_rank)
            for counts in ([0] * size, [1] * size, [4 * each for each in range(size)], [300 + each for each in range(size)]):
                with self.subTest(kind=kind, op=op, counts=counts):
                    total, before, own = sum(counts), sum(counts[:rank]), counts[rank]
                    source = Memory(repeated(of_rank[rank], kind, total))
                    target = Memory(b"\xee" * own * data_types.size_of(kind))
                    operations.run("reduce_scatter", f"{kind} {op} {counts}", process_set=global_process_set, type=kind,
                                   op=op, buffers=[(source.address, target.address, total)], counts=counts,
                                   keep=(source, target))
                    self.check(target.data, (wanted * (total // PERIOD + 1))[before:before + own], kind, op)


if __name__ == "__main__":
    unittest.main()
