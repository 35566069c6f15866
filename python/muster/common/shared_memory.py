"""Memory that all ranks of this host have mapped: what is reduced there is reduced where it is, not copied first.

It belongs to a session and goes with it. Whoever still needs what is in it then registers with before_end(), and
copies it out.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Optional

from .operations import session_of
from .process_sets import ProcessSet
from .session import Session


def allocate(process_set: ProcessSet, size: int) -> Optional[Any]:
    """An array of `size` bytes, aligned to 64, whose contents are unspecified; None where there is no more, or no
    shared memory. It is given back when nobody holds it any more. Errors: ValueError before init()."""
    session = session_of(process_set)
    if session.closed is not None:
        session.refuse()
    address = session.library.muster_session_allocate_shared(session.pointer, size)
    if not address:
        return None
    array = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(array, _give_back, session, address).atexit = False
    return array


def _give_back(session: Session, address: int) -> None:
    if session.closed is None:
        session.library.muster_session_free_shared(session.pointer, address)
