"""The settings of a run of horovodrun or of `run()`, after all checks.

Values only: nothing here looks at the machine. Immutable, so any thread may read it; `settings._replace(...)` makes a
changed copy.
"""

from __future__ import annotations

import os
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

#: Who starts the ranks: this package itself, an mpirun, or LSF's jsrun.
GLOO, MPI = "gloo", "mpi"

#: Seconds until all hosts have answered and, with that, all ranks have been started.
START_TIMEOUT = 30
#: Seconds that an elastic run waits for enough slots.
ELASTIC_TIMEOUT = 600
#: Seconds between asking processes to end and ending them.
END_GRACE = 5.0


class Host(NamedTuple):
    """A host by its name for ssh, and its number of slots."""

    name: str
    slots: int


class Function:
    """A function on its way to the processes, and the results on their way back; both as bytes that others understand
    (see `function`). Processes find each in a file in memory that they are given open, and that has no name."""

    def __init__(self, package: bytes) -> None:
        self.package = package
        #: By the name of the process, in the order in which they ended.
        self.results: Dict[str, bytes] = {}


class Settings(NamedTuple):
    """Seconds where a time is meant."""

    #: The program of every rank and its arguments.
    command: Tuple[str, ...] = ()

    # --- how many ranks, and where ---
    #: -np. Of an elastic run the number to begin with, where one was given.
    num_proc: Optional[int] = None
    #: In the order in which ranks fill them. Of an elastic run with a script: none.
    hosts: Tuple[Host, ...] = ()
    #: One of GLOO, MPI.
    launcher: str = GLOO

    # --- elastic ---
    min_num_proc: Optional[int] = None
    max_num_proc: Optional[int] = None
    #: A command line for the shell; prints a host a line, NAME or NAME:SLOTS.
    host_discovery_script: Optional[str] = None
    #: Of hosts that the script names without a number; None: 1.
    slots_per_host: Optional[int] = None
    elastic_timeout: float = ELASTIC_TIMEOUT
    #: How many times the world may be made anew; None: any number.
    reset_limit: Optional[int] = None
    #: For how long a host gets no new workers after it lost one, at least and at most; None: the slot is filled again at
    #: once, until three in a row were lost soon after their start.
    blacklist_cooldown_range: Optional[Tuple[float, float]] = None

    # --- how ---
    start_timeout: float = START_TIMEOUT
    #: Names of interfaces that the ranks talk over; none: as the system routes.
    network_interfaces: Tuple[str, ...] = ()
    ssh_port: Optional[int] = None
    ssh_identity_file: Optional[str] = None
    #: What reaches a host, up to its name; the two above are added where it is ssh.
    remote_shell: Tuple[str, ...] = ("ssh",)
    mpi_args: str = ""
    binding_args: str = ""
    tcp: bool = False

    # --- what is seen ---
    #: A folder that gets rank.N/stdout and rank.N/stderr; None: nothing but what is printed.
    output_filename: Optional[str] = None
    prefix_output_with_timestamp: bool = False
    verbose: bool = False
    #: What was asked for and changes nothing here, a sentence each, for --verbose.
    notes: Tuple[str, ...] = ()

    # --- what every rank is given ---
    #: HOROVOD_* variables of the options, over the environment of this process.
    environment: Mapping[str, str] = {}
    #: The folder that ranks start in, on every host.
    working_folder: str = os.curdir
    #: What `run()` has every process call; its results are gathered in it.
    function: Optional[Function] = None

    @property
    def is_elastic(self) -> bool:
        return (self.host_discovery_script is not None or self.min_num_proc is not None
                or self.max_num_proc is not None)


class SettingsError(ValueError):
    """All faults of the settings, one message with advice each."""

    def __init__(self, faults: Tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))
