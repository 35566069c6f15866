"""Containers for bare mpirun, set up with Podman's own commands: the work that Muster does for a job, done without
Muster. Network, keys and settings are created once, before the measurement."""

import concurrent.futures
import subprocess

NETWORK = "by-hand"
WORKERS = ["bare-worker-0", "bare-worker-1"]
LAUNCHER = "bare-launcher"


class ByHand:
    """`programs`: a folder that each container mounts as /job."""

    def __init__(self, engine, image, folder, programs):
        self._engine, self._image, self._folder, self._programs = engine, image, folder, programs
        self._names = []
        self._servers = []

    def __enter__(self):
        self._folder.mkdir()
        for name in ("client", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._folder / name],
                           check=True)
        self._write_files()
        self._engine.podman("network", "create", "--internal", NETWORK)
        return self

    def __exit__(self, *ignored):
        self.remove()
        self._engine.podman("network", "rm", NETWORK)

    def start_workers(self, at_once):
        """Starts the workers, and waits until an sshd answers in each. `at_once`: the number of parallel commands."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self._start_worker, WORKERS))

    def mpirun(self, mpirun, *program):
        return self.run(LAUNCHER, *mpirun, "--hostfile", "/by-hand/hostfile", "-mca", "plm_rsh_args",
                        "-F /by-hand/config", *map(str, program))

    def run(self, name, *words):
        """Runs a container in the foreground. Returns the process, from which its output can be read."""
        self._names.append(name)
        return self._engine.spawn("run", *self._flags(name), *words, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)

    def remove(self):
        names, self._names = self._names, []
        if names:
            self._engine.podman("rm", "--force", "--ignore", "--time", "0", *names)
        servers, self._servers = self._servers, []
        for server in servers:
            server.stderr.close()
            server.wait()

    def _flags(self, name):
        return ["--name", name, "--hostname", name, "--network", NETWORK, "--pull", "never",
                "--volume", f"{self._folder}:/by-hand:ro", "--volume", f"{self._programs}:/job:ro",
                self._image]

    def _start_worker(self, name):
        self._names.append(name)
        process = self._engine.spawn("run", *self._flags(name), "/usr/sbin/sshd", "-D", "-e", "-f",
                                     "/by-hand/sshd_config", stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
        self._servers.append(process)
        for line in process.stderr:
            if b"Server listening on" in line:
                return
        raise RuntimeError(f"no sshd in {name}")

    def _write_files(self):
        folder = self._folder
        (folder / "sshd_config").write_text(
            "HostKey /by-hand/host\nAuthorizedKeysFile /by-hand/client.pub\nUsePAM no\nStrictModes no\n"
            "UseDNS no\nPidFile none\nPrintMotd no\nPrintLastLog no\n")
        (folder / "config").write_text(
            "Host *\n  IdentityFile /by-hand/client\n  IdentitiesOnly yes\n  BatchMode yes\n"
            "  UserKnownHostsFile /by-hand/known_hosts\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n")
        public = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text("".join(f"{name} {public}" for name in WORKERS))
        (folder / "hostfile").write_text("".join(f"{name} slots=1\n" for name in WORKERS))
