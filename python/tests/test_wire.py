"""JSON and Python values, both ways."""

import datetime
import unittest

import muster
from muster import UNSET
from muster._wire import Each, query_pairs, query_text, sentence_of, text_of, time_of, to_wire

UTC = datetime.timezone.utc


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

    def test_what_is_none_stays_out_and_what_is_false_does_not(self):
        spec = muster.JobSpec("n", ["echo"], "/", resources=muster.Resources(gpus=0), sandbox=None)
        self.assertEqual(to_wire(spec), {"name": "n", "command": ["echo"], "folder": "/", "resources": {"gpus": 0}})

    def test_in_a_change_none_takes_a_bound_away_and_unset_leaves_it(self):
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
        info = muster.ServerInfo.from_wire({"version": "9", "pid": 1, "state_folder": "", "colour": "red"})
        self.assertEqual(info.version, "9")

    def test_the_secret_of_a_job_is_a_variable_or_a_file(self):
        read = muster.AcceptedSecretUse.from_wire
        variable, file = read({"name": "A", "variable": "X"}), read({"name": "B", "file": "b.pem"})
        self.assertEqual((variable.variable, variable.file), ("X", None))
        self.assertEqual((file.variable, file.file), (None, "b.pem"))


if __name__ == "__main__":
    unittest.main()
