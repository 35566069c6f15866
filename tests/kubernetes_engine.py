#!/usr/bin/env python3
"""Runs the conformance suite of the engines (platform/engine/conformance.h) on a new, real Kubernetes cluster: once
with a server that connects to pods through the API server, and once with pods that connect to the server.

    tests/kubernetes_engine.py
    tests/kubernetes_engine.py --gtest_filter=*Exec*
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kubernetes_cluster import Cluster
from kubernetes_settings import IMAGES

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", "build/release"))
PROGRAM = BUILD / "platform/engine/kubernetes_conformance_test"
NODE_IMAGE = "localhost/muster-node:test"
STORAGE = "storage"


def node_image(folder):
    """Writes an archive of the image with Muster's programs for pods."""
    archive = Path(folder) / "muster-node.tar"
    subprocess.run([ROOT / "scripts/image_node.sh", archive], check=True, stdout=subprocess.DEVNULL)
    return archive


def make_storage(cluster, folder, namespace="default"):
    """Creates a claim for the storage of projects, on a folder of this machine, which all nodes see."""
    folder.mkdir()
    folder.chmod(0o777)
    size = {"storage": "1Gi"}
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"storage-{namespace}"},
                   "spec": shared | {"capacity": size, "hostPath": {"path": str(folder)},
                                     "claimRef": {"namespace": namespace, "name": STORAGE}}},
                  {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                   "metadata": {"name": STORAGE, "namespace": namespace},
                   "spec": shared | {"resources": {"requests": size}, "volumeName": f"storage-{namespace}"}})


def left_in(cluster, namespace="default"):
    """The names of Muster's objects."""
    return cluster.kubectl("get", "secrets,services,networkpolicies,persistentvolumeclaims,pods", "-n", namespace, "-l",
                           "app.kubernetes.io/managed-by=muster", "-o", "name").split()


def main():
    with Cluster(images=["busybox", "debian"], gpus=4) as cluster, tempfile.TemporaryDirectory(prefix="mk-") as name:
        folder = Path(name)
        cluster.import_image(node_image(folder))
        make_storage(cluster, folder / "storage")
        (folder / "tests").mkdir()
        environment = os.environ | cluster.environment | {
            "TEST_TMPDIR": f"{folder}/tests", "MUSTER_TEST_IMAGE": IMAGES["debian"], "MUSTER_NODE_IMAGE": NODE_IMAGE,
            "MUSTER_TEST_ADDRESS": cluster.address, "MUSTER_TEST_STORAGE": STORAGE}
        code = subprocess.run([PROGRAM, *sys.argv[1:]], env=environment, check=False).returncode
        # The cluster itself deletes, after a moment, the objects that belonged to a gang's owner object.
        cluster.until(lambda: not left_in(cluster), "nothing is left in the cluster")
        return code


if __name__ == "__main__":
    sys.exit(main())
