"""The best model so far, written by one rank."""

from __future__ import annotations

from typing import Any, Optional

from ...common import basics


class BestModelCheckpoint:
    """ModelCheckpoint of Keras that keeps the best model alone, and writes it on rank 0. With MetricAverageCallback
    before it, "best" is by all ranks' average."""

    def __init__(self, filepath: Optional[str] = None, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto",
                 save_freq: Any = "epoch") -> None:
        """filepath: where to; it may be set as an attribute before training begins."""
        # Keras 3 looks at the ending of the name at once.
        super().__init__(filepath=filepath or "unset.keras", monitor=monitor,  # type: ignore[call-arg]
                         verbose=verbose, save_best_only=True, save_weights_only=False, mode=mode,
                         save_freq=save_freq)
        if filepath is None:
            self.filepath: Optional[str] = None

    def on_train_begin(self, logs: Any = None) -> None:
        if self.filepath is None:
            raise ValueError("BestModelCheckpoint has no filepath: give it one, or set its attribute of that name")
        super().on_train_begin(logs)  # type: ignore[misc]

    def _save_model(self, *args: Any, **kwargs: Any) -> None:
        if basics.rank() == 0:
            super()._save_model(*args, **kwargs)  # type: ignore[misc]
