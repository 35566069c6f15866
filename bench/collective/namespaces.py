"""Two network namespaces joined by a veth pair, like two hosts joined by a cable, and a third with a loopback
interface only, which can have a congestion control of its own. Requires root. All of them are removed at the end.
"""

import os
import pathlib
import subprocess

# Reserved for measuring networks (RFC 2544), so that no other host has them.
ADDRESSES = ["198.18.77.1", "198.18.77.2"]
ALLOWED = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEFAULT = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")


def system_congestion_control():
    return DEFAULT.read_text().strip()


class Namespaces:
    """`places`[rank % 2] is the namespace of a rank; `loopback` is the third namespace."""

    def __init__(self, folder):
        own = f"muster-bench-{os.getpid()}"
        self.places = [f"{own}-0", f"{own}-1"]
        self.loopback = f"{own}-lo"
        self.interface = "cable"
        self.agent = pathlib.Path(folder) / "agent"
        self.allowed = None

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *ignored):
        for name in [*self.places, self.loopback]:
            # Its end of the veth pair is removed with it.
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        if self.allowed is not None:
            ALLOWED.write_text(self.allowed)

    def inside(self, rank, command):
        return ["ip", "netns", "exec", self.places[rank % 2], *command]

    def use_congestion_control(self, name):
        """Sets the default of every connection that is made from now on."""
        for place in [*self.places, self.loopback]:
            self._run("ip", "netns", "exec", place, "sysctl", "-qw",
                      f"net.ipv4.tcp_congestion_control={name}")

    def _make(self):
        for name in [*self.places, self.loopback]:
            self._run("ip", "netns", "add", name)
            self._run("ip", "-n", name, "link", "set", "lo", "up")
        here, there = self.places
        self._run("ip", "-n", here, "link", "add", self.interface, "type", "veth",
                  "peer", "name", self.interface, "netns", there)
        for name, address in zip(self.places, ADDRESSES):
            self._run("ip", "-n", name, "address", "add", f"{address}/24", "dev", self.interface)
            self._run("ip", "-n", name, "link", "set", self.interface, "up")
        self._allow("cubic")
        self._write_agent()

    def _allow(self, name):
        """A namespace may use only the congestion controls that the machine allows, so this extends that list."""
        allowed = ALLOWED.read_text()
        if name not in allowed.split():
            ALLOWED.write_text(f"{allowed.strip()} {name}")
            self.allowed = allowed

    def _write_agent(self):
        """The program that mpirun runs instead of ssh. The second host gets a name of its own: if both had the
        same name, Open MPI and MPICH would regard them as one host."""
        self.agent.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {ADDRESSES[0]}) place={self.places[0]} ;; *) place={self.places[1]} ;; esac
shift
exec ip netns exec $place unshare --uts sh -c "hostname $place; $*"
""")
        self.agent.chmod(0o700)

    @staticmethod
    def _run(*command):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
