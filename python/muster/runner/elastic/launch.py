"""An elastic run from its settings to its exit code."""

from __future__ import annotations

from typing import List

from ..crew import Crew
from ..endings import Interrupts, say
from ..output import Output
from ..settings import Settings
from .driver import Driver
from .orders import Limits


def limits_of(settings: Settings) -> Limits:
    """The limits of the number of workers. -np is the initial number, and the minimum unless --min-np is given."""
    first = settings.num_proc or settings.min_num_proc or 1
    fewest = settings.min_num_proc or first
    return Limits(max(first, fewest), fewest, settings.max_num_proc, settings.elastic_timeout, settings.reset_limit,
                  settings.blacklist_cooldown_range)


def run_elastic(settings: Settings, command: List[str]) -> int:
    """Runs `command` as the workers of an elastic run, on this thread. Returns the exit code: 0 if all workers of the
    last round ended with 0; that of the worker that failed; 128 plus the signal if this process was asked to end.

    No process remains."""
    crew = Crew(settings, Output(settings))
    with Interrupts(crew.wake) as interrupts:
        try:
            driver = Driver(settings, command, crew, interrupts, limits_of(settings))
            try:
                verdict = driver.carry_out()
            finally:
                driver.close()
        finally:
            crew.close()
    if verdict.sentence:
        say(verdict.sentence)
    return verdict.code
