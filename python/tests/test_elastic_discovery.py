"""The discovery script of hosts: its output, and its failures."""

import os
import select
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from muster.runner.elastic import discovery
from muster.runner.elastic.discovery import Discovery, Failed, Found, parse_hosts


class Lines(unittest.TestCase):
    def test_hosts_and_slots(self):
        for text, slots in (("a:2\nb:1\n", {"a": 2, "b": 1}), ("a\n\n  b-1.x:3  \n", {"a": 4, "b-1.x": 3}), ("", {}),
                            ("a:1\na:2\n", {"a": 3}), ("a:0\n", {"a": 0}), ("10.0.0.1:2", {"10.0.0.1": 2})):
            self.assertEqual(parse_hosts(text, 4), Found(slots))
        self.assertEqual(parse_hosts("a", None), Found({"a": 1}))
        self.assertEqual(list(parse_hosts("z:1\na:1\nm:1", None).slots), ["z", "a", "m"])

    def test_invalid_hosts_are_refused_with_all_faults(self):
        for bad in ("a:", ":2", "a:x", "a b", "-oProxyCommand=x:1", "a:-1", "a:99999999", "a;b"):
            self.assertIsInstance(parse_hosts(bad, None), Failed, bad)
        sentence = parse_hosts("a:1\n-b:2\nc:d\n", None).sentence
        self.assertIn("'-b:2' is not of the form", sentence)
        self.assertIn("'c:d' is not of the form", sentence)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, value in (("PERIOD", 0.01), ("LONGEST_RUN", 60.0)):
            patch = mock.patch.object(discovery, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def discover(self, script):
        found = Discovery(script, None, str(self.folder))
        self.addCleanup(found.close)
        return found

    def next_outcome(self, script):
        while True:
            outcomes = script.events()
            if outcomes:
                return outcomes[0]
            wait = script.wait_at_most()
            select.select([script.fileno()], [], [], 60 if wait is None else wait + 0.001)

    def test_the_script_runs_again_and_again(self):
        script = self.discover("echo x >> runs; wc -l < runs | sed 's/ *//; s/^/a:/'")
        self.assertEqual([self.next_outcome(script).slots for _ in range(3)], [{"a": 1}, {"a": 2}, {"a": 3}])

    def test_a_failure_names_the_exit_code_and_the_last_line_of_the_script(self):
        self.assertEqual(self.next_outcome(self.discover("echo a:1; echo first >&2; echo no route >&2; exit 3")),
                         Failed("the discovery script ended with code 3: no route"))
        self.assertEqual(self.next_outcome(self.discover("kill -9 $$")),
                         Failed("the discovery script was ended by signal 9"))
        self.assertIn("code 127", self.next_outcome(self.discover("./nothing-there")).sentence)

    def test_one_that_hangs_is_stopped_with_its_children_and_asked_again(self):
        os.mkfifo(self.folder / "never")
        script = self.discover("[ -e answers ] && { echo a:1; exit; }; sh -c 'cat never'; echo late")
        discovery.LONGEST_RUN = 0.2
        self.assertEqual(self.next_outcome(script), Failed("the discovery script did not end within 0.2 s and was "
                                                           "stopped"))

        (self.folder / "answers").touch()
        discovery.LONGEST_RUN = 60.0
        # The second run may have begun before this, with the time limit of the first.
        outcomes = [self.next_outcome(script) for _ in range(2)]
        self.assertEqual(outcomes[1], Found({"a": 1}), outcomes)

    def test_one_that_prints_without_end_is_stopped(self):
        with mock.patch.object(discovery, "MAX_OUTPUT", 1 << 20):
            self.assertEqual(self.next_outcome(self.discover("yes a:1")),
                             Failed("the discovery script printed more than 1 MiB and was stopped"))

    def test_closing_ends_it(self):
        os.mkfifo(self.folder / "never")
        script = self.discover("echo $$ > pid; exec cat never")
        script.events()
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
            script.events()
        pidfd = os.pidfd_open(int((self.folder / "pid").read_text()))
        self.addCleanup(os.close, pidfd)
        script.close()
        self.assertTrue(select.select([pidfd], [], [], 60)[0])


if __name__ == "__main__":
    unittest.main()
