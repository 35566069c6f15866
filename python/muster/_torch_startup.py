"""Loaded by PyTorch 2.5 and newer when torch is imported, where this package is installed as a wheel."""

from __future__ import annotations

import os


def load() -> None:
    """Makes "gloo" mean the backend "muster" in tasks of Muster's jobs with MUSTER_TORCH_BACKEND=1. Otherwise it does
    nothing."""
    if os.environ.get("MUSTER_TORCH_BACKEND") == "1" and os.environ.get("MUSTER_JOB"):
        import muster.torch  # noqa: F401
