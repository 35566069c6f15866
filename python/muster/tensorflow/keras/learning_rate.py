"""The learning rate as a function of the epoch, and its warm-up at the start of a training on many ranks."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Union

from ...common import basics
from .sessions import number


class LearningRateScheduleCallback:
    """Sets the learning rate to `initial_lr * multiplier(epoch)` from start_epoch (inclusive) to end_epoch (exclusive).
    A multiplier that is a number decays exponentially: `initial_lr * multiplier ** (epoch - start_epoch)`."""

    def __init__(self, initial_lr: float, multiplier: Union[float, Callable[[float], float]], start_epoch: int = 0,
                 end_epoch: Optional[int] = None, staircase: bool = True, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None) -> None:
        """multiplier: a number, or a function of the epoch. staircase: the rate is set once an epoch; otherwise before
        each batch, from the epoch as a fraction. momentum_correction: the momentum is scaled by the new rate over the
        old one for the batch in which the rate changes (Goyal et al., Accurate, Large Minibatch SGD, 2017).
        steps_per_epoch: required if Keras does not have the number.
        """
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is None: pass the learning rate to which multiplier is applied")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self._momentum: Any = None
        self.multiplier = multiplier if callable(multiplier) else _decay(float(multiplier), start_epoch)

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            known = (self.params or {}).get("steps")  # type: ignore[attr-defined]
            if not known:
                raise ValueError("steps_per_epoch is required: Keras does not have the number of batches of an epoch")
            self.steps_per_epoch = known

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        is_over = self.end_epoch is not None and self.current_epoch >= self.end_epoch
        if self.current_epoch < self.start_epoch or is_over:
            return
        if not self.staircase:
            self._adjust(self.current_epoch + batch / (self.steps_per_epoch or 1))
        elif batch == 0:
            self._adjust(self.current_epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._momentum is not None:
            self._set_momentum(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        if logs is not None:
            logs["lr"] = self._rate()

    def _adjust(self, epoch: float) -> None:
        old = self._rate()
        new = self.initial_lr * self.multiplier(epoch)
        optimizer: Any = self.model.optimizer  # type: ignore[attr-defined]
        optimizer.learning_rate = new
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and old and _can_be_set(momentum):
            self._momentum = number(momentum)
            if self._momentum:
                self._set_momentum(self._momentum * new / old)

    def _rate(self) -> float:
        return number(self.model.optimizer.learning_rate)  # type: ignore[attr-defined]

    def _set_momentum(self, value: float) -> None:
        self.model.optimizer.momentum = value  # type: ignore[attr-defined]


def _decay(base: float, start_epoch: int) -> Callable[[float], float]:
    return lambda epoch: float(base ** (epoch - start_epoch))


def _can_be_set(momentum: Any) -> bool:
    """Whether graphs that are built already use a new momentum: only if it is a variable (legacy optimizers of Keras
    2)."""
    return hasattr(momentum, "assign")


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Lets the learning rate grow from initial_lr / size() to initial_lr over the first epochs, batch by batch.

    `initial_lr` is the rate for all ranks together, for example the rate of one rank times size().
    """

    def __init__(self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None, verbose: int = 0) -> None:
        """verbose: 1 prints a line on rank 0 at the end of the warm-up. Errors: ValueError for less than one epoch."""
        if warmup_epochs < 1:
            raise ValueError(f"warmup_epochs is {warmup_epochs}; it must be at least 1")
        self.warmup_epochs = warmup_epochs
        self.verbose = verbose

        def multiplier(epoch: float) -> float:
            # The end of a batch counts: the last batch of the warm-up has the full rate.
            done = (epoch + 1.0 / (self.steps_per_epoch or 1)) / warmup_epochs
            return (1.0 + done * (basics.size() - 1)) / basics.size()

        super().__init__(initial_lr, multiplier, start_epoch=0, end_epoch=warmup_epochs, staircase=False,
                         momentum_correction=momentum_correction, steps_per_epoch=steps_per_epoch)

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch == self.warmup_epochs - 1 and self.verbose > 0 and basics.rank() == 0:
            print(f"\nEpoch {epoch + 1}: the learning rate has grown to {self._rate():g}.")
