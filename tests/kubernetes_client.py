#!/usr/bin/env python3
"""The client of Kubernetes (platform/engine/kubernetes/api_client.h, watch.h, streams.h) on a real cluster.

    tests/kubernetes_client.py [--gtest_filter=...]

The tests themselves are in kubernetes_client_cluster_test.cc. This program starts the cluster, which the tests call for
killing and starting the API server, and makes the accounts that they use.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from kubernetes_cluster import IMAGES, Cluster

HERE = Path(__file__).resolve().parent
PROGRAM = Path(os.environ.get("MUSTER_BUILD", "build/release")) / "platform/engine/kubernetes_client_test"


def main():
    with Cluster(nodes=2) as cluster:
        weak = cluster.make_account("weak", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        expired = cluster.make_user("late", groups=["system:masters"], expired=True)
        environment = os.environ | cluster.environment | {
            "MUSTER_KUBERNETES_WEAK": str(weak.kubeconfig),
            "MUSTER_KUBERNETES_EXPIRED": str(expired),
            "MUSTER_KUBERNETES_IMAGE": IMAGES["busybox"],
            "MUSTER_KUBERNETES_CALL": shlex.join([sys.executable, str(HERE / "kubernetes_cluster.py"), "call",
                                                  "--state", str(cluster.folder)])}
        return subprocess.run([PROGRAM, *sys.argv[1:]], env=environment, timeout=800, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
