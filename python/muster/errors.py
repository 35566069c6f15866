"""What can go wrong, as exceptions: what is wrong, what to do about it, and every fault at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type

__all__ = ["Conflict", "Exhausted", "Fault", "Internal", "Invalid", "JobFailed", "MusterError", "NotFound",
           "Refused", "TimedOut", "Unavailable"]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an input."""

    field: str
    what: str
    line: Optional[int] = None

    def __str__(self) -> str:
        return f"{self.field}: {self.what}" if self.field else self.what


class MusterError(Exception):
    """`what` is wrong, and `advice` says what to do. `faults`: every fault of the input."""

    code = "internal"

    def __init__(self, what: str, advice: str = "", faults: Sequence[Fault] = (),
                 status: Optional[int] = None, retry_after: Optional[float] = None) -> None:
        self.what = what
        self.advice = advice
        self.faults = list(faults)
        self.status = status
        #: After how many seconds the server wants to be asked again.
        self.retry_after = retry_after
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what, *map(str, self.faults)]
        if self.advice:
            lines.append(self.advice)
        return "\n  ".join(lines)


class Invalid(MusterError):
    """The request is wrong."""

    code = "invalid"


class NotFound(MusterError):
    """It is not there, or this caller sees nothing of it."""

    code = "not_found"


class Conflict(MusterError):
    """It does not go with what is there now: a name that is taken, a job that has ended."""

    code = "conflict"


class Refused(MusterError):
    """This caller may not do it; or no token was shown, or one that is not taken."""

    code = "refused"


class Exhausted(MusterError):
    """Too many requests, or no room."""

    code = "exhausted"


class Unavailable(MusterError):
    """No server answers, or it does not serve now."""

    code = "unavailable"


class TimedOut(MusterError):
    """It took too long."""

    code = "timeout"


class Internal(MusterError):
    """A fault of the server's own."""


class JobFailed(MusterError):
    """A job that was waited for did not succeed; `job` is the job as it ended."""

    code = "job_failed"

    def __init__(self, what: str, job: Any, advice: str = "") -> None:
        super().__init__(what, advice)
        self.job = job


_BY_CODE: Dict[str, Type[MusterError]] = {
    each.code: each for each in (Invalid, NotFound, Conflict, Refused, Exhausted, Unavailable, TimedOut, Internal)}
_BY_STATUS = {401: Refused, 403: Refused, 404: NotFound, 408: TimedOut, 409: Conflict, 410: NotFound,
              429: Exhausted, 503: Unavailable, 504: TimedOut, 507: Exhausted}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> MusterError:
    """The error an answer stands for; an answer that is no problem becomes one of its status."""
    problem = _problem_of(body)
    kind = _BY_CODE.get(str(problem.get("code"))) or _kind_of(status)
    what = problem.get("detail")
    return kind(what if isinstance(what, str) else f"the server answered {status}",
                str(problem.get("advice") or ""), _faults_of(problem), status, _seconds(headers.get("retry-after")))


def _problem_of(body: bytes) -> Dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _kind_of(status: int) -> Type[MusterError]:
    return _BY_STATUS.get(status) or (Invalid if 400 <= status < 500 else Internal)


def _faults_of(problem: Mapping[str, Any]) -> List[Fault]:
    faults = problem.get("faults")
    if not isinstance(faults, list):
        return []
    return [Fault(str(each.get("field", "")), str(each.get("what", "")), each.get("line"))
            for each in faults if isinstance(each, dict)]


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None  # a date: as good as nothing said
