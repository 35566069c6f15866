"""Every module horovod.X is the module muster.X: one object under two names.

A file horovod/X.py with `from muster.X import *` would be a second module: what a test patches in one, the other
would not have. So a finder in front of the others answers for the names below `horovod` with the modules that are
there already. It is asked only on the first import of each.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

_OURS = "horovod."
_THEIRS = "muster."

#: The parts that stand for parts of Horovod; what else muster has is not Horovod's.
PARTS = ("common", "keras", "runner", "tensorflow", "torch")
#: Parts of Horovod that Muster does not have, and what to use.
MISSING = {
    "mxnet": "MXNet is retired; there is no muster.mxnet",
    "ray": "start Ray actors that have MUSTER_RANK and MUSTER_WORLD_SIZE and call init() in each",
    "spark": "submit the program as a job of Muster, or start it by horovodrun",
}


class _Loader(importlib.abc.InspectLoader):
    """Gives the module of another name. It is that one's loader that made it."""

    def __init__(self, target):
        self.target = target
        self.spec = None

    def create_module(self, spec):
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just written the spec of the other name into it.
        module.__spec__ = self.spec

    # For `python -m horovod.runner.launch`, which asks the loader for the code and runs it as __main__.

    def _inner(self):
        return importlib.util.find_spec(self.target).loader

    def get_code(self, fullname):
        return self._inner().get_code(self.target)

    def get_source(self, fullname):
        return self._inner().get_source(self.target)

    def is_package(self, fullname):
        return self._inner().is_package(self.target)


class _Spec(importlib.machinery.ModuleSpec):
    """Of a module that says `from ..x import y`: run as a program, it means its neighbours in muster."""

    @property
    def parent(self):
        target = self.loader.target
        return target if self.submodule_search_locations is not None else target.rpartition(".")[0]


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith(_OURS):
            return None
        rest = fullname[len(_OURS):]
        part = rest.partition(".")[0]
        if part in MISSING:
            raise ModuleNotFoundError(f"Muster's horovod has no {part}: {MISSING[part]}", name=fullname)
        if part not in PARTS:
            return None
        name = _THEIRS + rest
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(error.name + ".")):
                return None
            raise
        if found is None:
            return None
        spec = _Spec(fullname, _Loader(name), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        spec.cached = found.cached
        return spec


def install():
    """Puts the finder in front of the others, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
