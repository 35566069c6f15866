"""Types the commands of docs/kubernetes-server.md into a shell beside a real cluster. Commands that need a registry are
left out; instead, the images are loaded into the nodes under the names that they would have in the registry."""

import io
import os
import re
import signal
import socket
import subprocess
import tarfile
import tempfile
from pathlib import Path

from docs_pages import FOLDER, blocks_of
from kubernetes_chart import helm_program
from kubernetes_server_harness import NODE_IMAGE, SERVER_IMAGE, ServerTest
from muster_harness import BOUND, BUILD, ROOT, main
from postgres_harness import Postgres

PAGE = "kubernetes-server.md"
REGISTRY = "registry.example.org"


def sections():
    """The shell blocks below each heading."""
    lines = (FOLDER / PAGE).read_text(encoding="utf-8").splitlines()
    headings = [(number, line[3:]) for number, line in enumerate(lines, 1) if line.startswith("## ")]
    found = {title: [] for _, title in headings}
    for block in blocks_of(PAGE):
        if lines[block.line - 2] == "```sh":
            title = [title for number, title in headings if number < block.line][-1]
            found[title].append(block)
    return found


def renamed(archive, target):
    """Copies a docker archive. The images in the copy have the names of the registry."""
    with tarfile.open(archive) as source, tarfile.open(target, "w") as copy:
        for member in source:
            data = source.extractfile(member)
            if member.name == "manifest.json":
                text = data.read().decode().replace("localhost/", f"{REGISTRY}/").encode()
                member.size, data = len(text), io.BytesIO(text)
            copy.addfile(member, data)
    return target


class ThePage(ServerTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as folder:
            for archive in (SERVER_IMAGE, NODE_IMAGE):
                cls.cluster.import_image(renamed(archive, Path(folder) / archive.name))

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-page-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        (self.folder / "packaging").symlink_to(ROOT / "packaging")
        (self.folder / "bin").mkdir()
        for path in (helm_program(), BUILD / "platform" / "muster"):
            (self.folder / "bin" / Path(path).name).symlink_to(path)
        environment = os.environ | self.cluster.environment
        self.environment = environment | {
            "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"), "PATH": f"{self.folder}/bin:{environment['PATH']}"}
        self.pages = sections()
        self.substitutes = {}
        self.addCleanup(self.remove_namespaces)

    def remove_namespaces(self):
        self.cluster.kubectl("delete", "namespace", "muster", "muster-jobs", "--ignore-not-found")

    def make_volume(self, name, modes=("ReadWriteOnce",)):
        """Creates a volume for the claim `muster`, because the cluster has no storage class."""
        volume = self.cluster.folder / "volumes" / name
        volume.mkdir(parents=True)
        volume.chmod(0o777)  # the kubelet gives the folder of a node to no group, unlike a disk
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "20Gi"}, "accessModes": list(modes), "hostPath": {"path": str(volume)},
            "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "muster", "name": "muster"}}})
        self.addCleanup(self.cluster.kubectl, "delete", "persistentvolume", name, "--wait=false")

    def follow(self, title, blocks=slice(None)):
        """Types the blocks of a section. Returns their output."""
        printed = ""
        for block in self.pages[title][blocks]:
            printed += self.type(block)
        return printed

    def type(self, block):
        text = block.text
        for shown, ours in self.substitutes.items():
            text = text.replace(shown, ours)
        log = self.folder / "log"
        with open(log, "w+b") as out:
            shell = subprocess.Popen(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=self.environment,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
            if re.search(r"&$", text, re.M):
                self.addCleanup(self.end, shell.pid)
            code = shell.wait(3 * BOUND)
        printed = log.read_text(errors="replace")
        self.assertEqual(code, 0, f"{block}:\n{text}\n---\n{printed}")
        if invitation := re.search(r"^invitation +(\S+)", printed, re.M):
            (self.folder / "invitation").write_text(invitation[1])
            (self.folder / "invitation").chmod(0o600)
        if "port-forward" in text:
            self.until(lambda: socket.create_connection(("127.0.0.1", 7443), BOUND).close() or True, "the port answers")
        return printed

    def end(self, group):
        """Ends the background commands of a block."""
        try:
            os.killpg(group, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def exec(self, *words):
        return self.cluster.kubectl("--namespace", "muster", "exec", "service/muster", "--", "muster", *words)

    def make_certificate(self):
        self.cluster.certificates.make_server("page", ["localhost", "muster.muster.svc"])
        for ours, theirs in (("page.crt", "cert.pem"), ("page.key", "key.pem")):
            (self.folder / theirs).write_bytes(self.cluster.certificates.path(ours).read_bytes())

    # --- the page

    def test_with_helm(self):
        self.make_volume("page-1")
        self.make_certificate()
        self.assertIn("1/1", self.follow("Install with Helm"))
        self.follow("The first administrator")
        self.substitutes["2E:0D:…:9B"] = self.exec(
            "server", "--fingerprint", "--config", "/etc/muster/muster.yaml").strip()
        self.assertIn("eve", self.follow("Log in"))
        self.follow("The certificate")
        self.assertIn("kubernetes (chosen)", self.follow("Check the server"))
        self.follow("Upgrade")
        self.assertRegex(self.follow("Backup", slice(0, 1)), r"users +1")
        self.follow("Uninstall")
        self.make_volume("page-2")
        self.follow("Install with Helm")
        self.assertNotIn("eve", self.exec("user", "list"))
        self.assertRegex(self.follow("Backup", slice(1, 2)), r"users +1")
        self.cluster.kubectl("--namespace", "muster", "rollout", "status", "deployment/muster", f"--timeout={BOUND}s")
        self.assertIn("eve", self.exec("user", "list"))

    def test_with_plain_manifests(self):
        self.make_volume("page-3")
        self.assertIn("successfully rolled out", self.follow("Install with plain manifests"))

    def test_with_two_servers(self):
        self.make_volume("page-4", ["ReadWriteMany"])
        self.make_certificate()
        self.cluster.kubectl("create", "namespace", "muster")
        self.cluster.kubectl("create", "namespace", "muster-jobs")
        with Postgres(address=self.cluster.address) as postgres:
            self.substitutes["postgres://muster:PASSWORD@db.example.org/muster?sslmode=verify-full"] = postgres.new_url()
            printed = self.follow("Two servers")
            self.assertEqual(len(re.findall(r"^muster-\S+ +1/1 ", printed, re.M)), 2, printed)
            self.assertEqual(len(re.findall(r" true$", printed, re.M)), 1, printed)
            self.cluster.kubectl("delete", "namespace", "muster", "muster-jobs")

    def test_every_section_with_commands_is_typed(self):
        typed = set(re.findall(r'self\.follow\("([^"]+)"', Path(__file__).read_text(encoding="utf-8")))
        self.assertEqual({title for title, blocks in self.pages.items() if blocks}, typed | {"Images"})


if __name__ == "__main__":
    main()
