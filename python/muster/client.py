"""The client: every operation of the API (see Operations), and convenient functions on top of them."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import numbers
import re
import time
import uuid
from typing import (TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union,
                    cast)

from . import _contexts
from ._events import EventDecoder, RawEvent
from ._generated import (Array, Forecast, Job, JobEvent, JobSpec, LogRecord, Operations, Phase, RemovedJob, StreamEvent,
                         Sweep, SweepParameter)
from ._log_lines import LogLines
from ._tables import Table
from ._transport import Answer, Request, Transport
from ._wire import header_text, query_pairs, segment, to_wire
from .errors import (ArrayFailed, Exhausted, Internal, Invalid, JobFailed, MusterError, NotFound, TimedOut,
                     Unavailable)

if TYPE_CHECKING:
    from ._generated import MetricSeries

__all__ = ["Client", "FINAL"]

#: The phases in which a job has ended.
FINAL: Tuple[Phase, ...] = ("Succeeded", "Failed", "Stopped")

JobName = Union[str, Job]
ArrayName = Union[str, Array]


class Client(Operations):
    """A connection to a Muster server, selected by the rules of the command line or by arguments:

        Client()                                     the current context, $MUSTER_SERVER, or the local server
        Client("lab")                                the context of that name
        Client(server="https://lab:7443", token=..., fingerprint=...)
        Client(socket="/run/user/1000/muster/muster.sock")

    If the server cannot be reached, requests that change nothing and submits are sent again, and streams continue
    where they broke, for up to `patience` seconds. Thread-safe.
    """

    def __init__(self, context: Optional[str] = None, *, server: Optional[str] = None, token: str = "",
                 fingerprint: str = "", ca_file: str = "", socket: Optional[str] = None, timeout: float = 60.0,
                 patience: float = 30.0) -> None:
        if sum(each is not None for each in (context, server, socket)) > 1:
            raise Invalid("context, server and socket exclude each other", "give one of them")
        if server is not None:
            host, port = _contexts.parse_server(server)
            endpoint = _contexts.Endpoint(host=host, port=port, token=token, ca_file=ca_file,
                                          fingerprint=_contexts.parse_fingerprint(fingerprint) if fingerprint else "")
        elif socket is not None:
            endpoint = _contexts.Endpoint(socket=socket)
        else:
            endpoint = _contexts.choose(context)
        #: The project of the context, for new jobs whose spec has none.
        self.project = endpoint.project
        self._patience = patience
        self._transport = Transport(endpoint, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.Client of {self._transport.endpoint.name}>"

    def close(self) -> None:
        self._transport.close()

    # --- jobs

    def submit(self, spec: Union[JobSpec, Mapping[str, Any]], *, idempotency_key: Optional[str] = None,
               name_suffix: bool = False, name_template: Optional[str] = None,
               rerun_of: Optional[str] = None) -> Job:
        """Submits a job exactly once, even if the request is repeated. With a key of your own, this holds over restarts
        of your program, too. With `name_suffix`, a taken name becomes NAME-2, NAME-3 and so on. A `name_template` such
        as "train-{n}" replaces the name, and the server chooses the number. `rerun_of`: the id of the job that it
        repeats.

        Typed as a Job; use submit_array() for a spec with an `array`, which gives an Array."""
        key = idempotency_key or uuid.uuid4().hex
        made = self.submit_job(self._placed(spec), idempotency_key=key, name_suffix=name_suffix or None,
                               name_template=name_template, rerun_of=rerun_of)
        if isinstance(made, Forecast):
            raise _unexpected("a job", made)
        return cast(Job, made)

    def submit_array(self, spec: Union[JobSpec, Mapping[str, Any]], *, idempotency_key: Optional[str] = None) -> Array:
        """Submits a spec with an `array`, exactly once as submit() does. Its members become jobs one after another."""
        made: object = self.submit(spec, idempotency_key=idempotency_key)
        if not isinstance(made, Array):
            raise TypeError("the spec has no array")
        return made

    def rerun(self, job: JobName, *, name: Optional[str] = None, idempotency_key: Optional[str] = None,
              project: Optional[str] = None, **changes: Any) -> Job:
        """Submits a job again, and returns what submit() returns. `changes` are fields of its JobSpec. Without `name`,
        the new job is called NAME-2, NAME-3 and so on."""
        old_name, project = _named(job, project)
        old = self.get_job(old_name, project=project)
        stem = old.spec.name
        if old.origin is not None and old.origin.kind == "rerun":
            stem = re.sub(r"-\d+$", "", stem)
        if name:
            changes["name"] = name
        spec = dataclasses.replace(old.spec, **changes)
        return self.submit(spec, idempotency_key=idempotency_key, rerun_of=old.id,
                           name_template=None if name else stem + "-{n}")

    def forecast(self, spec: Union[JobSpec, Mapping[str, Any]]) -> Forecast:
        """What would happen to this job if it were submitted now. Nothing is stored."""
        forecast = self.submit_job(self._placed(spec), dry_run=True)
        if not isinstance(forecast, Forecast):
            raise _unexpected("a forecast", forecast)
        return forecast

    def sweep(self, job: Union[JobSpec, Mapping[str, Any]], parameters: Mapping[str, Any], *, metric: str,
              **options: Any) -> Sweep:
        """Creates a sweep: trials of `job`, which is named like the sweep, with different values of `parameters`.

        A parameter is a list of values, `(low, high)`, a SweepParameter or a dictionary with its fields, such as
        {"low": 1e-4, "high": 0.1, "log": True}. Two whole numbers make a range of whole numbers. `options` are the
        other fields of SweepSpec: method, goal, max_trials, max_steps ..."""
        sweep = self.create_sweep({**options, "metric": metric, "job": self._placed(job),
                                   "parameters": {name: _parameter(name, values)
                                                  for name, values in parameters.items()}})
        if not isinstance(sweep, Sweep):
            raise _unexpected("a sweep", sweep)
        return sweep

    def wait_sweep(self, sweep: Union[str, Sweep], *, timeout: Optional[float] = None, project: Optional[str] = None,
                   pause: float = 1.0) -> Sweep:
        """Waits until the sweep has ended and returns it, whether or not it succeeded. Raises TimedOut after `timeout`
        seconds (the sweep continues)."""
        name = sweep if isinstance(sweep, str) else sweep.id
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = Sweep.from_wire(self._content_by(deadline, f"/v1/sweeps/{segment(name)}", project))
            if found.ended is not None:
                return found
            with _naming(f"sweep '{found.name}'", timeout):
                left = pause if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise TimedOut("the time limit has passed")
                time.sleep(min(pause, left))

    def iter_jobs(self, *, project: Optional[str] = None, phase: Optional[Sequence[Phase]] = None,
                  owner: Optional[str] = None, prefix: Optional[str] = None, label: Optional[Sequence[str]] = None,
                  sort: Optional[Any] = None, page: int = 500, **more: Any) -> Iterator[Job]:
        """The jobs. Pages are requested when they are needed. `more`: other filters of list_jobs(), such as text, kind,
        ended_after or origin."""
        cursor: Optional[str] = None
        while True:
            found = self.list_jobs(project=project, phase=phase, owner=owner, prefix=prefix, label=label, sort=sort,
                                   limit=page, cursor=cursor, **more)
            yield from found.jobs
            if not found.next:
                return
            cursor = found.next

    def jobs(self, **filters: Any) -> Table[Job]:
        """The same as a list, which a notebook shows as a table."""
        return Table(self.iter_jobs(**filters))

    def wait(self, job: JobName, *, timeout: Optional[float] = None, check: bool = True,
             project: Optional[str] = None) -> Job:
        """Waits until the job has ended and returns it. Raises JobFailed if the job did not succeed, unless `check` is
        false, and TimedOut after `timeout` seconds (the job continues)."""
        name, project = _named(job, project)
        deadline = None if timeout is None else time.monotonic() + timeout
        ended = self._job_to_wait_for(name, project, deadline)
        if ended.phase not in FINAL:
            with _naming(f"job '{ended.spec.name}'", timeout):
                ended = self._end_of(ended, deadline)
        if check and ended.phase != "Succeeded":
            raise _failed(ended)
        return ended

    def wait_array(self, array: ArrayName, *, timeout: Optional[float] = None, check: bool = True,
                   project: Optional[str] = None) -> Array:
        """Waits until all members of the array have ended and returns it. Raises ArrayFailed if a member did not
        succeed, unless `check` is false, and TimedOut after `timeout` seconds (the array continues)."""
        name, project = _array_named(array, project)
        deadline = None if timeout is None else time.monotonic() + timeout
        ended = Array.from_wire(self._content_by(deadline, f"/v1/arrays/{segment(name)}", project))
        with _naming(f"array '{ended.spec.name}'", timeout):
            while ended.ended is None:
                # The lines of the logs are left out: only the end of the stream matters.
                query = {"project": project, "follow": True, "tail": 0}
                for event in self._raw_events(f"/v1/arrays/{segment(ended.id)}/logs", query, {}, deadline=deadline):
                    if event.kind == "end":
                        ended = Array.from_wire(json.loads(event.data))
                        break
                else:
                    ended = Array.from_wire(self._content_by(deadline, f"/v1/arrays/{segment(ended.id)}", None))
        if check and ended.phase != "Succeeded":
            raise ArrayFailed(ended)
        return ended

    def members(self, array: ArrayName, *, project: Optional[str] = None) -> List[Job]:
        """The members of the array that have become jobs, in the order of their indexes."""
        name, project = _array_named(array, project)
        found = self.get_array(name, project=project)
        jobs = [job for job in self.iter_jobs(project=found.spec.project, prefix=found.spec.name + "-")
                if job.origin is not None and job.origin.id == found.id]
        return sorted(jobs, key=lambda job: job.origin.member if job.origin and job.origin.member else 0)

    def watch_jobs(self, *, project: Optional[str] = None, name: Optional[str] = None) -> Iterator[Union[Job, RemovedJob]]:
        """The existing jobs, then each job as it changes or is removed, without end. Continues after a break, also over
        a restart of the server: then all jobs come again, and jobs removed meanwhile come as RemovedJob."""
        return self._watch({"project": project, "name": name}, None)

    def events(self, *, project: Optional[str] = None, name: Optional[str] = None,
               since: Optional[Union[datetime.datetime, str]] = None) -> Iterator[JobEvent]:
        """The events of jobs, line by line, from now on or `since`. With `name`, until that job has ended."""
        def broke(last_id: Optional[str]) -> None:
            if last_id is None and since is None:
                raise Unavailable("the connection to the server broke before the first position in the log",
                                  "call again; with `since` no event is missed")

        for event in self._raw_events("/v1/watch/events", {"project": project, "name": name, "since": since}, {}, broke):
            if event.kind == "event":
                yield JobEvent.from_wire(json.loads(event.data))

    def logs(self, job: JobName, *, follow: bool = False, task: Optional[str] = None, since: Optional[Any] = None,
             tail: Optional[int] = None, project: Optional[str] = None) -> Iterator[LogRecord]:
        """The job's log, line by line; with `follow`, until the job has ended. Each line comes once, in order and byte
        for byte, even if the connection breaks meanwhile. `text` is always set; a line that is not UTF-8 has its bytes
        in `base64`."""
        name, project = _named(job, project)
        query = {"project": project, "follow": follow or None, "task": task, "since": since, "tail": tail}
        return self._records(f"/v1/jobs/{segment(name)}/logs", query, {"Last-Event-ID": None})

    def array_logs(self, array: ArrayName, *, follow: bool = False, task: Optional[str] = None,
                   since: Optional[Any] = None, tail: Optional[int] = None,
                   project: Optional[str] = None) -> Iterator[LogRecord]:
        """The logs of all members of an array, line by line, as in logs(); with `follow`, until all members have ended.
        Raises Unavailable if the connection breaks after the first line: the server cannot continue this stream."""
        name, project = _array_named(array, project)
        query = {"project": project, "follow": follow or None, "task": task, "since": since, "tail": tail}
        return self._records(f"/v1/arrays/{segment(name)}/logs", query, {})

    def metrics(self, job: JobName, *metrics: str, task: Optional[str] = None, rank: Optional[int] = None,
                since: Optional[Any] = None, until: Optional[Any] = None, interval: Optional[str] = None,
                last: bool = False, project: Optional[str] = None) -> Table[MetricSeries]:
        """The resources that the job's tasks use and the values that its program reports: a series for each task and
        rank. All metrics, or those with the given names; one mean for each `interval` ("30s"), or with `last` only the
        newest value."""
        name, project = _named(job, project)
        return Table(self.get_job_metrics(name, project=project, metric=list(metrics) or None, task=task, rank=rank,
                                          since=since, until=until, interval=interval, last=last or None).series)

    # --- the transport of requests

    def _call(self, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
              body: Any) -> Tuple[int, Any]:
        request = _request(method, path, query, headers)
        if body is not None:
            is_raw = isinstance(body, bytes)
            request.body = body if is_raw else json.dumps(to_wire(body)).encode()
            request.headers = {**request.headers, "content-type": f"application/{'octet-stream' if is_raw else 'json'}"}
        may_repeat = method == "GET" or "Idempotency-Key" in request.headers
        answer = self._repeated(lambda: self._transport.send(request)) if may_repeat else self._transport.send(request)
        return answer.status, _content_of(answer)

    def _content_by(self, deadline: Optional[float], path: str, project: Optional[str]) -> Any:
        """The content at a path. The request is not repeated after `deadline` (of the monotonic clock)."""
        request = _request("GET", path, {"project": project}, {})
        return _content_of(self._repeated(lambda: self._transport.send(request), deadline))

    def _watch(self, query: Mapping[str, Any], deadline: Optional[float],
               expected: Sequence[Job] = ()) -> Iterator[Union[Job, RemovedJob]]:
        """A job of `expected` that is not there comes as a RemovedJob."""
        known = {job.id: RemovedJob(job.id, job.spec.name, job.spec.project) for job in expected}
        listed: Optional[Set[str]] = set()  # None: the listing is complete

        def broke(last_id: Optional[str]) -> None:
            nonlocal listed
            if last_id is None:
                listed = set()  # the listing begins again

        for event in self._raw_events("/v1/watch/jobs", query, {}, broke, deadline):
            if event.kind == "job":
                job = Job.from_wire(json.loads(event.data))
                known[job.id] = RemovedJob(job.id, job.spec.name, job.spec.project)
                if listed is not None:
                    listed.add(job.id)
                yield job
            elif event.kind == "removed":
                removed = RemovedJob.from_wire(json.loads(event.data))
                known.pop(removed.id, None)
                yield removed
            elif event.kind == "reset":
                listed = set()
            elif event.kind == "ready" and listed is not None:
                gone, listed = known.keys() - listed, None
                for each in gone:
                    yield known.pop(each)

    def _job_to_wait_for(self, name: str, project: Optional[str], deadline: Optional[float]) -> Job:
        try:
            return Job.from_wire(self._content_by(deadline, f"/v1/jobs/{segment(name)}", project))
        except NotFound as error:
            try:
                self._content_by(deadline, f"/v1/arrays/{segment(name)}", project)
            except MusterError:
                raise error from None
            raise NotFound(f"'{name}' is an array, and wait() waits for one job",
                           "wait_array() waits for all members; wait() for one, such as wait('name[0]')") from None

    def _end_of(self, job: Job, deadline: Optional[float]) -> Job:
        for change in self._watch({"project": job.spec.project, "name": job.spec.name}, deadline, [job]):
            if isinstance(change, Job) and change.id == job.id and change.phase in FINAL:
                return change
            if isinstance(change, RemovedJob) and change.id == job.id:
                break
        raise NotFound(f"job '{job.spec.name}' was deleted before it had ended")

    def _records(self, path: str, query: Mapping[str, Any], headers: Mapping[str, Any]) -> Iterator[LogRecord]:
        for event in self._events(path, query, headers, {"log": LogRecord.from_wire}):
            yield event.data

    def _events(self, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
                kinds: Mapping[str, Callable[[Any], Any]]) -> Iterator[StreamEvent[Any]]:
        lines = LogLines()
        # The whole log of a job begins with the same bytes at each request. Its last lines differ from request to
        # request, and so do the merged logs of an array.
        can_begin_again = "log" in kinds and "Last-Event-ID" in headers and query.get("tail") is None
        has_yielded = False

        def broke(last_id: Optional[str]) -> None:
            if has_yielded and last_id is None and not can_begin_again:
                raise Unavailable("the connection to the server broke, and this stream cannot be continued",
                                  "request it again: it begins anew")
            lines.broke()

        for raw in self._raw_events(path, query, headers, broke):
            read = kinds.get(raw.kind)
            if raw.kind == "":
                lines.id_came()
            if read is None:  # an id alone, or an event of a newer server
                continue
            data = read(json.loads(raw.data))
            if raw.kind == "log":
                data = lines.take(data)
            if data is not None:
                has_yielded = True
                yield StreamEvent(raw.kind, data, raw.id)

    def _raw_events(self, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
                    broke: Callable[[Optional[str]], None] = lambda last_id: None,
                    deadline: Optional[float] = None) -> Iterator[RawEvent]:
        """Continues after the last id if the stream breaks, until an `end` event. `broke` is called at each new
        connection."""
        last_id: Optional[str] = headers.get("Last-Event-ID")
        while True:
            request = _request("GET", path, query, {**headers, "Last-Event-ID": last_id})
            stream = self._repeated(lambda: self._transport.stream(request), deadline)
            decoder = EventDecoder(last_id)
            try:
                with stream:
                    for piece in stream.pieces(deadline):
                        for event in decoder.put(piece):
                            last_id = event.id
                            yield event
                            if event.kind == "end":
                                return
            except Unavailable:
                pass  # requested again below
            broke(last_id)

    def _repeated(self, send: Callable[[], Any], deadline: Optional[float] = None) -> Any:
        """Repeats a request if the server cannot be reached or is busy, for up to `patience` seconds."""
        until = time.monotonic() + self._patience
        until = until if deadline is None else min(until, deadline)
        pause = 0.05
        while True:
            try:
                return send()
            except (Unavailable, Exhausted) as error:
                wait = max(pause, error.retry_after or 0.0)
                if error.status == 507 or time.monotonic() + wait > until:
                    raise
                time.sleep(wait)
                pause = min(pause * 2, 2.0)

    def _placed(self, spec: Union[JobSpec, Mapping[str, Any]]) -> Union[JobSpec, Mapping[str, Any]]:
        if not self.project:
            return spec
        if isinstance(spec, JobSpec):
            return spec if spec.project else dataclasses.replace(spec, project=self.project)
        return spec if spec.get("project") is not None else {**spec, "project": self.project}


@contextlib.contextmanager
def _naming(what: str, timeout: Optional[float]) -> Iterator[None]:
    """Names what has not ended in a TimedOut of this program's own time limit."""
    try:
        yield
    except TimedOut as error:
        if error.status is not None or timeout is None:  # an answer of the server
            raise
        raise TimedOut(f"{what} has not ended after {timeout:g} s", "it continues; wait again") from None


