"""Ctrl-C while a graph runs.

The main thread is inside TensorFlow then, and Python handles signals on the main thread only: without this module,
Ctrl-C would wait for the other ranks for as long as the graph does. Python can write the number of each signal into a
descriptor, at once and on any thread; a thread here reads that descriptor and ends the wait. The graph then fails, the
main thread returns to Python, and Python raises KeyboardInterrupt there as usual. It must not do so while TensorFlow
makes its own error of the failure: another exception there becomes a RuntimeError about a mismatch of exceptions.

If the program has such a descriptor itself (asyncio) or handles SIGINT in its own way, nothing is changed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, Callable

import tensorflow as tf

_errors_file = tf.errors.OpError.__init__.__code__.co_filename
_lock = threading.Lock()
_is_watching = False


def watch(on_interrupt: Callable[[], None]) -> None:
    """Calls `on_interrupt` on another thread for each Ctrl-C from now on. It has no effect until prepare() was called
    on the main thread."""
    global _is_watching
    with _lock:
        if _is_watching or _read < 0:
            return
        _is_watching = True
    threading.Thread(target=_loop, args=(on_interrupt,), name="muster watches for Ctrl-C", daemon=True).start()


#: The end for reading of the pipe to which Python writes signals.
_read = -1


def prepare() -> None:
    """Makes Python report signals. Does nothing on other threads than the main one, or if signals go elsewhere."""
    global _read
    if _read >= 0 or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(reading)
        os.close(writing)
        return
    os.set_blocking(reading, True)
    _read = reading
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise)


def _raise(number: int, frame: Any) -> None:
    if frame is not None and frame.f_code.co_filename == _errors_file and sys.getprofile() is None:
        sys.setprofile(_raise_later)
        return
    signal.default_int_handler(number, frame)


def _raise_later(frame: Any, *_: Any) -> None:
    """Called at each call and return: raises KeyboardInterrupt at the first that is outside TensorFlow's error."""
    if frame.f_code.co_filename != _errors_file and frame.f_code is not _raise.__code__:
        sys.setprofile(None)
        raise KeyboardInterrupt


def _loop(on_interrupt: Callable[[], None]) -> None:
    while True:
        numbers = os.read(_read, 64)
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is _raise:
            on_interrupt()
