"""An elastic training without a framework, for tests of the driver: it counts its batches, and prints them.

The weight is the sum of the batches' averages over the ranks, and each batch gives its own number on every rank. So the
weight is exactly sum(range(batch)), however often the world was rebuilt, if and only if each batch was counted once.
It prints a line for each event. Each worker's file in --log has all of its actions: "enter B", "trained B",
"commit B".

The training goes on until the file --finish is there.
"""

import argparse
import ctypes
import os
import signal
import time

from muster.common import basics, objects, operations
from muster.common.elastic import ObjectState, run_fn
from muster.common.process_sets import global_process_set
from muster.common.reduce_ops import ReduceOp

COMMIT_EVERY = 10

parser = argparse.ArgumentParser()
parser.add_argument("--log", required=True)
parser.add_argument("--finish", required=True)
parser.add_argument("--crash-in-commit", type=int,
                    help="this rank kills itself in its second commit of the first round")
parser.add_argument("--raise-at", type=int, help="rank 0 raises an error of its own at this batch")
parser.add_argument("--mismatch-at", type=int, help="rank 0 calls another operation than the others at this batch")
parser.add_argument("--block-at", type=int, help="the last rank of the first round reads --fifo at this batch")
parser.add_argument("--fifo")
options = parser.parse_args()

worker = os.environ.get("MUSTER_ELASTIC_WORKER", "alone")
log = open(os.path.join(options.log, worker), "a", buffering=1)
entered = 0


def note(words):
    log.write(words + "\n")


def broadcast_object(value):
    data = objects.dumps(value)
    length = (ctypes.c_int64 * 1)(len(data))
    run("broadcast", "object.length", (None, ctypes.addressof(length), 8), keep=length)
    memory = ctypes.create_string_buffer(data if basics.rank() == 0 else b"", length[0])
    run("broadcast", "object", (None, ctypes.addressof(memory), length[0]), keep=memory)
    return objects.loads(memory.raw)


def reduce(name, value, op, type="float64"):
    cell = (ctypes.c_double * 1)(value)
    run("all_reduce", name, (ctypes.addressof(cell), ctypes.addressof(cell), 1), type=type, op=op, keep=cell)
    return cell[0]


def run(kind, name, buffer, **more):
    operations.run(kind, name, process_set=global_process_set, buffers=[buffer], **more)


class CountingState(ObjectState):
    commits = 0

    def save(self):
        super().save()
        CountingState.commits += 1
        note(f"commit {self.batch}")
        if options.crash_in_commit == basics.rank() and CountingState.commits == 2 and entered == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def reset():
    basics.shutdown()
    basics.init()


def train(state):
    global entered
    entered += 1
    print(f"entered as {basics.rank()} of {basics.size()} on {os.environ['HOROVOD_HOSTNAME']} "
          f"local {basics.local_rank()} of {basics.local_size()} cross {basics.cross_rank()} of {basics.cross_size()} "
          f"at {state.batch} worker {worker} process {os.getpid()}", flush=True)
    note(f"enter {state.batch}")
    is_first = True
    while not reduce("finish", os.path.exists(options.finish), ReduceOp.MAX):
        misbehave(state)
        state.weight += reduce("gradient", state.batch, ReduceOp.AVERAGE)
        note(f"trained {state.batch}")
        if is_first or state.batch % COMMIT_EVERY == 5:
            print(f"trained {state.batch} with {basics.size()} worker {worker} time {time.monotonic():.6f}", flush=True)
        is_first = False
        state.batch += 1
        sum(range(50_000))  # a computation
        if state.batch % COMMIT_EVERY == 0:
            state.commit()


def misbehave(state):
    if state.batch == options.raise_at and basics.rank() == 0:
        raise ArithmeticError("the loss is not a number")
    if state.batch == options.mismatch_at:
        reduce("uneven", 1, ReduceOp.SUM, "float64" if basics.rank() == 0 else "int64")
    # In the first round a worker's name is its rank.
    if state.batch == options.block_at and worker == str(basics.rank()) == str(basics.size() - 1) and entered == 1:
        print(f"blocks worker {worker}", flush=True)
        with open(options.fifo) as fifo:
            fifo.read()
        print(f"unblocked worker {worker}", flush=True)


if __name__ == "__main__":
    basics.init()
    training = CountingState(broadcast_object, basics.rank, batch=0, weight=0.0)
    run_fn(train, reset)(training)
    is_exact = training.weight == sum(range(training.batch))
    print(f"done as {basics.rank()} of {basics.size()} at {training.batch} exact {is_exact} worker {worker}",
          flush=True)
