"""init(comm=[...]): a world of some of a launcher's ranks, which meet without the other ranks.

They need a meeting point of their own. If the launcher's ranks meet by a file, it is another file, named after the
list. If they meet at an address, it is the same address with a key that is derived from the list; rank 0 of the
launcher, which listens there, must be the first of the list. Otherwise all ranks of the launcher must be on this host,
and the file is named after an identifier of the launcher's run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import operator
import os
from typing import Any, List, Optional, Sequence, Tuple

from .environment import launcher_pair, private_file
from .place import Place
from .exceptions import ConfigurationError

#: Variables that Open MPI sets alike on all ranks of a run, and on no other run: the namespace may be used again, but
#: not the ports of the servers and the nonce of the transports.
_OPEN_MPI = ("PMIX_NAMESPACE", "PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2",
             "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_precondition_transports")
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME")
_TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")

#: By the variable of the rank: the variable with the number of ranks on this host.
_LOCAL_SIZES = {"OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK": "MPI_LOCALNRANKS",
                "RANK": "LOCAL_WORLD_SIZE"}


def place_within(place: Place, ranks: Sequence[int]) -> Place:
    """The place of this process, `place` among the launcher's ranks, in a world of the listed ranks in the order of the
    list.

    Errors: ValueError with the list if it is invalid or lacks this rank, ConfigurationError if the ranks have no
    meeting point.
    """
    rank, size, told_by = _of_launcher(place)
    listed = _checked([_whole(each) for each in ranks], rank, size)
    if listed == list(range(size)):
        return place
    within = dataclasses.replace(place, rank=listed.index(rank), size=len(listed), local_rank=None, local_size=None,
                                 cross_rank=None, cross_size=None)
    if len(listed) == 1:
        return within
    mark = hashlib.sha256(",".join(map(str, listed)).encode()).hexdigest()[:16]
    if place.listener >= 0 or place.cancel >= 0:
        raise ConfigurationError("an elastic job has no fixed ranks: call init() without a list of ranks")
    if place.rendezvous_file is not None:
        return dataclasses.replace(within, rendezvous_file=f"{place.rendezvous_file}.{mark}")
    address = place.rendezvous or os.environ.get("MUSTER_RENDEZVOUS")
    key = place.key or os.environ.get("MUSTER_RENDEZVOUS_KEY")
    if address and key:
        if listed[0] != 0:
            raise ConfigurationError(f"the ranks {listed} meet at {address}, where rank 0 listens: begin the list "
                                     f"with 0, or pass an mpi4py communicator")
        derived = hmac.new(key.encode(), b"ranks " + mark.encode(), hashlib.sha256).hexdigest()
        return dataclasses.replace(within, rendezvous=address, key=derived)
    return dataclasses.replace(within, rendezvous_file=private_file(f"{_run(told_by, size)}\n{mark}"))


def _of_launcher(place: Place) -> Tuple[int, int, str]:
    if place.rank is not None and place.size is not None:
        return place.rank, place.size, place.told_by
    faults: List[str] = []
    found = launcher_pair(os.environ, faults)
    if faults:
        raise ConfigurationError("; ".join(faults))
    return found or (0, 1, "the environment")


def _whole(rank: Any) -> Any:
    """Any kind of whole number, such as numpy's, as an int. Other values are returned unchanged, and rejected later."""
    return rank if isinstance(rank, bool) or not hasattr(rank, "__index__") else operator.index(rank)


def _checked(listed: List[int], rank: int, size: int) -> List[int]:
    faults = []
    outside = [each for each in listed if not isinstance(each, int) or not 0 <= each < size]
    if outside:
        faults.append(f"contains {outside}, not in a world of {size}")
    if len(set(listed)) != len(listed):
        faults.append("contains a rank twice")
    if not outside and rank not in listed:
        faults.append(f"does not contain this rank, {rank}: only the ranks of the list call init() with it")
    if faults:
        raise ValueError(f"the list of ranks {listed} " + " and ".join(faults))
    return listed


def _run(told_by: str, size: int) -> str:
    """An identifier of this run of the launcher, equal on all of its ranks."""
    local = os.environ.get(_LOCAL_SIZES.get(told_by, ""))
    nodes = os.environ.get("SLURM_STEP_NUM_NODES") or os.environ.get("SLURM_NNODES")
    is_local = nodes == "1" if told_by == "SLURM_PROCID" else local == str(size)
    run: Optional[str] = None
    if is_local and told_by == "OMPI_COMM_WORLD_RANK":
        run = _values(_OPEN_MPI)
    elif is_local and told_by == "SLURM_PROCID":
        run = _values(_SLURM)
    elif is_local and told_by == "PMI_RANK":
        run = _ancestor("hydra", "pmi_proxy")
    elif is_local and told_by == "RANK":
        run = f"{_ancestor('')} {_values(_TORCHRUN)}"
    if not run:
        raise ConfigurationError("with this launcher, some of its ranks cannot meet without the others: set "
                                 "MUSTER_RENDEZVOUS and MUSTER_RENDEZVOUS_KEY on all ranks, or pass an mpi4py "
                                 "communicator")
    return f"{told_by} {run}"


def _values(names: Sequence[str]) -> str:
    return "\n".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)


def _ancestor(*beginnings: str) -> Optional[str]:
    """The nearest parent process, or its parents, whose name begins so. Its id may be reused, but not with its start
    time."""
    process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                line = file.read()
        except OSError:
            return None
        name, rest = line[line.index("(") + 1:line.rindex(")")], line[line.rindex(")") + 1:].split()
        if name.startswith(beginnings):
            return f"{process} since {rest[19]}"  # the 22nd field of the line
        process = int(rest[1])
    return None
