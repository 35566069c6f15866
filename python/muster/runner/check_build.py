"""The output of `horovodrun --check-build`: the frameworks and parts on this machine, detected without importing
them."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from .._native import library
from .._version import __version__

Row = Tuple[str, bool]


def report() -> str:
    """The tables in Horovod's format, with Muster's name."""
    found = _library()
    has_library = found is not None
    lines = [f"Muster v{__version__}:"]
    for title, rows in (("Available Frameworks", _frameworks()),
                        ("Available Controllers", [("MPI", shutil.which("mpirun") is not None), ("Gloo", has_library)]),
                        ("Available Tensor Operations", _operations(found))):
        lines += ["", title + ":", *(f"    [{'X' if there else ' '}] {name}" for name, there in rows)]
    lines += ["", f"Collective library: {found}" if has_library else _why_missing(),
              "  (listed as Gloo: shared memory within a host, TCP between hosts)"]
    return "\n".join(lines)


def _frameworks() -> List[Row]:
    return [("TensorFlow", _is_there("tensorflow", "muster.tensorflow")),
            ("PyTorch", _is_there("torch", "muster.torch")),
            ("Keras", _is_there("keras", "muster.keras")), ("MXNet", False)]


def _is_there(framework: str, binding: str) -> bool:
    try:
        found = [find_spec(name) for name in (framework, binding)]
    except (ImportError, ValueError):
        return False
    # A folder without __init__.py is found, too, but is not a package.
    return all(spec is not None and spec.origin is not None for spec in found)


def _operations(found: Optional[Path]) -> List[Row]:
    has = [name for name in ("nccl", "openmpi", "mpich") if found is not None and _has_plugin(found, name)]
    return [("NCCL", "nccl" in has), ("DDL", False), ("CCL", False), ("MPI", "openmpi" in has or "mpich" in has),
            ("Gloo", found is not None)]


def _has_plugin(found: Path, name: str) -> bool:
    """Searches the plug-in in the same folders as the library."""
    own = found.resolve().parent
    named = [Path(each) for each in os.environ.get("MUSTER_COLLECTIVE_PLUGIN_PATH", "").split(":") if each]
    folders: Sequence[Path] = (*named, own, own / "muster-collective")
    return any((folder / f"muster_collective_{name}.so").is_file() for folder in folders)


def _library() -> Optional[Path]:
    try:
        return library.find()
    except library.LibraryError:
        return None


def _why_missing() -> str:
    try:
        library.find()
    except library.LibraryError as error:
        return str(error)
    return ""
