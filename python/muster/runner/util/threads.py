"""Runs functions in separate threads."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple


def in_thread(target: Callable[..., Any], args: Tuple[Any, ...] = (), name: Optional[str] = None, daemon: bool = True,
              silent: bool = False) -> threading.Thread:
    """Starts `target(*args)` in a thread, and returns the thread. silent: an exception ends it without a message."""
    _check(args)

    def call() -> None:
        with contextlib.suppress(Exception) if silent else contextlib.nullcontext():
            target(*args)

    thread = threading.Thread(target=call, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(event: threading.Event, func: Callable[..., Any], args: Tuple[Any, ...] = (),
             stop: Optional[threading.Event] = None, check_stop_interval_s: float = 1.0, daemon: bool = True,
             silent: bool = False) -> threading.Thread:
    """Starts a thread that calls `func(*args)` once `event` is set, or ends once `stop` is set before.

    check_stop_interval_s: seconds between two checks of `stop`.

    Errors: ValueError for a thread that is not a daemon and has no `stop`.
    """
    if event is None:
        raise ValueError("event is None: a threading.Event is needed")
    _check(args)
    if stop is None and not daemon:
        raise ValueError("a thread that is not a daemon requires `stop`: otherwise the program could wait for it for "
                         "ever")

    def wait() -> None:
        if stop is None:
            event.wait()
        else:
            while not stop.is_set() and not event.wait(check_stop_interval_s):
                pass
            if stop.is_set():
                return
        func(*args)

    return in_thread(wait, daemon=daemon, silent=silent)


def execute_function_multithreaded(fn: Callable[..., Any], args_list: Sequence[List[Any]],
                                   block_until_all_done: bool = True,
                                   max_concurrent_executions: int = 1000) -> Optional[Dict[int, Any]]:
    """Calls `fn` with each list of arguments, in threads. Returns the results by the index of their arguments, or None
    at once if block_until_all_done is False. Errors: the exceptions of the calls."""
    pool = ThreadPoolExecutor(max(1, min(max_concurrent_executions, len(args_list))))
    futures = [pool.submit(fn, *args) for args in args_list]
    pool.shutdown(wait=False)
    if not block_until_all_done:
        return None
    return {place: future.result() for place, future in enumerate(futures)}


def _check(args: Any) -> None:
    if not isinstance(args, tuple):
        raise ValueError(f"args is a {type(args).__name__}: expected a tuple, for example (value,)")
