"""Every module horovod.X is the module muster.X: one object under two names.

A file horovod/X.py with `from muster.X import *` would be a second module, in which a patch of the first would have no
effect. Therefore a finder, in front of all others, returns the existing modules for the names below `horovod`. It is
called only at the first import of each name.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

_OURS = "horovod."
_THEIRS = "muster."

#: The parts that correspond to parts of Horovod. Other parts of muster are not visible under this name.
PARTS = ("common", "keras", "runner", "tensorflow", "torch")
#: Parts of Horovod that Muster does not have, and what to use instead.
MISSING = {
    "mxnet": "MXNet is retired; there is no muster.mxnet",
    "ray": "start Ray actors that have MUSTER_RANK and MUSTER_WORLD_SIZE and call init() in each",
    "spark": "submit the program as a job of Muster, or start it by horovodrun",
}


_RUN = "horovod.run() or horovodrun starts programs on ranks"
#: Modules of Horovod's launcher that Muster has in another form, and the nearest public name. The modules below
#: them are missing for the same reason.
MISSING_MODULES = {
    "runner.common.service": _RUN,
    "runner.common.util.config_parser": _RUN,
    "runner.common.util.network": "horovod.runner.common.util.host_hash names a host",
    "runner.common.util.safe_shell_exec": "the module subprocess of Python runs commands",
    "runner.common.util.settings": _RUN,
    "runner.common.util.tiny_shell_exec": "the module subprocess of Python runs commands",
    "runner.driver": _RUN,
    "runner.elastic.constants": _RUN,
    "runner.elastic.registration": _RUN,
    "runner.elastic.rendezvous": "init() of ranks with MUSTER_RENDEZVOUS meets without a server",
    "runner.elastic.settings": _RUN,
    "runner.elastic.worker": "horovod.torch.elastic.run has what a worker needs",
    "runner.gloo_run": _RUN,
    "runner.http": "init() of ranks with MUSTER_RENDEZVOUS and MUSTER_RENDEZVOUS_KEY meets without a server",
    "runner.js_run": _RUN,
    "runner.mpi_run": _RUN,
    "runner.run_task": _RUN,
    "runner.task": _RUN,
    "runner.task_fn": _RUN,
    "runner.util.cache": _RUN,
    "runner.util.lsf": "horovodrun reads the hosts of an LSF job by itself",
    "runner.util.network": _RUN,
    "runner.util.remote": _RUN,
    "runner.util.streams": _RUN,
}


def _why_missing(rest):
    """What to use instead of the module horovod.`rest`; None if Horovod has no such module."""
    words = rest.split(".")
    for length in range(len(words), 0, -1):
        name = ".".join(words[:length])
        if name in MISSING_MODULES:
            return MISSING_MODULES[name]
    return None


class _Loader(importlib.abc.InspectLoader):
    """Returns an existing module under another name. The module's own loader has loaded it."""

    def __init__(self, target):
        self.target = target
        self.spec = None

    def create_module(self, spec):
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just overwritten the module's spec with that of the other name.
        module.__spec__ = self.spec

    # For `python -m horovod.runner.launch`, which requests the code from the loader and runs it as __main__.

    def _inner(self):
        return importlib.util.find_spec(self.target).loader

    def get_code(self, fullname):
        return self._inner().get_code(self.target)

    def get_source(self, fullname):
        return self._inner().get_source(self.target)

    def is_package(self, fullname):
        return self._inner().is_package(self.target)


class _Spec(importlib.machinery.ModuleSpec):
    """The spec of a module with relative imports: run as a program, they refer to its neighbours in muster."""

    @property
    def parent(self):
        target = self.loader.target
        return target if self.submodule_search_locations is not None else target.rpartition(".")[0]


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith(_THEIRS):
            # `from horovod.runner import gloo_run` requests the module by the name of the package that it has found.
            self._refuse_missing(fullname[len(_THEIRS):])
            return None
        if not fullname.startswith(_OURS):
            return None
        rest = fullname[len(_OURS):]
        part = rest.partition(".")[0]
        if part in MISSING:
            raise ModuleNotFoundError(f"Muster's horovod has no {part}: {MISSING[part]}", name=fullname)
        if part not in PARTS:
            return None
        self._refuse_missing(rest)
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


    @staticmethod
    def _refuse_missing(rest):
        why = _why_missing(rest)
        if why is not None:
            raise ModuleNotFoundError(f"Muster's horovod has no module {_OURS}{rest}: {why}", name=_OURS + rest)


def install():
    """Puts the finder in front of all others, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
