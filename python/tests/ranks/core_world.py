"""Helpers of the core's tests on ranks: typed memory without numpy, and the expected reductions."""

import ctypes
import math
import struct

from muster.common import data_types, operations
from muster.common.process_sets import global_process_set
from muster.common.reduce_ops import Average, Max, Min, Product, Sum

CODES = {"float32": "f", "float64": "d", "float16": "e", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
         "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "bool": "?"}
FLOATS = ("float16", "bfloat16", "float32", "float64")
#: The distance from 1 to the next number.
STEPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}


def pack(kind, values):
    if kind == "bfloat16":
        return b"".join(_to_bfloat16(value) for value in values)
    return struct.pack(f"={len(values)}{CODES[kind]}", *values)


def unpack(kind, data):
    if kind == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]
    return list(struct.unpack(f"={len(data) // data_types.size_of(kind)}{CODES[kind]}", data))


def _to_bfloat16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + (bits >> 16 & 1)  # to the nearest, ties to even
    return struct.pack("<H", bits >> 16)


class Memory:
    """Bytes at an address."""

    def __init__(self, data):
        self.size = len(data)
        self.array = (ctypes.c_ubyte * max(self.size, 1)).from_buffer_copy(data or b"\0")
        self.address = ctypes.addressof(self.array)

    @property
    def data(self):
        return bytes(self.array)[:self.size]


def expected(op, kind, of_rank):
    """The reduction of `of_rank` in float64, element by element, converted to the type."""
    def reduce(column):
        value = {Sum: sum, Average: sum, Min: min, Max: max, Product: math.prod}[op](column)
        if op == Average:
            return value / len(column) if kind in FLOATS else int(value / len(column))
        return bool(value) if kind == "bool" else value

    return [reduce(column) for column in zip(*of_rank)]


def all_reduce(name, data, kind, op, process_set=global_process_set, in_place=False, **more):
    """The bytes of the result."""
    source = Memory(data)
    target = source if in_place else Memory(b"\xee" * len(data))
    count = len(data) // data_types.size_of(kind)
    operations.run("all_reduce", name, process_set=process_set, buffers=[(source.address, target.address, count)],
                   type=kind, op=op, keep=(source, target), **more)
    return target.data


def all_gather(name, part, process_set=global_process_set):
    """The parts by rank."""
    memory = Memory(part)
    return operations.run("all_gather", name, process_set=process_set,
                          buffers=[(memory.address, None, len(part))], keep=memory).parts()
