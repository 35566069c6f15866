#!/usr/bin/env python3
"""The times for which newcomers and contributors wait: a first build, all tests, and the build after a change.

Cold times are measured in a bare Debian 12: a root that debootstrap has made with git, make and ca-certificates
only, entered with mount and process namespaces and pivot_root, so that sandboxes work there as on a machine.
Nothing is cached: CCACHE_DISABLE=1, no packages, a clone of this repository's HEAD. The packages come from this
machine's sources. CPU time is that of the command and its descendants, and does not depend on other load. Run as
root: `make bench-build`.

    bench/build.py [--only quickstart|test|touch] [--rounds N]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

from measure import BUILD, print_table, row, verdict

TREE = pathlib.Path(__file__).resolve().parent.parent
WORK = TREE / "build" / "bare"
# PATH, and nothing else of the caller's environment.
ENVIRONMENT = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME=/root", "LANG=C.UTF-8", "CCACHE_DISABLE=1", "PIP_CERT=/etc/ssl/certs/ca-certificates.crt"]
# Additional certificate authorities that this machine trusts, for registries behind a proxy.
AUTHORITIES = pathlib.Path("usr/local/share/ca-certificates")

# The mounts of the root. They end with it, and so does every process inside.
ENTER = r"""
set -e
cd "$1"; shift
mount --make-rprivate /
mount --bind . .
cd "$PWD"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mkdir -p old
pivot_root . old
cd /
umount -l /old
rmdir /old
exec "$@"
"""


class BareRoot:
    """A copy of a bare Debian with a clone of this tree in /root/muster, removed at the end."""

    template = WORK / "debian"

    def __init__(self, name):
        self.path = WORK / name

    def __enter__(self):
        if not (self.template / "etc" / "os-release").exists():
            self._debootstrap()
        self.__exit__()
        subprocess.run(["cp", "-a", self.template, self.path], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.path / "etc" / name)
        if (pathlib.Path("/") / AUTHORITIES).is_dir():
            shutil.copytree(pathlib.Path("/") / AUTHORITIES, self.path / AUTHORITIES, dirs_exist_ok=True)
            subprocess.run(["chroot", self.path, "update-ca-certificates"], check=True, capture_output=True)
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", TREE, self.path / "root" / "muster"], check=True)
        return self

    def __exit__(self, *ignored):
        shutil.rmtree(self.path, ignore_errors=True)

    def _debootstrap(self):
        print("build: making a bare Debian (debootstrap)", file=sys.stderr)
        making = WORK / "debian.new"
        shutil.rmtree(making, ignore_errors=True)
        WORK.mkdir(parents=True, exist_ok=True)
        with open(WORK / "debootstrap.log", "wb") as log:
            subprocess.run(["debootstrap", "--variant=minbase", "--include=git,make,ca-certificates", "bookworm",
                            making, "http://deb.debian.org/debian"], check=True, stdout=log, stderr=log)
        making.rename(self.template)

    def run(self, command):
        """Runs a command in the clone. Returns (wall seconds, CPU seconds). The output goes to build/bare/NAME.log."""
        log = self.path.with_suffix(".log")
        with open(log, "ab") as output:
            output.write(f"$ {command}\n".encode())
            output.flush()
            start = time.monotonic()
            child = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", self.path,
                 *ENVIRONMENT, "sh", "-c", f"cd /root/muster && {command}"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - start
        if child.returncode != 0:
            sys.exit(f"build: '{command}' failed in a bare Debian (exit code {child.returncode}); see {log}")
        return wall, usage.ru_utime + usage.ru_stime


def aimed(name, samples, unit, aim):
    cells = row(name, samples, unit)
    # The verdict uses the printed median, so that the row agrees with itself.
    cells[5] = f"at most {aim}: {verdict(float(cells[1]) <= aim)}"
    return cells


def quickstart():
    with BareRoot("quickstart") as root:
        packages, _ = root.run("make deps-programs")
        rest, cpu = root.run("make quickstart")
    return [aimed("make quickstart, from nothing", [packages + rest], "s", 180),
            row("  of it: packages", [packages], "s"),
            aimed("  CPU time but for packages", [cpu], "s", 240)]


def tests():
    # .ci/run runs `make test` and nothing else.
    with BareRoot("test") as root:
        wall, cpu = root.run("bash .ci/run")
    return [aimed(".ci/run (make test), from nothing", [wall], "s", 900), row("  CPU time", [cpu], "s")]


def touch(rounds):
    """The time of ninja after a change, in a tree that is completely built."""
    environment = dict(os.environ, CCACHE_DISABLE="1")

    def build():
        before = os.times()
        subprocess.run(["ninja", "-C", BUILD], check=True, env=environment, stdout=subprocess.DEVNULL)
        after = os.times()
        return (after.elapsed - before.elapsed,
                after.children_user + after.children_system - before.children_user - before.children_system)

    rows = []
    build()
    for path, aim in (("platform/control/scheduler_queue.cc", 15), ("platform/job/spec.h", 60)):
        samples = []
        for _ in range(rounds):
            (TREE / path).touch()
            samples.append(build())
        rows += [aimed(f"ninja after touching {path}", [wall for wall, _ in samples], "s", aim),
                 row("  CPU time", [cpu for _, cpu in samples], "s")]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=["quickstart", "test", "touch"])
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the builds after a change (default: 3)")
    wanted = parser.parse_args()
    rows = []
    if wanted.only in (None, "touch"):
        rows += touch(wanted.rounds)
    if wanted.only in (None, "quickstart"):
        rows += quickstart()
    if wanted.only in (None, "test"):
        rows += tests()
    print_table(rows)


if __name__ == "__main__":
    main()
