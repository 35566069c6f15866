"""The meeting point of the ranks of a run on this host only: a file in a private folder."""

from __future__ import annotations

import os
from typing import Dict

from .places import Place


class RendezvousFile:
    """A path for the rendezvous file, in a private folder. `close` removes both."""

    def __init__(self) -> None:
        """Errors: OSError if no folder can be made."""
        self.folder = make_private_folder("muster-run-")

    def environment_of(self, _: Place) -> Dict[str, str]:
        return {"MUSTER_RENDEZVOUS_FILE": os.path.join(self.folder, "world")}

    def close(self) -> None:
        remove_folder(self.folder)


def make_private_folder(prefix: str) -> str:
    """A new folder that only this user can enter."""
    bases = [os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"]
    base = next(each for each in bases if each == "/tmp" or each and os.access(each, os.W_OK | os.X_OK))
    folder = os.path.join(os.path.abspath(base), prefix + os.urandom(8).hex())
    os.mkdir(folder, 0o700)
    return folder


def remove_folder(folder: str) -> None:
    """Removes the folder and its files. It has no subfolders."""
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
