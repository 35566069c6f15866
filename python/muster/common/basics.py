"""init() and shutdown() of the world, and what a rank may ask about it: what `hvd.` begins with.

Before init() every question raises ValueError.
"""

from __future__ import annotations

import atexit
from typing import Any, List, Optional, Sequence, Union

from .._native import abi
from . import environment, handles, operations, world
from . import process_sets as registry
from .process_sets import ProcessSet, global_process_set


def init(comm: Any = None, process_sets: Union[None, str, Sequence[ProcessSet]] = None) -> None:
    """Joins the ranks of the job. Where this process has a world already, nothing happens.

    comm: None, all ranks of the launcher; a list of ranks, those alone make up the world, in this order; or an
      mpi4py communicator, whose ranks do.
    process_sets: sets to register, the same on all ranks; or "dynamic", which allows add_process_set().

    Errors: ValueError, ConfigurationError, HorovodInternalError naming the ranks that did not come.
    """
    with world.lock:
        if is_initialized():
            return
        place = environment.find_place()
        made = world.connect(place)
        _start(made)
        if process_sets is not None and process_sets != "dynamic":
            for each in process_sets:
                registry.register(made, each)


def _start(made: world.World) -> None:
    session = made.start_session(range(made.size), abi.session_options())
    made.sessions[0] = session
    global_process_set._listed = list(range(made.size))
    global_process_set._session = session
    handles.forget_all()
    world.current = made
    atexit.unregister(shutdown)
    atexit.register(shutdown)


def shutdown() -> None:
    """Leaves the world: what is pending fails here, and on the others as soon as they need this rank. Nothing
    happens where there is no world."""
    with world.lock:
        made = world.current
        if made is None:
            return
        world.current = None
        for each in made.process_sets.values():
            registry.forget(each)
        global_process_set._session = None
        global_process_set._listed = None
        if not made.is_foreign():
            made.end()


def is_initialized() -> bool:
    return world.current is not None and not world.current.is_foreign()


def rank() -> int:
    return world.get().rank


def size() -> int:
    return world.get().size


def local_rank() -> int:
    """This rank's number on its host."""
    return world.get().local_rank


def local_size() -> int:
    """How many ranks are on this host."""
    return world.get().local_size


def cross_rank() -> int:
    """The number of this host."""
    return world.get().cross_rank


def cross_size() -> int:
    """How many hosts there are."""
    return world.get().cross_size


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns once every rank of the set has called it."""
    operations.run("barrier", handles.next_name("barrier"), process_set=process_set, buffers=())


def join() -> int:
    """This rank has no more data: it takes part in all reductions with zeros until everybody has joined.

    Returns the last rank that joined.
    """
    session = operations.session_of(global_process_set)
    operations.run("join", "join", process_set=global_process_set, buffers=())
    last: int = session.library.muster_session_last_joined(session.pointer)
    return last
