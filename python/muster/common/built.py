"""The parts of this library in Horovod's terms: which of them exist, and which are in use.

Horovod's parts are chosen when it is built. Here they are chosen when a program starts: the library itself uses shared
memory and TCP, like Gloo in Horovod; MPI and NCCL are plug-ins.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import List, Optional

from .._native import library
from . import environment

_TRANSPORT = "MUSTER_COLLECTIVE_TRANSPORT"


def mpi_built() -> bool:
    """Whether a plug-in for Open MPI or MPICH is installed, or MPI has started this process."""
    return _has_mpi_plugin() or _is_started_by_mpi()


def mpi_enabled() -> bool:
    """Whether MPI has started this process, or transports its data (MUSTER_COLLECTIVE_TRANSPORT is mpi)."""
    return _is_started_by_mpi() or (os.environ.get(_TRANSPORT) == "mpi" and _has_mpi_plugin())


def gloo_built() -> bool:
    """Whether data can be sent without MPI: always True."""
    return True


def gloo_enabled() -> bool:
    """The opposite of mpi_enabled()."""
    return not mpi_enabled()


def nccl_built() -> int:
    """The version of NCCL (22703 is 2.27.3) if both the plug-in and libnccl are installed, else 0."""
    return _nccl_version() if _plugin("nccl") is not None else 0


def cuda_built() -> bool:
    """Whether buffers in CUDA memory can be reduced in place: equal to nccl_built()."""
    return nccl_built() != 0


def ddl_built() -> bool:
    """False: IBM's DDL is not supported."""
    return False


def ccl_built() -> bool:
    """False: Intel's oneCCL is not supported."""
    return False


def rocm_built() -> bool:
    """False: there is no plug-in for RCCL."""
    return False


def _is_started_by_mpi() -> bool:
    """Whether the rank of this process comes from the variables of Open MPI, MPICH or Intel MPI."""
    told = environment.launcher_pair(os.environ, [])
    return told is not None and told[2] in ("OMPI_COMM_WORLD_RANK", "PMI_RANK")


def _has_mpi_plugin() -> bool:
    return _plugin("openmpi") is not None or _plugin("mpich") is not None


def _plugin(name: str) -> Optional[Path]:
    """The file of a plug-in, searched in the same folders as in the library."""
    file = f"muster_collective_{name}.so"
    return next((folder / file for folder in _folders() if (folder / file).is_file()), None)


def _folders() -> List[Path]:
    own = library.find().parent
    listed = [Path(each) for each in os.environ.get("MUSTER_COLLECTIVE_PLUGIN_PATH", "").split(":") if each]
    return [*listed, own, own / "muster-collective", own.parent / "lib" / "muster-collective"]


@functools.lru_cache(maxsize=None)
def _nccl_version() -> int:
    try:
        nccl = ctypes.CDLL("libnccl.so.2")
        version = ctypes.c_int()
        return int(version.value) if nccl.ncclGetVersion(ctypes.byref(version)) == 0 else 0
    except (OSError, AttributeError):
        return 0
