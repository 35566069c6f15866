"""The variables by which users configure Horovod, and their meaning here.

Supported variables are read at each init(), and an invalid value is an error. Other variables are accepted without
effect: MEANINGLESS has the reason, for `horovodrun --check-build` and the documentation. The library's own variables
(MUSTER_COLLECTIVE_...) apply if the variable here is not set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, TypeVar

from .._native import abi
from .logging import LEVELS

T = TypeVar("T")
Number = TypeVar("Number", int, float)

#: The meaning of each variable.
MEANINGS: Dict[str, str] = {
    "HOROVOD_TIMELINE": "file of the timeline, which rank 0 writes; DYNAMIC: start_timeline() starts it",
    "HOROVOD_TIMELINE_MARK_CYCLES": "1: the timeline has a mark CYCLE_START when operations begin together",
    "HOROVOD_FUSION_THRESHOLD": "maximum bytes of operations that are executed together; 0: no fusion",
    "HOROVOD_AUTOTUNE": "1: tries several fusion sizes in the first steps, and keeps the best",
    "HOROVOD_AUTOTUNE_LOG": "file with the results of autotuning, which rank 0 writes (CSV)",
    "HOROVOD_STALL_CHECK_DISABLE": "1: operations that some ranks have not handed over are not reported",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "time after which rank 0 reports them (60)",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "time after which they fail, on all ranks (0: never)",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "time limit of init() for the other ranks (60), and of a transfer that has begun "
                                    "for a rank that does not take part (600)",
    "HOROVOD_GLOO_IFACE": "network interface on which the ranks of an mpi4py communicator meet",
    "HOROVOD_DYNAMIC_PROCESS_SETS": "0: process sets cannot be added or removed after init()",
    "HOROVOD_LOG_LEVEL": "trace, debug, info, warning (the default), error or fatal",
    "HOROVOD_LOG_HIDE_TIME": "1: messages have no time",
    "HOROVOD_ELASTIC": "1: set by the launcher for an elastic job"}

_NO_CYCLES = "there are no cycles: an operation begins as soon as the last rank has handed it over"
_CHOSEN = "the library chooses the algorithm for each size and layout of hosts"
_BAYES = "only fusion is tuned, by trying several sizes"
_GPU = "configures GPU streams of Horovod's own engine"

#: Variables that are accepted without effect, with the reason.
MEANINGLESS: Dict[str, str] = {
    "HOROVOD_CYCLE_TIME": _NO_CYCLES,
    "HOROVOD_CACHE_CAPACITY": "names that were agreed on are always cached, up to 16,384 names",
    "HOROVOD_HIERARCHICAL_ALLREDUCE": _CHOSEN,
    "HOROVOD_HIERARCHICAL_ALLGATHER": _CHOSEN,
    "HOROVOD_TORUS_ALLREDUCE": _CHOSEN,
    "HOROVOD_ADASUM_MPI_CHUNK_SIZE": _CHOSEN,
    "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": _BAYES,
    "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": _BAYES,
    "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES": _BAYES,
    "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE": _BAYES,
    "HOROVOD_CONTROLLER": "there is one controller, which needs no MPI",
    "HOROVOD_CPU_OPERATIONS": "MUSTER_COLLECTIVE_TRANSPORT selects the transport (auto)",
    "HOROVOD_MPI_THREADS_DISABLE": "MPI is used by one thread at a time in any case",
    "HOROVOD_THREAD_AFFINITY": "the background thread sleeps, so it needs no core of its own",
    "HOROVOD_DISABLE_GROUP_FUSION": "a group is executed together, without a copy",
    "HOROVOD_BATCH_D2D_MEMCOPIES": _GPU,
    "HOROVOD_NUM_NCCL_STREAMS": _GPU,
    "HOROVOD_ENABLE_ASYNC_COMPLETION": _GPU,
    "HOROVOD_DISABLE_NVTX_RANGES": _GPU,
    "HOROVOD_CCL_CACHE": "oneCCL is not used",
    "HOROVOD_ENABLE_XLA_OPS": "XLA cannot call the library: exclude operations from compiled functions",
    "HOROVOD_START_TIMEOUT": "read by the launcher",
    "HOROVOD_ELASTIC_TIMEOUT": "read by the launcher"}


@dataclass(frozen=True)
class Knobs:
    timeline: Optional[str] = None
    timeline_is_dynamic: bool = False
    marks_cycles: bool = False
    fusion_bytes: Optional[int] = None
    autotune: bool = False
    autotune_log: Optional[str] = None
    stall_warning_ms: Optional[int] = None  # 0: never
    stall_limit_ms: Optional[int] = None  # 0: never
    connect_timeout_ms: Optional[int] = None
    interface: Optional[str] = None
    allows_process_sets: bool = True
    log_level: str = "warning"
    log_hides_time: bool = False

    def session_options(self, number: int, rank: int) -> abi.SessionOptions:
        """For process set `number`, in which this process has rank `rank`: rank 0 of the set writes the files, and the
        files of sets other than the first are named after the set."""
        options = abi.session_options()
        suffix = f".set{number}" if number else ""
        timeline = self.timeline
        if timeline is not None and rank != 0:
            timeline = None
        if timeline is None and suffix:
            # Otherwise each set would write to the file of the first set.
            timeline = os.environ.get("MUSTER_COLLECTIVE_TIMELINE") or None
        if timeline is not None:
            options.timeline = os.fsencode(timeline + suffix)
        if self.autotune_log is not None and rank == 0:
            options.autotune_log = os.fsencode(self.autotune_log + suffix)
        if self.stall_warning_ms is not None:
            options.stall_warning_ms = self.stall_warning_ms
        if self.stall_limit_ms is not None:
            options.stall_limit_ms = self.stall_limit_ms
        if self.fusion_bytes is not None:
            options.fusion_bytes = max(self.fusion_bytes, 1)
        options.autotune = self.autotune
        return options


def read(faults: List[str], environment: Optional[Mapping[str, str]] = None) -> Knobs:
    """Reads all variables. Faults are added to `faults`."""
    reader = _Reader(os.environ if environment is None else environment, faults)
    timeline = reader.text("HOROVOD_TIMELINE")
    is_dynamic = timeline is not None and timeline.upper() == "DYNAMIC"
    warning = reader.milliseconds("HOROVOD_STALL_CHECK_TIME_SECONDS")
    limit = reader.milliseconds("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS")
    is_quiet = reader.flag("HOROVOD_STALL_CHECK_DISABLE")
    timeout = reader.milliseconds("HOROVOD_GLOO_TIMEOUT_SECONDS")
    if timeout == 0:
        faults.append("HOROVOD_GLOO_TIMEOUT_SECONDS is 0: no rank could join in time")
    return Knobs(timeline=None if is_dynamic else timeline, timeline_is_dynamic=is_dynamic,
                 marks_cycles=reader.flag("HOROVOD_TIMELINE_MARK_CYCLES"),
                 fusion_bytes=reader.number("HOROVOD_FUSION_THRESHOLD"),
                 autotune=reader.flag("HOROVOD_AUTOTUNE"), autotune_log=reader.text("HOROVOD_AUTOTUNE_LOG"),
                 stall_warning_ms=0 if is_quiet else warning,
                 stall_limit_ms=0 if is_quiet else limit,
                 connect_timeout_ms=timeout, interface=reader.text("HOROVOD_GLOO_IFACE"),
                 allows_process_sets=reader.flag("HOROVOD_DYNAMIC_PROCESS_SETS", otherwise=True),
                 log_level=reader.choice("HOROVOD_LOG_LEVEL", LEVELS, "warning"),
                 log_hides_time=reader.flag("HOROVOD_LOG_HIDE_TIME"))


class _Reader:
    def __init__(self, environment: Mapping[str, str], faults: List[str]) -> None:
        self._environment = environment
        self._faults = faults

    def text(self, name: str) -> Optional[str]:
        return self._environment.get(name) or None

    def flag(self, name: str, otherwise: bool = False) -> bool:
        words = {"0": False, "false": False, "no": False, "off": False,
                 "1": True, "true": True, "yes": True, "on": True}
        value = self._parsed(name, lambda text: words[text.lower()], "1 or 0")
        return otherwise if value is None else value

    def number(self, name: str) -> Optional[int]:
        return self._parsed(name, lambda text: _at_least_0(int(text)), "a whole number of 0 or more")

    def milliseconds(self, name: str) -> Optional[int]:
        # The limit of a hundred days excludes NaN and values beyond the library's numbers.
        return self._parsed(name, lambda text: round(_at_least_0(float(text), 8_640_000) * 1000),
                            "a number of seconds")

    def choice(self, name: str, choices: Mapping[str, object], otherwise: str) -> str:
        def choose(text: str) -> str:
            choices[text.lower()]
            return text.lower()

        return self._parsed(name, choose, "one of " + ", ".join(choices)) or otherwise

    def _parsed(self, name: str, parse: Callable[[str], T], expected: str) -> Optional[T]:
        text = self._environment.get(name, "").strip()
        if not text:
            return None
        try:
            return parse(text)
        except (ValueError, KeyError, OverflowError):
            self._faults.append(f"{name} is {text!r}, not {expected}")
            return None


def _at_least_0(value: Number, most: float = 2.0 ** 63) -> Number:
    if not 0 <= value < most:
        raise ValueError(value)
    return value
