"""Conversion between JSON and Python values, in both directions."""

import contextlib
import dataclasses
import datetime
import unittest

import muster
from muster import UNSET
from muster._tables import Record
from muster._wire import Each, query_pairs, query_text, sentence_of, text_of, time_of, to_wire

UTC = datetime.timezone.utc


def has_default(field):
    return (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)


class Wire(unittest.TestCase):
    def test_times_are_read_to_the_microsecond_with_any_offset(self):
        cases = {"2026-01-31T12:00:00Z": datetime.datetime(2026, 1, 31, 12, tzinfo=UTC),
                 "2026-01-31T12:00:00.123456789Z": datetime.datetime(2026, 1, 31, 12, 0, 0, 123456, UTC),
                 "2026-01-31t12:00:00.5+02:30": datetime.datetime(2026, 1, 31, 9, 30, 0, 500000, UTC),
                 "2026-01-31T12:00:00-01:00": datetime.datetime(2026, 1, 31, 13, tzinfo=UTC)}
        for text, time in cases.items():
            self.assertEqual(time_of(text), time, text)
        for text in ("", "2026-01-31", "2026-01-31T12:00:00", "yesterday", "2026-13-31T12:00:00Z"):
            with self.assertRaises(ValueError, msg=text):
                time_of(text)

    def test_bytes_that_are_no_utf8_travel_as_base64(self):
        self.assertEqual(to_wire([b"plain", b"\xff"]), ["plain", {"base64": "/w=="}])
        self.assertEqual(text_of({"base64": "/w=="}), b"\xff")
        self.assertEqual(sentence_of({"base64": "YYA="}), "a\ufffd")

    def test_a_request_omits_fields_that_are_none_or_have_their_default(self):
        spec = muster.JobSpec("n", ["echo"], "/", resources=muster.Resources(gpus=0), sandbox=None, workers=0,
                              replaces_entrypoint=True, leader=muster.RoleSpec(), arguments=[])
        self.assertEqual(to_wire(spec), {"name": "n", "command": ["echo"], "folder": "/"})
        spec = muster.JobSpec("n", [], "/", resources=muster.Resources(gpus=0, cpus=2), sandbox="none",
                              replaces_entrypoint=False, project="default")
        self.assertEqual(to_wire(spec), {"name": "n", "command": [], "folder": "/", "resources": {"cpus": 2},
                                         "sandbox": "none", "replaces_entrypoint": False, "project": "default"})

    def test_mappings_serve_as_records(self):
        spec = muster.JobSpec("n", [], "/", resources={"gpus": 0}, volumes=[{"kind": "tree", "target": "/t"}])
        self.assertEqual(to_wire(spec), {"name": "n", "command": [], "folder": "/", "resources": {"gpus": 0},
                                         "volumes": [{"kind": "tree", "target": "/t"}]})

    def test_in_a_change_none_removes_a_limit_and_unset_keeps_it(self):
        self.assertEqual(to_wire(muster.ShareChange(gpus=None, cpus=2.5)), {"gpus": None, "cpus": 2.5})
        self.assertIs(muster.ShareChange().gpus, UNSET)
        change = muster.ProjectChange(quota=muster.QuotaChange(limit=muster.ShareChange(gpus=None)), pools={"a": None})
        self.assertEqual(to_wire(change), {"quota": {"limit": {"gpus": None}}, "pools": {"a": None}})

    def test_parameters_are_written_as_the_server_reads_them(self):
        self.assertEqual(query_text(True), "true")
        self.assertEqual(query_text(["Running", "Queued"]), "Running,Queued")
        time = datetime.datetime(2026, 1, 31, 13, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
        self.assertEqual(query_text(time), "2026-01-31T12:30:00.000000Z")

    def test_a_parameter_that_repeats_takes_several_values_or_one(self):
        self.assertEqual(query_pairs({"label": Each.of(["a=b", "c"])}), [("label", "a=b"), ("label", "c")])
        self.assertEqual(query_pairs({"label": Each.of("a=b")}), [("label", "a=b")])

    def test_fields_of_a_newer_server_are_passed_over(self):
        info = muster.ServerInfo.from_wire({"version": "9", "pid": 1, "state_folder": "", "config_changed": False,
                                           "colour": "red"})
        self.assertEqual(info.version, "9")

    def test_a_missing_required_field_is_a_key_error_with_its_name(self):
        for wire in ({"version": "9", "state_folder": ""}, {"version": "9", "pid": None, "state_folder": ""}):
            with self.assertRaisesRegex(KeyError, "pid"):
                muster.ServerInfo.from_wire(wire)

    def test_every_class_of_an_answer_can_be_read(self):
        for name in muster.__all__:
            shape = getattr(muster, name)
            if isinstance(shape, type) and issubclass(shape, Record):
                with self.subTest(name):
                    required = [each for each in dataclasses.fields(shape) if not has_default(each)]
                    with self.assertRaises(KeyError) if required else contextlib.nullcontext():
                        shape.from_wire({})

    def test_a_required_field_that_may_be_null_is_none(self):
        self.assertEqual(muster.Share.from_wire({"gpus": None, "cpus": 1, "memory_bytes": None}),
                         muster.Share(gpus=None, cpus=1, memory_bytes=None))
        with self.assertRaisesRegex(KeyError, "cpus"):
            muster.Share.from_wire({"gpus": None, "memory_bytes": None})

    def test_sentences_texts_times_and_records_are_read_in_lists_and_maps(self):
        told = muster.Explanation.from_wire({
            "name": "n", "phase": "Queued", "constraint": "room", "reason": "full", "position": 1,
            "details": ["plain", {"base64": "YYA="}], "events": [{"time": "2026-01-31T12:00:00Z", "text": "submitted"}],
            "may_start": "2026-01-31T13:00:00Z"})
        self.assertEqual((told.reason, told.details), ("full", ["plain", "a\ufffd"]))
        self.assertEqual(told.events, [muster.Event(datetime.datetime(2026, 1, 31, 12, tzinfo=UTC), "submitted")])
        self.assertEqual(told.may_start, datetime.datetime(2026, 1, 31, 13, tzinfo=UTC))
        spec = muster.JobSpec.from_wire({"name": "n", "command": ["a", {"base64": "/w=="}], "folder": "/",
                                         "environment": {"A": {"base64": "/w=="}}})
        self.assertEqual((spec.command, spec.environment), (["a", b"\xff"], {"A": b"\xff"}))


class Specs(unittest.TestCase):
    """The spec of a job is the same class in requests and in answers."""

    def test_fields_that_the_server_omits_have_defaults(self):
        spec = muster.JobSpec.from_wire({"name": "n", "command": [], "folder": "/", "leader": None, "scheduling": {}})
        self.assertEqual(spec, muster.JobSpec("n", [], "/"))
        self.assertEqual((spec.kind, spec.workers, spec.slots_per_worker, spec.image), ("single", 0, 1, ""))
        self.assertEqual((spec.resources.gpus, spec.leader.resources.cpus, spec.container.pull), (0, 0.0, "if-missing"))
        self.assertEqual((spec.labels, spec.volumes, spec.registry, spec.scheduling.priority), ({}, [], None, None))

    def test_no_two_specs_share_a_default_that_can_be_changed(self):
        wire = {"name": "n", "command": [], "folder": "/"}
        one, other = muster.JobSpec.from_wire(wire), muster.JobSpec.from_wire(wire)
        one.resources.gpus = 4
        one.labels["a"] = "b"
        self.assertEqual((other.resources.gpus, other.labels), (0, {}))

    def test_a_spec_that_was_written_is_read_as_it_was(self):
        specs = [
            muster.JobSpec("n", ["echo"], "/"),
            muster.JobSpec("n", ["echo", b"\xff"], "/", kind="mpi", workers=3, image="i", project="p", labels={"a": ""},
                           resources=muster.Resources(gpus=1, cpus=0.5), leader=muster.RoleSpec(user="u"),
                           registry=muster.RegistryLogin("ada", "password"), keep_for_ms=0,
                           volumes=[muster.Volume("tree", "/t", source="x")], secrets=[muster.SecretUse("HF", file="f")],
                           scheduling=muster.Scheduling(priority=0, retry_rules=[muster.RetryRule("retry", exit_code=1)])),
        ]
        for spec in specs:
            self.assertEqual(muster.JobSpec.from_wire(to_wire(spec)), spec)

    def test_the_secret_of_a_job_is_a_variable_or_a_file(self):
        read = muster.SecretUse.from_wire
        variable, file = read({"name": "A", "variable": "X"}), read({"name": "B", "file": "b.pem"})
        self.assertEqual((variable.variable, variable.file), ("X", ""))
        self.assertEqual((file.variable, file.file), ("", "b.pem"))


if __name__ == "__main__":
    unittest.main()
