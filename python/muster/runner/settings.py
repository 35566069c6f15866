"""The settings of a run of horovodrun or of `run()`, after all checks.

Values only: this module does not access the machine. They are immutable, so any thread may read them;
`settings._replace(...)` returns a changed copy.
"""

from __future__ import annotations

import os
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

#: The program that starts the ranks: this package itself, or an mpirun.
GLOO, MPI = "gloo", "mpi"

#: The time limit in seconds within which all hosts must answer, and all ranks be started.
START_TIMEOUT = 30
#: The time in seconds for which an elastic run waits for enough slots.
ELASTIC_TIMEOUT = 600
#: Seconds between the request to a process to end, and its forced end.
END_GRACE = 5.0


class Host(NamedTuple):
    """A host by its name for ssh, and its number of slots."""

    name: str
    slots: int


class Function:
    """A function for the processes, and their results, as serialized bytes (see `function`). Processes get both in
    nameless memory files that they inherit."""

    def __init__(self, package: bytes) -> None:
        self.package = package
        #: By the name of the process, in the order of their ends.
        self.results: Dict[str, bytes] = {}


class Settings(NamedTuple):
    """Times are in seconds."""

    #: The program of every rank and its arguments.
    command: Tuple[str, ...] = ()

    # --- how many ranks, and where ---
    #: -np. For an elastic run the initial number, if it was given.
    num_proc: Optional[int] = None
    #: The hosts in the order in which ranks fill them. Empty for an elastic run with a script.
    hosts: Tuple[Host, ...] = ()
    #: GLOO or MPI.
    launcher: str = GLOO

    # --- elastic ---
    min_num_proc: Optional[int] = None
    max_num_proc: Optional[int] = None
    #: A command line for the shell, which prints one host per line, NAME or NAME:SLOTS.
    host_discovery_script: Optional[str] = None
    #: The slots of hosts for which the script prints no number; None: 1.
    slots_per_host: Optional[int] = None
    elastic_timeout: float = ELASTIC_TIMEOUT
    #: How many times the world may be replaced; None: any number.
    reset_limit: Optional[int] = None
    #: The minimum and maximum time for which a host gets no new workers after it lost one. None: the slot is filled
    #: again at once, until three workers in a row were lost soon after their start.
    blacklist_cooldown_range: Optional[Tuple[float, float]] = None

    # --- connecting ---
    start_timeout: float = START_TIMEOUT
    #: The network interfaces for the ranks. Empty: the system's routes.
    network_interfaces: Tuple[str, ...] = ()
    ssh_port: Optional[int] = None
    ssh_identity_file: Optional[str] = None
    #: The command that reaches a host, without the host's name. The two options above are added for ssh.
    remote_shell: Tuple[str, ...] = ("ssh",)
    mpi_args: str = ""
    binding_args: str = ""
    tcp: bool = False

    # --- output ---
    #: A folder for rank.N/stdout and rank.N/stderr, or None.
    output_filename: Optional[str] = None
    prefix_output_with_timestamp: bool = False
    verbose: bool = False
    #: Messages about options without an effect, for --verbose.
    notes: Tuple[str, ...] = ()

    # --- the input of every rank ---
    #: HOROVOD_* variables of the options, which override the environment of this process.
    environment: Mapping[str, str] = {}
    #: The folder in which ranks start, on every host.
    working_folder: str = os.curdir
    #: The function of `run()`, which every process calls, and its results.
    function: Optional[Function] = None

    @property
    def is_elastic(self) -> bool:
        return (self.host_discovery_script is not None or self.min_num_proc is not None
                or self.max_num_proc is not None)


class SettingsError(ValueError):
    """All faults of the settings, each with advice."""

    def __init__(self, faults: Tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))
