"""A time limit for several activities."""

from __future__ import annotations

import time


class TimeoutException(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Timeout:
    def __init__(self, timeout: float, message: str) -> None:
        """timeout: in seconds, from now. message: of the exception; "{activity}" in it becomes the activity."""
        self._timeout = timeout
        self._message = message
        self._end = time.monotonic() + timeout

    def remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def timed_out(self) -> bool:
        return time.monotonic() > self._end

    def check_time_out_for(self, activity: str) -> None:
        """Errors: TimeoutException if the time limit has passed."""
        if not self.timed_out():
            return
        sentence = self._message.format(activity=activity).rstrip().rstrip(".")
        raise TimeoutException(f"{sentence}. Timeout after {self._timeout} seconds.")
