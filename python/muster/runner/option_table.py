"""Every option of horovodrun: its names, its value, its key in a configuration file, and the variable that the ranks
get."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

#: The kinds of options by their value. YES and NO options take no value, and set the same key to opposite values.
YES, NO, TEXT, COUNT, NUMBER, RANGE = "yes", "no", "text", "count", "number", "range"


class Option(NamedTuple):
    """`key`: the key of its value. Options with the same key set the same value."""

    key: str
    names: Tuple[str, ...]
    kind: str
    help: str
    group: str
    #: The minimum of a COUNT or NUMBER.
    least: float = 0
    #: (section, name) in a configuration file; the section is "" for top-level names.
    place: Optional[Tuple[str, str]] = None
    #: The variable of the ranks, and the factor by which the value is multiplied for it.
    variable: str = ""
    times: int = 1


def _tuned(key: str, names: str, kind: str, help_: str, group: str, place: str = "", variable: str = "",
           least: float = 0, times: int = 1) -> Option:
    section, _, name = place.rpartition("/")
    return Option(key, tuple(names.split()), kind, help_, group, least, (section, name) if place else None,
                  variable, times)


_RUN, _HOSTS, _ELASTIC, _OUTPUT, _SSH = "the run", "hosts", "elastic runs", "output", "ssh"
_TUNING, _AUTOTUNE, _TIMELINE, _STALL, _LIBRARY, _LOGGING, _BY = (
    "tuning", "autotune", "timeline", "stall check", "libraries", "logging", "starting the ranks")


def _switch(key: str, name: str, help_: str, group: str, place: str, variable: str) -> Tuple[Option, Option]:
    """--NAME and --no-NAME."""
    return (_tuned(key, f"--{name}", YES, help_, group, place, variable),
            _tuned(key, f"--no-{name}", NO, f"the opposite of --{name}", group, "", variable))


OPTIONS: Tuple[Option, ...] = (
    _tuned("help", "-h --help", YES, "print this help and exit", _RUN),
    _tuned("version", "-v --version", YES, "print the version and exit", _RUN),
    _tuned("check_build", "-cb --check-build", YES, "print the frameworks and parts on this machine and exit", _RUN),
    _tuned("num_proc", "-np --num-proc", COUNT, "number of ranks (default: the slots of the hosts)",
           _RUN, least=1),
    _tuned("config_file", "--config-file", TEXT, "YAML file with options; the command line takes precedence", _RUN),
    _tuned("start_timeout", "--start-timeout", COUNT, "seconds until all hosts have answered (30, or "
           "HOROVOD_START_TIMEOUT)", _RUN, least=1),
    _tuned("network_interfaces", "--network-interfaces --network-interface --nics", TEXT,
           "network interfaces for the ranks, separated by commas", _RUN),
    _tuned("disable_cache", "--disable-cache", YES, "no effect: nothing is cached between runs", _RUN),

    _tuned("hosts", "-H --hosts", TEXT, "hosts and their slots: alpha:2,beta:2", _HOSTS),
    _tuned("hostfile", "-hostfile --hostfile", TEXT, "a file with one host per line: NAME slots=N, or NAME:N", _HOSTS),
    _tuned("host_discovery_script", "--host-discovery-script", TEXT,
           "a command that prints the current hosts, one NAME:N per line; makes the run elastic", _HOSTS),

    _tuned("min_num_proc", "--min-np --min-num-proc", COUNT, "minimum number of ranks with which training continues",
           _ELASTIC, least=1),
    _tuned("max_num_proc", "--max-np --max-num-proc", COUNT, "maximum number of ranks", _ELASTIC, least=1),
    _tuned("slots_per_host", "--slots-per-host", COUNT, "ranks of a host for which the script prints no number (1)",
           _ELASTIC, least=1),
    _tuned("elastic_timeout", "--elastic-timeout", COUNT, "seconds to wait for enough hosts (600)", _ELASTIC,
           variable="HOROVOD_ELASTIC_TIMEOUT", least=1),
    _tuned("reset_limit", "--reset-limit", COUNT, "how often the world may be replaced (any number)", _ELASTIC),
    _tuned("blacklist_cooldown_range", "--blacklist-cooldown-range", RANGE,
           "minimum and maximum seconds for which a host that lost a rank gets no new ranks", _ELASTIC),

    _tuned("output_filename", "--output-filename", TEXT, "a folder for rank.N/stdout and rank.N/stderr", _OUTPUT),
    _tuned("prefix_output_with_timestamp", "-prefix-timestamp --prefix-output-with-timestamp", YES,
           "print the time in each line", _OUTPUT),
    _tuned("verbose", "--verbose", YES, "print actions, and options that have no effect", _OUTPUT, "/verbose"),

    _tuned("ssh_port", "-p --ssh-port", COUNT, "port of the hosts' sshd", _SSH, least=1),
    _tuned("ssh_identity_file", "-i --ssh-identity-file", TEXT, "file with the key for the login", _SSH),

    _tuned("fusion_threshold_mb", "--fusion-threshold-mb", COUNT, "maximum MiB that are reduced together", _TUNING,
           "params/fusion-threshold-mb", "HOROVOD_FUSION_THRESHOLD", times=1 << 20),
    _tuned("cycle_time_ms", "--cycle-time-ms", NUMBER, "no effect: there are no cycles", _TUNING,
           "params/cycle-time-ms", "HOROVOD_CYCLE_TIME"),
    _tuned("cache_capacity", "--cache-capacity", COUNT, "no effect: the number of cached names", _TUNING,
           "params/cache-capacity", "HOROVOD_CACHE_CAPACITY"),
    *_switch("hierarchical_allreduce", "hierarchical-allreduce", "no effect: the algorithm is chosen automatically",
             _TUNING, "params/hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE"),
    *_switch("hierarchical_allgather", "hierarchical-allgather", "no effect: the algorithm is chosen automatically",
             _TUNING, "params/hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER"),
    *_switch("torus_allreduce", "torus-allreduce", "no effect: the algorithm is chosen automatically", _TUNING,
             "params/torus-allreduce", "HOROVOD_TORUS_ALLREDUCE"),

    *_switch("autotune", "autotune", "measure the best fusion size in the first steps", _AUTOTUNE, "autotune/enabled",
             "HOROVOD_AUTOTUNE"),
    _tuned("autotune_log_file", "--autotune-log-file", TEXT, "a CSV file with the measurements", _AUTOTUNE,
           "autotune/log-file", "HOROVOD_AUTOTUNE_LOG"),
    _tuned("autotune_warmup_samples", "--autotune-warmup-samples", COUNT, "no effect", _AUTOTUNE,
           "autotune/warmup-samples", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"),
    _tuned("autotune_steps_per_sample", "--autotune-steps-per-sample", COUNT, "no effect", _AUTOTUNE,
           "autotune/steps-per-sample", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", least=1),
    _tuned("autotune_bayes_opt_max_samples", "--autotune-bayes-opt-max-samples", COUNT, "no effect", _AUTOTUNE,
           "autotune/bayes-opt-max-samples", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", least=1),
    _tuned("autotune_gaussian_process_noise", "--autotune-gaussian-process-noise", NUMBER, "no effect", _AUTOTUNE,
           "autotune/gaussian-process-noise", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"),

    _tuned("timeline_filename", "--timeline-filename", TEXT, "a file for rank 0's timeline (Chrome's trace format)",
           _TIMELINE, "timeline/filename", "HOROVOD_TIMELINE"),
    *_switch("timeline_mark_cycles", "timeline-mark-cycles", "mark CYCLE_START when operations begin together",
             _TIMELINE, "timeline/mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES"),

    _tuned("stall_check", "--stall-check", YES, "report ranks that delay an operation (default)", _STALL,
           "stall-check/enabled", "HOROVOD_STALL_CHECK_DISABLE"),
    _tuned("stall_check", "--no-stall-check", NO, "do not report them", _STALL, "", "HOROVOD_STALL_CHECK_DISABLE"),
    _tuned("stall_check_warning_time_seconds", "--stall-check-warning-time-seconds", COUNT,
           "seconds until the report (60)", _STALL, "stall-check/warning-time-seconds",
           "HOROVOD_STALL_CHECK_TIME_SECONDS"),
    _tuned("stall_check_shutdown_time_seconds", "--stall-check-shutdown-time-seconds", COUNT,
           "seconds until the operation fails (0: never)", _STALL, "stall-check/shutdown-time-seconds",
           "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"),

    *_switch("mpi_threads_disable", "mpi-threads-disable", "no effect", _LIBRARY,
             "library-options/mpi-threads-disable", "HOROVOD_MPI_THREADS_DISABLE"),
    _tuned("mpi_args", "--mpi-args", TEXT, "additional arguments for mpirun, with --mpi", _LIBRARY,
           "library-options/mpi-args"),
    _tuned("tcp", "--tcp", YES, "mpirun's ranks use TCP only, with --mpi", _LIBRARY),
    _tuned("binding_args", "--binding-args", TEXT, "how mpirun binds its ranks, with --mpi (-bind-to none)", _LIBRARY,
           "library-options/binding-args"),
    _tuned("num_nccl_streams", "--num-nccl-streams", COUNT, "no effect", _LIBRARY,
           "library-options/num-nccl-streams", "HOROVOD_NUM_NCCL_STREAMS", least=1),
    _tuned("thread_affinity", "--thread-affinity", COUNT, "no effect", _LIBRARY,
           "library-options/thread-affinity", "HOROVOD_THREAD_AFFINITY"),
    _tuned("gloo_timeout_seconds", "--gloo-timeout-seconds", COUNT, "seconds that init() waits for the other ranks",
           _LIBRARY, "library-options/gloo-timeout-seconds", "HOROVOD_GLOO_TIMEOUT_SECONDS", least=1),

    _tuned("log_level", "--log-level", TEXT, "trace, debug, info, warning, error or fatal", _LOGGING, "logging/level",
           "HOROVOD_LOG_LEVEL"),
    _tuned("log_with_timestamp", "--log-with-timestamp", YES, "print the time in the library's messages", _LOGGING,
           "logging/with-timestamp", "HOROVOD_LOG_HIDE_TIME"),
    _tuned("log_with_timestamp", "--log-without-timestamp --log-hide-timestamp", NO, "do not print it", _LOGGING,
           "logging/hide-timestamp", "HOROVOD_LOG_HIDE_TIME"),

    _tuned("gloo", "--gloo", YES, "this program starts the ranks (default)", _BY),
    _tuned("mpi", "--mpi", YES, "mpirun starts the ranks", _BY),
    _tuned("jsrun", "--jsrun", YES, "not supported: see the documentation", _BY),
)

#: Variables whose value is the opposite of the option's.
NEGATED = frozenset(["HOROVOD_STALL_CHECK_DISABLE", "HOROVOD_LOG_HIDE_TIME"])

LOG_LEVELS = ("trace", "debug", "info", "warning", "error", "fatal")
