"""The backend "muster" of torch.distributed:

    import muster.torch
    torch.distributed.init_process_group("muster")

Its groups run on the collective library, each as a session of its own.
"""

from __future__ import annotations

import torch.distributed as _dist


def install() -> None:
    """Registers the backend, where PyTorch was built with torch.distributed. Replaces gloo if MUSTER_TORCH_BACKEND=1 in
    a task of Muster."""
    if not _dist.is_available():
        return
    from . import groups

    groups.register()
    if groups.is_asked_to_replace_gloo():
        groups.replace_gloo()
