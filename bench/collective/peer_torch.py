"""torch.distributed over gloo, in the loop of core.cc.

  --core=PATH        the loop, as a shared library
  --store=PATH       a file through which the ranks connect to each other; it must not exist yet
  --interface=NAME   the interface of this rank, if it is not the loopback
  --buckets=N,N,...  one call for each of these numbers of elements instead of a single call. All of them are started and
                     then waited for, as DistributedDataParallel does with its buckets

torch has no out-of-place call, so the out-of-place measurement is a copy and a call.
"""

import ctypes
import os
import sys

import torch
import torch.distributed

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
CALL = ctypes.CFUNCTYPE(None)


def tensor_at(address, bytes_, type_):
    return torch.frombuffer((ctypes.c_char * bytes_).from_address(address), dtype=type_)


class AllReduce:
    def __init__(self, type_, buckets):
        self.type = type_
        self.buckets = buckets
        self.source = self.parts = None

    def prepare(self, source, target, bytes_):
        whole = tensor_at(target, bytes_, self.type)
        self.source = None if source == target else tensor_at(source, bytes_, self.type)
        self.target = whole
        self.parts = torch.split(whole, self.buckets) if self.buckets else [whole]

    def call(self):
        if self.source is not None:
            self.target.copy_(self.source)
        if len(self.parts) == 1:
            torch.distributed.all_reduce(self.target)
            return
        for work in [torch.distributed.all_reduce(part, async_op=True) for part in self.parts]:
            work.wait()


def main():
    words = dict(word[2:].split("=", 1) for word in sys.argv[1:])
    torch.set_num_threads(1)
    if "interface" in words:
        os.environ["GLOO_SOCKET_IFNAME"] = words["interface"]
    else:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    core = ctypes.CDLL(words["core"])
    core.bench_open.restype = ctypes.c_void_p
    core.bench_measure.argtypes = [ctypes.c_void_p, PREPARE, CALL]
    arguments = (ctypes.c_char_p * len(sys.argv))(*[word.encode() for word in sys.argv])
    # Binds this process to a core, and with it the threads of gloo.
    session = core.bench_open(len(sys.argv), arguments)

    torch.distributed.init_process_group("gloo", init_method="file://" + words["store"],
                                         rank=int(words["rank"]), world_size=int(words["ranks"]))
    buckets = [int(size) for size in words["buckets"].split(",")] if "buckets" in words else None
    subject = AllReduce(TYPES[words.get("type", "float32")], buckets)
    core.bench_measure(session, PREPARE(subject.prepare), CALL(subject.call))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
