"""The printed lines of ranks, however their bytes arrive."""

import contextlib
import io
import os
import random
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from muster.runner import output
from muster.runner.settings import Settings


class Lines(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.printed = {1: io.BytesIO(), 2: io.BytesIO()}
        real = output.write_all
        patch = mock.patch.object(output, "write_all", lambda where, data: (
            self.printed[where].write(data) if where in self.printed else real(where, data)))
        patch.start()
        self.addCleanup(patch.stop)

    def print(self, *pieces, stream=1, **settings):
        printer = output.Output(Settings(**settings), 2)
        for piece in pieces:
            printer.write("0", stream, piece)
        printer.finish("0")
        return self.printed[stream].getvalue()

    def test_lines_come_whole_however_they_were_cut(self):
        text = b"one\n\ntwo and more\nthree"
        whole = b"[0]<stdout>:one\n[0]<stdout>:\n[0]<stdout>:two and more\n[0]<stdout>:three\n"
        for cut in range(len(text) + 1):
            self.printed[1] = io.BytesIO()
            self.assertEqual(self.print(text[:cut], text[cut:]), whole)

    def test_byte_by_byte(self):
        self.assertEqual(self.print(*(bytes([byte]) for byte in b"a\nb\r\nc\rd")),
                         b"[0]<stdout>:a\n[0]<stdout>:b\r\n[0]<stdout>:c\r[0]<stdout>:d\n")

    def test_a_carriage_return_ends_a_line_but_one_with_a_line_feed_is_one_end(self):
        for pieces in ((b"10%\r20%\r\nend\r",), (b"10%\r", b"20%\r", b"\nend", b"\r"),
                       (b"10%", b"\r20%\r\n", b"end\r")):
            self.printed[1] = io.BytesIO()
            self.assertEqual(self.print(*pieces), b"[0]<stdout>:10%\r[0]<stdout>:20%\r\n[0]<stdout>:end\r\n")

    def test_progress_shows_before_its_line_ends(self):
        printer = output.Output(Settings(), 1)
        printer.write("0", 1, b"10%\r20%")
        self.assertEqual(self.printed[1].getvalue(), b"[0]<stdout>:10%\r")

    def test_a_line_without_end_is_passed_on_in_parts_and_not_kept(self):
        with mock.patch.object(output, "MAX_LINE", 1000):
            self.assertEqual(self.print(*[b"x" * 300] * 10, b"\nnext\n"),
                             b"[0]<stdout>:" + b"x" * 3000 + b"\n[0]<stdout>:next\n")

    def test_ranks_do_not_mix_within_a_line(self):
        printer = output.Output(Settings(), 2)
        printer.write("0", 1, b"be")
        printer.write("1", 1, b"other\nrest")
        printer.write("0", 1, b"gun\n")
        printer.finish_all()
        self.assertEqual(self.printed[1].getvalue(), b"[1]<stdout>:other\n[0]<stdout>:begun\n[1]<stdout>:rest\n")

    def test_any_text_in_any_pieces_is_the_same_text(self):
        chance = random.Random(7)
        for _ in range(300):
            text = bytes(chance.choice(b"ab\r\n\xff") for _ in range(chance.randrange(40)))
            cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(6)))
            pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)])]
            self.printed[1] = io.BytesIO()
            printed = self.print(*pieces, output_filename=str(self.folder))
            self.assertEqual(printed.replace(b"[0]<stdout>:", b""), text + b"\n" * (text[-1:] not in (b"\n", b"")),
                             (text, pieces))
            file = self.folder / "rank.0" / "stdout"
            self.assertEqual(file.read_bytes() if file.exists() else b"", text)
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    def test_the_two_streams_go_to_two_places(self):
        self.assertEqual(self.print(b"x\n", stream=2), b"[0]<stderr>:x\n")
        self.assertEqual(self.printed[1].getvalue(), b"")


class Writing(unittest.TestCase):
    def test_a_nonblocking_descriptor_gets_everything(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        data = os.urandom(1 << 20)
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                output.write_all(write, data)
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as file:
            self.assertEqual(file.read(), data)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
