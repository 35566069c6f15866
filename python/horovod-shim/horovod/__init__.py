"""Horovod's names for Muster.

`import horovod.torch as hvd` returns the module muster.torch itself, and likewise for every module below. Programs that
import or patch a module under either name therefore use the same objects. horovod/_names.py implements this.

__version__ is the version of the Horovod interface, which programs compare; __muster_version__ is Muster's own.
"""

import importlib

from . import _names, _refusing

__version__ = "0.28.1"

_refusing.check(__path__[0])
_names.install()


def __getattr__(name):
    # Imported late: `import horovod.torch` and horovodrun must not load modules that they do not use.
    if name == "run":
        return importlib.import_module("muster.runner").run
    if name == "__muster_version__":
        return importlib.import_module("muster._version").__version__
    raise AttributeError(f"module 'horovod' has no attribute {name!r}")
