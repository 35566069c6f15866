"""Passes the driver's messages about hosts to the states of this process."""

from __future__ import annotations

import enum
import threading
from typing import Any, List, Tuple


class HostUpdateResult(enum.IntFlag):
    """How the hosts of the job have changed. Bits: a change may be of both kinds."""

    no_update = 0
    removed = 1
    added = 2
    mixed = 3


class NotificationManager:
    """Connects the connection to the driver with the listeners. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: List[Any] = []
        self._unsettled: List[Tuple[float, HostUpdateResult]] = []
        self._settled = 0.0
        self._has_driver = False

    def init(self) -> None:
        """Does nothing: a process with a place has a connection to the driver. For programs that call it."""

    @property
    def has_driver(self) -> bool:
        """Whether a driver reports changes to this process; equal on all of its ranks."""
        return self._has_driver

    @property
    def settled(self) -> float:
        """The newest timestamp that the world of this process covers."""
        return self._settled

    def register_listener(self, listener: Any) -> None:
        """`listener.on_hosts_updated(timestamp, result)` is called for each message, on a thread of the connection, and
        at once for earlier messages that still apply."""
        with self._lock:
            self._listeners.append(listener)
            missed = list(self._unsettled)
        for timestamp, result in missed:
            listener.on_hosts_updated(timestamp, result)

    def remove_listener(self, listener: Any) -> None:
        with self._lock:
            self._listeners = [each for each in self._listeners if each is not listener]

    def handle_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """A message of the driver."""
        result = HostUpdateResult(update_res)
        with self._lock:
            self._unsettled.append((timestamp, result))
            listeners = list(self._listeners)
        for listener in listeners:
            listener.on_hosts_updated(timestamp, result)

    def handle_place(self, announced: float) -> None:
        """This process has a place in a round that covers all messages up to `announced`."""
        with self._lock:
            self._has_driver = True
            self._settled = max(self._settled, announced)
            self._unsettled = [each for each in self._unsettled if each[0] > self._settled]


notification_manager = NotificationManager()
