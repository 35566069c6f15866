"""horovodrun --mpi: mpirun starts the ranks. This process becomes mpirun (exec), so that its signals, output and exit
code are those of mpirun."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import List, Mapping, Sequence

from .endings import say
from .hosts import LOCALHOST
from .places import NEVER_INHERITED, own_part
from .settings import Settings

_NOT_FOUND = 127


def run_mpi(settings: Settings) -> int:
    """Returns only if mpirun could not be started."""
    program = shutil.which("mpirun")
    if program is None:
        say("--mpi: mpirun is not in the PATH: install Open MPI or MPICH, or omit --mpi")
        return _NOT_FOUND
    environment = {name: value for name, value in os.environ.items() if name not in NEVER_INHERITED}
    environment.update(settings.environment)
    if settings.network_interfaces:
        environment["NCCL_SOCKET_IFNAME"] = ",".join(settings.network_interfaces)
    words = mpirun_words(settings, _is_open_mpi(program), environment)
    if settings.verbose:
        say(" ".join(map(shlex.quote, words)))
    try:
        os.execve(program, words, environment)
    except OSError as error:
        say(f"--mpi: {program} cannot be started: {error.strerror}")
        return _NOT_FOUND


def mpirun_words(settings: Settings, is_open_mpi: bool, environment: Mapping[str, str]) -> List[str]:
    """The command line. It contains names of variables but never their values, which other users could read there."""
    build = _open_mpi_words if is_open_mpi else _hydra_words
    return ["mpirun", "-np", str(settings.num_proc), *build(settings, _passed(settings, environment)),
            *shlex.split(settings.mpi_args), *settings.command]


def _open_mpi_words(settings: Settings, passed: Sequence[str]) -> List[str]:
    words = ["-H", ",".join(f"{host.name}:{host.slots}" for host in settings.hosts)]
    words += shlex.split(settings.binding_args) if settings.binding_args else ["-bind-to", "none", "-map-by", "slot"]
    if os.geteuid() == 0:
        words.append("--allow-run-as-root")
    if settings.tcp:
        words += ["-mca", "pml", "ob1", "-mca", "btl", "^openib"]
    if settings.network_interfaces:
        names = ",".join(settings.network_interfaces)
        words += ["-mca", "btl_tcp_if_include", names, "-mca", "oob_tcp_if_include", names]
    words += _ssh_words(settings)
    if settings.output_filename:
        words += ["--output-filename", settings.output_filename]
    if settings.prefix_output_with_timestamp:
        words += ["--timestamp-output"]
    for name in passed:
        # mpirun passes its own variables itself.
        if not name.startswith(("OMPI_", "PRTE_", "PMIX_")):
            words += ["-x", name]
    return words


def _ssh_words(settings: Settings) -> List[str]:
    arguments = []
    if settings.ssh_port is not None:
        arguments += ["-p", str(settings.ssh_port)]
    if settings.ssh_identity_file is not None:
        arguments += ["-i", settings.ssh_identity_file]
    return ["-mca", "plm_rsh_args", " ".join(arguments)] if arguments else []


def _hydra_words(settings: Settings, passed: Sequence[str]) -> List[str]:
    words = []
    if any(host.name != LOCALHOST for host in settings.hosts):
        words += ["-hosts", ",".join(f"{host.name}:{host.slots}" for host in settings.hosts)]
    if settings.binding_args:
        words += shlex.split(settings.binding_args)
    if settings.network_interfaces:
        words += ["-iface", settings.network_interfaces[0]]
    if settings.output_filename:
        words += ["-outfile-pattern", os.path.join(settings.output_filename, "rank.%r.stdout"),
                  "-errfile-pattern", os.path.join(settings.output_filename, "rank.%r.stderr")]
    return words + (["-genvlist", ",".join(passed)] if passed else [])


#: Variables that differ between the tasks of a Muster job. mpirun passes no defaults: a task would lose its own values.
_OF_A_TASK = re.compile(r"MUSTER_(?!COLLECTIVE_)|KUBERNETES_|SLURM_"
                        r"|CUDA_MPS_|CUDA_DEVICE_ORDER$|NVIDIA_VISIBLE_DEVICES$")

#: Other names would be taken apart at a comma or an equals sign.
_CAN_BE_LISTED = re.compile(r"[\w.-]+", re.ASCII)


def _passed(settings: Settings, environment: Mapping[str, str]) -> List[str]:
    """The names of the variables for ranks on other hosts: those that they get without --mpi, too."""
    everywhere, in_a_job = own_part(environment)
    chosen = {*everywhere, *(name for name in in_a_job if not _OF_A_TASK.match(name)),
              *(name for name in settings.environment if name in environment)}
    return sorted(name for name in chosen if _CAN_BE_LISTED.fullmatch(name))


def _is_open_mpi(program: str) -> bool:
    import subprocess
    try:
        said = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return True
    return "Open MPI" in said or "OpenRTE" in said or "PRRTE" in said
