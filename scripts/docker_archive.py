#!/usr/bin/env python3
"""Writes a container image as a docker archive, which `podman load`, `docker load` and `ctr images import` read.

    scripts/docker_archive.py OUT.tar --tag NAME:TAG [--tag ...] [--root FOLDER [--root-owned]] [--entrypoint WORD]...
                              [--cmd WORD]... [--env K=V]... [--user UID:GID] [SOURCE=TARGET...]

The image has one layer: the tree of --root, if given, and each file SOURCE as TARGET. The same input gives the same
archive, byte for byte: files are sorted, belong to root unless they come from --root without --root-owned, and have the
date 0.
"""

import argparse
import hashlib
import io
import json
import os
import platform
import stat
import sys
import tarfile
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class _Hashed(io.RawIOBase):
    """Writes to `stream`, and hashes what it writes."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream
        self.hash = hashlib.sha256()

    def writable(self):
        return True

    def write(self, data):
        self.hash.update(data)
        return self._stream.write(data)


def _member(name, mode, kind=tarfile.REGTYPE, size=0):
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.size = kind, mode, size
    return member


def _write_layer(stream, root, root_owned, files):
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as layer:
        if root:
            _add_tree(layer, root, root_owned)
        made = {"."}
        for source, target in sorted(files, key=lambda pair: pair[1]):
            target = Path(target.lstrip("/"))
            for parent in reversed(target.parents):
                if str(parent) not in made and not root:
                    made.add(str(parent))
                    layer.addfile(_member(str(parent), 0o755, tarfile.DIRTYPE))
            mode = 0o755 if os.access(source, os.X_OK) else 0o644
            with open(source, "rb") as data:
                layer.addfile(_member(str(target), mode, size=os.path.getsize(source)), data)


def _add_tree(layer, root, root_owned):
    def member_of(path):
        member = layer.gettarinfo(path, os.path.relpath(path, root))
        member.mtime = 0
        member.uname = member.gname = ""
        if root_owned:
            member.uid = member.gid = 0
        return member

    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names + [each for each in folders if os.path.islink(os.path.join(folder, each))]):
            path = os.path.join(folder, name)
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                _add(layer, path, member_of(path))
        for name in folders:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                layer.addfile(member_of(path))


def _add(layer, path, member):
    if member.isreg():
        with open(path, "rb") as data:
            layer.addfile(member, data)
    else:
        layer.addfile(member)


def write_archive(out, tags, root=None, root_owned=False, files=(), entrypoint=(), command=(), environment=(), user=""):
    """`files`: pairs of a path here and a path in the image."""
    out = Path(out)
    part, layer = out.with_name(out.name + ".part"), out.with_name(out.name + ".layer")
    with open(layer, "wb") as stream:
        hashed = _Hashed(stream)
        _write_layer(hashed, root, root_owned, files)
    digest = hashed.hash.hexdigest()
    config = json.dumps({
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Entrypoint": list(entrypoint) or None, "Cmd": list(command) or None, "Env": list(environment),
                   "User": user},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "muster"}]}, sort_keys=True).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": list(tags), "Layers": [f"{digest}/layer.tar"]}]).encode()
    with tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as archive:
        with open(layer, "rb") as data:
            archive.addfile(_member(f"{digest}/layer.tar", 0o644, size=layer.stat().st_size), data)
        for member, data in ((name, config), ("manifest.json", manifest)):
            archive.addfile(_member(member, 0o644, size=len(data)), io.BytesIO(data))
    layer.unlink()
    part.replace(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--tag", action="append", required=True)
    parser.add_argument("--root")
    parser.add_argument("--root-owned", action="store_true")
    parser.add_argument("--user", default="")
    parser.add_argument("--cmd", action="append", default=[])
    parser.add_argument("--entrypoint", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("files", nargs="*", metavar="SOURCE=TARGET")
    options = parser.parse_intermixed_args()
    for pair in options.files:
        if "=" not in pair:
            parser.error(f"'{pair}' is not SOURCE=TARGET")
    write_archive(options.out, options.tag, options.root, options.root_owned,
                  [pair.split("=", 1) for pair in options.files], options.entrypoint, options.cmd, options.env,
                  options.user)


if __name__ == "__main__":
    sys.exit(main())
