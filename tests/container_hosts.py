"""Hosts for the tests of containers: real engines, each on a separate machine, with the addresses that users have.

    with PodmanService(folder) as engine:           # one engine behind its socket (engine_services.py)
        environment["DOCKER_HOST"] = engine.url

    with PodmanHosts(2, folder) as hosts:           # several, behind addresses
        for host in hosts:
            host.engine                             # the PodmanService behind it
            host.address                            # also that of its containers on the host's network
            host.tls_url, hosts.certificates        # tcp://ADDRESS:2376, DOCKER_CERT_PATH
            host.ssh_url, hosts.ssh_options         # ssh://root@ADDRESS/SOCKET, for the ssh command
            host.cut(), host.join()                 # takes it off the network, and puts it back

    with Registry(hosts.lan, folder, user="ann", password="secret") as registry:
        registry.push(engine, "muster-test-base")   # answers the reference to pull it by

DockerHosts does the same with Docker. Requires root and the packages of apt-packages-containers.txt. At the end all
hosts are removed (see engine_machine.py).
"""

import os
import signal
import subprocess
import threading
from pathlib import Path

from engine_machine import Lan, Machine, run
from engine_registry import Registry
from engine_services import DockerService, IMAGES, PodmanService

__all__ = ["DockerHosts", "DockerService", "IMAGES", "Lan", "PodmanHosts", "PodmanService", "Registry"]

TLS_PORT = 2376


def make_certificates(folder, addresses):
    """ca.pem, cert.pem and key.pem as DOCKER_CERT_PATH has them, server-cert.pem and server-key.pem,
    and in `folder`/stranger a client's pair that another authority has signed."""
    for place, authority in ((folder, "muster test"), (folder / "stranger", "somebody else")):
        place.mkdir(parents=True)
        run(["openssl", "req", "-x509", "-newkey", "ed25519", "-noenc", "-days", "2",
             "-subj", f"/CN={authority}", "-addext", "keyUsage=critical,keyCertSign",
             "-keyout", place / "ca-key.pem", "-out", place / "ca.pem"])
        _sign(place, "", "/CN=client", "extendedKeyUsage=clientAuth")
    names = ",".join(f"IP:{each}" for each in addresses)
    _sign(folder, "server-", "/CN=host", f"subjectAltName={names}\nextendedKeyUsage=serverAuth")


def _sign(folder, prefix, subject, extensions):
    request, settings = folder / "request.pem", folder / "extensions"
    settings.write_text(extensions + "\n")
    run(["openssl", "req", "-newkey", "ed25519", "-noenc", "-subj", subject,
         "-keyout", folder / f"{prefix}key.pem", "-out", request])
    run(["openssl", "x509", "-req", "-in", request, "-CA", folder / "ca.pem",
         "-CAkey", folder / "ca-key.pem", "-CAcreateserial", "-days", "2", "-extfile", settings,
         "-out", folder / f"{prefix}cert.pem"])


def _read_away(stream):
    """Reads a log to its end, because a server blocks if its log is not read."""
    with stream:
        for _ in stream:
            pass


def _spawn_until(machine, argv, words, **options):
    """Starts a server that reports on its standard error that it listens."""
    server = machine.spawn(argv, stderr=subprocess.PIPE, **options)
    said = []
    for line in server.popen.stderr:
        said.append(line.decode(errors="replace"))
        if words in said[-1]:
            threading.Thread(target=_read_away, args=[server.popen.stderr], daemon=True).start()
            return server
    raise RuntimeError(f"{argv[0]} did not start:\n{''.join(said)}")


