"""Operations that a graph has begun and not finished yet (flights), and the threads that wait for them.

Each place in a graph has a Site. Threads are created on demand, one for each simultaneous flight, and kept: an
operation may take as long as the slowest rank, and must not delay another. No thread of TensorFlow's pools waits (see
parking).
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

#: The limit of simultaneous flights of one place in a graph, which is the number of threads that run the graph at once.
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
        #: The callback of the parked operation, once the graph has reached it.
        self.report: Optional[parking.Report] = None


class Site:
    """One place in a graph. Thread-safe, since several threads may run the same graph."""

    def __init__(self, ready: Optional[Any]) -> None:
        """ready: a queue for the tokens of landed flights; None if operations are parked, or if finish() itself has to
        wait."""
        self.queue = ready
        self._lock = threading.Lock()
        self._flights: Dict[int, Flight] = {}
        _sites.add(self)

    def begin(self, plan: Plan) -> int:
        """Begins the operation of `plan`. A failure becomes that of the flight, and is raised where the graph waits."""
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
            # Flights whose values are not used are never finished, since TensorFlow omits that step.
            for old in [each for each, other in self._flights.items() if other.done.is_set()][:-MOST_IN_FLIGHT]:
                del self._flights[old]
            self._flights[token] = flight
        _flights[token] = flight
        return token, flight

    def park(self, token: int, flight: Flight, report: parking.Report) -> None:
        """Calls `report` when the flight lands, or at once if it has landed."""
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
        """Ends the wait for operations in flight, but not the operations."""
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
            # The graph fails here, and does not reach finish().
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
    """A pool of daemon threads: pending operations fail by themselves at the end of the interpreter."""

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
