"""Callbacks that keep the state of an elastic training up to date, for Keras 2 and 3."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any


class CommitStateCallback:
    """Commits the state every `batches_per_commit` batches, and at the end of each epoch."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        """batches_per_commit: a higher number makes fewer copies, and more batches are repeated after a loss."""
        super().__init__()
        if batches_per_commit < 1:
            raise ValueError(f"batches_per_commit is {batches_per_commit}; it must be at least 1")
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        # Ranks that join later begin to count with the others.
        self.batches_remaining = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.commit()


class UpdateBatchStateCallback:
    """Keeps the number of batches of the epoch that are done in `state.batch`, counted over all the runs of fit().

    fit() does not skip the batches that are done: pass steps_per_epoch=steps - state.batch for the first epoch. Put
    this callback before CommitStateCallback.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self._first = 0

    def on_train_begin(self, logs: Any = None) -> None:
        self._first = self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = self._first + batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._first = self.state.batch = 0


class UpdateEpochStateCallback:
    """Keeps the epoch in `state.epoch`, counted over all the runs of fit(). Put it before CommitStateCallback."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.epoch = self.initial_epoch + epoch + 1


@functools.lru_cache(maxsize=None)
def elastic_classes_for(keras: Any) -> SimpleNamespace:
    """The callbacks that derive from `keras.callbacks.Callback`."""
    base = keras.callbacks.Callback
    return SimpleNamespace(**{
        each.__name__: type(each.__name__, (each, base),
                            {"__doc__": each.__doc__, "__module__": f"{__package__}.elastic"})
        for each in (CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback)})
