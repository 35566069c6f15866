"""A host that sends invalid frames is given up, and the others are not affected."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from muster.runner.crew import Crew, Exited, Finished, HostLost
from muster.runner.output import Output
from muster.runner.settings import Settings

# Replaces the remote shell: finds the mark in the program for the host, and sends other frames.
SHELL = """
import re, struct, sys
source = sys.stdin.buffer.read(int(re.search(r"read[(]([0-9]+)", sys.argv[-1])[1]))
def frame(kind, name, data=b""):
    sys.stdout.buffer.write(struct.pack(">cII", kind, len(name), len(data)) + name + data)
sys.stdout.buffer.write(re.search(rb"Processes'\\](?:[(][)]), b'([0-9a-f]{32})'", source)[1])
"""
HELLO = "frame(b'H', b'', b'{\"connection\": \"\", \"interfaces\": {}}')\n"
#: Waits for the first request to start a process.
ASKED = "sys.stdout.buffer.flush()\nsys.stdin.buffer.read(9)\n"
#: Waits until the other end closes the connection.
WAITS = "sys.stdout.buffer.flush()\nsys.stdin.buffer.read()\n"


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def crew(self, program):
        shell = self.folder / "shell.py"
        shell.write_text(SHELL + program)
        settings = Settings(remote_shell=(sys.executable, str(shell)), working_folder=str(self.folder),
                            start_timeout=60)
        crew = Crew(settings, Output(settings, 2))
        self.addCleanup(crew.close)
        return crew

    def events(self, crew):
        events = []
        while crew.has_more:
            events += crew.events(60)
        return events

    def test_invalid_frames_lose_the_host(self):
        for data in ("b'nonsense'", "b'[]'", "b'{}'", "b'{\"code\": [], \"signal\": 0}'"):
            for kind in ("b'X'", "b'N'"):
                with self.subTest(kind=kind, data=data):
                    crew = self.crew(HELLO + ASKED + f"frame({kind}, b'0', {data})\n" + WAITS)
                    self.assertEqual(crew.reach(["alpha"]), {})
                    crew.start("alpha", "0", ["true"], {})
                    events = self.events(crew)
                    self.assertEqual([type(each) for each in events], [Exited, Finished, HostLost])
                    self.assertEqual(events[0].why, "the connection to it was lost")

    def test_an_invalid_greeting(self):
        for hello in ("b'7'", "b'[1]'", "b'\"x\"'", "b''", "b'{\"interfaces\": 7}'"):
            with self.subTest(hello):
                failed = self.crew(f"frame(b'H', b'', {hello})\n" + WAITS).reach(["alpha"])
                self.assertEqual(list(failed), ["alpha"])

    def test_it_does_not_speak_for_the_processes_of_others(self):
        said = "frame(b'X', b'1', b'{\"code\": 0, \"signal\": 0}')\nframe(b'R', b'1', b'x')\nframe(b'F', b'1')\n"
        crew = self.crew(HELLO + ASKED + said + "frame(b'X', b'0', b'{\"code\": 0, \"signal\": 0}')\n"
                         "frame(b'F', b'0')\n" + WAITS)
        self.assertEqual(crew.reach(["alpha"]), {})
        crew.start("localhost", "1", ["sh", "-c", "exec sleep 1000"], {})
        crew.start("alpha", "0", ["true"], {})
        events = []
        while not any(isinstance(each, Finished) for each in events):
            events += crew.events(60)
        self.assertEqual({each.name for each in events}, {"0"})
        crew.end(["1"])
        self.assertEqual([each.name for each in self.events(crew)], ["1", "1"])


if __name__ == "__main__":
    unittest.main()
