"""Machines for tests of container engines. Each consists of namespaces of this machine, and has an address on a network
that connects only these machines and this machine.

    with Lan() as lan, Machine(lan, folder) as machine:
        machine.run(["ip", "address"])              # runs a program to its end
        server = machine.spawn(["sshd", "-D"])      # a Process, with send(), wait(), ...

An engine keeps more state than its storage: locks in /dev/shm, network state in /run, firewall rules, bridges, mounts.
In such a machine, all of this is private and is removed with the machine. A machine and its network watch a pipe of the
test, so they are also removed when the test is killed. Requires root.
"""

import os
import signal
import socketserver
import subprocess
import threading
from pathlib import Path

# The time limit in seconds of every wait. Only a hang reaches it.
BOUND = 60

# SIGCHLD is ignored, so that the kernel reaps orphaned processes of the machine.
_HOLD = """
echo ready
exec env --ignore-signal=CHLD cat >/dev/null
"""

# A container inherits the hosts file and the name server of its machine. Those of this machine do not apply to the
# test's network. There, the test is a name server without names (see _NoNames).
_FURNISH = """
set -e
mkdir -p "$1/run/lock" "$1/run/cdi"
mount --bind "$1/run" /run
mount -t tmpfs tmpfs /dev/shm
echo '127.0.0.1 localhost' >"$1/hosts"
echo "nameserver $2" >"$1/resolv.conf"
for file in hosts resolv.conf; do
  target=$(readlink -m "/etc/$file")
  mkdir -p "$(dirname "$target")"
  [ -e "$target" ] || : >"$target"
  mount --bind "$1/$file" "$target"
done
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
"""


def run(argv, check=True, bound=BOUND, **options):
    """Runs a program and returns its output. If it fails, the error contains its standard error."""
    ran = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=bound, check=False, **options)
    if check and ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit code {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def children_of(pid):
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                children.append(int(entry.name))
    return children


def child_of(pid):
    """The child of unshare or nsenter, which is in the namespaces."""
    return children_of(pid)[0]


class _Holder:
    """Holds namespaces until it is closed or the test ends."""

    def __init__(self, words, script, *arguments):
        self.process = subprocess.Popen(
            ["unshare", *words, "sh", "-c", script + _HOLD, "sh", *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            said = self.process.stderr.read().decode()
            self.close()
            raise RuntimeError("no namespaces; this takes root and CAP_SYS_ADMIN:\n" + said)

    def close(self):
        self.process.stdin.close()
        self.process.wait(BOUND)
        self.process.stdout.close()
        self.process.stderr.close()


class _NoNames(socketserver.BaseRequestHandler):
    """A name server that answers that no name exists. Without a name server, an engine's own would take many seconds
    to fail; with the real one, a test would reach the network outside."""

    def handle(self):
        query, server = self.request
        server.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], self.client_address)


class Lan:
    """10.N.0.0/16 for an unused N: this machine is 10.N.0.1, the others follow, and the containers of the i-th machine
    have addresses in 10.N.(16 i).0/20, which is routed there."""

    def __init__(self):
        self._holder = _Holder(["--net"], "set -e\nip link add lan type bridge\nip link set lan up\n")
        self.pid = self._holder.process.pid
        self._machines = 0
        try:
            self.number = self._claim()
            self.device = f"muster{self.number}"
            run(["ip", "address", "add", f"{self.prefix}.0.1/24", "dev", self.device])
            run(["ip", "link", "set", self.device, "up"])
            self._plug("here")
            self._names = socketserver.UDPServer((self.address, 53), _NoNames)
            threading.Thread(target=self._names.serve_forever, args=[0.05], daemon=True).start()
        except BaseException:
            self._holder.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._names.shutdown()
        self._names.server_close()
        run(["ip", "link", "delete", self.device])
        self._holder.close()
        if self.device in os.listdir("/sys/class/net"):
            raise AssertionError(f"left behind: the network device {self.device}")

    @property
    def prefix(self):
        return f"10.{self.number}"

    @property
    def address(self):
        """The address of this machine."""
        return f"{self.prefix}.0.1"

    def attach(self, pid):
        """Gives the network namespace of `pid` a device eth0, and returns its number."""
        self._machines += 1
        number = self._machines
        port = f"port{number}"
        run(["nsenter", "--net", "--target", self.pid,
             "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", pid])
        self._plug(port)
        run(["ip", "route", "add", f"{self.prefix}.{16 * number}.0/20",
             "via", f"{self.prefix}.0.{number + 1}"])
        return number

    def _claim(self):
        """Claims a network number by creating a device with this number. Creation is atomic, so only one of several
        tests that run at the same time gets the number."""
        for number in range(64, 128):
            if run(["ip", "route", "show", "root", f"10.{number}.0.0/16"]).strip():
                continue
            name = f"muster{number}"
            made = subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", "here",
                                   "netns", str(self.pid)], capture_output=True, check=False)
            if made.returncode == 0:
                return number
            if name not in os.listdir("/sys/class/net"):
                raise RuntimeError(made.stderr.decode())
        raise RuntimeError("all of 10.64.0.0 to 10.127.0.0 is in use")

    def _plug(self, port):
        run(["nsenter", "--net", "--target", self.pid, "ip", "link", "set", port, "master", "lan", "up"])


