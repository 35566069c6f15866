"""horovodrun: starts a program as a number of ranks, on this host or on several, and waits until the last has ended.

    horovodrun -np 4 -H alpha:2,beta:2 python3 train.py

Modules that only some runs need are imported by those runs, so that the program starts fast.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, List, Optional

if TYPE_CHECKING:
    from .settings import Settings

#: The code for bad usage, as everywhere in Muster (docs/exit-codes.md).
BAD_USAGE = 2
#: The code of shells for a program whose reader has closed the pipe.
BROKEN_PIPE = 141


def main(words: Optional[List[str]] = None) -> int:
    """Executes the command line. Returns the exit code."""
    from .command_line import read_command_line, read_config_file
    from .settings import SettingsError

    faults: List[str] = []
    line = read_command_line(sys.argv[1:] if words is None else words, faults)
    if "help" in line.asked:
        from .help_text import help_text
        print(help_text())
        return 0
    if "version" in line.asked:
        from .._version import __version__
        print(__version__)
        return 0
    if "check_build" in line.asked:
        from .check_build import report
        print(report())
        return 0
    from .asked import settings_of
    asked = line.asked
    if "config_file" in asked:
        asked = {**read_config_file(asked["config_file"][0], asked, faults), **asked}
    try:
        settings = settings_of(asked, line.command, os.environ, faults)
    except SettingsError as error:
        from .endings import say
        for fault in error.faults:
            say(fault)
        say("nothing was started; --help lists the options")
        return BAD_USAGE
    return launch(settings)


def launch(settings: Settings) -> int:
    """Executes the run of any kind. Returns its exit code."""
    from .endings import say
    for note in settings.notes:
        say(note)
    try:
        if settings.launcher == "mpi":
            from .mpi import run_mpi
            return run_mpi(settings)
        if settings.is_elastic:
            from .elastic.launch import run_elastic
            return run_elastic(settings, list(settings.command))
        from .static import run_static
        return run_static(settings)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        say(f"{what}{error.strerror or error}; the run has ended")
        return 1


def console() -> None:
    """The console script."""
    try:
        code = main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as after "| head", which ends any program.
        code = BROKEN_PIPE
    # All processes have ended, and the output of the ranks is written, so no cleanup is left.
    os._exit(code)


#: Horovod's name for this function.
run_commandline = console


if __name__ == "__main__":
    console()
