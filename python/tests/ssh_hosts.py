"""Hosts that are reached by ssh, all of them this machine: an sshd for each, on an address of its own on loopback.

    with SshHosts("alpha", "beta") as hosts:
        horovodrun("-np", 2, "-H", "alpha,beta", "true", PATH=hosts.path)

`path` begins with an ssh that resolves the names. Keys are made for it, and everything is removed at the end.
"""

import contextlib
import getpass
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

_BOUND = 180.0
SSHD = "/usr/sbin/sshd"


class SshHosts:
    def __init__(self, *names, login=""):
        """`login`: the text that a login prints before any other output."""
        self.folder = Path(tempfile.mkdtemp(prefix="muster-ssh-"))
        self._servers = {}
        try:
            for name in ("host", "user"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
            if os.geteuid() == 0:
                Path("/run/sshd").mkdir(exist_ok=True)
            settings = self._settings(login)
            blocks = []
            for number, name in enumerate(names, 2):
                address = f"127.0.0.{number}"
                self._servers[name], port = self._start(address, settings)
                blocks.append(self._block(name, address, port))
            (self.folder / "config").write_text("".join(blocks))
            self._write_ssh()
        except BaseException:
            self.close()
            raise

    @property
    def path(self):
        return f"{self.folder}/bin:{os.environ['PATH']}"

    def cut(self, name):
        """Removes the host: its sshd and all of its connections, at once."""
        server = self._servers[name]
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        for pid in (server.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):  # its connection has ended
                os.kill(pid, signal.SIGKILL)
        server.wait()

    def close(self):
        for server in self._servers.values():
            if server.poll() is None:
                server.kill()
            server.wait()
            server.stderr.close()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _settings(self, login):
        banner = ""
        if login:
            script = self.folder / "login"
            script.write_text(f"#!/bin/sh\necho '{login}'\neval \"$SSH_ORIGINAL_COMMAND\"\n")
            script.chmod(0o700)
            banner = f"ForceCommand {script}\n"
        return (f"HostKey {self.folder}/host\nPidFile none\nUsePAM no\nAuthorizedKeysFile {self.folder}/user.pub\n"
                f"StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 100\n{banner}")

    def _start(self, address, settings):
        # sshd cannot choose a free port itself; another process may take the free port first.
        for _ in range(10):
            port = _free_port(address)
            server, said = self._try(address, port, settings)
            if b"listening on" in said:
                return server, port
            server.kill()
            server.wait()
            server.stderr.close()
        raise AssertionError(f"sshd did not start: {said.decode()}")

    def _try(self, address, port, settings):
        file = self.folder / f"sshd-{address}"
        file.write_text(f"ListenAddress {address}\nPort {port}\n{settings}")
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", file], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, bufsize=0)
        said = b""
        deadline = time.monotonic() + _BOUND
        while b"listening on" not in said or not said.endswith(b"\n"):
            if not select.select([server.stderr], [], [], max(0, deadline - time.monotonic()))[0]:
                break
            received = server.stderr.read(4096)
            if not received:
                break
            said += received
        return server, said

    def _block(self, name, address, port):
        known = self.folder / "known_hosts"
        key = (self.folder / "host.pub").read_text()
        with open(known, "a") as file:
            file.write(f"{name} {key}")
        return (f"Host {name}\n  HostName {address}\n  Port {port}\n  User {getpass.getuser()}\n  HostKeyAlias {name}\n"
                f"  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n"
                "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n")

    def _write_ssh(self):
        """Also records its command lines, for checks that they contain no secrets."""
        (self.folder / "bin").mkdir()
        script = self.folder / "bin" / "ssh"
        script.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {self.folder}/asked\n"
                          f"exec {shutil.which('ssh')} -F {self.folder}/config \"$@\"\n")
        script.chmod(0o700)

    @property
    def command_lines(self):
        return (self.folder / "asked").read_text()


def _free_port(address):
    with socket.socket() as any_socket:
        any_socket.bind((address, 0))
        return any_socket.getsockname()[1]
