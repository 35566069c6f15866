"""Unix accounts that exist only for one test and its processes.

useradd replaces /etc/passwd and other files. A program that reads or mounts these files at that moment, in another test
or anywhere on the machine, may fail. So a test that makes accounts does it in a copy of /etc, which is mounted over /etc
in a mount namespace of the test. The copy ends with the test's processes.
"""

import ctypes
import grp
import os
import pwd
import socket
import subprocess
import tempfile

__all__ = ["enter_own_etc", "make_account"]

CLONE_NEWNS = 0x20000
# Above the numbers of most machines' users, below those of systemd's services.
UIDS = range(30_000, 40_000)
# Each account has as many subordinate ids, which no other test uses either.
SUBORDINATE_IDS = 65_536
FIRST_SUBORDINATE_ID = 100_000_000

_has_own_etc = False


def make_account(test, name, *options):
    """Makes an account that the end of `test` removes, and returns its entry in the list of accounts. The caller is
    root. `options`: of useradd. The account's number is used by no other test that runs."""
    enter_own_etc()
    uid = _lease_uid(test)
    first = FIRST_SUBORDINATE_ID + (uid - UIDS.start) * SUBORDINATE_IDS
    last = first + SUBORDINATE_IDS - 1
    ranges = [word for kind in ("UID", "GID") for word in ("--key", f"SUB_{kind}_MIN={first}",
                                                           "--key", f"SUB_{kind}_MAX={last}")]
    subprocess.run(["useradd", "--uid", str(uid), *ranges, *options, name], check=True)
    test.addCleanup(subprocess.run, ["userdel", name], check=True, capture_output=True)
    return pwd.getpwnam(name)


def enter_own_etc():
    """From now on this process and those that it starts have a copy of /etc of their own. The caller is root."""
    global _has_own_etc
    if _has_own_etc:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot make a mount namespace: {os.strerror(error)}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    copy = tempfile.mkdtemp(prefix="muster-etc-")
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "own-etc", copy], check=True)
        subprocess.run(["cp", "--archive", "/etc/.", copy], check=True)
        subprocess.run(["mount", "--bind", copy, "/etc"], check=True)
        subprocess.run(["umount", copy], check=True)
    finally:
        os.rmdir(copy)
    _has_own_etc = True


def _lease_uid(test):
    """A number of an account. While the test runs, an abstract socket with that number in its name is bound."""
    taken = {entry.pw_uid for entry in pwd.getpwall()} | {entry.gr_gid for entry in grp.getgrall()}
    for uid in sorted(set(UIDS) - taken):
        lease = socket.socket(socket.AF_UNIX)
        try:
            lease.bind(f"\0muster-test-uid-{uid}")
        except OSError:
            lease.close()
            continue
        test.addCleanup(lease.close)
        return uid
    raise AssertionError("all numbers of test accounts are in use")
