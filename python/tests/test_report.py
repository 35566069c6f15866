"""A training reports to a real socket, and is not disturbed if there is no socket."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from muster.report import report

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK", "MUSTER_RANK")


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        environment = {name: value for name, value in os.environ.items() if name not in RANKS}
        changed = mock.patch.dict(os.environ, environment, clear=True)
        changed.start()
        self.addCleanup(changed.stop)
        self.listen(self.folder)

    def listen(self, folder):
        descriptor = os.open(folder, os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(f"/proc/self/fd/{descriptor}/metrics")
        self.addCleanup(self.socket.close)
        os.close(descriptor)
        os.environ["MUSTER_METRICS"] = f"{folder}/metrics"

    def received(self):
        try:
            return self.socket.recv(4096).decode()
        except BlockingIOError:
            return None

    def test_are_one_datagram_each(self):
        report(epoch=3, loss=0.183)
        report(**{"val/loss": float("nan")})
        self.assertEqual(self.received(), "epoch=3.0 loss=0.183")
        self.assertEqual(self.received(), "val/loss=nan")
        self.assertIsNone(self.received())

    def test_carry_the_rank_that_the_launcher_gave(self):
        for name in RANKS:
            with mock.patch.dict(os.environ, {name: "7"}):
                report(loss=1)
            self.assertEqual(self.received(), "loss=1.0 rank=7", name)

    def test_carry_the_rank_that_they_say(self):
        with mock.patch.dict(os.environ, {"RANK": "7"}):
            report(rank=2, loss=1)
        self.assertEqual(self.received(), "rank=2 loss=1.0")

    def test_take_whatever_can_be_a_number(self):
        class Tensor:
            def __float__(self):
                return 0.5

        report(loss=Tensor(), done=True, text="1e-3")
        self.assertEqual(self.received(), "loss=0.5 done=1.0 text=0.001")

    def test_find_their_way_down_a_path_that_no_address_holds(self):
        deep = os.path.join(self.folder, *["a-folder-with-a-long-name"] * 10)
        os.makedirs(deep)
        self.listen(deep)
        report(loss=1)
        self.assertEqual(self.received(), "loss=1.0")

    def test_never_wait_and_never_raise(self):
        before = os.listdir("/proc/self/fd")
        for _ in range(10_000):  # more than the socket holds
            report(n=1)
        report(loss="low")
        report(loss=None)
        os.remove(f"{self.folder}/metrics")
        report(loss=1)
        for path in ("", "metrics", "/no/such/folder/metrics"):
            os.environ["MUSTER_METRICS"] = path
            report(loss=1)
        del os.environ["MUSTER_METRICS"]
        report(loss=1)
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_the_file_to_copy_needs_nothing_else(self):
        copy = pathlib.Path(__file__).parents[2] / "examples/metrics/muster_report.py"
        pathlib.Path(self.folder, "muster_report.py").write_text(copy.read_text())
        subprocess.run([sys.executable, "-I", "-c", "import sys; sys.path.insert(0, sys.argv[1]); "
                        "from muster_report import report; report(loss=1)", self.folder], check=True)
        self.assertEqual(self.received(), "loss=1.0")


if __name__ == "__main__":
    unittest.main()