class Host:
    """A machine with an engine, an SSH server and, on port 2376, the engine's API over TLS."""

    def __init__(self, hosts, machine, engine):
        self._hosts = hosts
        self.machine = machine
        self.engine = engine
        self.address = machine.address
        self.tls_url = f"tcp://{machine.address}:{TLS_PORT}"
        self.ssh_url = f"ssh://root@{machine.address}{engine.socket}"
        self._sshd = self._start_sshd(hosts.folder)
        # Docker speaks TLS itself; Podman 4 does not.
        self._tunnel = None if engine.NAME == "docker" else self._start_tunnel(hosts.certificates)

    def cut(self):
        """Cuts the host off, like a pulled cable: connections are neither refused nor answered."""
        self.machine.run(["ip", "link", "set", "eth0", "down"])

    def join(self):
        self.machine.run(["ip", "link", "set", "eth0", "up"])

    def end_connections(self):
        """Breaks the current TLS connections; new connections are served."""
        if self._tunnel is None:
            raise NotImplementedError("Docker's own TLS: restart the engine")
        self._tunnel.end(signal.SIGKILL)
        self._tunnel = self._start_tunnel(self._hosts.certificates)

    def close(self):
        for server in (self._sshd, self._tunnel):
            if server:
                server.end()

    def _start_sshd(self, folder):
        (self.machine.folder / "run" / "sshd").mkdir()
        settings = self.machine.folder / "sshd_config"
        # The engine's own command (`docker system dial-stdio`) finds its socket by these.
        settings.write_text(
            f"ListenAddress {self.address}\nHostKey {folder}/ssh/host_key\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/ssh/key.pub\nStrictModes no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nAllowStreamLocalForwarding yes\nMaxStartups 100\n"
            f"SetEnv DOCKER_HOST={self.engine.url} CONTAINER_HOST={self.engine.url}\n")
        return _spawn_until(self.machine, ["/usr/sbin/sshd", "-D", "-e", "-f", settings],
                            "Server listening on")

    def _start_tunnel(self, certificates):
        settings = self.machine.folder / "stunnel.conf"
        settings.write_text(
            f"foreground = yes\npid =\nsyslog = no\ndebug = info\n[engine]\n"
            f"accept = {self.address}:{TLS_PORT}\nconnect = {self.engine.socket}\n"
            f"cert = {certificates}/server-cert.pem\nkey = {certificates}/server-key.pem\n"
            f"CAfile = {certificates}/ca.pem\nverifyChain = yes\n")
        return _spawn_until(self.machine, ["stunnel", settings], "bound to")


class _Hosts:
    """`count` hosts on one network: a sequence of Host."""

    def __init__(self, count, folder):
        self.folder = Path(folder) / "hosts"
        self.folder.mkdir(parents=True)
        self.certificates = self.folder / "tls"
        self.lan = Lan()
        self._machines = []
        self._engines = []
        self._hosts = []
        try:
            for number in range(count):
                self._machines.append(Machine(self.lan, self.folder / f"machine-{number}"))
            addresses = [machine.address for machine in self._machines]
            make_certificates(self.certificates, addresses)
            self.ssh_options = self._make_keys(addresses)
            for number, machine in enumerate(self._machines):
                engine = self._start_engine(self.folder / f"engine-{number}", machine)
                self._engines.append(engine)
                self._hosts.append(Host(self, machine, engine))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __getitem__(self, number):
        return self._hosts[number]

    def __len__(self):
        return len(self._hosts)

    def close(self):
        for each in (*self._hosts, *self._engines, *self._machines):
            each.close()
        self.lan.close()
        run(["rm", "-rf", self.folder])

    def _start_engine(self, folder, machine):
        raise NotImplementedError

    def _make_keys(self, addresses):
        """The ssh options with which a client can log in, and trusts only these hosts."""
        folder = self.folder / "ssh"
        folder.mkdir()
        for name in ("key", "host_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
        key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text("".join(f"{each} {key}\n" for each in addresses))
        os.chmod(folder / "key", 0o600)
        self.ssh_key, self.known_hosts = folder / "key", folder / "known_hosts"
        return ["-F", "none", "-i", str(folder / "key"), "-o", "IdentitiesOnly=yes",
                "-o", f"UserKnownHostsFile={folder}/known_hosts", "-o", "BatchMode=yes"]


class PodmanHosts(_Hosts):
    def _start_engine(self, folder, machine):
        return PodmanService(folder, machine)


class DockerHosts(_Hosts):
    def _start_engine(self, folder, machine):
        return DockerService(folder, machine, certificates=self.certificates)
