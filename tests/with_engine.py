#!/usr/bin/env python3
"""Starts a private Podman with the images of scripts/test_images.sh, and runs a command with DOCKER_HOST set to it.
Exits with the code of the command, and removes the Podman. Requires root.

    tests/with_engine.py COMMAND...

Two further commands use a running engine, at DOCKER_HOST or at a usual socket:

    tests/with_engine.py --load IMAGE STAMP   loads one of these images, unless the engine has it. If the image was
                                              loaded, creates the file STAMP
    tests/with_engine.py --unload IMAGE       removes the image
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from container_hosts import IMAGES, PodmanService


def client():
    """The command line of the engine: both engines support these commands."""
    for program in ("podman", "docker"):
        where = ["--remote"] if program == "podman" else []
        argv = [program, *where]
        environment = dict(os.environ)
        if program == "podman" and "DOCKER_HOST" in os.environ:
            environment["CONTAINER_HOST"] = os.environ["DOCKER_HOST"]
        if subprocess.run([*argv, "info"], env=environment, capture_output=True, check=False).returncode == 0:
            return lambda *words: subprocess.run([*argv, *words], env=environment, capture_output=True,
                                                 text=True, check=False)
    sys.exit("neither podman nor docker reaches the engine that DOCKER_HOST or a usual socket names")


def load(image, stamp):
    ask = client()
    if ask("image", "inspect", image).returncode == 0:
        return
    loaded = ask("load", "--input", str(IMAGES / f"{image.removeprefix('localhost/')}.tar"))
    if loaded.returncode != 0:
        sys.exit(f"{image} was not loaded: {loaded.stderr}")
    Path(stamp).touch()


def beside_podman(command):
    with tempfile.TemporaryDirectory(prefix="mt-") as folder, PodmanService(Path(folder) / "e") as engine:
        return subprocess.run(command, env=os.environ | {"DOCKER_HOST": engine.url}, check=False).returncode


def main():
    match sys.argv[1:]:
        case ["--load", image, stamp]:
            return load(image, stamp)
        case ["--unload", image]:
            return client()("rmi", image).returncode
        case [] | ["--help"]:
            print(__doc__, end="")
            return 2
        case command:
            return beside_podman(command)


if __name__ == "__main__":
    sys.exit(main())
