"""Operations that a graph has begun and not finished yet, and the threads that wait for them.

Each place in a graph has a Site. Threads are made as they are needed, one for each operation that is in flight at the
same time, and kept: an operation may take as long as the slowest rank does, and none may hold another up.
"""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf

from . import interrupts
from .plans import Plan

#: Of one place in a graph at the same time: as many as threads run that graph at once.
MOST_IN_FLIGHT = 1024

_tokens = itertools.count(1)


class Flight:
    """One operation, from begin to finish."""

    __slots__ = ("plan", "done", "values", "error")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.done = threading.Event()
        self.values: List[Any] = []
        self.error: Optional[BaseException] = None


class Site:
    """One place in a graph. Thread-safe: the same graph may run on several threads."""

    def __init__(self, ready: Optional[Any]) -> None:
        """ready: the queue of tokens; None where finish() is to wait itself."""
        self.queue = ready
        self._lock = threading.Lock()
        self._flights: Dict[int, Flight] = {}
        _sites.add(self)

    def begin(self, plan: Plan) -> int:
        interrupts.watch(interrupt_all)
        plan.begin()
        token = next(_tokens)
        flight = Flight(plan)
        with self._lock:
            # Those whose values nobody asked for are never finished; TensorFlow leaves such a step out.
            for old in [each for each, other in self._flights.items() if other.done.is_set()][:-MOST_IN_FLIGHT]:
                del self._flights[old]
            self._flights[token] = flight
        _waiters.run(lambda: self._wait(token, flight))
        return token

    def finish(self, token: int) -> List[Any]:
        with self._lock:
            flight = self._flights[token]
        flight.done.wait()
        with self._lock:
            del self._flights[token]
        if flight.error is not None:
            raise flight.error
        return flight.values

    def interrupt(self) -> None:
        """Ends the waiting for what is in flight, not the operations."""
        with self._lock:
            waiting = [each for each in self._flights.items() if not each[1].done.is_set()]
        for token, flight in waiting:
            self._land(token, flight, [], KeyboardInterrupt("interrupted while waiting for other ranks"))

    def _wait(self, token: int, flight: Flight) -> None:
        try:
            values, error = flight.plan.wait(), None
        except BaseException as caught:  # noqa: B902  (raised by finish)
            values, error = [], caught
        self._land(token, flight, values, error)

    def _land(self, token: int, flight: Flight, values: List[Any], error: Optional[BaseException]) -> None:
        with self._lock:
            if flight.done.is_set():
                return
            flight.values, flight.error = values, error
            flight.done.set()
        if self.queue is not None:
            tf.raw_ops.QueueEnqueueV2(handle=self.queue.queue_ref, components=[tf.constant(token, tf.int64)])


_sites: "weakref.WeakSet[Site]" = weakref.WeakSet()


def interrupt_all() -> None:
    for site in list(_sites):
        site.interrupt()


class _Waiters:
    """Threads that are kept. Daemons: what is pending when the interpreter ends fails by itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._work: "queue.SimpleQueue[Callable[[], None]]" = queue.SimpleQueue()

    def run(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                fresh = False
            else:
                fresh = True
        self._work.put(work)
        if fresh:
            threading.Thread(target=self._loop, name="muster waits for an operation", daemon=True).start()

    def _loop(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


_waiters = _Waiters()
