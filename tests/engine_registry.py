"""A private, empty registry on the network of a test's machines. It has no TLS, so an engine must be allowed to use it:
engine.allow_registries(address), then engine.restart().
"""

import crypt
import subprocess
import warnings
from pathlib import Path

from engine_machine import BOUND


class Registry:
    """`user`, `password`: the login that the registry requires, if they are given."""

    def __init__(self, lan, folder, user=None, password=None, port=5000):
        self.folder = Path(folder) / "registry"
        self.folder.mkdir(parents=True)
        self.address = f"{lan.address}:{port}"
        self._credentials = (user, password) if user else None
        (self.folder / "config.yml").write_text(
            "version: 0.1\nlog: {level: info}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.folder}/storage}}}}\n"
            f"http: {{addr: '{self.address}'}}\n{self._authentication()}")
        self._process = subprocess.Popen(
            ["docker-registry", "serve", self.folder / "config.yml"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={"PATH": "/usr/bin"})
        said = b""
        for line in self._process.stderr:
            said += line
            if b"listening on" in line:
                break
        else:
            raise RuntimeError("the registry did not start:\n" + said.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.kill()
        self._process.wait(BOUND)
        self._process.stderr.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def push(self, podman, image, name=None):
        """Copies an image of scripts/test_images.sh into the registry, by the PodmanService `podman`."""
        reference = f"{self.address}/{name or image}:latest"
        credentials = ["--creds", ":".join(self._credentials)] if self._credentials else []
        podman.podman("push", "--tls-verify=false", *credentials, f"localhost/{image}:latest",
                      f"docker://{reference}")
        return reference

    def _authentication(self):
        if not self._credentials:
            return ""
        user, password = self._credentials
        (self.folder / "htpasswd").write_text(f"{user}:{_bcrypt(password)}\n")
        return f"auth: {{htpasswd: {{realm: test, path: {self.folder}/htpasswd}}}}\n"


def _bcrypt(password):
    """The hash of a password in the only format that the registry reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH))
