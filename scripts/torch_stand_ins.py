#!/usr/bin/env python3
"""Lets PyPI's PyTorch be imported without NVIDIA's libraries.

PyPI has PyTorch for Linux only with CUDA: 540 MB, and 3 GB more for the libraries that its GPU code calls (cuBLAS, cuDNN,
NCCL and others). The tests use no GPU, but the loader requires every library that PyTorch's libraries name. So this
script makes a stand-in for each missing library, with the required symbols. A call to such a symbol ends the process by
an illegal instruction. Only libcudart, which registers GPU code while PyTorch is loaded, must be real and installed.

    scripts/torch_stand_ins.py ENVIRONMENT     an environment in which torch and nvidia-cuda-runtime are installed

Requires readelf and gcc. Writes into torch/lib of the environment, and finally imports torch as a check.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

# Symbols with these version prefixes belong to the C and C++ libraries, and to libraries in PyTorch's wheel.
SYSTEM_VERSIONS = ("GLIBC", "CXXABI", "GCC_", "OMP_", "GOMP_", "GFORTRAN")
NAMES_OF_NVIDIA = re.compile(r"cu|nv|nccl")


def words_of_readelf(option: str, library: pathlib.Path) -> list[str]:
    """The lines that readelf prints of one library."""
    run = subprocess.run(["readelf", "-W", option, str(library)], check=True, capture_output=True, text=True)
    return run.stdout.splitlines()


def needed_by(library: pathlib.Path) -> set[str]:
    """The names of the libraries that the loader would look for."""
    return {found[1] for line in words_of_readelf("-d", library) if (found := re.search(r"NEEDED.*\[(.*)\]", line))}


def symbols_of(library: pathlib.Path) -> tuple[set[tuple[str, str]], set[str]]:
    """(name, version) of every required undefined symbol; and the names of the defined symbols."""
    asked, defined = set(), set()
    for line in words_of_readelf("--dyn-syms", library):
        parts = line.split()
        if len(parts) < 8 or not parts[0].endswith(":"):
            continue
        name, _, version = parts[7].partition("@")
        if parts[6] != "UND":
            defined.add(name)
        elif parts[4] == "GLOBAL":
            asked.add((name, version.lstrip("@")))
    return asked, defined


def make_library(path: pathlib.Path, symbols_of_version: dict[str, set[str]], scratch: pathlib.Path) -> None:
    """A library in which each symbol is one instruction that ends the process."""
    code = ['.section .note.GNU-stack,"",@progbits', ".text"]
    versions = []
    for version, names in sorted(symbols_of_version.items()):
        for name in sorted(names):
            # Some symbols are data; sixteen bytes of code provide an address for both kinds.
            code.append(f".globl {name}\n.type {name}, @function\n{name}: ud2\n.balign 16")
        if version:
            versions.append(f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};")
    source = scratch / "stand_in.s"
    source.write_text("\n".join(code) + "\n", encoding="ascii")
    command = ["gcc", "-shared", "-nostdlib", "-o", str(path), f"-Wl,-soname,{path.name}", str(source)]
    if versions:
        script = scratch / "stand_in.map"
        script.write_text("\n".join(versions) + "\n", encoding="ascii")
        command.append(f"-Wl,--version-script,{script}")
    subprocess.run(command, check=True)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    environment = pathlib.Path(sys.argv[1])
    (folder,) = environment.glob("lib/python3*/site-packages/torch/lib")
    there = [*folder.glob("*.so*"), *folder.parents[1].glob("nvidia/**/*.so*")]

    asked, defined, needed = set(), set(), set()
    for library in there:
        asks, defines = symbols_of(library)
        asked |= asks
        defined |= defines
        needed |= needed_by(library)
    names_there = {library.name for library in there}
    missing = sorted(name for name in needed - names_there if NAMES_OF_NVIDIA.match(name.removeprefix("lib")))
    # The driver's own library comes with a GPU, and PyTorch opens it only on a machine with a GPU.
    missing = [name for name in missing if not name.startswith("libcuda.so")]

    symbols: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, version in asked:
        if name in defined or version.startswith(SYSTEM_VERSIONS) or not NAMES_OF_NVIDIA.match(name):
            continue
        # A version is named after its library; a symbol without a version may be in any library.
        owner = version if version in missing else missing[0]
        symbols[owner][version].add(name)
    with tempfile.TemporaryDirectory() as scratch:
        for name in missing:
            make_library(folder / name, symbols[name], pathlib.Path(scratch))
    count = sum(len(names) for versions in symbols.values() for names in versions.values())
    print(f"torch_stand_ins: {len(missing)} libraries stand in with {count} symbols: {' '.join(missing)}")
    check = "import torch; assert not torch.cuda.is_available(); print('torch', torch.__version__)"
    return subprocess.run([str(environment / "bin/python"), "-c", check], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
