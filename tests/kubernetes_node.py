#!/usr/bin/env python3
"""Tests muster-node in pods of a real cluster, reached through the API server's port-forward
(platform/engine/node/pod.h).

    tests/kubernetes_node.py [--gtest_filter=...]

The tests themselves are in node_cluster_test.cc. This program starts the cluster and loads two images into it: Muster's
own image, and an image that contains a single static program.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kubernetes_cluster import Cluster

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()


def main():
    with tempfile.TemporaryDirectory() as folder, Cluster(nodes=1) as cluster:
        node, empty = Path(folder) / "node.tar", Path(folder) / "empty.tar"
        subprocess.run([ROOT / "scripts" / "image_node.sh", node], env=os.environ | {"MUSTER_BUILD": str(BUILD)},
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run([ROOT / "scripts" / "docker_archive.py", empty, "--tag", "localhost/muster-test-empty:test",
                        f"{BUILD}/platform/engine/container_test_program=/program"], check=True)
        for archive in (node, empty):
            cluster.import_image(archive)
        return subprocess.run([BUILD / "platform/engine/node_cluster_test", *sys.argv[1:]],
                              env=os.environ | cluster.environment, timeout=800, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
