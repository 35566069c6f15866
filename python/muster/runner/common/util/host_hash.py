"""A name for processes that share memory: on one host, or in one container of a host."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import Optional

_NAMESPACES = Path("/proc/self/ns")


def host_hash(salt: Optional[object] = None) -> str:
    """The host's name without its domain, and a digest of its full name, its namespaces and `salt`: equal on processes
    that may share memory."""
    host = socket.gethostname()
    parts = [host, *(os.readlink(path) for path in sorted(_NAMESPACES.glob("*"))), *([str(salt)] if salt else [])]
    return f"{host.split('.')[0]}-{_hash(' '.join(parts))}"


def _hash(string: str) -> str:
    return hashlib.md5(string.encode(), usedforsecurity=False).hexdigest()
