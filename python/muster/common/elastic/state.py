"""The state of an elastic training: the data that survives the loss of workers and that new workers receive.

A program changes its state as it trains and calls `commit()` from time to time. If a worker is lost, the others return
to the last commit; then rank 0, which always has the state, sends it to all (`sync()`).
"""

from __future__ import annotations

import copy
import ctypes
import threading
from typing import Any, Callable, Dict, Iterable, List, Tuple

from .. import operations, world
from ..exceptions import HostsUpdatedInterrupt
from ..process_set import global_process_set
from ..reduce_ops import ReduceOp
from . import places
from .notification import HostUpdateResult, notification_manager

#: The name of the all-reduce by which the ranks agree.
_AGREEMENT_NAME = "muster.elastic.host_updates"


class State:
    """The base class of states; a subclass defines save(), restore() and sync().

    One thread trains; `on_hosts_updated` may be called from any thread.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        """`bcast_object(object)` returns rank 0's object on every rank; `get_rank()` is this process's rank."""
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: List[Callable[[], None]] = []
        self._updates_lock = threading.Lock()
        self._host_messages: List[Tuple[float, HostUpdateResult]] = []
        self._last_updated_timestamp: float = 0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Each callback is called, in this order, for each new world, for example to scale a learning rate."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """A new world was joined. Called by `run`, before the state is synchronized."""
        self._drop_settled_updates()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """The driver reports that hosts were added or removed; `timestamp` grows with each message."""
        with self._updates_lock:
            self._host_messages.append((timestamp, HostUpdateResult(update_res)))

    def commit(self) -> None:
        """Saves the state, and lets hosts be added or removed: see check_host_updates(). Called by every rank."""
        self.save()
        places.state_is_committed()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt if the hosts have changed, on all ranks in the same call or on none.

        Cheaper than commit(). Called by every rank. Errors: HorovodInternalError if a rank is lost.
        """
        settled = self._settled()
        newest, result = agree_on_update(*self._update_since(settled))
        if newest > settled:
            self._last_updated_timestamp = newest
            raise HostsUpdatedInterrupt(result == HostUpdateResult.removed)

    def save(self) -> None:
        """Keeps a copy of the current state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restores the state of the last save()."""
        raise NotImplementedError

    def sync(self) -> None:
        """Sends rank 0's state to every rank, and saves it. Called by every rank."""
        raise NotImplementedError

    def on_sync_skipped(self) -> None:
        """Called instead of sync() if all ranks of the new world were in the last one and left it at the same point, so
        that their state is equal. Called by every rank."""

    def reset(self) -> None:
        """For subclasses: called for each new world, before the callbacks."""

    def _settled(self) -> float:
        # With each place the driver sends which changes the round covers, equal on all ranks including new ones, so
        # that all ranks decide alike.
        return max(self._last_updated_timestamp, notification_manager.settled)

    def _update_since(self, settled: float) -> Tuple[float, HostUpdateResult]:
        newest, result = 0.0, HostUpdateResult.no_update
        with self._updates_lock:
            for timestamp, each in self._host_messages:
                if timestamp > settled:
                    newest, result = max(newest, timestamp), result | each
        return newest, result

    def _drop_settled_updates(self) -> None:
        # A message may be about a later change than the one of this reset, and is kept then.
        settled = self._settled()
        with self._updates_lock:
            self._host_messages = [each for each in self._host_messages if each[0] > settled]


class ObjectState(State):
    """A state of plain Python objects, which are its attributes:

        state = ObjectState(bcast_object, get_rank, epoch=0, batch=0)
        state.batch += 1

    Attributes must support copy.deepcopy and pickling. Attributes that are added later belong to this process only.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state: Dict[str, Any] = copy.deepcopy(kwargs)
        self._set(kwargs)

    def save(self) -> None:
        self._saved_state = self._copy_of_attributes()

    def restore(self) -> None:
        self._set(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        # The current attributes, and not the committed ones: after check_host_updates() some work is done that was not
        # committed, and the models that a subclass broadcasts contain it already. A rank without attributes takes part,
        # too: rank 0 may have some.
        self._take(self._bcast_object(self._attributes()))

    def _take(self, of_rank_0: Dict[str, Any]) -> None:
        """Takes over the attributes of rank 0, and saves them. On all ranks the state then has the same names."""
        if self._rank() != 0:
            self._set(of_rank_0)
        self._saved_state = copy.deepcopy({name: getattr(self, name) for name in of_rank_0})

    def _attributes(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in self._saved_state}

    def _copy_of_attributes(self) -> Dict[str, Any]:
        # Without a copy, a list to which the program appends would grow in the saved state, too.
        return copy.deepcopy(self._attributes())

    def _set(self, values: Dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def agree_on_update(timestamp: float, result: HostUpdateResult) -> Tuple[float, HostUpdateResult]:
    """The newest timestamp and the union of the results of all ranks. Called by all ranks.

    The driver's message reaches the ranks at different times. If each rank acted on its own, some would leave for a
    new world while others wait for them in the next all-reduce. Therefore the newest message of any rank counts for
    all. Without a driver there are no messages, and the arguments are returned. Errors: HorovodInternalError.
    """
    made = world.current
    if not notification_manager.has_driver or made is None or made.is_foreign() or made.size == 1:
        return timestamp, result
    # One float64 and two bits. The driver's numbers are small whole numbers, so nothing is rounded.
    values = (ctypes.c_double * 3)(timestamp, bool(result & HostUpdateResult.removed),
                                   bool(result & HostUpdateResult.added))
    _max_of_all_ranks(values)
    agreed = HostUpdateResult.no_update
    if values[1]:
        agreed |= HostUpdateResult.removed
    if values[2]:
        agreed |= HostUpdateResult.added
    return values[0], agreed


def _max_of_all_ranks(values: ctypes.Array[ctypes.c_double]) -> None:
    address = ctypes.addressof(values)
    operations.run("all_reduce", _AGREEMENT_NAME, process_set=global_process_set,
                   buffers=[(address, address, len(values))], type="float64", op=ReduceOp.MAX, shape="float64[3]",
                   keep=values)
