"""Operations that a graph has begun and not finished yet, and the threads that wait for them.

Each place in a graph has a Site. Threads are made as they are needed, one for each operation that is in flight at the
same time, and kept: an operation may take as long as the slowest rank does, and none may hold another up. No thread of
TensorFlow's pools waits (parking).
"""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from . import interrupts, parking
from .plans import Plan

#: Of one place in a graph at the same time: as many as threads run that graph at once.
MOST_IN_FLIGHT = 1024

_tokens = itertools.count(1)


class Flight:
    """One operation, from begin to finish."""

    __slots__ = ("site", "done", "values", "error", "report", "__weakref__")

    def __init__(self, site: "Site") -> None:
        self.site = site
        self.done = threading.Event()
        self.values: List[Any] = []
        self.error: Optional[BaseException] = None
        #: For the operation that is parked until the end, once the graph has come to it.
        self.report: Optional[parking.Report] = None


class Site:
    """One place in a graph. Thread-safe: the same graph may run on several threads."""

    def __init__(self, ready: Optional[Any]) -> None:
        """ready: a queue for the tokens of flights that have landed; None where operations are parked, or where
        finish() has to wait itself."""
        self.queue = ready
        self._lock = threading.Lock()
        self._flights: Dict[int, Flight] = {}
        _sites.add(self)

    def begin(self, plan: Plan) -> int:
        """Begins the operation of `plan`. A failure is one of the flight: it comes out where the graph waits."""
        interrupts.watch(interrupt_all)
        try:
            plan.begin()
        except Exception as error:  # noqa: B902  (fails the flight)
            return self.fail(error)
        token, flight = self._add()
        _waiters.run(lambda: self._wait(token, flight, plan))
        return token

    def fail(self, error: Exception) -> int:
        """A flight that has failed before it began."""
        token, flight = self._add()
        self._land(token, flight, [], error)
        return token

    def _add(self) -> Tuple[int, Flight]:
        token, flight = next(_tokens), Flight(self)
        with self._lock:
            # Those whose values nobody asked for are never finished; TensorFlow leaves such a step out.
            for old in [each for each, other in self._flights.items() if other.done.is_set()][:-MOST_IN_FLIGHT]:
                del self._flights[old]
            self._flights[token] = flight
        _flights[token] = flight
        return token, flight

    def park(self, token: int, flight: Flight, report: parking.Report) -> None:
        """Calls `report` when the flight lands; at once where it has landed."""
        with self._lock:
            if not flight.done.is_set():
                flight.report = report
                return
        self._report(token, flight, report)

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
        """Ends the wait for operations in flight, not the operations."""
        with self._lock:
            waiting = [each for each in self._flights.items() if not each[1].done.is_set()]
        for token, flight in waiting:
            self._land(token, flight, [], KeyboardInterrupt("interrupted while waiting for other ranks"))

    def _wait(self, token: int, flight: Flight, plan: Plan) -> None:
        try:
            values, error = plan.wait(), None
        except BaseException as caught:  # noqa: B902  (fails the flight)
            values, error = [], caught
        self._land(token, flight, values, error)

    def _land(self, token: int, flight: Flight, values: List[Any], error: Optional[BaseException]) -> None:
        with self._lock:
            if flight.done.is_set():
                return
            flight.values, flight.error = values, error
            flight.done.set()
            report, flight.report = flight.report, None
        if report is not None:
            self._report(token, flight, report)
        elif self.queue is not None:
            tf.raw_ops.QueueEnqueueV2(handle=self.queue.queue_ref, components=[tf.constant(token, tf.int64)])

    def _report(self, token: int, flight: Flight, report: parking.Report) -> None:
        if flight.error is not None:
            # The graph fails here, and does not come to finish().
            with self._lock:
                self._flights.pop(token, None)
        report(flight.error)


_sites: "weakref.WeakSet[Site]" = weakref.WeakSet()
#: By token.
_flights: "weakref.WeakValueDictionary[int, Flight]" = weakref.WeakValueDictionary()


def _park(token: int, report: parking.Report) -> None:
    flight = _flights.get(token)
    if flight is None:
        report(RuntimeError(f"no operation is in flight with the token {token}"))
    else:
        flight.site.park(token, flight, report)


parking.use(_park)


def interrupt_all() -> None:
    for site in list(_sites):
        site.interrupt()


class _Waiters:
    """A pool of threads. Daemons: pending operations fail by themselves at the end of the interpreter."""

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
