"""Server-sent events, cut anywhere."""

import unittest

from muster._events import EventDecoder, RawEvent

STREAM = (b": a comment\r\n\r\n"
          b"id: 1\nevent: log\ndata: {\"text\":\"caf\xc3\xa9\"}\n\n"
          b"data: two\rdata: lines\r\r"
          b"id: 7\n\n"
          b"event: nothing\n\n"
          b"event: end\r\ndata:no space\r\n\r\n"
          b"id: 8\nevent: cut\ndata: off")
EVENTS = [RawEvent("log", '{"text":"café"}', "1"), RawEvent("message", "two\nlines", "1"), RawEvent("", "", "7"),
          RawEvent("end", "no space", "7")]


def decoded(pieces, last_id=None):
    decoder = EventDecoder(last_id)
    return [event for piece in pieces for event in decoder.put(piece)], decoder


class Events(unittest.TestCase):
    def test_a_stream_is_the_same_events_wherever_it_is_cut(self):
        for size in range(1, len(STREAM) + 1):
            pieces = [STREAM[i:i + size] for i in range(0, len(STREAM), size)]
            self.assertEqual(decoded(pieces)[0], EVENTS, f"in pieces of {size}")

    def test_the_id_of_an_event_counts_once_the_event_is_complete(self):
        _, decoder = decoded([STREAM])
        self.assertEqual(decoder.last_id, "7")
        decoder.put(b"\n\n")
        self.assertEqual(decoder.last_id, "8")

    def test_a_stream_that_names_no_id_keeps_the_one_it_went_on_from(self):
        events, _ = decoded([b"data: x\n\n"], last_id="5")
        self.assertEqual(events, [RawEvent("message", "x", "5")])

    def test_a_byte_order_mark_is_no_part_of_the_first_line(self):
        whole = b"\xef\xbb\xbfdata: x\n\n"
        for pieces in ([whole], [whole[:1], whole[1:2], whole[2:]]):
            self.assertEqual(decoded(pieces)[0], [RawEvent("message", "x", None)])

    def test_an_id_with_a_nul_byte_is_none(self):
        self.assertEqual(decoded([b"id: a\0b\ndata: x\n\n"])[0], [RawEvent("message", "x", None)])


if __name__ == "__main__":
    unittest.main()
