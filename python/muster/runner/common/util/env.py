"""Functions about the environment."""

from __future__ import annotations

import os
import re
from typing import Tuple

from ....common import environment
from ....common.exceptions import ConfigurationError
from . import secret

LOG_LEVEL_STR = ["FATAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE"]

#: Patterns of variables that a rank does not take from the launcher.
IGNORE_REGEXES = {"BASH_FUNC_.*", "OLDPWD", ".*CUDA_VISIBLE_DEVICES", secret.HOROVOD_SECRET_KEY}


def is_exportable(v: str) -> bool:
    """Whether ranks take the variable from the launcher."""
    return not any(re.match(pattern, v) for pattern in IGNORE_REGEXES)


def get_env_rank_and_size() -> Tuple[int, int]:
    """The rank and size that the launcher has set; (0, 1) without a launcher. Errors: ConfigurationError, a
    RuntimeError, for incomplete variables of a launcher."""
    told = environment.launcher_pair(os.environ, [])
    if told is not None:
        return told[0], told[1]
    for pair in environment.LAUNCHERS[:4]:
        for name, other in (pair, pair[::-1]):
            if os.environ.get(name):
                raise ConfigurationError(f"{name} is set, but {other} is not: pass on all variables of the launcher")
    return 0, 1
