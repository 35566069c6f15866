"""Two hosts for bare mpirun, set up as in tutorials: a sandbox with a host name and an sshd for each, new keys, and a
hostfile. This is the work that Muster does for a job, done without Muster."""

import os
import pathlib
import subprocess
import tempfile

NAMES = ["bare-worker-0", "bare-worker-1"]
ADDRESSES = ["127.9.9.1", "127.9.9.2"]
PORT = 10022


class TwoHosts:
    def __enter__(self):
        self.holder = tempfile.TemporaryDirectory(prefix="bare-hosts-")
        self.folder = pathlib.Path(self.holder.name)
        self._make_keys()
        self._write_files()
        self.hosts = [self._start(name, address) for name, address in zip(NAMES, ADDRESSES)]
        for name in NAMES:
            self._wait_for(name)
        return self

    def __exit__(self, *ignored):
        for host in self.hosts:
            host.kill()
            host.wait()
        self.holder.cleanup()

    def mpirun(self, program):
        """Returns the command, and its environment."""
        environment = dict(os.environ,
                           OMPI_MCA_plm_rsh_args=f"-F {self.folder}/config",
                           OMPI_MCA_oob_tcp_if_include="lo", OMPI_MCA_btl_tcp_if_include="lo")
        return ["mpirun", "--allow-run-as-root", "-np", "2", "--hostfile",
                str(self.folder / "hostfile"), "-bind-to", "none", "-map-by", "slot",
                "-mca", "pml", "ob1", "-mca", "btl", "^openib", str(program)], environment

    def _make_keys(self):
        for name in ["client", "host"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            self.folder / name], check=True)

    def _write_files(self):
        folder = self.folder
        (folder / "sshd_config").write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/client.pub\nUsePAM no\n"
            "StrictModes no\nUseDNS no\nPidFile none\nPrintMotd no\nPrintLastLog no\n"
            "LogLevel ERROR\n")
        lines = []
        for name, address in zip(NAMES, ADDRESSES):
            lines.append(f"Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n")
        lines.append(f"Host *\n  Port {PORT}\n  IdentityFile {folder}/client\n"
                     f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
                     "  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n")
        (folder / "config").write_text("".join(lines))
        public = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text("".join(f"{name} {public}" for name in NAMES))
        (folder / "hostfile").write_text("".join(f"{name} slots=1\n" for name in NAMES))
        # mpirun asks the resolver whether a name is this host. Unless the resolver finds the names, each request takes
        # a timeout of DNS. Sandboxes mount this file as /etc/hosts.
        (folder / "hosts").write_text(
            "".join(f"{a} {n}\n" for n, a in zip(NAMES, ADDRESSES)) +
            pathlib.Path("/etc/hosts").read_text())

    def _sandbox(self, name):
        words = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--ro-bind",
                 str(self.folder / "hosts"), "/etc/hosts", "--unshare-pid", "--unshare-uts",
                 "--hostname", name, "--die-with-parent"]
        if os.geteuid() == 0:
            words += ["--tmpfs", "/run", "--dir", "/run/sshd"]
        return words

    def inside(self, command):
        """`command` in a sandbox in which the two names resolve, as on a machine whose hosts file has them."""
        return self._sandbox("bare-launcher") + command

    def _start(self, name, address):
        return subprocess.Popen([*self._sandbox(name), "/usr/sbin/sshd", "-D", "-e", "-f",
                                 str(self.folder / "sshd_config"), "-o",
                                 f"ListenAddress={address}:{PORT}"],
                                stdin=subprocess.DEVNULL)

    def _wait_for(self, name):
        while subprocess.run(["ssh", "-F", self.folder / "config", name, "true"],
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            pass
