"""The hosts of a run and their slots: from -H, a hostfile, or the cluster in which this process runs. Otherwise this
host has all ranks."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from .settings import Host

#: Variables of the launcher of a Muster job (docs/launching.md).
_MUSTER_FOLDER, _MUSTER_HOSTFILE = "MUSTER_GENERATED", "MUSTER_HOSTFILE"

LOCALHOST = "localhost"

#: Names, with or without a user, and addresses. Excludes names that ssh would treat as an option, or that a shell would
#: interpret: a ProxyCommand of the user passes the name to a shell.
_NAME = re.compile(r"(?!-)(?:[\w.+-]+@)?(?!-)[\w.:%+-]+")

Faults = List[str]


def hosts_of_list(text: str, faults: Faults) -> Tuple[Host, ...]:
    """-H: "alpha:2,beta:4"; a host without a number has one slot."""
    hosts = []
    for part in text.split(","):
        host = _host_of(part.strip(), faults, f"-H {text}")
        if host is not None:
            hosts.append(host)
    return merged(hosts)


def hosts_of_file(path: str, faults: Faults) -> Tuple[Host, ...]:
    """Parses a hostfile. Each line is NAME, NAME slots=N (other keys such as max_slots are ignored), or NAME:N; #
    begins a comment."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        faults.append(f"--hostfile {path}: cannot be read: {reason}")
        return ()
    before = len(faults)
    hosts = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            host = _host_of_line(words, faults, f"{path}, line {number}")
            if host is not None:
                hosts.append(host)
    if not hosts and len(faults) == before:
        faults.append(f"--hostfile {path}: contains no host; write a line such as 'alpha slots=2' for each")
    return merged(hosts)


def hosts_of_cluster(environment: Mapping[str, str], faults: Faults) -> Tuple[Host, ...]:
    """The hosts of the Muster job, or of the LSF or Slurm allocation, in which this process runs, or none."""
    hostfile = muster_hostfile(environment)
    if hostfile is not None:
        return hosts_of_file(hostfile, faults)
    if environment.get("LSB_MCPU_HOSTS"):
        return _hosts_of_lsf(environment["LSB_MCPU_HOSTS"], faults)
    if environment.get("SLURM_JOB_NODELIST"):
        return _hosts_of_slurm(environment, faults)
    return ()


def muster_hostfile(environment: Mapping[str, str]) -> Optional[str]:
    for path in (environment.get(_MUSTER_HOSTFILE), _beside(environment, "hostfile")):
        if path and os.path.isfile(path):
            return path
    return None


def muster_discovery_script(environment: Mapping[str, str]) -> Optional[str]:
    """The script that prints the current hosts of a Muster job."""
    path = _beside(environment, "discover_hosts.sh")
    return path if path and os.access(path, os.X_OK) else None


def _beside(environment: Mapping[str, str], name: str) -> Optional[str]:
    folder = environment.get(_MUSTER_FOLDER)
    return os.path.join(folder, name) if folder else None


def slots_of(hosts: Iterable[Host]) -> int:
    return sum(host.slots for host in hosts)


def merged(hosts: Iterable[Host]) -> Tuple[Host, ...]:
    """Adds up the slots of hosts that occur repeatedly. A host keeps its first position."""
    slots: Dict[str, int] = {}
    for host in hosts:
        slots[host.name] = slots.get(host.name, 0) + host.slots
    return tuple(Host(name, count) for name, count in slots.items())


def is_local(name: str) -> bool:
    """Whether this process can start processes there directly."""
    own = os.uname().nodename
    return name in (LOCALHOST, "127.0.0.1", "::1", own, own.partition(".")[0])


def _host_of(text: str, faults: Faults, where: str) -> Optional[Host]:
    name, colon, number = text.rpartition(":")
    if not colon or (":" in name and not name.endswith("]")):
        # Without a number: a name, or an IPv6 address.
        name, number = text, "1"
    return _checked(name, number, faults, where)


def _host_of_line(words: List[str], faults: Faults, where: str) -> Optional[Host]:
    sizes = [word.partition("=")[2] for word in words[1:] if word.partition("=")[0] == "slots"]
    unknown = [word for word in words[1:] if "=" not in word]
    if unknown:
        faults.append(f"{where}: {unknown[0]!r} is invalid: expected NAME slots=N or NAME:N")
        return None
    if not sizes:
        return _host_of(words[0], faults, where)
    return _checked(words[0], sizes[-1], faults, where)


def _checked(name: str, number: str, faults: Faults, where: str) -> Optional[Host]:
    name = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if _NAME.fullmatch(name) is None:
        faults.append(f"{where}: {name!r} is not a host name: expected NAME:SLOTS")
    elif not (number.isascii() and number.isdigit() and 0 < int(number) < 1 << 20):
        faults.append(f"{where}: {number!r} is not a number of ranks for {name}: expected a whole number from 1")
    else:
        return Host(name, int(number))
    return None


def _hosts_of_lsf(text: str, faults: Faults) -> Tuple[Host, ...]:
    words = text.split()
    if len(words) % 2:
        faults.append(f"LSB_MCPU_HOSTS={text!r} is not a list of hosts and slots: set the hosts with -H")
        return ()
    pairs = zip(words[::2], words[1::2])
    hosts = [_checked(name, number, faults, "LSB_MCPU_HOSTS") for name, number in pairs]
    return merged(host for host in hosts if host is not None)


def _hosts_of_slurm(environment: Mapping[str, str], faults: Faults) -> Tuple[Host, ...]:
    names = _slurm_names(environment["SLURM_JOB_NODELIST"])
    sizes = _slurm_sizes(environment.get("SLURM_TASKS_PER_NODE") or environment.get("SLURM_JOB_CPUS_PER_NODE") or "1")
    if names is None or sizes is None:
        faults.append("SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE are invalid lists: set the hosts "
                      "with -H")
        return ()
    sizes += sizes[-1:] * (len(names) - len(sizes))
    hosts = [_checked(name, str(size), faults, "SLURM_JOB_NODELIST") for name, size in zip(names, sizes)]
    return merged(host for host in hosts if host is not None)


def _slurm_names(text: str) -> Optional[List[str]]:
    """ "a[01-03,7]b,c" becomes a01b, a02b, a03b, a7b and c."""
    names = []
    for part in _split_outside_brackets(text):
        head, bracket, rest = part.partition("[")
        inner, closing, tail = rest.partition("]")
        if bool(bracket) != bool(closing) or not part:
            return None
        tails = _slurm_names(tail) if "[" in tail else [tail]
        numbers = _slurm_numbers(inner) if bracket else [""]
        if tails is None or numbers is None:
            return None
        names += [head + number + end for number in numbers for end in tails]
    return names or None


def _split_outside_brackets(text: str) -> List[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _slurm_numbers(text: str) -> Optional[List[str]]:
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal()) or not 0 <= int(last) - int(first) < 1 << 16:
            return None
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def _slurm_sizes(text: str) -> Optional[List[int]]:
    """ "2(x3),1" becomes 2, 2, 2, 1."""
    sizes: List[int] = []
    for part in text.split(","):
        size, bracket, times = part.partition("(x")
        times = (times[:-1] if times.endswith(")") else "") if bracket else "1"
        if not (size.isdecimal() and times.isdecimal() and int(size) > 0 and 0 < int(times) < 1 << 16):
            return None
        sizes += [int(size)] * int(times)
    return sizes
