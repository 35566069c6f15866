"""Finds and loads libmuster_collective.

The first existing file is loaded: that of $MUSTER_COLLECTIVE_LIBRARY, the file in this package, and in a clone of
Muster the file in its build tree. If the file of the variable cannot be loaded, no other file is tried.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import List, Mapping, Optional

from . import abi

VARIABLE = "MUSTER_COLLECTIVE_LIBRARY"
FILE = "libmuster_collective.so.0"

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


class LibraryError(ImportError):
    """The collective library does not exist, cannot be loaded, or has another version."""


def places(environment: Mapping[str, str] = os.environ) -> List[Path]:
    """The files that may be the library, in order."""
    named = environment.get(VARIABLE)
    if named:
        return [Path(named)]
    here = Path(__file__).resolve().parent
    tree = here.parents[2]
    return [here / "lib" / FILE,
            *(tree / "build" / kind / "collective" / "package" / FILE for kind in ("release", "debug"))]


def find(environment: Mapping[str, str] = os.environ) -> Path:
    """The file that load() loads. Errors: LibraryError, listing the files that were tried."""
    looked = places(environment)
    for path in looked:
        if path.is_file():
            return path
    where = ", ".join(str(path) for path in looked)
    if environment.get(VARIABLE):
        raise LibraryError(f"{VARIABLE} names {where}, which does not exist: set it to the path of {FILE}, or unset it")
    raise LibraryError(f"the collective library is missing; looked for {where}: install the wheel of muster, build "
                       f"the library (cmake --build build/release --target muster_collective_c), or name its "
                       f"file in {VARIABLE}")


def load() -> ctypes.CDLL:
    """The library with its prototypes; loaded at the first call. Thread-safe. Errors: LibraryError."""
    global _loaded
    if _loaded is not None:
        return _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load(find())
        return _loaded


def _load(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        library.muster_version.restype = ctypes.c_char_p
        version = library.muster_version().decode()
    except (OSError, AttributeError) as error:
        raise LibraryError(f"{path} cannot be loaded as the collective library: {error}") from error
    if not abi.speaks(version):
        raise LibraryError(f"{path} is version {version} of the collective library, but this package requires "
                           f"{abi.OLDEST_VERSION} or newer of the same soname: install both from one release")
    missing = abi.declare(library)
    if missing:
        raise LibraryError(f"{path} has version {version}, but lacks {', '.join(missing)}: it was built "
                           f"from another state of the sources; build it again")
    return library
