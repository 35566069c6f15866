"""The output in a notebook: all texts are escaped."""

import base64
import datetime
import unittest
from html.parser import HTMLParser

import muster
from muster._tables import _COLUMNS, Table

EVIL = "<script>alert('&')</script>\""


NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)


def record(text=None, **more):
    return muster.LogRecord(NOW, "main", "h", "output", text=text, **more)


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

    def test_the_lists_with_columns_of_their_own(self):
        share, amounts = muster.Share(8, None, None), muster.Amounts(2, 0, 0)
        shown = {
            "Job": (muster.Job("j1", "ada", muster.JobSpec("one", ["true"], "/", project="p"), "Queued", "waits", [], 0,
                               0, 0, [], False, False, NOW, [], []),
                    ["one", "p", "Queued", "waits", "ada", "2026-01-31 12:00:00", "", ""]),
            "Project": (muster.Project("p", "", muster.Quota(share, share, 1.0), {}, 0, 0, 0, False, 1, NOW,
                                       muster.ProjectUse(share, amounts, amounts, amounts, share, 3, 4)),
                        ["p", "", "2", "8", "8", "3", "4"]),
            "Node": (muster.Node("n1", "gpu", "ready", 4, 1.5, 1, 1, [muster.Device(0, "m", 1, 0.5, [])], ["one"], {},
                                 {}),
                     ["n1", "gpu", "ready", "2.5 of 4", "0.5 of 1", "one"]),
            "LogRecord": (record("a line", rank=1), ["2026-01-31 12:00:00", "main", "1", "a line"]),
        }
        self.assertEqual(shown.keys(), _COLUMNS.keys())
        for kind, (each, cells) in shown.items():
            with self.subTest(kind):
                html = Table([each])._repr_html_()
                self.assertEqual(html.partition("<tbody>")[2],
                                 "<tr>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr></tbody></table>")

    def test_lines_of_logs_are_shown_also_in_windows_and_hits(self):
        whole = record("a line", line=7, bytes=6)
        odd = record(base64=base64.b64encode(b"caf\xe9").decode(), line=8, bytes=4)
        window = muster.LogWindow("main", 1, 20, 9, 0, True, [whole, odd])
        for shown in (Table([whole, odd]), window):
            self.assertIn("a line", Tags(shown._repr_html_()).text)
            self.assertIn("caf\ufffd", Tags(shown._repr_html_()).text)

    def test_an_empty_list_is_a_table_too(self):
        self.assertEqual(Tags(Table([])._repr_html_()).tags.count("table"), 1)


if __name__ == "__main__":
    unittest.main()
