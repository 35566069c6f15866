"""The state of this machine, for end-to-end tests: processes, mounts, control groups and shared memory."""

import ctypes
import functools
import glob
import os
import select
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

# The time limit in seconds of every wait. Only a hang reaches it.
BOUND = 90


def matching(folder, pattern):
    """The paths in a folder that match a pattern. Others may remove some of them meanwhile.

    Path.glob() raises FileNotFoundError in Python 3.11 if a folder disappears while it is read.
    """
    return [Path(path) for path in glob.glob(os.path.join(glob.escape(str(folder)), pattern), include_hidden=True)]


def all_below(folder):
    """The paths of everything below a folder, without following links. Others may remove some of them meanwhile."""
    return [Path(parent, name) for parent, folders, files in os.walk(folder) for name in [*folders, *files]]


def places_of_control_groups():
    """The folders in which servers on this machine create the control groups of tasks."""
    tops = [Path("/sys/fs/cgroup"), *matching("/sys/fs/cgroup", "*/")]
    return [Path(folder) for top in tops if (top / "cgroup.procs").exists()
            for folder, below, _ in os.walk(top) if os.path.basename(folder) == "muster"]


def remove_control_group(group):
    """Removes a control group that a failed test has left, unless a process in it still runs."""
    for folder in (group / "task", group, group.parent):
        with suppress(OSError):
            folder.rmdir()


def read_bytes(path, most=-1):
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def is_zombie(pid):
    status = read_bytes(f"/proc/{pid}/stat")
    return not status or status[status.rfind(b")") + 2:][:1] in (b"Z", b"X")


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def processes_naming(words):
    """The other processes whose command line or environment contains `words`."""
    wanted = words.encode()
    return [pid for pid in all_pids() if pid != os.getpid()
            and (wanted in read_bytes(f"/proc/{pid}/cmdline")
                 or wanted in read_bytes(f"/proc/{pid}/environ"))
            and not is_zombie(pid)]


def descendants(pid):
    children = {}
    for other in all_pids():
        status = read_bytes(f"/proc/{other}/stat")
        if status:
            children.setdefault(int(status[status.rfind(b")") + 2:].split()[1]), []).append(other)
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def describe(pid):
    words = read_bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
    return f"{pid} {words[:300]}"


def await_end(pid, bound=BOUND):
    """Waits until a process has ended. Returns False if it has not ended in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(max(0, bound) * 1000))
    finally:
        os.close(descriptor)


def await_no_process(words, bound):
    """Waits until no process has `words` in its command line or environment. Fails after `bound` seconds."""
    deadline = time.monotonic() + bound
    while left := processes_naming(words):
        for pid in left:
            if not await_end(pid, deadline - time.monotonic()):
                raise AssertionError("still there:\n  " + "\n  ".join(map(describe, left)))


def kill_and_wait(pid):
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    if not await_end(pid):
        raise AssertionError(f"{describe(pid)} outlived SIGKILL")


def mounts_naming(words):
    """The mounts that contain `words`, in all mount namespaces of this machine: pid of a process in the namespace ->
    lines of its mountinfo."""
    seen, lines = set(), {}
    for pid in all_pids():
        try:
            namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        except OSError:
            continue
        if namespace not in seen:
            seen.add(namespace)
            text = read_bytes(f"/proc/{pid}/mountinfo").decode(errors="replace")
            if found := [line for line in text.splitlines() if words in line]:
                lines[pid] = found
    return lines


def await_no_mount(words, bound):
    """Waits until no mount contains `words`, for at most `bound` seconds. Returns the remaining lines. (A process that
    is ending has no command line any more, but still has its mounts.)"""
    deadline = time.monotonic() + bound
    while left := mounts_naming(words):
        for pid in left:
            if not await_end(pid, deadline - time.monotonic()):
                return sorted({line for lines in left.values() for line in lines})
    return []


@functools.cache
def own_shared_memory():
    """Gives this process and its future children a private /dev/shm, so that files of other programs are not counted as
    left behind. This requires root; another account uses the machine's /dev/shm."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private, ms_nosuid_nodev = 0x20000, 0x4000, 1 << 18, 0x6
    if os.geteuid() != 0 or not os.path.isdir("/dev/shm") or libc.unshare(clone_newns) != 0:
        return
    for source, target, kind, flags, options in (
            (b"none", b"/", None, ms_rec | ms_private, None),
            (b"tmpfs", b"/dev/shm", b"tmpfs", ms_nosuid_nodev, b"mode=1777")):
        if libc.mount(source, target, kind, flags, options) != 0:
            raise OSError(ctypes.get_errno(), f"mount {target.decode()}: {os.strerror(ctypes.get_errno())}")


def shared_memory():
    return {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()


def unused(names):
    """The files of `names` that no living process maps. They were left behind by the process that created them."""
    used = set()
    for pid in all_pids() if names else []:
        used.update(name for name in names if name.encode() in read_bytes(f"/proc/{pid}/maps"))
    return sorted(name for name in names - used if os.path.exists(name))
