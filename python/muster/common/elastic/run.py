"""The loop around an elastic training function: join a new world, restore the state, continue."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

from ..exceptions import HorovodInternalError, HostsUpdatedInterrupt, MismatchError
from . import places
from .notification import notification_manager
from .state import State


def run_fn(func: Callable[..., Any], reset: Callable[[], None]) -> Callable[..., Any]:
    """`func(state, ...)` as an elastic training: it is called again for each new world.

    `reset()` leaves the old world and joins the next one. The way in which func ends decides what follows:

      HorovodInternalError   a rank was lost: the state is restored to its last commit, and rank 0's is sent to all
      MismatchError          the ranks disagreed about an operation: the same, but a second disagreement with the
                             same message in the next world ends the job
      HostsUpdatedInterrupt  hosts were added or removed between two commits: the state is kept. It is sent to all
                             ranks, unless all ranks of the next world left the last one at this same point
      any other exception    ends the job: the program itself has failed, and would fail again
      a return               ends this worker's part
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        notification_manager.init()
        notification_manager.register_listener(state)
        try:
            return _Loop(reset, state).run(lambda: func(state, *args, **kwargs))
        except Exception as error:
            places.give_up(error)
            raise
        finally:
            notification_manager.remove_listener(state)

    return wrapper


class _Loop:
    def __init__(self, reset: Callable[[], None], state: State) -> None:
        self._reset = reset
        self._state = state
        self._skip_sync = False
        self._last_mismatch: Optional[str] = None

    def run(self, train: Callable[[], Any]) -> Any:
        is_first = True
        while True:
            try:
                self._prepare(is_first)
                return train()
            except HorovodInternalError as error:
                self._refuse_repeated_mismatch(error)
                places.world_failed(error)
                self._state.restore()
                self._skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                places.hosts_changed()
                self._skip_sync = interrupt.skip_sync
            is_first = False

    def _refuse_repeated_mismatch(self, error: HorovodInternalError) -> None:
        mismatch = str(error) if isinstance(error, MismatchError) else None
        if mismatch is not None and mismatch == self._last_mismatch:
            raise error
        self._last_mismatch = mismatch

    def _prepare(self, is_first: bool) -> None:
        if not is_first:
            self._enter_next_world()
        if self._skip_sync and places.may_skip_sync():
            self._state.on_sync_skipped()
        else:
            self._state.sync()
        places.state_is_synced()
        self._skip_sync = False

    def _enter_next_world(self) -> None:
        try:
            self._reset()
        except HorovodInternalError as error:
            if notification_manager.has_driver:
                raise
            # Without a driver no worker replaces a lost rank, and another attempt would miss the same ranks.
            raise RuntimeError(f"the world cannot be restored: {error}; start the program with horovodrun and "
                               "--min-np or --host-discovery-script to continue without a lost rank") from error
        self._state.on_reset()
