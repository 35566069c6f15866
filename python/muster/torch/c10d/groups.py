"""The process groups of backend "muster", and their creation by torch.distributed.

A group is a ProcessGroup in Python. From PyTorch 2.9 on, which lets a Backend be written in Python, the group also has
such a backend for the device "cpu", so that PyTorch finds one where it looks for it. In a group with several backends
("cpu:muster,cuda:nccl") PyTorch makes the group, and only the backend is used.
"""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.distributed import distributed_c10d

from .collectives import Collectives
from .links import Link, join, milliseconds_of

NAME = "muster"

#: Set to 1, "gloo" means this backend in the tasks of Muster's jobs.
VARIABLE = "MUSTER_TORCH_BACKEND"

_Backend: Any = getattr(c10d, "Backend", None)
_Gloo: Any = getattr(distributed_c10d, "ProcessGroupGloo", None)


def _can_subclass_backend() -> bool:
    if _Backend is None:
        return False
    try:
        type("Probe", (_Backend,), {"__init__": lambda self: _Backend.__init__(self, 0, 1)})()
    except TypeError:
        return False  # it has no constructor
    return True


_HAS_BACKEND = _can_subclass_backend()


class _Common(Collectives):
    """What groups and backends have in common beside their operations."""

    _name = NAME

    def rank(self) -> int:
        return self._link.rank

    def size(self) -> int:
        return self._link.size

    getRank = rank
    getSize = size

    def name(self) -> str:
        return self._name

    _get_backend_name = name

    def getBackendName(self) -> str:
        """For C++, which takes a group with the name "gloo" for an object of gloo."""
        return NAME

    def set_timeout(self, timeout: timedelta) -> None:
        """Errors: ValueError for a longer timeout than that with which the group was created."""
        limit, longest = milliseconds_of(timeout), self._link.longest_ms
        if limit > longest:
            raise ValueError(f"cannot set the timeout of a group to {limit / 1000:g} s: it was created with a timeout "
                             f"of {longest / 1000:g} s, which can only be lowered; pass a longer timeout= to "
                             f"init_process_group() or new_group()")
        self._link.timeout_ms = limit

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Fails the operations in flight, and leaves the group."""
        self._link.end()

    abort = shutdown

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _set_sequence_number_for_group(self) -> None:
        pass

    _start_coalescing = Collectives.start_coalescing

    def _end_coalescing(self, *arguments: Any) -> Any:
        return self.end_coalescing()


class MusterProcessGroup(_Common, c10d.ProcessGroup):  # type: ignore[misc]
    def __init__(self, link: Link, name: str = NAME) -> None:
        c10d.ProcessGroup.__init__(self, link.rank, link.size)
        self._link = link
        self._name = name
        if _HAS_BACKEND:
            kind = c10d.ProcessGroup.BackendType.CUSTOM
            self._backend = MusterBackend(link, name)
            self._set_default_backend(kind)
            self._register_backend(torch.device("cpu"), kind, self._backend)


if _HAS_BACKEND:
    class MusterBackend(_Common, _Backend):  # type: ignore[misc]
        # The inherited properties call the class in Python, and so themselves.
        supports_splitting = False
        supports_coalescing = False
        supports_shrinking = False
        supports_reconfigure = False
        supports_window = False
        _supports_time_estimate = False

        def __init__(self, link: Link, name: str = NAME) -> None:
            _Backend.__init__(self, link.rank, link.size)
            self._link = link
            self._name = name


def create(store: Any, rank: int, size: int, timeout: timedelta, name: str = NAME) -> Any:
    """A group. Called by all of its ranks."""
    return MusterProcessGroup(join(store, rank, size, timeout), name)


def _create_extended(options: Any, _: Any) -> Any:
    link = join(options.store, options.group_rank, options.group_size, options.timeout)
    group = getattr(options, "process_group", None)
    # A group whose name is that of another backend has several backends.
    if _HAS_BACKEND and group is not None and group.name() not in ("custom", "undefined", NAME):
        return MusterBackend(link)
    return MusterProcessGroup(link)


def _create_for_gloo(options: Any, _: Any) -> Any:
    # Where there is a GPU, the group may have another backend for its tensors.
    if _HAS_BACKEND and torch.cuda.is_available():
        return MusterBackend(join(options.store, options.group_rank, options.group_size, options.timeout), "gloo")
    return create(options.store, options.group_rank, options.group_size, options.timeout, "gloo")


def register() -> None:
    """Makes the name "muster" known to torch.distributed, once."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    try:
        dist.Backend.register_backend(NAME, _create_extended, extended_api=True, devices=["cpu"])
    except TypeError:  # before 2.0
        dist.Backend.register_backend(NAME, _create_extended, extended_api=True)
    if not _HAS_BACKEND:
        _extend_monitored_barrier()


def _extend_monitored_barrier() -> None:
    """Older releases refuse every group whose backend is not called gloo."""
    for_gloo = distributed_c10d.monitored_barrier

    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        used = dist.group.WORLD if group is None else group
        if isinstance(used, _Common):
            return used.monitored_barrier(timeout, wait_all_ranks)
        return for_gloo(group, timeout, wait_all_ranks)

    distributed_c10d.monitored_barrier = dist.monitored_barrier = monitored_barrier


#: Set while PyTorch makes the gloo group with which it checks calls of another backend.
_wraps = threading.local()


class _InsteadOfGloo:
    """Stands for ProcessGroupGloo where torch.distributed makes a group. Everything else is that of the class."""

    def __call__(self, store: Any, rank: int, size: int, timeout: timedelta = timedelta(minutes=30),
                 **_: Any) -> Any:
        if getattr(_wraps, "others", False):
            return _Gloo(store, rank, size, timeout=timeout)
        return create(store, rank, size, timeout, "gloo")

    def __getattr__(self, name: str) -> Any:
        return getattr(_Gloo, name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, (_Gloo, MusterProcessGroup))


def replace_gloo() -> None:
    """Makes the name "gloo" mean this backend."""
    distributed_c10d.ProcessGroupGloo = _InsteadOfGloo()
    wrap = distributed_c10d._create_process_group_wrapper

    # With TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch compares the calls of all ranks; sessions do so always.
    def wrap_others(wrapped_pg: Any, *arguments: Any, **more: Any) -> Any:
        if isinstance(wrapped_pg, _Common):
            return wrapped_pg
        _wraps.others = True
        try:
            return wrap(wrapped_pg, *arguments, **more)
        finally:
            _wraps.others = False

    distributed_c10d._create_process_group_wrapper = wrap_others
    if hasattr(dist.Backend, "_ensure_backend_registered"):  # since 2.15, gloo is registered as a plug-in
        dist.Backend._ensure_backend_registered("gloo")
        dist.Backend._plugins["GLOO"] = dist.Backend._BackendPlugin(_create_for_gloo, True)


def is_asked_to_replace_gloo() -> bool:
    return os.environ.get(VARIABLE) == "1" and bool(os.environ.get("MUSTER_JOB"))
