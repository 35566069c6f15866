"""The client against a server with scripted answers."""

import json
import numbers
import typing
import unittest
from unittest import mock

import muster
from muster._transport import Answer, Stream
from scripted_server import ScriptedServer, answer, stream

INFO = {"version": "1", "pid": 1, "state_folder": "/s", "config_changed": False}
PROBLEM = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "the spec has 2 faults",
           "code": "invalid", "advice": "read the docs",
           "faults": [{"field": "workers", "what": "is missing"}, {"field": "", "what": "x", "line": 3}]}
LINE = 'event: log\ndata: {"time":"2026-01-31T12:00:00Z","task":"main","host":"h","stream":"output","text":"%s"}\n\n'
END = "event: end\ndata: {}\n\n"
HITS = 'event: progress\ndata: {"searched": 1, "jobs": 2, "older": false}\n\n'
COUNTS = dict.fromkeys(("queued", "starting", "running", "succeeded", "failed", "stopped"), 0)
ARRAY = {"id": "a1", "spec": {"name": "grid", "command": ["true"], "folder": "/", "project": "p"}, "owner": "ada",
         "submitted": "2026-01-31T12:00:00Z", "phase": "Running", "counts": COUNTS, "percent": 0}
ARRAY_END = f"event: end\ndata: {json.dumps(ARRAY)}\n\n"
JOB = {"id": "j1", "owner": "ada", "spec": {"name": "dist", "command": ["true"], "folder": "/", "project": "p"},
       "phase": "Running", "reason": "", "reason_details": [], "attempt": 1, "restarts": 0, "retries_used": 0,
       "avoided_nodes": [], "suspended": False, "stop_requested": False, "submitted": "2026-01-31T12:00:00Z",
       "tasks": [], "events": []}
CHANGE = f"event: job\ndata: {json.dumps(JOB)}\n\n"
JOB_END = f"event: end\ndata: {json.dumps(JOB)}\n\n"


