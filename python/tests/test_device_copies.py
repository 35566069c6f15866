"""The order of copies from and to a GPU. There is no GPU here: streams and tensors are fakes that write down what is
asked of them. python/tests/ranks/gpu_tensors.py tests the same on a GPU."""

import contextlib
import unittest
from unittest import mock

import torch

from muster.torch import device_copies


class FakeStream:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")

    def record_event(self):
        self.log.append(f"event on {self.name}")
        return self

    def synchronize(self):
        self.log.append(f"host waits for {self.name}")


class FakeTensor:
    """A tensor with a device; `stream()` is the name of the stream on which it is used."""

    def __init__(self, name, is_cuda, log, stream):
        self.name, self.is_cuda, self.log, self.stream = name, is_cuda, log, stream
        self.device = torch.device("cuda", 0) if is_cuda else torch.device("cpu")

    def copy_(self, other, non_blocking=False):
        self.log.append(f"{other.name} to {self.name} on {self.stream()}, {'asynchronous' if non_blocking else 'now'}")

    def record_stream(self, stream):
        self.log.append(f"{self.name} is used on {stream.name}")


class DeviceCopies(unittest.TestCase):
    def setUp(self):
        self.log = []
        self.current = FakeStream("program", self.log)
        self.side = FakeStream("copies", self.log)
        self.active = self.current

        @contextlib.contextmanager
        def active(stream):
            self.active = stream
            try:
                yield
            finally:
                self.active = self.current

        fakes = mock.patch.multiple("torch.cuda", current_stream=lambda device=None: self.current, stream=active,
                                    Stream=lambda device: self.side)
        fakes.start()
        self.addCleanup(fakes.stop)
        self.addCleanup(device_copies._streams.clear)
        device_copies._streams.clear()

    def tensor(self, name, is_cuda):
        return FakeTensor(name, is_cuda, self.log, lambda: self.active.name)

    def test_to_the_host(self):
        device_copies.copy_to_host(self.tensor("host", False), self.tensor("gpu", True))
        self.assertEqual(self.log, ["copies waits for program", "gpu to host on copies, asynchronous",
                                    "gpu is used on copies", "event on copies", "host waits for copies"])

    def test_to_the_device(self):
        device_copies.copy_to_device(self.tensor("gpu", True), self.tensor("host", False))
        self.assertEqual(self.log, ["copies waits for program", "host to gpu on copies, asynchronous",
                                    "gpu is used on copies", "program waits for copies"])

    def test_other_devices_are_copied_at_once(self):
        device_copies.copy_to_host(self.tensor("host", False), self.tensor("other", False))
        device_copies.copy_to_device(self.tensor("other", False), self.tensor("host", False))
        self.assertEqual(self.log, ["other to host on program, now", "host to other on program, now"])

    def test_what_stays_on_the_device(self):
        on_gpu = mock.Mock(is_cuda=True, dtype=torch.float32)
        with mock.patch.dict("os.environ", MUSTER_COLLECTIVE_TRANSPORT="nccl"):
            self.assertTrue(device_copies.stays_on_device(on_gpu, True))
            self.assertFalse(device_copies.stays_on_device(on_gpu, False))
            self.assertFalse(device_copies.stays_on_device(mock.Mock(is_cuda=True, dtype=torch.int32), True))
            self.assertFalse(device_copies.stays_on_device(torch.ones(1), True))
        with mock.patch.dict("os.environ", MUSTER_COLLECTIVE_TRANSPORT="shm"):
            self.assertFalse(device_copies.stays_on_device(on_gpu, True))


if __name__ == "__main__":
    unittest.main()
