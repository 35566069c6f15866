"""A rank that is killed during training with a ShardedOptimizer or a compression with error feedback: a named error on
the other ranks."""

import signal
import sys
import tempfile
import unittest

from run_on_ranks import Ranks

PROGRAM = """
import sys, torch, muster.torch as hvd
hvd.init()
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
inner = torch.optim.Adam(model.parameters(), lr=0.01)
if sys.argv[1] == "sharded":
    optimizer = hvd.ShardedOptimizer(inner, model.named_parameters(), bucket_bytes=4096)
    hvd.save_sharded(sys.argv[2], optimizer, model, {"step": 0})
else:
    optimizer = hvd.DistributedOptimizer(inner, model.named_parameters(), compression=hvd.Compression.int8)
try:
    for step in range(1 << 30):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        if step == 5:
            print("trains", flush=True)
except hvd.HorovodInternalError as error:
    print("failed:", error, flush=True)
if sys.argv[1] == "sharded":
    try:
        optimizer.step()
    except hvd.HorovodInternalError as error:
        print("again:", error, flush=True)
"""

#: Rank 1 is killed in its backward pass, when the first of three buckets is on its way.
IN_BACKWARD = """
import os, signal, sys, torch, muster.torch as hvd
hvd.init()
torch.manual_seed(1)
first, second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
model = torch.nn.Sequential(first, second)
compression = {"int8": hvd.Compression.int8, "powersgd": hvd.Compression.powersgd(rank=2)}[sys.argv[1]]
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters(),
                                     compression=compression, groups=3)

def lose():
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        hvd.barrier()
    except hvd.HorovodInternalError:
        # Otherwise the next bucket finds the loss.
        if sys.argv[2] == "own hook":
            raise

for step in range(3):
    hidden = first(torch.randn(8, 16))
    if step == 2:
        hidden.register_hook(lambda _: lose())
    try:
        second(hidden).square().mean().backward()
    except hvd.HorovodInternalError as error:
        print("failed:", error, flush=True)
        optimizer.load_state_dict(optimizer.state_dict())
        print("loaded", any(bucket.is_launched for bucket in optimizer._reducer._buckets), flush=True)
        break
    optimizer.step()
    optimizer.zero_grad()
"""


class Failures(unittest.TestCase):
    def killed(self, kind, folder="."):
        with Ranks([sys.executable, "-c", PROGRAM, kind, folder], size=3) as ranks:
            for rank in range(3):
                ranks.until(rank, "trains")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        for rank in (0, 2):
            self.assertEqual(outcomes[rank].code, 0, outcomes[rank].output)
            self.assertIn("failed: rank 1", outcomes[rank].output)
        return outcomes

    def test_sharded(self):
        with tempfile.TemporaryDirectory() as folder:
            outcomes = self.killed("sharded", folder)
        self.assertIn("again: rank 1", outcomes[0].output)

    def test_compression(self):
        self.killed("int8")

    def test_a_state_is_loaded_after_the_loss_of_a_rank_in_the_backward_pass(self):
        for compression in ("int8", "powersgd"):
            for where in ("own hook", "next bucket"):
                with self.subTest(compression, where=where):
                    with Ranks([sys.executable, "-c", IN_BACKWARD, compression, where], size=2) as ranks:
                        outcomes = ranks.finish()
                    self.assertEqual(outcomes[0].code, 0, outcomes[0].output)
                    self.assertIn("failed: rank 1", outcomes[0].output)
                    self.assertIn("loaded False", outcomes[0].output)


if __name__ == "__main__":
    unittest.main()
