"""Two network namespaces joined by a veth pair, as two hosts are by a cable; and one with nothing
but a loopback, for a congestion control of its own. Needs root. All of it is gone at the end.
"""

import os
import pathlib
import subprocess

# Set aside for measuring networks (RFC 2544), so it is nobody's.
ADDRESSES = ["198.18.77.1", "198.18.77.2"]
ALLOWED = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEFAULT = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")


def system_congestion_control():
    return DEFAULT.read_text().strip()


class Namespaces:
    """`places`[rank % 2] is where a rank is; `loopback` is the third namespace."""

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
            # Its end of the cable goes with it.
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        if self.allowed is not None:
            ALLOWED.write_text(self.allowed)

    def inside(self, rank, command):
        return ["ip", "netns", "exec", self.places[rank % 2], *command]

    def use_congestion_control(self, name):
        """Of every connection made from now on that does not choose its own."""
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
        """A namespace may take only what the machine lists, and the list is the machine's."""
        allowed = ALLOWED.read_text()
        if name not in allowed.split():
            ALLOWED.write_text(f"{allowed.strip()} {name}")
            self.allowed = allowed

    def _write_agent(self):
        """What an mpirun is given for ssh. The second host gets a name of its own: with the same
        name twice, Open MPI and MPICH would take them for one host."""
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
