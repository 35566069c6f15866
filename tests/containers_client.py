#!/usr/bin/env python3
"""Tests every call of the client of the Docker Engine API (platform/engine/container/docker_client.h) against a real
engine.

    tests/containers_client.py podman            over its unix socket
    tests/containers_client.py docker
    tests/containers_client.py podman --tls      over TLS, with a client certificate
    tests/containers_client.py docker --tls

The tests themselves are in docker_client_*podman_test.cc. This program starts an engine and a registry that requires
credentials for them and, if the engine supports it, declares a device by CDI. It passes further arguments to the tests,
such as --gtest_filter=*Exec*.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from container_hosts import DockerHosts, PodmanHosts, PodmanService, Registry
from engine_machine import Machine

PROGRAM = Path(os.environ.get("MUSTER_BUILD", "build/release")) / "platform/engine/container_tests"
USER, PASSWORD = "ann", "se:cret"
IMAGE = "muster-test-noshell"

# A device that exists on every machine, declared under the name of a GPU.
GPU = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
       "devices": [{"name": "0", "containerEdits": {
           "env": ["FAKE_GPU=0"],
           "deviceNodes": [{"path": "/dev/fakegpu0", "hostPath": "/dev/null"}]}}]}


def declare_gpu(host):
    folder = host.machine.folder / "run" / "cdi"
    folder.mkdir(exist_ok=True)
    (folder / "fake.json").write_text(json.dumps(GPU))


def pushed(registry, engine, lan, folder):
    """The reference of an image in the registry that the engine does not have."""
    if engine.NAME == "podman":
        return registry.push(engine, IMAGE, "team/pulled")
    with PodmanService(folder / "pusher", Machine(lan, folder / "pushing")) as pusher:
        return registry.push(pusher, IMAGE, "team/pulled")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=["podman", "docker"])
    parser.add_argument("--tls", action="store_true")
    options, more = parser.parse_known_args()
    hosts_of = {"podman": PodmanHosts, "docker": DockerHosts}[options.engine]

    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        folder = Path(name)
        with hosts_of(1, folder) as hosts:
            host = hosts[0]
            with Registry(hosts.lan, folder, user=USER, password=PASSWORD) as registry:
                declare_gpu(host)
                host.engine.allow_registries(registry.address)
                host.engine.restart()
                environment = dict(os.environ) | {
                    "MUSTER_DOCKER_SOCKET": str(host.engine.socket),
                    "MUSTER_TEST_REGISTRY_IMAGE": pushed(registry, host.engine, hosts.lan, folder),
                    "MUSTER_TEST_REGISTRY_USER": USER,
                    "MUSTER_TEST_REGISTRY_PASSWORD": PASSWORD}
                if options.tls:
                    environment |= {"MUSTER_DOCKER_TLS": host.tls_url,
                                    "DOCKER_CERT_PATH": str(hosts.certificates)}
                # Docker supports CDI from version 25 on.
                chosen = [] if options.engine == "podman" else ["--gtest_filter=-*ByItsCdiName*"]
                ran = subprocess.run([PROGRAM, *chosen, *more], env=environment, check=False)
                left = host.engine.containers()
    if left:
        print(f"left behind: {left}", file=sys.stderr)
    return ran.returncode or bool(left)


if __name__ == "__main__":
    sys.exit(main())
