"""init(comm=<mpi4py communicator>): its ranks are the world.

Rank 0 opens a port and distributes its address and a new key over MPI. MPI is not used afterwards. mpi4py is not
imported: a communicator is any object with its methods.
"""

from __future__ import annotations

import fcntl
import secrets
import socket
import struct
from typing import Any, List, Optional

from .place import Place
from .exceptions import ConfigurationError

_SIOCGIFADDR = 0x8915


def is_communicator(given: object) -> bool:
    return all(hasattr(given, name) for name in ("Get_rank", "Get_size", "bcast", "allgather"))


def place_in(comm: Any, interface: Optional[str] = None) -> Place:
    """This process's place in the communicator. Called by all of its ranks.

    `interface`: the network interface to meet on, if the ranks are on several hosts. Errors: ConfigurationError on
    every rank, if rank 0 cannot open a port.
    """
    rank, size = int(comm.Get_rank()), int(comm.Get_size())
    told_by = "the mpi4py communicator"
    if size == 1:
        return Place(rank=0, size=1, told_by=told_by)
    hosts: List[str] = comm.allgather(socket.gethostname())
    listener, meeting = None, None
    if rank == 0:
        try:
            listener = _listen(None if len(set(hosts)) == 1 else interface or "")
            meeting = (_endpoint(listener), secrets.token_hex(32), "")
        except OSError as error:
            meeting = ("", "", f"rank 0 on {hosts[0]} cannot open a port for the other ranks: {error}")
    endpoint, key, fault = comm.bcast(meeting, root=0)
    if fault:
        raise ConfigurationError(fault)
    return Place(rank=rank, size=size, rendezvous=endpoint, key=key, told_by=told_by,
                 listener=-1 if listener is None else listener.detach())


def _listen(interface: Optional[str]) -> socket.socket:
    """Listens on this host's own address (None), on the address of an interface, or on that of the host name ("")."""
    if interface is None:
        address = "127.0.0.1"
    elif interface:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        address = socket.inet_ntoa(answer[20:24])
    else:
        found = socket.getaddrinfo(socket.gethostname(), 0, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        reached = [each[4][0] for each in found if not str(each[4][0]).startswith(("127.", "::1"))]
        if not reached:
            raise OSError(f"the name {socket.gethostname()!r} of this host has no address that other hosts reach; "
                          f"set an interface in HOROVOD_GLOO_IFACE")
        address = str(reached[0])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family, backlog=1024)


def _endpoint(listener: socket.socket) -> str:
    address, port = listener.getsockname()[:2]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
