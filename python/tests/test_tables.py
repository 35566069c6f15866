"""The output in a notebook: all texts are escaped."""

import datetime
import unittest
from html.parser import HTMLParser

import muster
from muster._tables import Table

EVIL = "<script>alert('&')</script>\""


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


class Tables(unittest.TestCase):
    def test_no_text_of_a_record_becomes_markup(self):
        records = [muster.Event(datetime.datetime(2026, 1, 31), EVIL), muster.Member(EVIL, "admin"),
                   muster.Device(0, EVIL, 1, 0.5, [EVIL, EVIL]),
                   muster.Node(EVIL, EVIL, "ready", 1, 1, 1, 1, [], [EVIL], {EVIL: EVIL}, {}),
                   muster.ServerInfo(EVIL, 1, EVIL, False)]
        for shown in [*records, Table(records[:1]), Table([records[3]]), Table([EVIL]), muster.Nodes([records[3]])]:
            html = shown._repr_html_()
            parsed = Tags(html)
            self.assertNotIn("script", parsed.tags, html)
            self.assertIn(EVIL, parsed.text, html)

    def test_a_list_has_a_row_for_each_record_and_a_head(self):
        members = muster.Members([muster.Member("ada", "admin"), muster.Member("bob", "viewer")])
        parsed = Tags(members._repr_html_())
        self.assertEqual(parsed.tags.count("tr"), 3)
        self.assertEqual(parsed.text, "userroleadaadminbobviewer")

    def test_a_spec_shows_its_fields_without_defaults(self):
        shown = Tags(muster.JobSpec("one", ["true"], "/", scheduling=muster.Scheduling(priority=7))._repr_html_()).text
        self.assertEqual(shown, "nameonecommandtruefolder/schedulingpriority7")

    def test_an_empty_list_is_a_table_too(self):
        self.assertEqual(Tags(Table([])._repr_html_()).tags.count("table"), 1)


if __name__ == "__main__":
    unittest.main()
