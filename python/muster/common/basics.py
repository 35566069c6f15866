"""init() and shutdown() of the world, and its properties: functions of `hvd.`

The functions for properties raise ValueError before init() and after shutdown(), and RuntimeError in a process that was
forked from a rank.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any, List, Optional, Sequence, Union

from . import (communicators, connecting, environment, handles, knobs, logging, operations, process_sets as sets,
               subsets, world)
from .built import (ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built, mpi_enabled, nccl_built,
                    rocm_built)
from .exceptions import ConfigurationError, HorovodInternalError
from .place import Place
from .process_sets import ProcessSet, global_process_set
from .reduce_ops import ReduceOp

__all__ = ["barrier", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled",
           "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled",
           "mpi_threads_supported", "nccl_built", "rank", "rocm_built", "shutdown", "size", "start_timeline",
           "stop_timeline"]

ProcessSets = Union[None, str, Sequence[Union[ProcessSet, Sequence[int]]]]


def init(comm: Any = None, process_sets: ProcessSets = None) -> None:
    """Joins the ranks of the job, and waits for them. Does nothing if this process is already in a world.

    comm: None: all ranks of the launcher; a list of ranks: these ranks in this order, and only they call init(); or an
      mpi4py communicator: its ranks.
    process_sets: sets to register, equal on all ranks; or "dynamic", like HOROVOD_DYNAMIC_PROCESS_SETS=1.

    Errors: ConfigurationError with all faults of the environment; ValueError for arguments; HorovodInternalError naming
    the missing ranks; in an elastic run it waits for the next world instead.
    """
    with world.lock:
        if is_initialized():
            return
        if isinstance(process_sets, str):
            if process_sets.lower() != "dynamic":
                raise ValueError(f"process_sets is {process_sets!r}; expected a list of process sets, or \"dynamic\"")
            os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
            process_sets = None
        while True:
            try:
                _join(comm, process_sets or ())
                return
            except HorovodInternalError as error:
                if not _has_next_world(error):
                    raise


def _join(comm: Any, process_sets: Sequence[Union[ProcessSet, Sequence[int]]]) -> None:
    found, place = _read_environment(comm)
    made = connecting.connect(place, found)
    logging.configure(found.log_level, not found.log_hides_time, made.rank)
    _begin(made)
    try:
        made.is_homogeneous = _has_equal_hosts()
        sets.register_all(process_sets)
    except BaseException:
        shutdown()
        raise


def _has_next_world(error: HorovodInternalError) -> bool:
    """Whether another world follows after this one failed while its ranks joined."""
    if not os.environ.get("MUSTER_ELASTIC_DRIVER"):
        return False
    from .elastic import places
    return places.asks_again_after(error)


def shutdown() -> None:
    """Leaves the world: pending operations fail, here and on ranks that need this rank for them. Without effect if
    there is no world. init() may join the next one."""
    with world.lock:
        made, world.current = world.current, None
        if made is None:
            return
        sets.end(made)
        if not made.is_foreign():
            made.end()


def is_initialized() -> bool:
    """Whether this process is in a world."""
    return world.current is not None and not world.current.is_foreign()


def rank() -> int:
    """The number of this rank in the world."""
    return world.get().rank


def size() -> int:
    """The number of ranks in the world."""
    return world.get().size


def local_rank() -> int:
    """The number of this rank among the ranks of its host."""
    return world.get().local_rank


def local_size() -> int:
    """The number of ranks on this host."""
    return world.get().local_size


def cross_rank() -> int:
    """The number of this host among the hosts."""
    return world.get().cross_rank


def cross_size() -> int:
    """The number of hosts."""
    return world.get().cross_size


def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""
    return world.get().is_homogeneous


def mpi_threads_supported() -> bool:
    """Whether several threads may use MPI beside this library. True: the library uses MPI from one thread at a time, or
    not at all."""
    world.get()
    return True


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns once every rank of the set has called it."""
    session = operations.session_of(process_set)
    operations.run("barrier", session.next_name("barrier"), process_set=process_set, buffers=())


def join() -> int:
    """Reports that this rank has no more data. Until all ranks have joined, it contributes zeros to reductions of other
    ranks; other operations fail.

    Returns the last rank that joined.
    """
    session = operations.session_of(global_process_set)
    operations.run("join", "join", process_set=global_process_set, buffers=())
    session.number_names_anew()
    return int(session.last_joined())


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Starts a timeline of this rank's operations, which rank 0 writes to the file (Chrome's trace format, for
    chrome://tracing and ui.perfetto.dev). Ends the previous timeline. mark_cycles: adds a mark CYCLE_START when
    operations begin together.

    Errors: ValueError unless HOROVOD_TIMELINE was DYNAMIC at init(); HorovodInternalError if the file cannot be
    written.
    """
    session = _dynamic_timeline()
    if session is not None:
        session.call("muster_session_mark_cycles", int(mark_cycles))
        session.call("muster_session_start_timeline", os.fsencode(file_path))


def stop_timeline() -> None:
    """Ends the timeline and completes its file. Errors: as start_timeline()."""
    session = _dynamic_timeline()
    if session is not None:
        session.call("muster_session_stop_timeline")


def _dynamic_timeline() -> Any:
    """Rank 0's session; None on other ranks."""
    made = world.get()
    if not made.knobs.timeline_is_dynamic:
        raise ValueError("a program can start and stop a timeline only if HOROVOD_TIMELINE is DYNAMIC at "
                         "init(); it is " + repr(os.environ.get("HOROVOD_TIMELINE", "")))
    return made.sessions[0] if made.rank == 0 else None


def _read_environment(comm: Any) -> "tuple[knobs.Knobs, Place]":
    """Errors: ConfigurationError with all faults."""
    faults: List[str] = []
    found = knobs.read(faults)
    place: Optional[Place] = None
    if not communicators.is_communicator(comm):
        place = environment.find_place(faults=faults)
    if faults:
        raise ConfigurationError("; ".join(faults))
    if place is None:
        return found, communicators.place_in(comm, found.interface)
    if comm is None or len(comm) == 0:
        return found, place
    return found, subsets.place_within(place, comm)


def _begin(made: world.World) -> None:
    sets.begin(made)
    handles.forget_all()
    world.current = made
    atexit.unregister(_shutdown_at_exit)
    atexit.register(_shutdown_at_exit)


def __getattr__(name: str) -> Any:
    if name == "HorovodBasics":
        raise ImportError("Muster has no class HorovodBasics: horovod.torch, horovod.tensorflow and this module have "
                          "its methods as functions")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _shutdown_at_exit() -> None:
    # A daemon thread may be in the middle of init(): the end of the program does not wait for its ranks.
    if world.lock.acquire(timeout=1):
        try:
            shutdown()
        finally:
            world.lock.release()


def _has_equal_hosts() -> bool:
    """Compares the numbers of neighbours of all ranks."""
    made = world.get()
    if made.size == 1:
        return True
    counts = (ctypes.c_int64 * 2)(made.local_size, -made.local_size)
    at = ctypes.addressof(counts)
    operations.run("all_reduce", "neighbours", process_set=global_process_set, buffers=[(at, at, 2)], type="int64",
                   op=ReduceOp.MAX, keep=counts)
    return bool(counts[0] == -counts[1])
