"""Handles of operations in flight (torch.distributed.Work).

A thread that waits calls the library itself, which is the fastest way. Only if a future was requested does a thread of
this module wait for the end: torch.futures.Future cannot be completed lazily.

Thread-safety: all methods, from any thread.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from ctypes import byref, c_uint64
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch._C._distributed_c10d import Work as _Work

from ..._native import abi
from .arguments import Span
from .errors import GroupError, last_error
from .links import SLICE_MS, Link, after_links

#: How events of a running profiler begin.
enter_event: Any = torch.autograd._record_function_with_args_enter
is_profiled: Any = torch.autograd._profiler_enabled

#: A thread waits this much longer than the group's limit, since rank 0 of the session, which detects the limit as
#: well, reports the ranks that are missing.
_GRACE_MS = 5_000


#: An operation on so few bytes takes less time than to wake a thread.
_QUICK_BYTES = 1 << 16
_QUICK_MS = 1

#: How long an interpreter that ends waits for futures: their callbacks may do anything.
_SETTLE_SECONDS = 2


class Work(_Work):
    """An operation in flight. `finish` runs once when it has succeeded, before anything sees that it is done."""

    def __init__(self, link: Link, ticket: int, what: str, keep: object, result: Sequence[torch.Tensor],
                 finish: Optional[Callable[[], object]] = None, spans: Sequence[Span] = (),
                 sender: Any = None, limit: Optional[timedelta] = None, event: Any = None,
                 turn: Optional[int] = None) -> None:
        _Work.__init__(self)
        self._link = link
        self._ticket = ticket
        #: The call, and its arguments if it is a message.
        self.what = what
        self._keep = keep
        self._result = result
        self._finish = finish
        #: The memory that the operation uses.
        self.spans = spans
        self._sender = sender
        #: The place among the link's turns; None for a message.
        self._turn = turn
        #: How long wait() waits, if not for the group's limit.
        self._limit = limit
        #: Completed at the end, for the event of a running profiler.
        self._ending: Any = None
        self._error: Optional[Exception] = None
        self._is_done = False
        self._gate: Optional[threading.Event] = None
        self._future: Any = None
        self._trigger: Any = None
        self._lock = threading.Lock()
        link.pending[id(self)] = self
        if turn is not None:
            link.turns[turn] = self
        if event is not None:
            self._ending = torch.futures.Future()
            torch.ops.profiler._call_end_callbacks_on_jit_fut(event, self._ending)
            with self._lock:
                self._watch()

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Waits for the end. With a timeout, the operation goes on when it is over. Errors: GroupError."""
        milliseconds = self._link.timeout_ms + _GRACE_MS
        for limit in (timeout, self._limit):
            if limit is not None and limit > timedelta(0):
                milliseconds = int(limit.total_seconds() * 1000)
                break
        self._wait_ms(milliseconds)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        if not self._is_done and self._gate is None:
            with self._lock:
                if not self._is_done and self._gate is None:
                    self._look(0)
        return self._is_done

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[Exception]:
        return self._error

    def result(self) -> List[torch.Tensor]:
        self.wait()
        return list(self._result)

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._source_rank()

    def _source_rank(self) -> int:
        if self._sender is None:
            raise RuntimeError("source_rank() is for a receive from any rank")
        return int(self._sender.value)

    def get_future(self) -> Any:
        """A future with the result. Its callbacks run on a thread of this module.

        This thread looks after a short operation for a moment: usually it is done before another thread could wake up
        to complete the future."""
        with self._lock:
            if self._future is None:
                if not self._is_done and self._gate is None and self._is_quick():
                    self._look(_QUICK_MS)
                if self._is_done and self._error is None:
                    self._future = torch.futures.Future()
                    self._future.set_result(list(self._result))
                    return self._future
                self._trigger = torch.futures.Future()
                self._future = self._trigger.then(self._value)
                if not self._is_done and self._gate is None:
                    self._watch()
                is_done = self._is_done
            else:
                is_done = False
        if is_done:
            self._trigger.set_result(None)
        return self._future

    def join(self) -> None:
        """Waits for the end, whatever it is."""
        self._wait_ms(self._link.timeout_ms + _GRACE_MS)

    def _value(self, _: Any) -> List[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return list(self._result)

    def _wait_ms(self, limit: int) -> None:
        if self._is_done:
            return
        deadline = time.monotonic() + limit / 1000
        while not self._is_done:
            left = int((deadline - time.monotonic()) * 1000)
            if left < 0:
                raise GroupError(f"{self.what} did not complete within its timeout of {limit / 1000:g} s")
            gate = self._gate
            if gate is not None:
                gate.wait(left / 1000 + 0.001)
                continue
            with self._lock:
                if not self._is_done and self._gate is None:
                    self._look(min(left, SLICE_MS))

    # The following functions require the lock.

    def _is_quick(self) -> bool:
        """Whether the operation is short, and no other one is in flight that this thread might execute instead."""
        return len(self._link.pending) == 1 and sum(end - begin for begin, end, *_ in self.spans) <= _QUICK_BYTES

    def _look(self, milliseconds: int) -> None:
        link = self._link
        if link.closed is not None:
            self._end(GroupError(link.closed))
            return
        code = link.wait_for(link.pointer, self._ticket, milliseconds, None)
        if code == abi.PENDING:
            return
        error: Optional[Exception] = None
        if code != abi.OK:
            error = GroupError(link.closed) if link.closed is not None else last_error(link.native, code, self.what)
        self._end(error)

    def _watch(self) -> None:
        link = self._link
        if link.closed is not None:
            self._end(GroupError(link.closed))
            return
        self._gate = threading.Event()
        _watch(self, link)

    def _end(self, error: Optional[Exception]) -> None:
        if error is None and self._finish is not None:
            try:
                self._finish()
            except Exception as failed:  # noqa: B902  (raised by wait())
                error = failed
        self._error = error
        self._keep = self._finish = None
        link = self._link
        link.pending.pop(id(self), None)
        if self._turn is not None and link.turns[self._turn] is self:
            link.turns[self._turn] = None
        self._is_done = True  # from here on another operation may take the turn

    def _completed(self, error: Optional[Exception]) -> None:
        """Called by a thread of this module. A profiler takes an event for asynchronous that begins and ends on two
        threads."""
        with self._lock:
            if self._ending is not None:
                self._ending.set_result(None)
            self._end(error)
            gate = self._gate
        if gate is not None:
            gate.set()
        if self._trigger is not None:
            self._trigger.set_result(None)


class Done(_Work):
    """An operation that has succeeded."""

    def __init__(self, result: Sequence[torch.Tensor] = ()) -> None:
        _Work.__init__(self)
        self._result = result

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> List[torch.Tensor]:
        return list(self._result)

    def synchronize(self) -> None:
        pass

    def join(self) -> None:
        pass

    def get_future(self) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(list(self._result))
        return future


class Several(_Work):
    """Operations that are waited for together."""

    def __init__(self, parts: Sequence[Any], result: Sequence[torch.Tensor],
                 finish: Optional[Callable[[], object]] = None) -> None:
        _Work.__init__(self)
        self._parts = list(parts)
        self._result = result
        self._finish = finish
        self._lock = threading.Lock()

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        failure: Optional[Exception] = None
        for part in self._parts:
            try:
                part.wait(timeout) if timeout is not None else part.wait()
            except Exception as error:  # noqa: B902  (raised below)
                failure = failure or error
        if failure is not None:
            raise failure
        self._do_finish()
        return True

    def _do_finish(self) -> None:
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()

    def is_completed(self) -> bool:
        if not all(part.is_completed() for part in self._parts):
            return False
        if all(part.is_success() for part in self._parts):
            self._do_finish()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and all(part.is_success() for part in self._parts)

    def exception(self) -> Optional[Exception]:
        return next((part.exception() for part in self._parts if part.exception() is not None), None)

    def result(self) -> List[torch.Tensor]:
        self.wait()
        return list(self._result)

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Any:
        def value(done: Any) -> List[torch.Tensor]:
            for future in done.value():
                future.wait()
            self._do_finish()
            return list(self._result)

        return torch.futures.collect_all([part.get_future() for part in self._parts]).then(value)


#: The ends of operations with a future, from the library to the thread of this module.
_queue: Any = None
_queue_lock = threading.Lock()
_watched: Dict[int, Work] = {}
_numbers = itertools.count(1)

#: An entry for each thread that completes a future now; taken out under `_settled`.
_busy: List[None] = []
_settled = threading.Condition()

#: An entry for each thread that waits for an end. Single operations on a list are atomic.
_idle: List[None] = []
_MOST_IDLE = 2


def _watch(work: Work, link: Link) -> None:
    global _queue
    if _queue is None:
        with _queue_lock:
            if _queue is None:
                _queue = link.native.muster_queue_new()
                _start_server(link.native, _queue)
    number = next(_numbers)
    _watched[number] = work
    code = link.native.muster_session_watch(link.pointer, work._ticket, _queue, number)
    if code != abi.OK:
        _watched.pop(number)
        work._end(last_error(link.native, code, work.what))
        if work._gate is not None:
            work._gate.set()


def _start_server(native: Any, queue: Any) -> None:
    _idle.append(None)
    threading.Thread(target=_serve, args=(native, queue), name="muster futures", daemon=True).start()


def _serve(native: Any, queue: Any) -> None:
    """Completes futures. Their callbacks may wait for other futures, as those of PowerSGD do: so another thread is
    always free to complete those."""
    number = c_uint64()
    reference = byref(number)
    while True:
        code = native.muster_queue_next(queue, -1, reference)
        _idle.pop()
        if not _idle:
            _start_server(native, queue)
        _busy.append(None)
        work = _watched.pop(number.value, None)
        try:
            if work is not None:
                work._completed(None if code == abi.OK else last_error(native, code, work.what))
                del work
        finally:
            with _settled:
                _busy.pop()
                _settled.notify_all()
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(None)


def _settle() -> None:
    """Waits until the futures of all operations are complete, which ended with their links. An interpreter that ends
    stops each thread that wants to run Python again. One that is within PyTorch then would abort the process."""
    with _settled:
        _settled.wait_for(lambda: not _watched and not _busy, timeout=_SETTLE_SECONDS)


after_links.append(_settle)


def _forget_in_child() -> None:
    global _queue, _queue_lock, _settled
    _queue = None
    _queue_lock = threading.Lock()
    _settled = threading.Condition()
    _watched.clear()
    _busy.clear()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_in_child)
