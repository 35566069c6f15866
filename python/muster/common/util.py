"""Helper functions under the names by which programs and plug-ins import them from horovod.common.util.

Horovod compiles a binding for each framework; here one library serves all of them. A binding is therefore available if
its framework can be imported, and its features are those of the library.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import subprocess
import sys
import sysconfig
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar

from .._native import library
from . import built
from .reduce_ops import choose

#: The bindings of Horovod. Muster does not have the last one.
EXTENSIONS = ["tensorflow", "torch", "mxnet"]

_PACKAGE = __name__.partition(".")[0]

T = TypeVar("T")


def _cache(function: Callable[..., T]) -> Callable[..., T]:
    """Calls `function` once for each list of arguments."""
    return functools.lru_cache(maxsize=None)(function)


def get_ext_suffix() -> str:
    """The suffix of Python's extension modules."""
    return str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Errors: ImportError if the collective library, which all bindings use, is missing.

    The arguments identify the binding, and have no effect.
    """
    library.find()


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether the binding of a framework (torch, tensorflow) can be imported, which a separate process tries."""
    return _answer_of(ext_base_name, "True", verbose) is True


@_cache
def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether a framework has a GPU. A separate process checks, so that this process does not initialise the GPU."""
    return _answer_of(ext_base_name, "bool(binding._check_has_gpu())", verbose) is True


@_cache
def mpi_built(verbose: bool = False) -> bool:
    """As hvd.mpi_built(); likewise the functions below."""
    return built.mpi_built()


@_cache
def gloo_built(verbose: bool = False) -> bool:
    return built.gloo_built()


@_cache
def nccl_built(verbose: bool = False) -> int:
    return built.nccl_built()


@_cache
def ddl_built(verbose: bool = False) -> bool:
    return built.ddl_built()


@_cache
def ccl_built(verbose: bool = False) -> bool:
    return built.ccl_built()


@contextlib.contextmanager
def env(**kwargs: Optional[str]) -> Iterator[None]:
    """Sets these variables of the environment within the block. None leaves a variable unchanged."""
    given: Dict[str, str] = {name: value for name, value in kwargs.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def get_average_backwards_compatibility_fun(reduce_ops: Any) -> Callable[[Optional[int], Optional[bool]], Any]:
    """Returns a function (op, average) -> op, for callers that still pass `average`."""
    del reduce_ops  # operations are plain numbers here
    return lambda op, average: choose(op, average)


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether the number is a power of two: 1, 2, 4, 8 and so on."""
    return num_rank > 0 and bin(num_rank).count("1") == 1


def split_list(l: Sequence[T], n: int) -> List[List[T]]:  # noqa: E741  (Horovod's name)
    """Divides the list into `n` parts. If it does not divide evenly, the first parts are longer by 1."""
    share, rest = divmod(len(l), n)
    ends = [part * share + min(part, rest) for part in range(n + 1)]
    return [list(l[begin:end]) for begin, end in zip(ends, ends[1:])]


def check_installed_version(name: str, version: str, exception: Optional[Exception] = None) -> None:
    """Does nothing: the library is not compiled against a framework, so that every version of `name` is valid."""


def is_iterable(x: Any) -> bool:
    try:
        iter(x)
    except TypeError:
        return False
    return True


@_cache
def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Whether version `ver` is `target` (major.minor.patch) or newer. Errors: ValueError."""
    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError(f"versions must be strings, not {ver!r} and {target!r}")
    if target.count(".") != 2:
        raise ValueError(f"{target!r} is not a version of the form major.minor.patch")
    parse = importlib.import_module("packaging.version").parse
    return bool(parse(ver) >= parse(target))


def _answer_of(binding: str, question: str, verbose: bool) -> Optional[bool]:
    """The value of the expression `question` about a binding, in a new process; None if the binding cannot be imported.
    """
    program = f"import importlib\nbinding = importlib.import_module({_PACKAGE + '.' + binding!r})\nprint({question})"
    asked = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                           stderr=None if verbose else subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    if asked.returncode != 0:
        return None
    return asked.stdout.split()[-1:] == ["True"]


def __getattr__(name: str) -> Any:
    if name == "get_extension_full_path":
        raise ImportError("Muster compiles no extension for a framework; find() in the module library of "
                          "muster._native returns the file of its shared library")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