class Client(unittest.TestCase):
    def serve(self, *answers, patience=20.0):
        self.server = ScriptedServer(answers)
        self.addCleanup(self.server.close)
        client = muster.Client(socket=self.server.path, timeout=20.0, patience=patience)
        self.addCleanup(client.close)
        return client

    def asked(self):
        return [line for line, _, _ in self.server.requests]

    def test_a_problem_becomes_the_exception_of_its_code_with_all_it_says(self):
        client = self.serve(answer(400, PROBLEM))
        with self.assertRaises(muster.Invalid) as caught:
            client.get_info()
        self.assertEqual(caught.exception.status, 400)
        self.assertEqual(caught.exception.faults, [muster.Fault("workers", "is missing"), muster.Fault("", "x", 3)])
        self.assertEqual(str(caught.exception),
                         "the spec has 2 faults\n  workers: is missing\n  x\n  read the docs")

    def test_an_answer_that_is_no_problem_becomes_the_error_of_its_status(self):
        for status, kind in ((401, muster.Refused), (404, muster.NotFound), (418, muster.Invalid), (502, muster.Internal)):
            with self.assertRaises(kind, msg=status) as caught:
                self.serve(answer(status, b"<html>")).get_info()
            self.assertIn(str(status), str(caught.exception))

    def test_requests_without_effect_are_repeated_until_the_server_is_back(self):
        client = self.serve(b"", answer(503, {}), answer(429, {}, retry_after="0"), answer(200, INFO))
        self.assertEqual(client.get_info().version, "1")

    def test_patience_ends(self):
        client = self.serve(answer(503, PROBLEM), patience=0.0)
        with self.assertRaises(muster.MusterError):
            client.get_info()

    def test_an_absent_server_is_unavailable_with_advice(self):
        with self.assertRaisesRegex(muster.Unavailable, "no server answers at /nowhere\n  start one"):
            muster.Client(socket="/nowhere", patience=0.0).get_info()

    def test_a_submit_is_sent_again_with_the_same_key(self):
        client = self.serve(b"", b"", answer(400, PROBLEM))
        with self.assertRaises(muster.Invalid):
            client.submit(muster.JobSpec("one", ["true"], "/"))
        keys = {headers["idempotency-key"] for _, headers, _ in self.server.requests}
        self.assertEqual(len(keys), 1)
        self.assertEqual({body for _, _, body in self.server.requests},
                         {json.dumps({"name": "one", "command": ["true"], "folder": "/"}).encode()})

    def test_a_job_goes_into_the_project_of_the_context_unless_its_spec_names_one(self):
        wanted = []
        client = self.serve(*[answer(400, PROBLEM)] * 4)
        client.project = "team-a"
        for spec, project in ((muster.JobSpec("one", ["true"], "/"), "team-a"),
                              (muster.JobSpec("one", ["true"], "/", project="default"), "default"),
                              ({"name": "one"}, "team-a"), ({"name": "one", "project": "default"}, "default")):
            with self.assertRaises(muster.Invalid):
                client.submit(spec)
            wanted.append(project)
        self.assertEqual([json.loads(body)["project"] for _, _, body in self.server.requests], wanted)

    def test_a_parameter_that_may_repeat_stands_there_once_for_each_value(self):
        client = self.serve(answer(200, {"jobs": []}), answer(200, {"jobs": []}))
        client.list_jobs(label=["nightly", "team=a b"], phase=["Running", "Queued"])
        client.list_jobs(label=[])
        self.assertEqual(self.asked(), [
            "GET /v1/jobs?phase=Running%2CQueued&label=nightly&label=team%3Da%20b", "GET /v1/jobs"])

    def test_metrics_are_asked_for_by_name_and_come_as_series(self):
        point = {"time": "2026-01-31T12:00:00Z", "value": 0.5}
        found = {"series": [{"metric": "loss", "task": "worker-0", "rank": 1, "points": [point]}]}
        client = self.serve(answer(200, found), answer(200, {"series": []}))
        series = client.metrics("dist", "loss", "accuracy", interval="30s")
        self.assertEqual([(one.metric, one.task, one.rank, one.points[0].value) for one in series],
                         [("loss", "worker-0", 1, 0.5)])
        self.assertEqual(client.metrics("dist", last=True), [])
        self.assertEqual(self.asked(), [
            "GET /v1/jobs/dist/metrics?metric=loss&metric=accuracy&interval=30s",
            "GET /v1/jobs/dist/metrics?last=true"])

    def test_bytes_are_sent_as_they_are(self):
        client = self.serve(answer(204))
        client.put_chunks("team-a", b"\0\0\0\1\xff")
        (line, headers, body), = self.server.requests
        self.assertEqual((line, headers["content-type"], body),
                         ("PUT /v1/projects/team-a/chunks", "application/octet-stream", b"\0\0\0\1\xff"))

    def test_a_label_that_is_none_is_removed(self):
        client = self.serve(answer(400, PROBLEM))
        with self.assertRaises(muster.Invalid):
            client.set_labels("one", muster.LabelChanges(labels={"a": "b", "c": None}))
        (line, _, body), = self.server.requests
        self.assertEqual((line, json.loads(body)),
                         ("PATCH /v1/jobs/one", {"labels": {"a": "b", "c": None}}))

    def test_requests_with_effect_are_sent_once(self):
        client = self.serve(b"")
        with self.assertRaises(muster.Unavailable):
            client.stop_job("one")
        self.assertEqual(self.asked(), ["POST /v1/jobs/one/stop"])

    def test_names_and_parameters_are_escaped(self):
        client = self.serve(answer(404, {}))
        with self.assertRaises(muster.NotFound):
            client.get_job("a/b?c", project="x y&z")
        self.assertEqual(self.asked(), ["GET /v1/jobs/a%2Fb%3Fc?project=x%20y%26z"])

    def test_a_connection_that_the_server_has_closed_is_not_used_again(self):
        client = self.serve(answer(200, INFO), answer(204))
        client.get_info()
        self.server.wait_until_closed()
        client.delete_job("one")
        self.assertEqual(self.asked(), ["GET /v1/info", "DELETE /v1/jobs/one"])

    def test_a_log_that_breaks_goes_on_behind_the_last_id_without_repeating_a_line(self):
        client = self.serve(stream(LINE % "a", "id: p1\n\n", LINE % "b"), b"", stream(LINE % "b", LINE % "c", "id: p2\n\n", END))
        self.assertEqual([record.text for record in client.logs("one", follow=True)], ["a", "b", "c"])
        self.assertEqual([headers.get("last-event-id") for _, headers, _ in self.server.requests], [None, "p1", "p1"])

    def test_the_last_lines_go_on_behind_the_position_that_the_server_sends_before_them(self):
        client = self.serve(stream("id: p1\n\n", LINE % "a"), stream(LINE % "a", LINE % "b", "id: p2\n\n", END))
        self.assertEqual([record.text for record in client.logs("one", tail=2)], ["a", "b"])
        self.assertEqual([headers.get("last-event-id") for _, headers, _ in self.server.requests], [None, "p1"])

    def test_the_last_lines_cannot_be_asked_for_twice(self):
        client = self.serve(stream(LINE % "a"))
        with self.assertRaisesRegex(muster.Unavailable, "broke"):
            list(client.logs("one", tail=1))

    def test_a_log_of_a_job_that_is_gone_meanwhile_ends_with_that(self):
        client = self.serve(stream(LINE % "a", whole=True), answer(404, {}))
        with self.assertRaises(muster.NotFound):
            list(client.logs("one", follow=True))

    def test_the_method_of_the_api_for_a_log_does_not_repeat_a_line_either(self):
        client = self.serve(stream(LINE % "a", LINE % "b"), b"",
                            stream(LINE % "a", LINE % "b", "id: p1\n\n", LINE % "c"),
                            stream(LINE % "c", LINE % "d", JOB_END))
        events = list(client.stream_logs("one", follow=True))
        self.assertEqual([event.data.text for event in events[:-1]], ["a", "b", "c", "d"])
        self.assertEqual((events[-1].kind, events[-1].data.id), ("end", "j1"))
        self.assertEqual([headers.get("last-event-id") for _, headers, _ in self.server.requests],
                         [None, None, None, "p1"])

    def test_a_stream_without_a_position_that_breaks_is_an_error_and_repeats_nothing(self):
        for ask, begin in ((lambda client: client.stream_array_logs("grid"), LINE % "a"),
                           (lambda client: client.array_logs("grid", follow=True), LINE % "a"),
                           (lambda client: client.search_logs(grep="x"), HITS),
                           (lambda client: client.stream_logs("one", tail=1), LINE % "a"),
                           (lambda client: client.stream_jobs(), CHANGE)):
            found = ask(self.serve(b"", stream(), stream(begin)))  # nothing is lost before the first event
            next(found)
            with self.assertRaisesRegex(muster.Unavailable, "cannot be continued\n  request it again"):
                next(found)
            self.assertEqual(len(self.server.requests), 3)

    def test_a_stream_with_a_position_goes_on_there(self):
        client = self.serve(stream(CHANGE, "id: 1.1\nevent: ready\ndata: {}\n\n"), stream("id: 1.2\n" + CHANGE))
        found = client.stream_jobs()
        self.assertEqual([next(found).kind for _ in range(3)], ["job", "ready", "job"])
        self.assertEqual(self.server.requests[1][1]["last-event-id"], "1.1")

    def test_the_logs_of_an_array_come_as_lines(self):
        array = muster.Array.from_wire(ARRAY)
        client = self.serve(stream(LINE % "a", f"event: array\ndata: {json.dumps(ARRAY)}\n\n", LINE % "b", ARRAY_END))
        self.assertEqual([record.text for record in client.array_logs(array, follow=True, tail=5)], ["a", "b"])
        self.assertEqual(self.asked(), ["GET /v1/arrays/a1/logs?project=p&follow=true&tail=5"])

    def test_waiting_for_a_job_that_is_deleted_before_the_first_listing_ends(self):
        client = self.serve(answer(200, JOB), stream("id: 1.1\nevent: ready\ndata: {}\n\n"))
        with self.assertRaisesRegex(muster.NotFound, "job 'dist' was deleted before it had ended"):
            client.wait("dist")

    def test_the_time_limit_of_a_stream_holds_while_data_keeps_arriving(self):
        connected = mock.Mock(**{"gettimeout.return_value": 60.0})
        endless = Stream(mock.Mock(), mock.Mock(**{"read1.return_value": b": ping\n\n"}), connected)
        with mock.patch("muster._transport.time") as clock:
            clock.monotonic.side_effect = [10.0, 11.5, 12.0]
            pieces = endless.pieces(deadline=12.0)
            self.assertEqual([next(pieces), next(pieces)], [b": ping\n\n"] * 2)
            with self.assertRaisesRegex(muster.TimedOut, "time limit has passed"):
                next(pieces)
        self.assertEqual(connected.settimeout.mock_calls, [mock.call(2.0), mock.call(0.5)])

    def test_an_empty_name_is_invalid(self):
        client = muster.Client(socket="/nowhere")
        for ask in (client.get_job, client.get_project, client.wait, client.wait_array, client.logs):
            with self.assertRaisesRegex(muster.Invalid, "the name is empty", msg=ask):
                ask("")

    def test_a_header_that_cannot_be_sent_is_invalid(self):
        for key in ("a\r\nb: c", "\u00fc\u20ac"):
            with self.assertRaisesRegex(muster.Invalid, "Idempotency-Key is "):
                muster.Client(socket="/nowhere").submit({"name": "a"}, idempotency_key=key)

    def test_a_client_has_one_server(self):
        for options in ({"server": "https://x", "socket": "/y"}, {"context": "lab", "server": "https://x"},
                        {"context": "lab", "socket": "/y"}):
            with self.assertRaisesRegex(muster.Invalid, "exclude each other"):
                muster.Client(**options)

    def test_a_time_limit_names_what_has_not_ended(self):
        client = self.serve(answer(200, JOB), stream(CHANGE), answer(200, ARRAY), stream(": ping\n\n"))
        with self.assertRaises(muster.TimedOut) as caught:
            client.wait("dist", timeout=0)
        self.assertEqual(str(caught.exception), "job 'dist' has not ended after 0 s\n  it continues; wait again")
        with self.assertRaisesRegex(muster.TimedOut, "array 'grid' has not ended after 0 s"):
            client.wait_array("grid", timeout=0)

    def test_a_wait_for_a_sweep_uses_all_of_its_time(self):
        client = muster.Client(socket="/nowhere")
        client._transport = mock.Mock(**{"send.return_value": Answer(200, {}, b"")})
        running = mock.Mock(ended=None)
        running.name = "lr"
        for timeout, pauses in ((1.5, [1.0, 0.5]), (0.5, [0.5]), (0, [])):
            now, slept = [100.0], []

            def sleep(seconds):
                slept.append(seconds)
                now[0] += seconds

            with mock.patch("muster.client.time", mock.Mock(monotonic=lambda: now[0], sleep=sleep)), \
                    mock.patch.object(muster.Sweep, "from_wire", return_value=running), \
                    self.assertRaises(muster.TimedOut) as caught:
                client.wait_sweep("lr", timeout=timeout)
            self.assertEqual(slept, pauses)
            self.assertEqual(str(caught.exception),
                             f"sweep 'lr' has not ended after {timeout:g} s\n  it continues; wait again")

    def test_the_first_request_of_a_wait_is_not_repeated_after_the_time_limit(self):
        for name in ("wait", "wait_array", "wait_sweep"):
            client = self.serve(answer(503, {}), patience=5.0)
            with self.assertRaises(muster.Unavailable, msg=name) as caught:
                getattr(client, name)("one", timeout=0)
            self.assertEqual(caught.exception.status, 503)

    def test_waiting_for_an_array_names_the_method_for_arrays(self):
        client = self.serve(answer(404, {**PROBLEM, "code": "not_found", "faults": []}), answer(200, ARRAY))
        with self.assertRaisesRegex(muster.NotFound, r"'grid' is an array(.|\n)*wait_array\(\)"):
            client.wait("grid")

    def test_a_token_may_end_with_a_newline(self):
        client = muster.Client(server="https://lab", token="mst_secret\n")
        self.assertEqual(client._transport.endpoint.token, "mst_secret")

    def test_a_damaged_token_is_refused_without_its_value(self):
        for damaged in ("mst_sec\nret", "mst_sec\x00ret", "mst_sec ret", "mst_secr\u00e9t"):
            with self.assertRaisesRegex(muster.Invalid, "for https://lab:7443 is damaged: character [89]") as found:
                muster.Client(server="https://lab", token=damaged)
            self.assertNotIn("sec", str(found.exception))

    def test_a_parameter_of_a_sweep_is_a_range_or_a_choice(self):
        class Whole(int):
            """A whole number of another type, such as numpy's."""

        class Integral:
            def __float__(self):
                return 8.0

        numbers.Integral.register(Integral)
        client = self.serve(answer(400, PROBLEM))
        given = {"whole": (1, 8), "other": (Whole(1), Integral()), "real": (1, 0.5), "text": ("1e-4", "0.1"),
                 "list": ["sgd", "adam"], "three": ("a", "b", "c"), "flags": [True, False]}
        with self.assertRaises(muster.Invalid):
            client.sweep({"name": "one"}, given, metric="loss")
        (_, _, body), = self.server.requests
        self.assertEqual(json.loads(body)["parameters"], {
            "whole": {"low": 1.0, "high": 8.0, "integer": True}, "other": {"low": 1.0, "high": 8.0, "integer": True},
            "real": {"low": 1.0, "high": 0.5, "integer": False}, "text": {"low": 1e-4, "high": 0.1, "integer": False},
            "list": {"values": ["sgd", "adam"]}, "three": {"values": ["a", "b", "c"]},
            "flags": {"values": ["True", "False"]}})

    def test_a_tuple_without_numbers_is_no_parameter_of_a_sweep(self):
        for values in (("sgd", "adam"), (True, False), (None, 1)):
            with self.assertRaises(muster.Invalid) as caught:
                muster.Client(socket="/nowhere").sweep({"name": "one"}, {"optimizer": values}, metric="loss")
            self.assertEqual(str(caught.exception),
                             f"parameter 'optimizer' is {values!r}, which is not a range of numbers\n"
                             f"  write a list for a choice: {list(values)!r}")

    def test_a_submit_returns_a_job_or_an_array(self):
        client = self.serve(answer(201, JOB), answer(202, ARRAY))
        self.assertIsInstance(client.submit({"name": "dist"}), muster.Job)
        self.assertIsInstance(client.submit({"name": "grid", "array": "0-3"}), muster.Array)

    def test_a_submit_is_typed_as_a_job_that_wait_accepts(self):
        for method in (muster.Client.submit, muster.Client.rerun):
            self.assertIs(typing.get_type_hints(method)["return"], muster.Job)

    def test_an_answer_of_another_kind_is_an_error(self):
        client = self.serve(answer(201, JOB))
        with self.assertRaisesRegex(muster.Internal, "an object of type Job instead of a forecast"):
            client.forecast({"name": "one"})

    def test_pages_are_asked_for_as_they_are_needed(self):
        client = self.serve(answer(200, {"jobs": [], "next": "C"}), answer(200, {"jobs": []}))
        self.assertEqual(client.jobs(phase=["Running", "Queued"], page=2), [])
        self.assertEqual(self.asked(), ["GET /v1/jobs?phase=Running%2CQueued&limit=2",
                                        "GET /v1/jobs?phase=Running%2CQueued&limit=2&cursor=C"])


if __name__ == "__main__":
    unittest.main()
