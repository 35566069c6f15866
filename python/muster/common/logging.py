"""Messages of training on standard error. HOROVOD_LOG_LEVEL is trace, debug, info, warning, error or fatal (default:
warning); HOROVOD_LOG_HIDE_TIME=1 omits the time."""

from __future__ import annotations

import logging
import os
import sys

LEVELS = {"trace": logging.DEBUG, "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING,
          "error": logging.ERROR, "fatal": logging.CRITICAL}

log = logging.getLogger("muster")


def configure(level: str = "warning", with_time: bool = True, rank: int = 0) -> None:
    """Sets the level, and a handler if the program has not set one."""
    log.setLevel(LEVELS[level])
    if logging.getLogger().handlers or any(not getattr(each, "is_ours", False) for each in log.handlers):
        return
    for each in list(log.handlers):
        log.removeHandler(each)
    handler = logging.StreamHandler(sys.stderr)
    handler.is_ours = True  # type: ignore[attr-defined]
    time = "%(asctime)s " if with_time else ""
    handler.setFormatter(logging.Formatter(f"{time}muster[{rank}] %(levelname)s: %(message)s"))
    log.addHandler(handler)
