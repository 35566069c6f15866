"""The places of the ranks, and the variables that describe them."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Tuple

from .settings import Host, Settings

#: Variables that define the place of a process in a world. Values in this process belong to another run, of which it
#: may be a rank.
NEVER_INHERITED = frozenset(
    [f"HOROVOD_{each}" for each in (
        "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "HOSTNAME", "CONTROLLER",
        "CPU_OPERATIONS", "GLOO_RENDEZVOUS_ADDR", "GLOO_RENDEZVOUS_PORT", "SECRET_KEY", "ELASTIC")]
    + [f"MUSTER_{each}" for each in (
        "RANK", "WORLD_SIZE", "RENDEZVOUS", "RENDEZVOUS_FILE", "RENDEZVOUS_KEY", "ELASTIC_DRIVER", "ELASTIC_WORKER")]
    + [f"OMPI_COMM_WORLD_{each}" for each in (
        "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "NODE_RANK")]
    + ["PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE", "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_LOCALID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
       "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"])

#: Variables of this login that mean nothing, or something else, on another host.
_OF_THIS_LOGIN = frozenset(["HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "OLDPWD", "SHLVL", "_", "TERM",
                            "DISPLAY", "XAUTHORITY", "HOSTNAME", "TMUX", "STY", "WINDOWID", "TMPDIR"])
_OF_THIS_LOGIN_BY_PREFIX = ("SSH_", "XDG_", "DBUS_", "BASH_FUNC_", "LC_TERMINAL", "VTE_", "SUDO_")


class Place(NamedTuple):
    """The place of a rank; `cross_rank` counts the hosts that have a rank with this local number."""

    host: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


def lay_out(hosts: Iterable[Host], size: int) -> List[Place]:
    """Places `size` ranks on the hosts. Each host is filled before the next. The hosts must have enough slots."""
    local_sizes: List[Tuple[str, int]] = []
    left = size
    for host in hosts:
        taken = min(host.slots, left)
        if taken:
            local_sizes.append((host.name, taken))
        left -= taken
    assert left == 0, "the settings guarantee enough slots"
    places: List[Place] = []
    for index, (name, local_size) in enumerate(local_sizes):
        for local_rank in range(local_size):
            peers = [other for other, (_, count) in enumerate(local_sizes) if count > local_rank]
            places.append(Place(name, len(places), size, local_rank, local_size, peers.index(index), len(peers)))
    return places


def environment_of(place: Place) -> Dict[str, str]:
    """The variables of each rank, by Muster's and by Horovod's names, except for the rendezvous."""
    return {
        "MUSTER_RANK": str(place.rank), "MUSTER_WORLD_SIZE": str(place.size),
        "HOROVOD_RANK": str(place.rank), "HOROVOD_SIZE": str(place.size),
        "HOROVOD_LOCAL_RANK": str(place.local_rank), "HOROVOD_LOCAL_SIZE": str(place.local_size),
        "HOROVOD_CROSS_RANK": str(place.cross_rank), "HOROVOD_CROSS_SIZE": str(place.cross_size),
        "HOROVOD_HOSTNAME": place.host,
    }


def common_environment(settings: Settings) -> Dict[str, str]:
    """The variables that are equal on all ranks: the options of the run."""
    variables = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
    if settings.network_interfaces:
        names = ",".join(settings.network_interfaces)
        variables.update(HOROVOD_GLOO_IFACE=names, NCCL_SOCKET_IFNAME=names)
    variables.update(settings.environment)
    return variables


def own_part(environment: Mapping[str, str]) -> Tuple[Dict[str, str], Dict[str, str]]:
    """The variables of this process that ranks on other hosts get: those that override the host's, and defaults.

    The environment of a run is that of its launcher, except for variables of a login. The tasks of a Muster job have
    their own environments, with their own devices.
    """
    passed = {name: value for name, value in environment.items()
              if name not in NEVER_INHERITED and name not in _OF_THIS_LOGIN
              and not name.startswith(_OF_THIS_LOGIN_BY_PREFIX)}
    if "MUSTER_GENERATED" not in environment:
        return passed, {}
    return {}, {name: value for name, value in passed.items() if name != "CUDA_VISIBLE_DEVICES"}
