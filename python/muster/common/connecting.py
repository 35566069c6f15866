"""Joins the ranks of a world, such that Ctrl-C ends the wait for missing ranks."""

from __future__ import annotations

import os
import select
import threading
from ctypes import byref, c_void_p
from typing import Callable, Generic, List, Optional, TypeVar

from .._native import abi, library
from .place import Place
from .failures import check
from .knobs import Knobs
from .world import World

T = TypeVar("T")

#: How long an interrupted wait in the library may take to return before it is abandoned.
_SECONDS_TO_COME_BACK = 2.0


def connect(place: Place, knobs: Knobs) -> World:
    """The world of `place`, with its first session. Waits for all ranks.

    Errors: ConfigurationError, MismatchError (the ranks do not fit together), HorovodInternalError naming the missing
    ranks. KeyboardInterrupt ends the wait; other ranks get the reason.
    """
    loaded = library.load()
    with Cancellation(place.cancel) as cancellation:
        options = _options(place, knobs)
        options.cancel = cancellation.descriptor

        def make() -> World:
            comm = c_void_p()
            check(loaded, loaded.muster_connect(byref(options), byref(comm)))
            made = World(comm.value or 0, place, knobs, loaded)
            try:
                made.start_session(0, range(made.size))
            except BaseException:
                made.end()
                raise
            return made

        return _Attempt(make, discard=World.end).result(cancellation)


def interruptible(call: Callable[[], T], discard: Callable[[T], None]) -> T:
    """Runs `call` on a separate thread, since Ctrl-C only reaches threads that are outside of the library. If the call
    succeeds after Ctrl-C, `discard` gets its result."""
    return _Attempt(call, discard).result(None)


class Cancellation:
    """A descriptor that turns readable when cancel() is called, or when another descriptor turns readable."""

    def __init__(self, other: int = -1) -> None:
        self._out, self._into = os.pipe2(os.O_CLOEXEC)
        self._both: Optional[select.epoll] = None
        self.descriptor = self._out
        if other >= 0:
            self._both = select.epoll()
            self._both.register(self._out, select.EPOLLIN)
            self._both.register(other, select.EPOLLIN)
            self.descriptor = self._both.fileno()
        #: Set while an abandoned thread may still use the descriptor.
        self.is_abandoned = False

    def cancel(self) -> None:
        os.write(self._into, b"x")

    def __enter__(self) -> "Cancellation":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_abandoned:
            return
        if self._both is not None:
            self._both.close()
        os.close(self._out)
        os.close(self._into)


class _Attempt(Generic[T]):
    def __init__(self, call: Callable[[], T], discard: Callable[[T], None]) -> None:
        self._call = call
        self._discard = discard
        self._made: List[T] = []
        self._failed: List[BaseException] = []
        self._lock = threading.Lock()
        self._is_abandoned = False
        self._done = threading.Event()

    def result(self, cancellation: Optional[Cancellation]) -> T:
        try:
            threading.Thread(target=self._carry_out, name="muster joins", daemon=True).start()
            self._done.wait()
        except BaseException:
            self._abandon(cancellation)
            raise
        if self._failed:
            raise self._failed[0]
        return self._made[0]

    def _carry_out(self) -> None:
        try:
            made = self._call()
        except BaseException as error:  # raised again in the thread that waits
            self._failed.append(error)
        else:
            with self._lock:
                is_wanted = not self._is_abandoned
                if is_wanted:
                    self._made.append(made)
            if not is_wanted:
                self._discard(made)
        self._done.set()

    def _abandon(self, cancellation: Optional[Cancellation]) -> None:
        if cancellation is not None:
            # Set until the thread has returned, since Ctrl-C may be pressed again at any point here.
            cancellation.is_abandoned = True
            cancellation.cancel()
        with self._lock:
            self._is_abandoned = True
        if self._made:
            self._discard(self._made.pop())
            is_back = True
        else:
            is_back = self._done.wait(_SECONDS_TO_COME_BACK)
        if cancellation is not None and is_back:
            cancellation.is_abandoned = False


def _options(place: Place, knobs: Knobs) -> abi.Options:
    options = abi.options()
    for field in ("rendezvous", "key", "rendezvous_file", "host", "host_id"):
        value = getattr(place, field)
        if value is not None:
            setattr(options, field, os.fsencode(value))
    options.rank = -1 if place.rank is None else place.rank
    options.size = -1 if place.size is None else place.size
    options.listener = place.listener
    if knobs.connect_timeout_ms is not None:
        options.timeout_ms = knobs.connect_timeout_ms
    return options
