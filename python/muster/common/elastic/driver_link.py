"""This process's connection to the driver of its job.

A separate thread receives, so that messages of the driver are handled at once. Without its driver, this worker would
never get a place or be ended, so it ends itself.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from typing import Callable, Dict, Optional

from ..wire import Channel, Message, WireError, connect
from . import protocol

#: Seconds between the request to this process to end, when its driver is gone, and its forced end.
END_GRACE = 5.0


def say(sentence: str) -> None:
    """Prints a message for the user of the job on standard error."""
    print(f"muster: {sentence}", file=sys.stderr, flush=True)


class DriverLink:
    """Messages in both directions. `send` may be called from any thread, `wait_for_answer` from one."""

    def __init__(self, channel: Channel, on_message: Dict[str, Callable[[Message], None]]) -> None:
        """Handlers of `on_message` are called on the receiving thread. Messages of other kinds are answers."""
        self._channel = channel
        self._on_message = on_message
        self._answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._process = os.getpid()
        os.register_at_fork(after_in_child=self._forget_in_child)
        threading.Thread(target=self._receive, name="muster driver link", daemon=True).start()

    def send(self, kind: str, **fields: object) -> None:
        """Sends a message. Raises nothing if the driver is gone, since this process is ending then."""
        try:
            self._channel.send({"kind": kind, **fields})
        except WireError:
            pass

    def wait_for_answer(self) -> Message:
        """Returns the next answer. Ctrl-C interrupts the wait."""
        while True:
            try:
                # In slices, since not every signal handler can interrupt an unlimited wait on a queue.
                return self._answers.get(timeout=1.0)
            except queue.Empty:
                continue

    def own_address(self) -> str:
        """The local address of the connection to the driver."""
        return self._channel.local_host

    def _receive(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                if message is None:
                    why = "it closed the connection"
                    break
                self._on_message.get(str(message.get("kind")), self._answers.put)(message)
        except WireError as error:
            why = str(error)
        if os.getpid() == self._process and not sys.is_finalizing():
            _end_this_process(why)

    def _forget_in_child(self) -> None:
        # A surviving child, such as a data loader, would keep the connection open when this process is killed.
        self._channel.forget()


def _end_this_process(why: str) -> None:
    say(f"the driver of this job is gone ({why}), so this worker ends")
    timer = threading.Event()
    os.kill(os.getpid(), signal.SIGTERM)
    # A program that handles the signal gets a moment to do so.
    timer.wait(END_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def link_from_environment(on_message: Dict[str, Callable[[Message], None]],
                          environment: "os._Environ[str] | Dict[str, str]" = os.environ) -> DriverLink:
    """Connects to the driver that the environment names, and identifies this process.

    Errors: WireError, ValueError.
    """
    channel = connect(environment[protocol.DRIVER_VARIABLE], environment.get(protocol.KEY_VARIABLE, ""))
    link = DriverLink(channel, on_message)
    worker: Optional[str] = environment.get(protocol.WORKER_VARIABLE)
    link.send(protocol.HELLO, worker=worker, process=os.getpid())
    return link


class RoundEnd:
    """A descriptor that turns readable when the driver cancels a round while its workers still meet: one of them was
    lost, so the others would wait in vain. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._round = 0
        self._called_off = 0
        self._readable = self._writable = -1

    def descriptor_of(self, number: int) -> int:
        """The descriptor for round `number`. The descriptor of the previous round must not be in use any more."""
        with self._lock:
            for old in (self._readable, self._writable):
                if old >= 0:
                    os.close(old)
            self._readable, self._writable = os.pipe2(os.O_CLOEXEC)
            self._round = number
            self._tell()
            return self._readable

    def call_off(self, number: int) -> None:
        """Round `number` and all earlier rounds were cancelled or have failed."""
        with self._lock:
            self._called_off = max(self._called_off, number)
            self._tell()

    def _tell(self) -> None:
        if self._writable >= 0 and self._called_off >= self._round:
            os.write(self._writable, b"x")
