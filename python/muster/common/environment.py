"""The place of a process in its world, from the variables that launchers set.

The first of these that is set applies: the driver of an elastic job (MUSTER_ELASTIC_DRIVER), MUSTER_RANK with
MUSTER_WORLD_SIZE, HOROVOD_RANK with HOROVOD_SIZE, and then the variables that the collective library itself reads:
those of Open MPI, MPICH and Intel MPI, Slurm and torchrun. Without any of them the world is this one process.

A rank that takes itself for a world of one would train alone, unnoticed. Therefore contradictions between launchers,
for example if one was started below another, are errors, and so are incomplete variables of an MPI launcher.

The settings of training are in knobs.py.
"""

from __future__ import annotations

import hashlib
import os
from typing import List, Mapping, Optional, Tuple

from .elastic import places
from .exceptions import ConfigurationError
from .place import Place

#: The pairs of variables in which launchers set rank and size, in order of precedence.
LAUNCHERS: Tuple[Tuple[str, str], ...] = (
    ("MUSTER_RANK", "MUSTER_WORLD_SIZE"), ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"), ("RANK", "WORLD_SIZE"))


def find_place(environment: Optional[Mapping[str, str]] = None, faults: Optional[List[str]] = None) -> Place:
    """The place of this process.

    Errors: faults are added to `faults`, and the place must not be used then; without that list they are raised as one
    ConfigurationError. Errors of an elastic driver are raised unchanged.
    """
    environment = os.environ if environment is None else environment
    found: List[str] = []
    place = _find(environment, found)
    if faults is not None:
        faults.extend(found)
    elif found:
        raise ConfigurationError("; ".join(found))
    return place


def launcher_pair(environment: Mapping[str, str], faults: List[str]) -> Optional[Tuple[int, int, str]]:
    """Rank and size from the first launcher that sets both, and the variable with its rank."""
    for rank_name, size_name in LAUNCHERS:
        if environment.get(rank_name) and environment.get(size_name):
            rank, size = _number(environment, rank_name, faults), _number(environment, size_name, faults)
            if rank is None or size is None:
                return None
            return rank, size, rank_name
    return None


def _find(environment: Mapping[str, str], faults: List[str]) -> Place:
    if environment.get("MUSTER_ELASTIC_DRIVER"):
        return places.ask()
    _refuse_contradictions(environment, faults)
    for rank_name, size_name in LAUNCHERS[:2]:
        if environment.get(rank_name) or environment.get(size_name):
            return _told(environment, rank_name, size_name, faults)
    if launcher_pair(environment, []) is None:
        _refuse_halves(environment, faults)
    return Place(host=environment.get("HOROVOD_HOSTNAME") or None)


def _refuse_contradictions(environment: Mapping[str, str], faults: List[str]) -> None:
    """Compares launchers that may have been started below one another. The variables of an outer srun, and RANK of a
    cluster, are ignored: other launchers may run below them."""
    muster, horovod, open_mpi, hydra, _, torchrun = (
        (names, [environment[name] for name in names]) if all(environment.get(name) for name in names) else None
        for names in LAUNCHERS)
    told = [each for each in (muster, horovod, open_mpi or (hydra if muster or horovod else None),
                              torchrun if environment.get("TORCHELASTIC_RUN_ID") else None) if each is not None]
    for names, values in told[1:]:
        first, chosen = told[0]
        if [each.lstrip("0") for each in values] != [each.lstrip("0") for each in chosen]:
            faults.append(f"{first[0]} and {first[1]} set rank {chosen[0]} of {chosen[1]}, but {names[0]} and "
                          f"{names[1]} rank {values[0]} of {values[1]}: one launcher was started below another; unset "
                          f"the variables of one of them")


def _refuse_halves(environment: Mapping[str, str], faults: List[str]) -> None:
    """Adds the faults of launchers that always set both variables, if no launcher set both."""
    for rank_name, size_name in LAUNCHERS[2:4]:
        for name, other in ((rank_name, size_name), (size_name, rank_name)):
            if environment.get(name) and not environment.get(other):
                faults.append(f"{name} is {environment[name]!r}, but {other} is not set: the program that started "
                              f"this process lost it; pass on all variables of the launcher")


def _told(environment: Mapping[str, str], rank_name: str, size_name: str, faults: List[str]) -> Place:
    rank = _number(environment, rank_name, faults)
    size = _number(environment, size_name, faults)
    for name, other in ((rank_name, size_name), (size_name, rank_name)):
        if not environment.get(name):
            faults.append(f"{other} is set, but {name} is not: set both or neither")
    if rank is not None and size is not None and not 0 <= rank < size:
        faults.append(f"{rank_name} is {rank} and {size_name} is {size}: ranks go from 0 to size - 1")
    near = [_number(environment, "HOROVOD_" + name, faults)
            for name in ("LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")]
    local_rank, local_size, cross_rank, cross_size = near if None not in near else [None] * 4
    for index, count, what in ((local_rank, local_size, "LOCAL"), (cross_rank, cross_size, "CROSS")):
        if index is not None and count is not None and not 0 <= index < count:
            faults.append(f"HOROVOD_{what}_RANK is {index} and HOROVOD_{what}_SIZE is {count}: "
                          f"ranks go from 0 to size - 1")
    place = Place(rank=rank, size=size, local_rank=local_rank, local_size=local_size, cross_rank=cross_rank,
                  cross_size=cross_size, rendezvous=environment.get("MUSTER_RENDEZVOUS") or None,
                  key=environment.get("MUSTER_RENDEZVOUS_KEY") or None,
                  rendezvous_file=environment.get("MUSTER_RENDEZVOUS_FILE") or _file_of_run(environment),
                  host=environment.get("HOROVOD_HOSTNAME") or None, told_by=rank_name)
    if not faults and size != 1 and place.rendezvous is None and place.rendezvous_file is None:
        faults.append(f"{size_name} is {size}, but the address where the ranks meet is missing: set "
                      f"MUSTER_RENDEZVOUS=host:port "
                      f"(rank 0 listens there) and MUSTER_RENDEZVOUS_KEY on all ranks, or MUSTER_RENDEZVOUS_FILE to a "
                      f"file in a private folder if all ranks are on this host")
    return place


def _number(environment: Mapping[str, str], name: str, faults: List[str]) -> Optional[int]:
    text = environment.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        faults.append(f"{name} is {text!r}, not a whole number")
        return None
    return int(text)


def _file_of_run(environment: Mapping[str, str]) -> Optional[str]:
    """The file by which the ranks of one run of Horovod's own launcher meet, if all of them are on this host.

    Its rendezvous server is not used, since it trusts every client. Its address, which differs for each run, identifies
    the run. A file in a private folder needs no more.
    """
    address, port = (environment.get("HOROVOD_GLOO_RENDEZVOUS_" + part) for part in ("ADDR", "PORT"))
    if not address or not port or environment.get("MUSTER_RENDEZVOUS"):
        return None
    if environment.get("HOROVOD_LOCAL_SIZE") != environment.get("HOROVOD_SIZE"):
        return None
    return private_file(f"horovodrun {address} {port} {environment.get('HOROVOD_SECRET_KEY', '')}")


def private_file(run: str) -> str:
    """The file by which the ranks of `run` meet on this host. `run` is a text that only they have."""
    name = hashlib.sha256(run.encode()).hexdigest()[:32]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):
        return os.path.join(runtime, "muster-collective", name)
    return f"/tmp/muster-collective-{os.geteuid()}/{name}"
