"""From the options, a configuration file or the arguments of `run()` to the settings of the run: checks combinations,
finds the hosts, and determines the variables of the ranks."""

from __future__ import annotations

import os
import shlex
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .command_line import Asked, Faults
from .hosts import (LOCALHOST, hosts_of_cluster, hosts_of_file, hosts_of_list, muster_discovery_script, slots_of)
from .option_table import LOG_LEVELS, NEGATED, NO, OPTIONS, YES
from .settings import ELASTIC_TIMEOUT, GLOO, MPI, START_TIMEOUT, Host, Settings, SettingsError


def settings_of(asked: Asked, command: Tuple[str, ...], environment: Mapping[str, str],
                faults: Optional[Faults] = None) -> Settings:
    """Errors: SettingsError with all faults, including `faults`."""
    faults = [] if faults is None else faults
    get = _Getter(asked)
    if not command:
        faults.append("the command is missing: write it last, for example: horovodrun -np 2 python3 train.py")
    _refuse_contradictions(get, faults)
    hosts = _hosts_of(get, environment, faults)
    settings = Settings(
        command=command,
        num_proc=get("num_proc"),
        hosts=hosts,
        launcher=MPI if get("mpi") else GLOO,
        min_num_proc=get("min_num_proc"),
        max_num_proc=get("max_num_proc"),
        host_discovery_script=get("host_discovery_script"),
        slots_per_host=get("slots_per_host"),
        elastic_timeout=get("elastic_timeout", ELASTIC_TIMEOUT),
        reset_limit=get("reset_limit"),
        blacklist_cooldown_range=get("blacklist_cooldown_range"),
        start_timeout=get("start_timeout") or _start_timeout_of(environment, faults),
        network_interfaces=_interfaces_of(get, faults),
        ssh_port=get("ssh_port"),
        ssh_identity_file=get("ssh_identity_file"),
        remote_shell=_remote_shell_of(environment),
        mpi_args=get("mpi_args", ""),
        binding_args=get("binding_args", ""),
        tcp=get("tcp", False),
        output_filename=_absolute(get("output_filename")),
        prefix_output_with_timestamp=get("prefix_output_with_timestamp", False),
        verbose=get("verbose", False),
        environment=_variables_of(get, faults),
        working_folder=_working_folder(faults))
    settings = _with_discovery(settings, get, environment)
    settings = _with_size(settings, get, faults)
    if faults:
        raise SettingsError(tuple(faults))
    return settings._replace(notes=_notes_of(get, settings)) if settings.verbose else settings


class _Getter:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __call__(self, key: str, default: Any = None) -> Any:
        value = self.asked[key][0] if key in self.asked else None
        return default if value is None else value

    def name(self, key: str) -> str:
        return self.asked[key][1]

    def given(self, *keys: str) -> List[str]:
        """The names of the options that were set."""
        return [self.name(key) for key in keys if key in self.asked and self(key) is not False]


def _refuse_contradictions(get: _Getter, faults: Faults) -> None:
    for keys in (("hosts", "hostfile", "host_discovery_script"), ("gloo", "mpi", "jsrun")):
        given = get.given(*keys)
        if len(given) > 1:
            faults.append(f"{' and '.join(given)} contradict each other: omit {'one' if len(given) == 2 else 'two'} of "
                          "them")
    if get("jsrun"):
        faults.append("--jsrun: not supported: omit it, and horovodrun reaches the hosts of the LSF allocation by ssh; "
                      "or start the command with jsrun itself, whose ranks also find each other")
    elastic = get.given("min_num_proc", "max_num_proc", "host_discovery_script", "slots_per_host", "reset_limit",
                        "blacklist_cooldown_range", "elastic_timeout")
    is_elastic = bool(get.given("min_num_proc", "max_num_proc", "host_discovery_script"))
    if is_elastic and get("mpi"):
        faults.append(f"--mpi and {elastic[0]} contradict each other: the ranks of mpirun cannot change; omit --mpi")
    if elastic and not is_elastic:
        faults.append(f"{' and '.join(elastic)}: for elastic runs only; add --min-np, --max-np or "
                      "--host-discovery-script, or omit it")
    for lower, higher in (("min_num_proc", "max_num_proc"), ("min_num_proc", "num_proc"),
                          ("num_proc", "max_num_proc")):
        low, high = get(lower), get(higher)
        if low is not None and high is not None and low > high:
            faults.append(f"{get.name(lower)} {low} exceeds {get.name(higher)} {high}")
    level = get("log_level")
    if level is not None and level.lower() not in LOG_LEVELS:
        faults.append(f"{get.name('log_level')} {level}: expected one of {', '.join(LOG_LEVELS)}")
    port = get("ssh_port")
    if port is not None and port > 65535:
        faults.append(f"{get.name('ssh_port')} {port}: the highest port is 65535")
    identity = get("ssh_identity_file")
    if identity is not None and not os.access(identity, os.R_OK):
        faults.append(f"{get.name('ssh_identity_file')} {identity}: the file does not exist or cannot be read")


def _hosts_of(get: _Getter, environment: Mapping[str, str], faults: Faults) -> Tuple[Host, ...]:
    if get("hosts") is not None:
        return hosts_of_list(get("hosts"), faults)
    if get("hostfile") is not None:
        return hosts_of_file(get("hostfile"), faults)
    if get("host_discovery_script") is not None:
        return ()
    return hosts_of_cluster(environment, faults)


