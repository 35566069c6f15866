"""How a run ends, and the messages about it."""

from __future__ import annotations

import os
import re
import signal
from typing import Callable, Dict, Optional

from .crew import Exited

_PROGRAM = "horovodrun"

INTERRUPTED_BY: Dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "asked to end (SIGTERM)",
                  signal.SIGHUP: "the terminal was closed (SIGHUP)"}

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def say(sentence: str) -> None:
    """Prints a message for the user."""
    try:
        os.write(2, f"{_PROGRAM}: {sentence}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def code_of(ended: Exited) -> int:
    """The exit code of the process; 128 plus the signal if a signal ended it."""
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
        advice = " (the code of shells for a program that is not found)"
    elif ended.code > 128 and ended.code - 128 in _ADVICE:
        advice = f" (the code of shells after {_name_of(ended.code - 128)})"
    return f"{where} ended with exit code {ended.code}{advice}; see its lines above"


#: Ends of the sentences by which Muster's library reports a lost rank: "rank 1 on host alpha has left the session". Not
#: "did not answer": such a rank does not end by itself, so its end need not be awaited.
_LOSS = re.compile(rb"\brank (\d+) on host \S+?,? (?:has left|is gone)\b")


def lost_rank_in(errors: bytes) -> Optional[str]:
    """The rank whose loss ended a process, by the last lines that the process printed; None if it lost no rank."""
    found = _LOSS.findall(errors)
    return found[-1].decode() if found else None


_ADVICE: Dict[int, str] = {
    signal.SIGKILL: ": the system does so if memory is short (see dmesg), and schedulers if the time is up",
    signal.SIGSEGV: ": run it with PYTHONFAULTHANDLER=1 to see where",
    signal.SIGABRT: ": its lines above may name the failed check",
    signal.SIGBUS: ": the file system of /dev/shm or of a mapped file may be full",
    signal.SIGILL: ": it may be built for another type of CPU",
    signal.SIGXCPU: ": it has reached its limit of CPU time (ulimit -t)",
}


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Interrupts:
    """Within the block, the first SIGINT, SIGTERM or SIGHUP is recorded and `wake` is called. A second one ends this
    process at once, and with it all processes that it started. Outside of the main thread signals stay unchanged."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._before: Dict[int, object] = {}
        #: The received signal; 0 if there is none.
        self.signal = 0

    def __enter__(self) -> Interrupts:
        for number in INTERRUPTED_BY:
            try:
                # Signals that this process was started to ignore (nohup) stay ignored.
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
