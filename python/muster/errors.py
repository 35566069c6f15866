"""The exceptions of the client: the error, advice, and all faults of the input at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type

__all__ = ["Conflict", "Exhausted", "Fault", "Internal", "Invalid", "JobFailed", "MusterError", "NotFound",
           "Refused", "TimedOut", "Unavailable"]


@dataclass(frozen=True)
class Fault:
    """One fault of an input."""

    field: str
    what: str
    line: Optional[int] = None

    def __str__(self) -> str:
        return f"{self.field}: {self.what}" if self.field else self.what


class MusterError(Exception):
    """`what` is the error, `advice` the remedy, and `faults` has every fault of the input."""

    code = "internal"

    def __init__(self, what: str, advice: str = "", faults: Sequence[Fault] = (),
                 status: Optional[int] = None, retry_after: Optional[float] = None) -> None:
        self.what = what
        self.advice = advice
        self.faults = list(faults)
        self.status = status
        #: The number of seconds after which the server accepts another request.
        self.retry_after = retry_after
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what, *map(str, self.faults)]
        if self.advice:
            lines.append(self.advice)
        return "\n  ".join(lines)


class Invalid(MusterError):
    """The request is invalid."""

    code = "invalid"


class NotFound(MusterError):
    """The object does not exist, or this caller may not see it."""

    code = "not_found"


class Conflict(MusterError):
    """The request contradicts the current state: a name that exists, a job that has ended."""

    code = "conflict"


class Refused(MusterError):
    """This caller may not do it, or the token is missing or invalid."""

    code = "refused"


class Exhausted(MusterError):
    """Too many requests, or too few resources."""

    code = "exhausted"


class Unavailable(MusterError):
    """No server answers, or it is not ready."""

    code = "unavailable"


class TimedOut(MusterError):
    """The time limit has passed."""

    code = "timeout"


class Internal(MusterError):
    """An internal error of the server."""


class JobFailed(MusterError):
    """A job did not succeed that a caller waited for; `job` is its final state."""

    code = "job_failed"

    def __init__(self, what: str, job: Any, advice: str = "") -> None:
        super().__init__(what, advice)
        self.job = job


class ArrayFailed(MusterError):
    """Not all members of an array succeeded that a caller waited for; `array` is its final state."""

    code = "array_failed"

    def __init__(self, array: Any) -> None:
        counts = array.counts
        super().__init__(f"array '{array.spec.name}' {array.phase.lower()}: {counts.succeeded} members succeeded, "
                         f"{counts.failed} failed, {counts.stopped} were stopped", "")
        self.array = array


_BY_CODE: Dict[str, Type[MusterError]] = {
    each.code: each for each in (Invalid, NotFound, Conflict, Refused, Exhausted, Unavailable, TimedOut, Internal)}
_BY_STATUS = {401: Refused, 403: Refused, 404: NotFound, 408: TimedOut, 409: Conflict, 410: NotFound,
              429: Exhausted, 503: Unavailable, 504: TimedOut, 507: Exhausted}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> MusterError:
    """The error of an answer. An answer without a problem document becomes the error of its status."""
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
        return None  # a date is ignored
