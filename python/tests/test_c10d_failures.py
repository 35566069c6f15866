"""Failures and ends of groups of the backend "muster" of torch.distributed.

Each test starts its own ranks. No test waits for time to pass, except for a limit that it gives itself.
"""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from run_on_ranks import ROOT, Ranks

HAS_TORCH = importlib.util.find_spec("torch") is not None

COMMON = """
import os, signal, sys, threading, time
from datetime import timedelta
import torch, torch.distributed as dist
import muster.torch

rank, size = int(os.environ["MUSTER_RANK"]), int(os.environ["MUSTER_WORLD_SIZE"])
os.environ["MASTER_ADDR"] = "127.0.0.1"

def init(backend="muster", seconds=60):
    dist.init_process_group(backend, init_method=f"file://{os.environ['TMPDIR']}/store", rank=rank, world_size=size,
                            timeout=timedelta(seconds=seconds))

def caught(call, what=""):
    try:
        call()
    except BaseException as error:
        print(what, type(error).__name__, getattr(error, "rank", None), error, flush=True)
    else:
        print(what, "nothing was raised", flush=True)
"""


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Failures(unittest.TestCase):
    maxDiff = None

    def run_ranks(self, program, size, environment=None, code=0):
        """The output of each rank; all must end with `code`."""
        with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], size,
                   environment=environment) as ranks:
            outcomes = ranks.finish()
        for rank, outcome in enumerate(outcomes):
            self.assertEqual(outcome.code, code, f"rank {rank}:\n{outcome.output}")
        return [outcome.output for outcome in outcomes]

    def test_a_killed_rank_is_named_by_every_operation_in_flight(self):
        program = """
            init()
            kinds = {
                "all_reduce": lambda group: dist.all_reduce(torch.ones(9), group=group, async_op=True),
                "broadcast": lambda group: dist.broadcast(torch.ones(9), 2, group=group, async_op=True),
                "reduce": lambda group: dist.reduce(torch.ones(9), 0, group=group, async_op=True),
                "all_gather": lambda group: dist.all_gather([torch.ones(9) for _ in range(3)], torch.ones(9),
                                                            group=group, async_op=True),
                "gather": lambda group: dist.gather(torch.ones(9), [torch.ones(9) for _ in range(3)] if rank == 0
                                                    else None, dst=0, group=group, async_op=True),
                "scatter": lambda group: dist.scatter(torch.ones(9), [torch.ones(9) for _ in range(3)] if rank == 0
                                                      else None, src=0, group=group, async_op=True),
                "reduce_scatter": lambda group: dist.reduce_scatter(torch.ones(9), [torch.ones(9) for _ in range(3)],
                                                                    group=group, async_op=True),
                "all_to_all": lambda group: dist.all_to_all_single(torch.ones(9), torch.ones(9), group=group,
                                                                   async_op=True),
                "barrier": lambda group: dist.barrier(group=group, async_op=True),
                "recv": lambda group: dist.irecv(torch.ones(9), 2, group=group),
                "recv_any": lambda group: dist.irecv(torch.ones(9), group=group),
                "send": lambda group: dist.isend(torch.ones(3_000_000), 2, group=group),
            }
            groups = {what: dist.new_group() for what in kinds}
            dist.barrier()
            if rank == 2:
                print("ready", flush=True)
                signal.pause()
            works = {what: kinds[what](groups[what]) for what in kinds}
            future = dist.all_reduce(torch.ones(9), async_op=True).get_future()
            print("ready", flush=True)
            for what, work in works.items():
                caught(work.wait, f"in {what}:")
            caught(future.wait, "in future:")
            caught(lambda: dist.all_reduce(torch.ones(9)), "in later:")
        """
        with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], 3) as ranks:
            for rank in range(3):
                ranks.until(rank, "ready")
            ranks.signal(2, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertEqual([outcome.code for outcome in outcomes], [0, 0, -signal.SIGKILL])
        for outcome in outcomes[:2]:
            lines = [line for line in outcome.output.splitlines() if line.startswith("in ")]
            self.assertEqual(len(lines), 14, outcome.output)
            for line in lines:
                self.assertRegex(line, "rank 2 on host ")

    def test_a_rank_killed_in_the_backward_pass_of_ddp_is_named(self):
        program = """
            init()
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(400, 400),
                                                                                 torch.nn.Linear(400, 400)))
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: model(torch.ones(2, 400)).sum().backward(), "in backward:")
        """
        with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], 2) as ranks:
            for rank in range(2):
                ranks.until(rank, "ready")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        self.assertIn("in backward:", outcomes[0].output)
        self.assertIn("rank 1 on host", outcomes[0].output)

    @unittest.skipUnless(HAS_TORCH and importlib.util.find_spec("torch.distributed._composable"), "no fully_shard()")
    def test_a_rank_killed_in_a_step_of_fsdp_is_named(self):
        program = """
            from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
            from torch.distributed.device_mesh import init_device_mesh
            init()
            layers = lambda: torch.nn.Sequential(torch.nn.Linear(40, 40), torch.nn.Linear(40, 40))
            one = FullyShardedDataParallel(layers(), device_id=torch.device("cpu"))
            two = fully_shard(layers(), mesh=init_device_mesh("cpu", (size,)))
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: one(torch.ones(2, 40)).sum().backward(), "in fsdp:")
            caught(lambda: two(torch.ones(2, 40)).sum().backward(), "in fsdp2:")
        """
        with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], 2) as ranks:
            for rank in range(2):
                ranks.until(rank, "ready")
            ranks.signal(1, signal.SIGKILL)
            outcomes = ranks.finish()
        for what in ("in fsdp:", "in fsdp2:"):
            self.assertRegex(outcomes[0].output, f"{what}.*rank 1 on host")

    @unittest.skipUnless(HAS_TORCH and importlib.util.find_spec("torch.distributed._composable"), "no fully_shard()")
    def test_a_rank_killed_in_the_backward_pass_of_fsdp_is_named(self):
        program = """
            from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
            from torch.distributed.device_mesh import init_device_mesh
            init()
            layers = lambda: torch.nn.Sequential(torch.nn.Linear(40, 40), torch.nn.Linear(40, 40))
            if os.environ["FORM"] == "1":
                model = FullyShardedDataParallel(layers(), device_id=torch.device("cpu"))
            else:
                model = fully_shard(layers(), mesh=init_device_mesh("cpu", (size,)))
            output = model(torch.ones(2, 40))
            print("ready", flush=True)
            if rank == 1:
                signal.pause()
            caught(lambda: output.sum().backward(), "in backward:")
        """
        for form in ("1", "2"):
            with Ranks([sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(program)], 2,
                       environment={"FORM": form}) as ranks:
                for rank in range(2):
                    ranks.until(rank, "ready")
                ranks.signal(1, signal.SIGKILL)
                outcomes = ranks.finish()
            self.assertRegex(outcomes[0].output, "in backward:.*rank 1 on host")

    def test_limits_of_time_name_the_missing_rank(self):
        outputs = self.run_ranks("""
            init(seconds=60)
            short, other = (dist.new_group(timeout=timedelta(seconds=5)) for _ in range(2))
            if rank == 0:
                caught(lambda: other.monitored_barrier(timedelta(seconds=60)), "monitored")
                caught(lambda: dist.all_reduce(torch.ones(3), group=short), "all_reduce")
                work = dist.irecv(torch.ones(3), 1)
                caught(lambda: work.wait(timedelta(milliseconds=200)), "recv")
                caught(lambda: dist.group.WORLD.barrier(timeout=timedelta(milliseconds=200)).wait(), "barrier")
                dist.send(torch.ones(1), 1, tag=7)
            else:
                dist.recv(torch.ones(1), 0, tag=7)
        """, 2)
        self.assertRegex(outputs[0], r"all_reduce GroupError 1 all_reduce: the timeout of the group is over: .*rank 1 "
                                     r".* pass a longer timeout= to init_process_group\(\) or new_group\(\)")
        self.assertNotIn("stall limit", outputs[0])
        barrier = re.search(r"monitored GroupError 1 Rank 1 failed to pass monitoredBarrier in (\d+) ms: .* the "
                            "timeout of the group is over.*; a barrier cannot wait longer than the timeout of its "
                            "group, 5 s", outputs[0])
        self.assertTrue(barrier, outputs[0])
        self.assertLess(int(barrier.group(1)), 60_000)
        self.assertIn("recv GroupError None recv from rank 1 with tag 0 did not complete within its timeout of 0.2 s",
                      outputs[0])
        self.assertIn("barrier GroupError None barrier did not complete within its timeout of 0.2 s", outputs[0])

    def test_ctrl_c_in_a_call_of_the_library_leaves_its_memory_to_the_operation(self):
        outputs = self.run_ranks("""
            import gc, weakref
            from types import SimpleNamespace
            init()
            group = dist.group.WORLD
            link = group._link
            blocking = SimpleNamespace(asyncOp=False, reduceOp=dist.ReduceOp.SUM)  # what PyTorch 2.8 and later pass
            calls = {
                "all_reduce": lambda tensor: group.allreduce([tensor], blocking),
                "all_gather": lambda tensor: group.allgather([[torch.zeros(1000) for _ in range(2)]], [tensor],
                                                             blocking),
                "async": lambda tensor: dist.all_reduce(tensor, async_op=True),
                "message": lambda tensor: dist.irecv(tensor, 1, tag=1),
            }
            others = {**calls, "message": lambda tensor: dist.send(tensor, 0, tag=1)}
            run, begin = link.run, link.begin

            def then_ctrl_c(call):
                def interrupted(*arguments):
                    call(*arguments)
                    raise KeyboardInterrupt  # as Python raises it once a call of C has returned
                return interrupted

            for name, call in calls.items():
                tensor = torch.ones(1000)
                if rank == 1:
                    dist.recv(torch.ones(1), 0)  # until then, the operation of rank 0 is in flight
                    others[name](tensor)
                    dist.barrier()
                    continue
                link.run, link.begin = then_ctrl_c(run), then_ctrl_c(begin)
                caught(lambda: call(tensor), name)
                link.run, link.begin = run, begin
                memory = weakref.ref(tensor)
                del tensor
                gc.collect()
                print(name, "kept" if memory() is not None else "freed", "in flight", flush=True)
                dist.send(torch.ones(1), 1)
                dist.barrier()
                for work in list(link.pending.values()):
                    work.join()
                del work
                gc.collect()
                print(name, "kept" if memory() is not None else "freed", "at the end", flush=True)
        """, 2)
        for name in ("all_reduce", "all_gather", "async", "message"):
            for words in ("KeyboardInterrupt", "kept in flight", "freed at the end"):
                self.assertIn(f"{name} {words}", outputs[0])

    def test_a_group_that_is_destroyed_fails_its_operations(self):
        outputs = self.run_ranks("""
            init()
            if rank == 0:
                work = dist.all_reduce(torch.ones(3), async_op=True)
                future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
                group = dist.group.WORLD
                dist.destroy_process_group()
                group.shutdown()
                caught(work.wait, "work")
                caught(future.wait, "future")
                caught(lambda: group.allreduce([torch.ones(3)]), "later")
            else:
                caught(lambda: dist.recv(torch.ones(1), 0), "recv")
        """, 2)
        for what in ("work", "future", "later"):
            self.assertRegex(outputs[0], f"{what} [A-Za-z]*Error .*(destroyed|ended its session)")
        self.assertRegex(outputs[1], "recv GroupError 0 rank 0 .*has left")

    def test_ranks_meet_though_the_store_has_the_place_of_an_earlier_attempt(self):
        outputs = self.run_ranks("""
            import socket
            store = dist.FileStore(f"{os.environ['TMPDIR']}/store", size)
            closed = socket.socket()
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]  # bound, so that no process can listen there
            from muster.torch.c10d import links
            if rank == 1:
                store.set("muster/meeting", f"127.0.0.1:{port} {'00' * 32}")
                # Rank 0 publishes the new place after rank 1 has tried the old one.
                sleep = time.sleep
                links.time.sleep = lambda seconds: (store.set("muster/looked", ""), sleep(seconds))
                link = links.join(store, 1, 2, timedelta(seconds=60))
            else:
                store.wait(["muster/looked"])
                link = links.join(store, 0, 2, timedelta(seconds=60))
            print("joined", link.rank, link.size, flush=True)
            link.end()
        """, 2)
        for rank, output in enumerate(outputs):
            self.assertIn(f"joined {rank} 2", output)

    def test_an_interpreter_ends_with_operations_in_flight(self):
        self.run_ranks("""
            init()
            works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(5)]
            futures = [dist.all_reduce(torch.ones(10), async_op=True).get_future() for _ in range(5)]
            receive = dist.irecv(torch.ones(3), 1 - rank, tag=9)
        """, 2)

    def test_a_forked_process_cannot_use_the_group_and_does_not_harm_it(self):
        outputs = self.run_ranks("""
            init()
            dist.all_reduce(torch.ones(3))
            child = os.fork()
            if child == 0:
                caught(lambda: dist.all_reduce(torch.ones(3)), "child")
                sys.exit(0)
            print("status", os.waitpid(child, 0)[1], flush=True)
            total = torch.ones(3)
            dist.all_reduce(total)
            print("total", total[0].item(), flush=True)
        """, 2)
        for output in outputs:
            self.assertRegex(output, "child GroupError .*forked")
            self.assertIn("status 0", output)
            self.assertIn("total 2.0", output)

    def test_an_idle_group_wakes_no_thread(self):
        outputs = self.run_ranks("""
            import collections, contextlib, time
            init()
            dist.all_reduce(torch.ones(3))
            dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()
            dist.barrier()

            def switches():
                counts = collections.Counter()
                for thread in os.listdir("/proc/self/task"):
                    if int(thread) != os.getpid():
                        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/status") as file:
                            counts[thread] = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
                return counts

            for _ in range(20):  # the threads come to rest
                before = switches()
                time.sleep(0.3)
                woken = switches() - before
                if not woken:
                    break
            print("woken", dict(woken), flush=True)
            # A rank in an operation would ask the other one for signs of life.
            store = dist.distributed_c10d._get_default_store()
            store.set(f"rested {rank}", "")
            store.wait(["rested 0", "rested 1"])
            dist.barrier()
        """, 2)
        for output in outputs:
            self.assertIn("woken {}", output)

    def test_a_thousand_groups(self):
        outputs = self.run_ranks("""
            init()
            groups = [dist.new_group() for _ in range(1000)]
            total = 0
            for i, group in enumerate(groups):
                tensor = torch.tensor([float(i)])
                dist.all_reduce(tensor, group=group)
                total += tensor.item()
            print("total", total, flush=True)
            dist.destroy_process_group()
        """, 2, environment={"TORCH_FR_BUFFER_SIZE": "0"})
        for output in outputs:
            self.assertIn(f"total {2 * sum(range(1000))}.0", output)

    def test_disagreements_are_named_with_debugging_of_pytorch(self):
        outputs = self.run_ranks("""
            init()
            caught(lambda: dist.all_reduce(torch.ones(3 + rank)), "disagree")
            caught(lambda: dist.all_reduce(torch.ones(3, dtype=(torch.float32, torch.float64)[rank])), "types")
            caught(lambda: dist.broadcast(torch.ones(3), 0) if rank else dist.all_reduce(torch.ones(3)), "order")
            total = torch.ones(2)
            dist.all_reduce(total)
            print("total", total[0].item(), flush=True)
        """, 2, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
        for output in outputs:
            self.assertRegex(output, "disagree GroupError .*rank 0 .* 3 float32.*rank 1 .* 4 float32")
            self.assertRegex(output, "types GroupError .*rank 0 .* 3 float32.*rank 1 .* 3 float64")
            self.assertRegex(output, "order GroupError .*rank 0 .* float32.*rank 1 .* broadcast")
            self.assertIn("total 2.0", output)

    def test_gloo_is_replaced_in_jobs_of_muster_on_request(self):
        program = """
            init("gloo")
            total = torch.ones(2)
            dist.all_reduce(total)
            subgroup = dist.new_group()
            dist.monitored_barrier()
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
            model(torch.ones(2, 3)).sum().backward()
            print(type(dist.group.WORLD).__name__, type(subgroup).__name__, dist.get_backend(), total[0].item(),
                  flush=True)
        """
        for environment, is_ours in ((dict(MUSTER_TORCH_BACKEND="1", MUSTER_JOB="a"), True),
                                     (dict(MUSTER_TORCH_BACKEND="1"), False), (dict(MUSTER_JOB="a"), False)):
            for output in self.run_ranks(program, 2, environment=environment):
                self.assertEqual("MusterProcessGroup MusterProcessGroup gloo 2.0" in output, is_ours, output)
                self.assertIn("gloo 2.0", output)


TRAINING = """
import os, signal, sys
import torch, torch.distributed as dist
import muster.torch
dist.init_process_group("muster")
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
for step in range(3):
    if attempt == 0 and step == 1 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    model(torch.ones(2, 4)).sum().backward()
# In one write: both ranks print into one pipe.
os.write(1, f"rank {dist.get_rank()} of {dist.get_world_size()} done in attempt {attempt}\\n".encode())
dist.destroy_process_group()
"""


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Torchrun(unittest.TestCase):
    def test_torchrun_restarts_the_ranks_of_a_killed_one(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
            # Reserves a port. The store has SO_REUSEADDR as well, so it can listen there.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            script = Path(folder) / "train.py"
            script.write_text(TRAINING)
            # Without the PET variables, the torchrun of Debian fails on Python 3.11 with any program.
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
                           "PET_REDIRECTS": "9:1", "PET_TEE": "9:1", "TMPDIR": folder}
            done = subprocess.run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc_per_node=2",
                                   "--max_restarts=1", f"--master_port={port}", str(script)], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 done in attempt 1", done.stdout)


if __name__ == "__main__":
    unittest.main()
