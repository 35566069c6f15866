"""Memory that all ranks of this host have mapped. Tensors in it are reduced in place, without a copy.

The memory belongs to a session and ends with it. Programs may keep references to it for longer (for example to a
gradient of the last step, after shutdown()). Therefore they get a separate mapping of the same pages, which stays
readable and writable until it is released, independently of the session. All shared memory of a session is released
together. Other ranks may write to it until the end of the session, so code that needs its contents registers with
before_end(), and copies them.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from dataclasses import dataclass
from typing import Any, Optional

from .operations import session_of
from .process_sets import ProcessSet
from .session import Session

_MREMAP_MAYMOVE = 1
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mremap.restype = ctypes.c_void_p
_libc.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class Shared:
    """Shared memory under two addresses."""

    #: For the program: an array of bytes, aligned to 64. It owns the memory.
    array: Any
    #: For the library: the address of the same bytes, to be used in operations. Valid as long as the session.
    address: int


def allocate(process_set: ProcessSet, size: int) -> Optional[Shared]:
    """`size` bytes, at least 1, with unspecified contents; None if no shared memory is left or available. Released with
    the last reference to the array. Errors: ValueError before init()."""
    session = session_of(process_set)
    if session.closed is not None:
        session.refuse()
    address = session.native.muster_session_allocate_shared(session.pointer, size)
    if not address:
        return None
    begin = address - address % mmap.PAGESIZE
    length = address + size - begin
    # A second mapping of the same pages, which mremap() with an old length of 0 creates.
    own = _libc.mremap(begin, 0, length, _MREMAP_MAYMOVE)
    if own == _FAILED:
        session.native.muster_session_free_shared(session.pointer, address)
        return None
    array = (ctypes.c_ubyte * size).from_address(own + address - begin)
    weakref.finalize(array, _give_back, session, address, own, length).atexit = False
    return Shared(array, address)


def _give_back(session: Session, address: int, own: int, length: int) -> None:
    _libc.munmap(own, length)
    if session.closed is None:
        session.native.muster_session_free_shared(session.pointer, address)
