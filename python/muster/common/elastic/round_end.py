"""When the driver calls a round off while its workers still meet: one of them was lost, so they would wait in vain."""

from __future__ import annotations

import os
import threading


class RoundEnd:
    """A descriptor that turns readable when a round is called off. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._round = 0
        self._called_off = 0
        self._readable = self._writable = -1

    def descriptor_of(self, number: int) -> int:
        """The descriptor for this round. That of the round before must not be in use any more."""
        with self._lock:
            for old in (self._readable, self._writable):
                if old >= 0:
                    os.close(old)
            self._readable, self._writable = os.pipe2(os.O_CLOEXEC)
            self._round = number
            self._tell()
            return self._readable

    def call_off(self, number: int) -> None:
        """The round of this number, and all before it, will not come about or have failed."""
        with self._lock:
            self._called_off = max(self._called_off, number)
            self._tell()

    def _tell(self) -> None:
        if self._writable >= 0 and self._called_off >= self._round:
            os.write(self._writable, b"x")
