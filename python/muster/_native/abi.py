"""collective/include/muster/collective.h for ctypes: its constants, structures and functions.

A test compares this file with the header.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple

#: A library may be newer, with the same soname, whose number is in its file name.
OLDEST_VERSION = "0.2.0"

OK, BAD_ARGUMENT, CONFIGURATION, AUTHENTICATION, MISMATCH, PEER_LOST, TIMEOUT, SYSTEM, PENDING = range(9)

(FLOAT32, FLOAT64, INT32, INT64, FLOAT16, BFLOAT16, INT8, UINT8, INT16, UINT16, UINT32, UINT64,
 BOOL) = range(1, 14)

SUM, AVERAGE, MIN, MAX, PRODUCT, ADASUM, BIT_AND, BIT_OR, BIT_XOR = range(1, 10)

(OPERATION_ALL_REDUCE, OPERATION_REDUCE_SCATTER, OPERATION_ALL_GATHER, OPERATION_BROADCAST, OPERATION_ALL_TO_ALL,
 OPERATION_BARRIER, OPERATION_JOIN, OPERATION_REDUCE, OPERATION_GATHER, OPERATION_SCATTER, OPERATION_SEND,
 OPERATION_RECEIVE) = range(1, 13)

ANY_RANK = -1


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("rank", c_int), ("size", c_int), ("rendezvous", c_char_p),
                ("key", c_char_p), ("rendezvous_file", c_char_p), ("listener", c_int), ("host", c_char_p),
                ("host_id", c_char_p), ("timeout_ms", c_int64), ("transport", c_char_p), ("algorithm", c_char_p),
                ("streams", c_int), ("arena_bytes", c_int64), ("silence_ms", c_int64), ("cancel", c_int)]


class Tensor(ctypes.Structure):
    """`in_`: `in` is a keyword of Python."""

    _fields_ = [("in_", c_void_p), ("out", c_void_p), ("count", c_uint64)]


#: Reports of stalled operations, called on a thread of the session.
ON_STALL = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("timeline", c_char_p), ("stall_warning_ms", c_int64),
                ("on_stall", ON_STALL), ("on_stall_user", c_void_p), ("fusion_bytes", c_uint64),
                ("autotune", c_int), ("autotune_log", c_char_p), ("stall_limit_ms", c_int64)]


class Operation(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("type", c_int), ("op", c_int), ("root", c_int),
                ("prescale", c_double), ("postscale", c_double), ("name", c_char_p), ("shape", c_char_p),
                ("tensors", POINTER(Tensor)), ("tensor_count", c_uint64), ("counts", POINTER(c_uint64)),
                ("received", POINTER(c_uint64)), ("tag", c_uint64), ("sender", POINTER(c_int))]


def options() -> Options:
    """MUSTER_OPTIONS_INIT."""
    return Options(struct_size=ctypes.sizeof(Options), rank=-1, size=-1, listener=-1, timeout_ms=-1, streams=-1,
                   arena_bytes=-1, silence_ms=-1, cancel=-1)


def session_options() -> SessionOptions:
    """MUSTER_SESSION_OPTIONS_INIT."""
    return SessionOptions(struct_size=ctypes.sizeof(SessionOptions), stall_warning_ms=-1, stall_limit_ms=-1)


def operation() -> Operation:
    """MUSTER_OPERATION_INIT."""
    return Operation(struct_size=ctypes.sizeof(Operation), prescale=1.0, postscale=1.0)


_SESSION = c_void_p
_COMM = c_void_p
_RESULT = c_void_p
_QUEUE = c_void_p

#: By name: the result and the arguments of each function. Handles are addresses.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "muster_version": (c_char_p, []),
    "muster_last_error": (c_char_p, []),
    "muster_last_error_code": (c_int, []),
    "muster_last_error_rank": (c_int, []),
    "muster_last_error_host": (c_char_p, []),
    "muster_size_of": (c_size_t, [c_int]),
    "muster_connect": (c_int, [POINTER(Options), POINTER(_COMM)]),
    "muster_disconnect": (None, [_COMM]),
    "muster_rank": (c_int, [_COMM]),
    "muster_size": (c_int, [_COMM]),
    "muster_local_rank": (c_int, [_COMM]),
    "muster_local_size": (c_int, [_COMM]),
    "muster_cross_rank": (c_int, [_COMM]),
    "muster_cross_size": (c_int, [_COMM]),
    "muster_host": (c_char_p, [_COMM]),
    "muster_group": (c_int, [_COMM, POINTER(c_int), c_int, POINTER(_COMM)]),
    "muster_session_start": (c_int, [_COMM, POINTER(SessionOptions), POINTER(_SESSION)]),
    "muster_session_end": (None, [_SESSION]),
    "muster_session_rank": (c_int, [_SESSION]),
    "muster_session_size": (c_int, [_SESSION]),
    "muster_session_last_joined": (c_int, [_SESSION]),
    "muster_session_done": (c_int, [_SESSION, c_uint64]),
    "muster_session_begin": (c_int, [_SESSION, POINTER(Operation), POINTER(c_uint64)]),
    "muster_session_wait_for": (c_int, [_SESSION, c_uint64, c_int64, POINTER(_RESULT)]),
    "muster_session_run": (c_int, [_SESSION, POINTER(Operation), c_int64, POINTER(c_uint64), POINTER(_RESULT)]),
    "muster_result_data": (c_void_p, [_RESULT]),
    "muster_result_bytes": (c_uint64, [_RESULT, c_int]),
    "muster_result_free": (None, [_RESULT]),
    "muster_queue_new": (_QUEUE, []),
    "muster_session_watch": (c_int, [_SESSION, c_uint64, _QUEUE, c_uint64]),
    "muster_queue_next": (c_int, [_QUEUE, c_int64, POINTER(c_uint64)]),
    "muster_queue_end": (None, [_QUEUE]),
    "muster_session_start_timeline": (c_int, [_SESSION, c_char_p]),
    "muster_session_stop_timeline": (c_int, [_SESSION]),
    "muster_session_mark_cycles": (c_int, [_SESSION, c_int]),
    "muster_session_allocate_shared": (c_void_p, [_SESSION, c_uint64]),
    "muster_session_free_shared": (None, [_SESSION, c_void_p])}


def speaks(version: str) -> bool:
    """Whether a library of this version has the interface that is declared here."""
    return _numbers(version) >= _numbers(OLDEST_VERSION)


def declare(library: ctypes.CDLL) -> List[str]:
    """Sets the prototypes of the library's functions. Returns the names of missing functions."""
    missing = []
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            missing.append(name)
            continue
        function.restype = result
        function.argtypes = arguments
    return missing


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("-")[0].split("."))
