"""scikit-build-core, with a check before the build that Horovod itself is not installed in the target environment.

Both distributions write the folder `horovod`: the second one installed would overwrite half of the first, and
uninstalling either would break the other. pip does not support conflicts between distributions, so the build fails.
Installing a wheel needs no build; for wheels horovod/_refusing.py checks again at import.

pip builds in an environment of its own, but with the interpreter that it installs for: sysconfig and site still return
the folders of that interpreter. `python -m build` uses another interpreter, so it can make a wheel anywhere.
"""

import importlib.metadata
import site
import sysconfig

from scikit_build_core.build import *  # noqa: F401,F403  (the hooks that need no check: those of an sdist)
from scikit_build_core import build as _backend

__all__ = [*_backend.__all__]


def installed_horovod():
    """The version of Horovod that this interpreter has, and its folder, or None."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    for found in importlib.metadata.distributions(name="horovod", path=list(dict.fromkeys(folders))):
        return found.version, str(found.locate_file(""))
    return None


def _refuse():
    found = installed_horovod()
    if found is None:
        return
    version, folder = found
    raise SystemExit(f"muster-horovod: Horovod {version} is installed in {folder}, and both provide the package "
                     "'horovod'\n  to replace it: pip uninstall horovod, then install this again\n  to keep it: "
                     "install muster-horovod into another environment (python3 -m venv)")


def get_requires_for_build_wheel(config_settings=None):
    _refuse()
    return _backend.get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _refuse()
    return _backend.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _refuse()
    return _backend.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _refuse()
    return _backend.build_editable(wheel_directory, config_settings, metadata_directory)
