#!/usr/bin/env python3
"""The client of Kubernetes (platform/engine/kubernetes/api_client.h, watch.h, streams.h) on a real cluster.

    tests/kubernetes_client.py [--like VERSION] [--gtest_filter=...]

The tests themselves are in kubernetes_client_cluster_test.cc. This program starts the cluster, creates the accounts
that the tests use, and kills and starts the API server on their request. `--like 1.34`: the API server emulates that
version. `--like 1.29`: features that the client uses and that 1.29 lacks are switched off.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from kubernetes_cluster import IMAGES, Cluster

HERE = Path(__file__).resolve().parent
PROGRAM = Path(os.environ.get("MUSTER_BUILD", "build/release")) / "platform/engine/kubernetes_client_test"

# Kubelets serve these streams themselves since 1.36.
STREAMS_OF_KUBELETS = "ExtendWebSocketsToKubelet=false"
VERSIONS = {
    "": {},
    "1.34": {"apiserver": ["--emulated-version=1.34"], "controllers": ["--emulated-version=1.34"],
             "scheduler": ["--emulated-version=1.34"], "kubelet": [f"--feature-gates={STREAMS_OF_KUBELETS}"]},
    "1.29": {"apiserver": [f"--feature-gates={STREAMS_OF_KUBELETS},TranslateStreamCloseWebsocketRequests=false,"
                           "PortForwardWebsockets=false,WatchList=false,"
                           "AuthorizePodWebsocketUpgradeCreatePermission=false"],
             "kubelet": [f"--feature-gates={STREAMS_OF_KUBELETS}"]},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--like", choices=VERSIONS, default="", metavar="VERSION")
    options, more = parser.parse_known_args()
    with Cluster(nodes=2, flags=VERSIONS[options.like]) as cluster:
        weak = cluster.make_account("weak", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        expired = cluster.make_user("late", groups=["system:masters"], expired=True)
        environment = os.environ | cluster.environment | {
            "MUSTER_KUBERNETES_LIKE": options.like,
            "MUSTER_KUBERNETES_WEAK": str(weak.kubeconfig),
            "MUSTER_KUBERNETES_EXPIRED": str(expired),
            "MUSTER_KUBERNETES_IMAGE": IMAGES["busybox"],
            "MUSTER_KUBERNETES_CALL": shlex.join([sys.executable, str(HERE / "kubernetes_cluster.py"), "call",
                                                  "--state", str(cluster.folder)])}
        return subprocess.run([PROGRAM, *more], env=environment, timeout=800, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
