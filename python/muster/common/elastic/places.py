"""This process's place in each world of its job, which the driver assigns: rank, size, and where to meet.

State of the process, since there is one driver: the connection, opened with the first request for a place, and the data
that this worker sends with its next request. One thread requests a place at a time (init() holds a lock).
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from typing import NoReturn, Optional, Tuple

from .. import wire
from ..exceptions import ConfigurationError, HorovodInternalError
from ..place import Place
from . import protocol
from .driver_link import DriverLink, RoundEnd, link_from_environment, say
from .notification import notification_manager


@dataclass
class _Worker:
    """The state of this process as a worker."""

    link: Optional[DriverLink] = None
    #: The current or last round, its rank there, and the newest round in which it had the state of training.
    round: int = 0
    rank: Optional[int] = None
    synced_round: int = 0
    #: The number of commits since then.
    commits: int = 0
    because: str = protocol.BECAUSE_STARTED
    error: str = ""
    blames: Optional[int] = None
    may_skip_sync: bool = False
    has_given_up: bool = False
    #: Turns readable when the driver cancels the round.
    round_end: RoundEnd = field(default_factory=RoundEnd)


_worker = _Worker()


def ask() -> Place:
    """This process's place in the next round; waits until the driver assigns one.

    Ends the process, with code 0 and a message, if it is no longer needed. Errors: ConfigurationError without a driver,
    HorovodInternalError if a port cannot be opened for the other ranks.
    """
    link = _link()
    link.send(protocol.READY, round=_worker.round, because=_worker.because, synced=_worker.synced_round,
              commits=_worker.commits, error=_worker.error, blames=_worker.blames)
    while True:
        answer = link.wait_for_answer()
        if answer["kind"] == protocol.LEAVE:
            _leave(str(answer["why"]))
        if answer["kind"] == protocol.PLACE:
            return _take(answer, link)


def last_place() -> Tuple[int, Optional[int]]:
    """The current or last round of this process, and its rank there; 0 and None if it never got a place."""
    return _worker.round, _worker.rank


def asks_again_after(error: HorovodInternalError) -> bool:
    """Whether a driver makes another world after a world that could not be joined; the next ask() waits for it."""
    if not notification_manager.has_driver:
        return False
    world_failed(error)
    return True


def may_skip_sync() -> bool:
    """Whether all ranks of this round were in the last one and left it at the same point, so that their state is equal.
    """
    return _worker.may_skip_sync


def state_is_synced() -> None:
    """Records that this process has the state of training."""
    _worker.synced_round = _worker.round
    _worker.commits = 0


def state_is_committed() -> None:
    """Records a commit. If a rank is lost in the middle of a commit, other ranks may not have it."""
    _worker.commits += 1


def world_failed(error: HorovodInternalError) -> None:
    """Records `error` as the reason of the next request."""
    _worker.because = protocol.BECAUSE_WORLD_FAILED
    _worker.error, _worker.blames = str(error)[:2000], error.rank
    if _worker.link is not None:
        say(f"the world has failed: {error}")


def hosts_changed() -> None:
    """Records changed hosts as the reason of the next request."""
    _worker.because = protocol.BECAUSE_HOSTS_CHANGED
    _worker.error, _worker.blames = "", None


def give_up(error: BaseException) -> None:
    """Reports to the driver that the program itself failed, so that the driver ends the job without another attempt."""
    if _worker.link is not None and not _worker.has_given_up:
        _worker.has_given_up = True
        _worker.link.send(protocol.GAVE_UP, error=f"{type(error).__name__}: {error}"[:2000])


def _link() -> DriverLink:
    if _worker.link is None:
        try:
            _worker.link = link_from_environment({
                protocol.HOSTS: lambda message: notification_manager.handle_hosts_updated(
                    message["serial"], message["result"]),
                protocol.CALLED_OFF: lambda message: _worker.round_end.call_off(int(message["round"])),
            })
        except (wire.WireError, ValueError) as error:
            raise ConfigurationError(f"{protocol.DRIVER_VARIABLE} names a driver of this job, but {error}") from None
    return _worker.link


def _leave(why: str) -> NoReturn:
    say(f"this worker leaves: {why}")
    raise SystemExit(0)


def _take(answer: wire.Message, link: DriverLink) -> Place:
    number = int(answer["round"])
    _worker.round, _worker.rank = number, int(answer["rank"])
    # A program that requests a place without a recorded reason has lost its world.
    _worker.because, _worker.error, _worker.blames = protocol.BECAUSE_WORLD_FAILED, "", None
    _worker.may_skip_sync = bool(answer.get("may_skip_sync"))
    if "announced" in answer:
        notification_manager.handle_place(answer["announced"])
    endpoint, listener = answer.get("endpoint"), -1
    if "listen_at" in answer:
        listening = _listen(answer["listen_at"] or link.own_address())
        endpoint, listener = wire.join_address(*listening.getsockname()[:2]), listening.detach()
        link.send(protocol.LISTENING, round=number, endpoint=endpoint)
    return Place(rank=answer["rank"], size=answer["size"], local_rank=answer["local_rank"],
                 local_size=answer["local_size"], cross_rank=answer["cross_rank"], cross_size=answer["cross_size"],
                 rendezvous=endpoint, key=os.environ.get(protocol.KEY_VARIABLE) if endpoint else None,
                 listener=listener, cancel=_worker.round_end.descriptor_of(number),
                 host=os.environ.get("HOROVOD_HOSTNAME") or None, told_by="the driver of this job")


def _listen(host: str) -> socket.socket:
    try:
        return socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except OSError as error:
        raise HorovodInternalError(f"cannot open a port at {host} for the other ranks: {error.strerror}") from None
