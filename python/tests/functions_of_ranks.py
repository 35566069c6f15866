"""Functions that test_runner_function.py calls on ranks: pickle can name functions of a module."""

import os
import signal
import sys


def place(*args, **kwargs):
    return int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"]), args, kwargs


def large(count):
    return os.environ["HOROVOD_RANK"].encode() * count


def fail_on(rank, error):
    if os.environ["HOROVOD_RANK"] == str(rank):
        raise error
    signal.pause()


def end_with(code):
    os._exit(code)


def leave_unless(rank):
    if os.environ["HOROVOD_RANK"] != str(rank):
        sys.exit(0)
    return rank


def lambda_result():
    return lambda: None


def open_descriptors():
    import subprocess
    return subprocess.check_output([sys.executable, "-c", "import os; print(os.listdir('/proc/self/fd'))"], text=True,
                                   close_fds=False)


def variables():
    return {name for name in os.environ if name.startswith("MUSTER_RUN_")}


def train_unless_first(folder):
    """Fails in the first process of the run, before it joins a world."""
    try:
        os.mkdir(os.path.join(folder, "first"))
    except FileExistsError:
        pass
    else:
        raise OSError("the disk is not mounted yet")
    from muster.common import basics
    basics.init()
    basics.barrier()
    place = basics.rank(), basics.size()
    basics.shutdown()
    return ("trained", *place)


def wait_for_a_signal():
    print("pid", os.getpid(), flush=True)
    signal.pause()