class Process:
    """A program in a machine."""

    def __init__(self, popen):
        self.popen = popen

    def send(self, number):
        """Sends a signal to the program itself, because nsenter, its parent, only waits."""
        os.kill(child_of(self.popen.pid), number)

    def freeze(self):
        self.send(signal.SIGSTOP)
        # nsenter stops with its child, and would miss a SIGCONT that comes before.
        os.waitid(os.P_PID, self.popen.pid, os.WSTOPPED)

    def thaw(self):
        self.popen.send_signal(signal.SIGCONT)

    def end(self, number=signal.SIGKILL):
        if self.popen.poll() is None:
            self.send(number)
            self.wait()

    def wait(self):
        return self.popen.wait(BOUND)


class Machine:
    """A machine with its own network, mounts and processes, on this machine's files; `folder` contains its /run."""

    def __init__(self, lan, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._processes = []
        self._holder = _Holder(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
                               _FURNISH, self.folder, lan.address)
        try:
            self.pid = child_of(self._holder.process.pid)
            self.number = lan.attach(self.pid)
            self.address = f"{lan.prefix}.0.{self.number + 1}"
            self.pool = f"{lan.prefix}.{16 * self.number}.0/20"
            self.run(["ip", "address", "add", self.address + "/24", "dev", "eth0"])
            self.run(["ip", "link", "set", "eth0", "up"])
            # A container of an internal network answers only addresses of its bridge. Packets of the test get
            # such an address, as if engine and server shared a machine. (Podman's internal networks are
            # unreachable anyway: Podman forwards nothing into them.)
            self.run(["iptables", "-t", "nat", "-A", "POSTROUTING", "-s", lan.address, "!", "-o", "eth0",
                      "-j", "MASQUERADE"])
        except BaseException:
            self._holder.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Kills all processes of the machine, and returns after they have ended."""
        # The machine ends only when its killed processes have been reaped, which a stopped parent would not do.
        for process in self._processes:
            if process.popen.poll() is None:
                process.thaw()
        self._holder.close()

    def spawn(self, argv, environment=None, **options):
        process = Process(subprocess.Popen(self._inside(argv), stdin=subprocess.DEVNULL,
                                           env=environment, **options))
        self._processes.append(process)
        return process

    def run(self, argv, environment=None, check=True):
        return run(self._inside(argv), check=check, env=environment)

    def _inside(self, argv):
        return ["nsenter", "--target", str(self.pid), "--mount", "--net", "--pid",
                "env", "--chdir", str(self.folder), *map(str, argv)]
