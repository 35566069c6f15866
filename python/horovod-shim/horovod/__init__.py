"""Horovod's names over Muster.

`import horovod.torch as hvd` gives the module muster.torch itself, and so for every module below: who imports it by
the one name, by the other, or patches it, has the same objects. horovod/_names.py does that.

__version__ is that of the Horovod whose interface this is, for programs compare it; __muster_version__ is ours.
"""

import importlib

from . import _names, _refusing

__version__ = "0.28.1"

_refusing.check(__path__[0])
_names.install()


def __getattr__(name):
    # Late: neither `import horovod.torch` nor horovodrun should pay for what it does not use.
    if name == "run":
        return importlib.import_module("muster.runner").run
    if name == "__muster_version__":
        return importlib.import_module("muster._version").__version__
    raise AttributeError(f"module 'horovod' has no attribute {name!r}")