def _with_discovery(settings: Settings, get: _Getter, environment: Mapping[str, str]) -> Settings:
    """The hosts of a Muster job change; its discovery script is used unless the user set other hosts."""
    if not settings.is_elastic or get.given("hosts", "hostfile", "host_discovery_script"):
        return settings
    script = muster_discovery_script(environment)
    return settings if script is None else settings._replace(host_discovery_script=shlex.quote(script), hosts=())


def _with_size(settings: Settings, get: _Getter, faults: Faults) -> Settings:
    if settings.host_discovery_script is not None:
        if not {"num_proc", "min_num_proc"} & set(get.asked):
            faults.append("the minimum number of ranks is missing: set --min-np or -np")
        return settings
    size = settings.num_proc or settings.max_num_proc or settings.min_num_proc
    if not settings.hosts and not get.given("hosts", "hostfile"):
        if size is None:
            if not {"num_proc", "min_num_proc", "max_num_proc"} & set(get.asked):
                faults.append("the number of ranks is missing: set -np N, or hosts with slots: -H alpha:2,beta:2")
            return settings
        return settings._replace(hosts=(Host(LOCALHOST, size),),
                                 num_proc=settings.num_proc if settings.is_elastic else size)
    room = slots_of(settings.hosts)
    if settings.is_elastic:
        least = settings.min_num_proc or settings.num_proc
        if settings.hosts and least is not None and least > room:
            faults.append(_no_room(least, room, settings))
        return settings
    if size is None:
        return settings._replace(num_proc=room)
    if settings.hosts and size > room:
        faults.append(_no_room(size, room, settings))
    return settings


def _no_room(size: int, room: int, settings: Settings) -> str:
    names = ", ".join(f"{host.name}:{host.slots}" for host in settings.hosts[:8])
    more = f" and {len(settings.hosts) - 8} more" if len(settings.hosts) > 8 else ""
    return (f"{size} ranks need as many slots, but the hosts have {room} ({names}{more}): request fewer, or give hosts "
            "more slots (-H NAME:SLOTS)")


def _start_timeout_of(environment: Mapping[str, str], faults: Faults) -> int:
    text = environment.get("HOROVOD_START_TIMEOUT")
    if not text:
        return START_TIMEOUT
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    faults.append(f"HOROVOD_START_TIMEOUT is {text!r}: expected a whole number of seconds from 1")
    return START_TIMEOUT


def _interfaces_of(get: _Getter, faults: Faults) -> Tuple[str, ...]:
    text = get("network_interfaces")
    if text is None:
        return ()
    names = tuple(text.split(",") if isinstance(text, str) else text)
    if not all(name and not name.isspace() and "/" not in name and len(name) < 16 for name in names):
        faults.append(f"{get.name('network_interfaces')} {text}: expected names of interfaces separated by "
                      "commas: eth0,eth1")
    return names


def _remote_shell_of(environment: Mapping[str, str]) -> Tuple[str, ...]:
    """The remote shell of a Muster job, which reaches the tasks of the job."""
    agent = environment.get("OMPI_MCA_plm_rsh_agent", "")
    if "MUSTER_GENERATED" not in environment or not agent:
        return ("ssh",)
    return (*shlex.split(agent), *shlex.split(environment.get("OMPI_MCA_plm_rsh_args", "")))


def _working_folder(faults: Faults) -> str:
    try:
        return os.getcwd()
    except OSError as error:
        faults.append(f"the working folder, in which the ranks start, cannot be used: {error.strerror}; change to a "
                      "folder that exists")
        return os.sep


def _absolute(path: Optional[str]) -> Optional[str]:
    try:
        return None if path is None else os.path.abspath(path)
    except OSError:
        return path  # there is no working folder, which is reported elsewhere


def _variables_of(get: _Getter, faults: Faults) -> Dict[str, str]:
    variables: Dict[str, str] = {}
    for option in OPTIONS:
        if not option.variable or get(option.key) is None:
            continue
        value = get(option.key)
        if option.kind in (YES, NO):
            variables[option.variable] = str(int(bool(value) != (option.variable in NEGATED)))
        elif option.key == "log_level":
            variables[option.variable] = value.lower()
        elif option.key in ("timeline_filename", "autotune_log_file") and value != "DYNAMIC":
            variables[option.variable] = str(_absolute(value))
        else:
            variables[option.variable] = f"{value * option.times:.15g}" if isinstance(value, float) else \
                str(value * option.times)
    return variables


def _notes_of(get: _Getter, settings: Settings) -> Tuple[str, ...]:
    """The options that have no effect."""
    from ..common.knobs import MEANINGLESS
    notes = []
    for option in OPTIONS:
        if option.variable in MEANINGLESS and option.key in get.asked and option.names[0] == _canonical(option.key):
            notes.append(f"{get.name(option.key)} has no effect: {MEANINGLESS[option.variable]}")
    if settings.launcher != MPI:
        notes += [f"{name} has no effect: it is for --mpi" for name in get.given("mpi_args", "tcp", "binding_args")]
    notes += [f"{name} has no effect: a run leaves nothing for the next run"
              for name in get.given("disable_cache")]
    return tuple(notes)


def _canonical(key: str) -> str:
    return next(option.names[0] for option in OPTIONS if option.key == key)