def _request(method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, Any]) -> Request:
    return Request(method, path, query_pairs(query),
                   {name: header_text(name, value) for name, value in headers.items() if value is not None})


def _content_of(answer: Answer) -> Any:
    kind = answer.headers.get("content-type", "").split(";")[0].strip()
    if kind == "application/octet-stream":
        return answer.body
    if not answer.body:
        return None
    return json.loads(answer.body) if kind == "application/json" else answer.body.decode("utf-8", "replace")


def _unexpected(wanted: str, answer: object) -> Internal:
    return Internal(f"the server answered with an object of type {type(answer).__name__} instead of {wanted}",
                    "use the client of the server's version")


def _parameter(name: str, values: Any) -> Union[SweepParameter, Mapping[str, Any]]:
    if isinstance(values, (SweepParameter, Mapping)):
        return values
    if isinstance(values, tuple) and len(values) == 2:
        try:
            low, high = map(_bound, values)
        except (TypeError, ValueError):
            raise Invalid(f"parameter {name!r} is {values!r}, which is not a range of numbers",
                          f"write a list for a choice: {list(values)!r}") from None
        return {"low": low, "high": high, "integer": all(isinstance(each, numbers.Integral) for each in values)}
    return {"values": [str(value) for value in values]}


def _bound(value: Any) -> float:
    """Errors: TypeError and ValueError."""
    if str(value) in ("True", "False"):  # also numpy's
        raise TypeError("not a number")
    return float(value)


def _array_named(array: ArrayName, project: Optional[str]) -> Tuple[str, Optional[str]]:
    return (array.id, array.spec.project) if isinstance(array, Array) else (array, project)


def _named(job: JobName, project: Optional[str]) -> Tuple[str, Optional[str]]:
    return (job, project) if isinstance(job, str) else (job.id, None)


def _failed(job: Job) -> JobFailed:
    what = f"job '{job.spec.name}' {job.phase.lower()}"
    if job.failure is None:
        return JobFailed(what, job)
    lines = "".join(f"\n    {line}" for line in job.failure.last_lines)
    last = f"\n  last lines of {job.failure.task}:{lines}" if lines else ""
    return JobFailed(f"{what}: {job.failure.cause}{last}", job, job.failure.advice)
