"""Real container engines for tests, each with storage, networks and processes of its own.

    with PodmanService(folder) as engine:
        environment["DOCKER_HOST"] = engine.url         # the code under test connects to the engine's socket
        engine.podman("run", "--detach", ...)           # Podman's own command, to prepare a test

`engine.api("GET", "/containers/json")` sends a request over its socket. `kill()` and `restart()` affect only the
engine: its containers continue. `hang()` makes it accept connections without answering.

The images of scripts/test_images.sh are there from the start (PodmanService), or after load("muster-test-openmpi")
(DockerService), under the name localhost/muster-test-openmpi. The storage is in memory, because removing an image from
a disk takes many seconds. `capacity` is the size of the storage, for tests in which it becomes full.

On exit everything ends, and nothing may remain: no process, mount, device, cgroup or file.
"""

import http.client
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from engine_machine import BOUND, Lan, Machine, child_of, children_of
from machine_state import matching

IMAGES = Path(__file__).resolve().parent.parent / "build" / "images"

_CGROUPS = Path("/sys/fs/cgroup")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("engine", timeout=BOUND)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Service:
    """The base of both engines. `machine`: the machine on which it runs, or None for a new one."""

    NAME = ""

    def __init__(self, folder, machine=None, capacity="4G"):
        self.folder = Path(folder) / self.NAME
        self.folder.mkdir(parents=True)
        self.socket = self.folder / "engine.sock"
        self.url = f"unix://{self.socket}"
        self.storage = self.folder / "storage"
        self.storage.mkdir()
        self._lan = None if machine else Lan()
        self.machine = machine or Machine(self._lan, self.folder / "machine")
        self._process = None
        self._ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ready.bind(str(self.folder / "ready"))
        self._ready.settimeout(BOUND)
        try:
            self.machine.run(["mount", "-t", "tmpfs", "-o", f"size={capacity}", "tmpfs", self.storage])
            self._configure()
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def api(self, method, path, body=None, headers=()):
        """(status, body), with JSON decoded."""
        connection = _UnixConnection(self.socket)
        try:
            fields = {"Content-Type": "application/json"} | dict(headers)
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, "/v1.41" + path, body=data, headers=fields)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def containers(self):
        """The names of all containers, also of ended ones."""
        return sorted(each["Names"][0].lstrip("/") for each in self.api("GET", "/containers/json?all=1")[1])

    def start(self):
        """Starts the engine. Returns once the engine reports, like a service of systemd, that it listens."""
        environment = self._environment() | {"NOTIFY_SOCKET": str(self.folder / "ready")}
        with open(self.folder / "log", "ab") as log:
            self._process = self.machine.spawn(self._command(), environment, stdout=log, stderr=log)
        try:
            while b"READY=1" not in self._ready.recv(4096):
                pass
        except TimeoutError:
            raise RuntimeError(f"{self.NAME} did not start:\n{self.log()}") from None
        self._started()

    def kill(self):
        children = [os.pidfd_open(pid) for pid in children_of(child_of(self._process.popen.pid))]
        self._process.end(signal.SIGKILL)
        # The kernel ends Docker's containerd together with Docker. Before that, a new Docker would use the old
        # containerd.
        for child in children:
            select.select([child], [], [], BOUND)
            os.close(child)

    def stop(self):
        self._process.end(signal.SIGTERM)

    def restart(self):
        """Kills the engine and starts it again, as after a crash."""
        self.kill()
        self.start()

    def hang(self):
        self._process.freeze()

    def resume(self):
        self._process.thaw()

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def close(self):
        containers = self._container_ids()
        self.machine.close()
        if self._process:
            self._process.wait()
        if self._lan:
            self._lan.close()
        self._ready.close()
        self._remove_cgroups(containers)
        shutil.rmtree(self.folder)
        left = [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
                if str(self.folder) in line]
        left += [str(path) for path in self._cgroups_of(containers)]
        if left:
            raise AssertionError("left behind:\n" + "\n".join(left))

    def _started(self):
        pass

    def _environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}

    def _remove_cgroups(self, containers):
        """Removes the cgroups of containers that were killed with their machine."""
        for top in self._cgroups_of(containers):
            for path, _, _ in os.walk(top, topdown=False):
                os.rmdir(path)


