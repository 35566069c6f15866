"""The best model so far, written by one rank."""

from __future__ import annotations

from typing import Any, Optional

from ...common import basics


class BestModelCheckpoint:
    """ModelCheckpoint of Keras that keeps only the best model, and writes it on rank 0. After MetricAverageCallback in
    the list of callbacks, "best" refers to the average over all ranks."""

    def __init__(self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False,
                 mode: str = "auto", save_freq: Any = "epoch", *, filepath: Optional[str] = None) -> None:
        """filepath: the file to write; it may be set as an attribute before training begins, as programs for Horovod
        do."""
        # Keras 3 checks the ending of the name in the constructor.
        unset = "unset.weights.h5" if save_weights_only else "unset.keras"
        super().__init__(filepath=filepath or unset, monitor=monitor,  # type: ignore[call-arg]
                         verbose=verbose, save_best_only=True, save_weights_only=save_weights_only, mode=mode,
                         save_freq=save_freq)
        if filepath is None:
            self.filepath: Optional[str] = None

    def on_train_begin(self, logs: Any = None) -> None:
        if self.filepath is None:
            raise ValueError("BestModelCheckpoint has no filepath: pass it to the constructor, or set the attribute "
                             "filepath")
        super().on_train_begin(logs)  # type: ignore[misc]

    def _save_model(self, *args: Any, **kwargs: Any) -> None:
        if basics.rank() == 0:
            super()._save_model(*args, **kwargs)  # type: ignore[misc]
