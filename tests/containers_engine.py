#!/usr/bin/env python3
"""Runs the conformance suite of the engines (platform/engine/conformance.h) and the tests of the container engine
alone (platform/engine/container/container_engine_test.cc) against a real engine.

    tests/containers_engine.py podman
    tests/containers_engine.py docker
    tests/containers_engine.py podman --gtest_filter=*Exec*

To act on the engine itself, a test connects to the socket that MUSTER_ENGINE_CONTROL names and sends one word:
"restart", "kill", "start", "hang", "resume".
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from container_hosts import DockerService, PodmanService

PROGRAM = (Path(os.environ.get("MUSTER_BUILD", "build/release")) /
           "platform/engine/container_conformance_test")
IMAGE = "muster-test-openmpi"
WORDS = ("restart", "kill", "start", "hang", "resume")


class Control:
    """Acts on the engine when a test requests it."""

    def __init__(self, engine, path):
        self._engine = engine
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self._socket.accept()
            with connection:
                word = connection.recv(64).decode().strip()
                if word in WORDS:
                    getattr(self._engine, word)()
                    connection.sendall(b"done\n")


def left_of(engine):
    """The containers, networks and volumes that the tests should have removed."""
    left = engine.containers()
    for kind, key in (("networks", None), ("volumes", "Volumes")):
        listed = engine.api("GET", f"/{kind}")[1]
        for each in (listed[key] if key else listed) or ():
            if "org.muster.owner" in (each.get("Labels") or {}):
                left.append(f"{kind[:-1]} {each['Name']}")
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=["podman", "docker"])
    options, more = parser.parse_known_args()
    service = {"podman": PodmanService, "docker": DockerService}[options.engine]

    with tempfile.TemporaryDirectory(prefix="mt-") as name, service(Path(name) / "e") as engine:
        if options.engine == "docker":
            engine.load(IMAGE, "muster-test-noshell")
        control = Path(name) / "control"
        Control(engine, control)
        environment = os.environ | {"MUSTER_DOCKER_SOCKET": str(engine.socket),
                                    "MUSTER_TEST_IMAGE": f"localhost/{IMAGE}",
                                    "MUSTER_ENGINE_CONTROL": str(control),
                                    "TEST_TMPDIR": name}
        outcome = subprocess.run([PROGRAM, *more], env=environment, check=False).returncode
        left = left_of(engine)
        if left:
            print("left behind:", *left, sep="\n  ", file=sys.stderr)
        return outcome or (1 if left else 0)


if __name__ == "__main__":
    sys.exit(main())