def _limits():
    """Limits for the processes of a container: at most those that root may set without CAP_SYS_RESOURCE."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if processes == resource.RLIM_INFINITY:
        processes = 30000
    return {"nofile": min(files, 20000), "nproc": min(processes, 30000)}


class PodmanService(_Service):
    NAME = "podman"

    def podman(self, *words, check=True):
        return self.machine.run([*self._podman(), *words], self._environment(), check=check)

    def spawn(self, *words, **options):
        """Starts a command of Podman. Returns its Popen while the command runs."""
        return self.machine.spawn([*self._podman(), *words], self._environment(), **options).popen

    def _podman(self):
        return ["podman", "--tmpdir", self.folder / "libpod"]

    def _command(self):
        return [*self._podman(), "system", "service", "--time=0", self.url]

    def _environment(self):
        return super()._environment() | {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            "REGISTRY_AUTH_FILE": str(self.folder / "auth.json"),
            "TMPDIR": str(self.folder / "tmp")}

    def _configure(self):
        (self.folder / "tmp").mkdir()
        (self.folder / "auth.json").write_text("{}")
        limits = ", ".join(f'"{name}={limit}:{limit}"' for name, limit in _limits().items())
        # Events are stored in a file, because the machine has no journald. They outlive a restart of the service.
        (self.folder / "containers.conf").write_text(
            f"[containers]\ndefault_ulimits = [{limits}]\n"
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
            'helper_binaries_dir = ["/usr/lib/podman", "/usr/libexec/podman"]\n'
            f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{self.folder}/networks"\n'
            f'default_subnet_pools = [{{base = "{self.machine.pool}", size = 24}}]\n'
            f'default_subnet = "{self.machine.pool.removesuffix("/20")}/24"\n')
        store = IMAGES / "store"
        stores = f'[storage.options]\nadditionalimagestores = ["{store}"]\n' if store.is_dir() else ""
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.storage}"\n'
            f'runroot = "{self.folder}/runroot"\n{stores}')
        self.allow_registries()

    def allow_registries(self, *addresses):
        """Allows these registries without TLS, from the next start on."""
        (self.folder / "registries.conf").write_text(
            "unqualified-search-registries = []\n" +
            "".join(f'[[registry]]\nlocation = "{each}"\ninsecure = true\n' for each in addresses))

    def _container_ids(self):
        storage = Path(f"/proc/{self.machine.pid}/root{self.storage}")
        return [path.name for path in matching(storage, "overlay-containers/*") if path.is_dir()]

    @staticmethod
    def _cgroups_of(containers):
        return [path for each in containers
                for pattern in (f"*/libpod_parent/libpod-{each}", f"libpod_parent/libpod-{each}")
                for path in matching(_CGROUPS, pattern)]


class DockerService(_Service):
    NAME = "docker"

    # `certificates`: a folder of certificates, with which Docker also listens at tcp://address:2376
    # (container_hosts.py).
    def __init__(self, folder, machine=None, capacity="4G", certificates=None):
        self._certificates = certificates
        super().__init__(folder, machine, capacity)

    def load(self, *images):
        for image in images:
            with open(IMAGES / f"{image}.tar", "rb") as archive:
                status, said = self.api("POST", "/images/load?quiet=1", archive.read(),
                                        {"Content-Type": "application/x-tar"})
            if status != 200 or b"error" in json.dumps(said).encode():
                raise RuntimeError(f"{image} was not loaded: {said}")

    def allow_registries(self, *addresses):
        """Allows these registries without TLS, from the next start on."""
        self._write_settings(list(addresses))

    def _configure(self):
        self._write_settings([])

    def _write_settings(self, registries):
        address, length = self.machine.pool.split("/")
        gateway = address.removesuffix(".0") + ".1/24"
        settings = {
            # Containers must continue while Docker is killed and restarted, as with Podman.
            "live-restore": True,
            "hosts": [self.url],
            "data-root": str(self.storage), "exec-root": str(self.folder / "exec"),
            "pidfile": str(self.folder / "docker.pid"), "storage-driver": "overlay2",
            "cgroup-parent": self._cgroup_parent(), "oom-score-adjust": 0,
            "default-ulimits": {name: {"Name": name, "Soft": limit, "Hard": limit}
                                for name, limit in _limits().items()},
            "bip": gateway, "default-address-pools": [{"base": f"{address}/{length}", "size": 24}],
            "insecure-registries": registries}
        if self._certificates:
            folder = Path(self._certificates)
            settings |= {"tlsverify": True, "tlscacert": str(folder / "ca.pem"),
                         "tlscert": str(folder / "server-cert.pem"),
                         "tlskey": str(folder / "server-key.pem")}
            settings["hosts"].append(f"tcp://{self.machine.address}:2376")
        (self.folder / "daemon.json").write_text(json.dumps(settings))

    def _command(self):
        return ["dockerd", "--config-file", self.folder / "daemon.json"]

    def _started(self):
        # Docker's firewall would drop packets from outside the machine, such as those of the test.
        for rule in (["-i", "eth0"], ["-o", "eth0", "-m", "conntrack", "--ctstate", "ESTABLISHED"]):
            self.machine.run(["iptables", "-I", "DOCKER-USER", *rule, "-j", "ACCEPT"])

    def _cgroup_parent(self):
        return f"/muster-test-{self.machine.pid}"

    def _container_ids(self):
        return [self._cgroup_parent()]

    @staticmethod
    def _cgroups_of(parents):
        return [path for each in parents for pattern in ("*" + each, each.lstrip("/"))
                for path in matching(_CGROUPS, pattern)]
