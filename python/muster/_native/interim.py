"""muster_session_begin() and what belongs to it over the older functions, for a library that has no others yet."""

from __future__ import annotations

import ctypes
import time
from ctypes import POINTER, c_double, c_int, c_uint64, c_void_p
from typing import Any, Dict

from . import abi

_ALLOCATE = ctypes.CFUNCTYPE(c_void_p, c_void_p, POINTER(c_uint64), c_int)


class _Kept:
    def __init__(self) -> None:
        self.bytes_of_rank: "tuple[int, ...]" = ()
        self.buffer: Any = None
        self.callback = _ALLOCATE(self._allocate)

    def _allocate(self, user: Any, lengths: Any, ranks: int) -> int:
        self.bytes_of_rank = tuple(lengths[rank] for rank in range(ranks))
        self.buffer = ctypes.create_string_buffer(max(sum(self.bytes_of_rank), 1))
        return ctypes.addressof(self.buffer)


def complete(library: Any) -> None:
    types = {"all_reduce_list": [c_void_p, ctypes.c_char_p, POINTER(abi.Tensor), c_uint64, c_int, c_int, c_double,
                                 c_double, POINTER(c_uint64)],
             "reduce_scatter": [c_void_p, ctypes.c_char_p, c_void_p, c_void_p, POINTER(c_uint64), c_int, c_int,
                                c_double, c_double, POINTER(c_uint64)],
             "all_gather": [c_void_p, ctypes.c_char_p, c_void_p, c_uint64, _ALLOCATE, c_void_p, POINTER(c_uint64)],
             "broadcast": [c_void_p, ctypes.c_char_p, c_void_p, c_uint64, c_int, POINTER(c_uint64)],
             "all_to_all": [c_void_p, ctypes.c_char_p, c_void_p, POINTER(c_uint64), _ALLOCATE, c_void_p,
                            POINTER(c_uint64)],
             "barrier": [c_void_p, ctypes.c_char_p, POINTER(c_uint64)],
             "join": [c_void_p, POINTER(c_uint64)], "wait": [c_void_p, c_uint64]}
    call = {}
    for name, arguments in types.items():
        call[name] = getattr(library, "muster_session_" + name)
        call[name].argtypes = arguments
        call[name].restype = c_int
    kept: Dict[int, _Kept] = {}
    results: Dict[int, _Kept] = {}

    def begin(session: Any, reference: Any, ticket: Any) -> int:
        op = reference._obj
        first = op.tensors[0] if op.tensor_count else None
        if op.kind == abi.OPERATION_ALL_REDUCE:
            return call["all_reduce_list"](session, op.name, op.tensors, op.tensor_count, op.type, op.op,
                                           op.prescale, op.postscale, ticket)
        if op.kind == abi.OPERATION_REDUCE_SCATTER:
            return call["reduce_scatter"](session, op.name, first.in_, first.out, op.counts, op.type, op.op,
                                          op.prescale, op.postscale, ticket)
        if op.kind == abi.OPERATION_BROADCAST:
            return call["broadcast"](session, op.name, first.out, first.count, op.root, ticket)
        if op.kind == abi.OPERATION_BARRIER:
            return call["barrier"](session, op.name, ticket)
        if op.kind == abi.OPERATION_JOIN:
            return call["join"](session, ticket)
        room = _Kept()
        if op.kind == abi.OPERATION_ALL_GATHER:
            code = call["all_gather"](session, op.name, first.in_, first.count, room.callback, None, ticket)
        else:
            code = call["all_to_all"](session, op.name, first.in_, op.counts, room.callback, None, ticket)
        if code == 0:
            kept[ticket._obj.value] = room
        return code

    def wait_for(session: Any, ticket: int, milliseconds: int, result: Any) -> int:
        end = time.monotonic() + milliseconds / 1000
        while milliseconds >= 0 and not library.muster_session_done(session, ticket):
            if time.monotonic() > end:
                return abi.PENDING
            time.sleep(0.0002)
        code = call["wait"](session, ticket)
        room = kept.pop(ticket, None)
        if room is not None and result is not None and code == 0:
            results[id(room)] = room
            result._obj.value = id(room)
        return code

    def run(session: Any, reference: Any, milliseconds: int, ticket: Any, result: Any) -> int:
        code = begin(session, reference, ticket)
        if code != 0:
            return code
        code = wait_for(session, ticket._obj.value, milliseconds, result)
        if code != abi.PENDING:
            ticket._obj.value = 0
        return code

    library.muster_session_begin = begin
    library.muster_session_wait_for = wait_for
    library.muster_session_run = run
    library.muster_result_data = lambda result: ctypes.addressof(results[result].buffer)
    library.muster_result_bytes = lambda result, rank: results[result].bytes_of_rank[rank]
    library.muster_result_free = lambda result: results.pop(result, None)
