"""The new lines of a log after a connection broke."""

import base64
import datetime
import random
import unittest

from muster import LogRecord
from muster._log_lines import LogLines

NOW = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)


def record(text, task="main", continues=None, **more):
    if isinstance(text, bytes):
        more["base64"], text = base64.b64encode(text).decode(), None
    return LogRecord(NOW, task, "host", "output", text=text, continues=continues, **more)


def texts(lines, records):
    taken = [lines.take(each) for each in records]
    return [each.text for each in taken if each is not None]


class Lines(unittest.TestCase):
    def test_lines_after_the_last_id_come_once(self):
        lines = LogLines()
        self.assertEqual(texts(lines, [record("a")]), ["a"])
        lines.id_came()
        self.assertEqual(texts(lines, [record("b"), record("c")]), ["b", "c"])
        lines.broke()
        self.assertEqual(texts(lines, [record("b"), record("c"), record("d")]), ["d"])

    def test_each_source_is_counted_on_its_own(self):
        lines = LogLines()
        texts(lines, [record("same", "a"), record("same", "b", rank=1)])
        lines.broke()
        again = [record("same", "b", rank=0), record("same", "b", rank=1), record("same", "a"), record("same", "a", attempt=2)]
        self.assertEqual(texts(lines, again), ["same", "same"])

    def test_a_record_that_is_cut_elsewhere_goes_on_where_it_broke(self):
        lines = LogLines()
        texts(lines, [record("abc", continues=True)])
        lines.broke()
        self.assertEqual(texts(lines, [record("abcdef"), record("g")]), ["def", "g"])

    def test_a_break_within_a_character_shows_its_rest_and_keeps_its_bytes(self):
        lines = LogLines()
        lines.take(record(b"caf\xc3", continues=True))
        lines.broke()
        rest = lines.take(record("café!"))
        self.assertEqual(base64.b64decode(rest.base64), b"\xa9!")
        self.assertEqual(rest.text, "\ufffd!")

    def test_an_id_in_the_middle_of_what_comes_again_forgets_only_what_stands_before_it(self):
        lines = LogLines()
        texts(lines, [record("a"), record("b"), record("c")])
        lines.broke()
        self.assertEqual(texts(lines, [record("a")]), [])
        lines.id_came()
        self.assertEqual(texts(lines, [record("b")]), [])
        lines.broke()  # b and c follow that id
        self.assertEqual(texts(lines, [record("b"), record("c"), record("d")]), ["d"])

    def test_bytes_that_are_no_text_come_as_text_and_as_bytes(self):
        taken = LogLines().take(record(b"\xff"))
        self.assertEqual((taken.text, base64.b64decode(taken.base64)), ("\ufffd", b"\xff"))

    def test_no_byte_is_lost_or_doubled_however_often_it_breaks(self):
        for seed in range(200):
            dice = random.Random(seed)
            printed = "".join(dice.choice("abé\n") for _ in range(dice.randrange(200))).encode()
            self.assertEqual(self.read_with_breaks(dice, printed), printed, f"seed {seed}")

    def read_with_breaks(self, dice, printed):
        """Reads `printed` from a server that splits it differently each time, over connections that break."""
        lines, got, id_at = LogLines(), b"", 0
        while True:
            at = id_at
            breaks_at = dice.choice([dice.randrange(len(printed) + 1), len(printed)])
            while at < breaks_at:
                end = printed.find(b"\n", at)
                end = len(printed) if end < 0 else end
                cut = min(end, at + dice.randrange(1, 9))
                ends_line = cut == end < len(printed)
                taken = lines.take(self.wire(printed[at:cut], not ends_line))
                at = cut + ends_line
                if taken is not None:
                    got += base64.b64decode(taken.base64) if taken.base64 else taken.text.encode()
                    got += b"" if taken.continues else b"\n"
                if dice.random() < 0.3:
                    lines.id_came()
                    id_at = at
            if at >= len(printed):
                return got
            lines.broke()

    def wire(self, text, continues):
        try:
            return record(text.decode(), continues=continues or None)
        except UnicodeDecodeError:
            return record(text, continues=continues or None)


if __name__ == "__main__":
    unittest.main()
