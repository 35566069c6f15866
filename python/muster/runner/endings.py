"""How a run ends, and the sentences for it."""

from __future__ import annotations

import os
import signal
from typing import Callable, Dict, Optional

from .crew import Exited

_PROGRAM = "horovodrun"

INTERRUPTED_BY: Dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "asked to end (SIGTERM)",
                  signal.SIGHUP: "the terminal is gone (SIGHUP)"}

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def say(sentence: str) -> None:
    """Prints a message for the user."""
    try:
        os.write(2, f"{_PROGRAM}: {sentence}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def code_of(ended: Exited) -> int:
    """The exit code that stands for it."""
    if ended.why and not ended.code:
        return 1
    return 128 + ended.signal if ended.signal else ended.code


def sentence_of(ended: Exited, who: str) -> str:
    """The message about a failed process, with advice."""
    where = f"{who} on {ended.host}"
    if ended.why:
        return f"{where} is gone: {ended.why}" if not ended.code else f"{where} could not be started: {ended.why}"
    if ended.signal:
        return f"{where} was killed by {_name_of(ended.signal)}{_ADVICE.get(ended.signal, '')}"
    advice = ""
    if ended.code == _NOT_FOUND:
        advice = " (as shells do where a program is not found)"
    elif ended.code > 128 and ended.code - 128 in _ADVICE:
        advice = f" (as shells do after {_name_of(ended.code - 128)})"
    return f"{where} ended with exit code {ended.code}{advice}; its lines above, [{ended.name}]<stderr>, may say why"


_ADVICE: Dict[int, str] = {
    signal.SIGKILL: ", as the system does where memory is short (see dmesg), and schedulers where time is up",
    signal.SIGSEGV: ": run it with PYTHONFAULTHANDLER=1 to see where",
    signal.SIGABRT: ": its lines above may say which check failed",
    signal.SIGBUS: ": is the file system of /dev/shm or of a mapped file full?",
    signal.SIGILL: ": was it built for another type of CPU?",
    signal.SIGXCPU: ": its limit of CPU time (ulimit -t) is used up",
}


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Interrupts:
    """While it is entered, the first SIGINT, SIGTERM or SIGHUP is noted, and `wake` is called; a second ends this
    process at once, and with it all that it started. Elsewhere than in the main thread signals stay as they are."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._before: Dict[int, object] = {}
        #: Which came; 0 while none has.
        self.signal = 0

    def __enter__(self) -> Interrupts:
        for number in INTERRUPTED_BY:
            try:
                # What this process was told to ignore (nohup), it goes on to ignore.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
            except ValueError:
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, _: Optional[object]) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number
        self._wake()
