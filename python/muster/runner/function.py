"""run(): calls a function in several processes at once, and returns the results of all.

The function is serialized with cloudpickle if it is installed, which supports functions of the main program, lambdas
and closures, and with pickle otherwise. The function and the results are passed in memory files that each process
inherits, and on other hosts over the connection that started the process. Data from other sources is never unpickled.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .asked import settings_of
from .command_line import Asked, take_value
from .option_table import NO, OPTIONS
from .settings import Function, Settings

Hosts = Optional[str]


class RankError(RuntimeError):
    """The function raised an exception on a rank: `rank`, and `text`, its traceback there. The exception itself is the
    __cause__, if it could be sent."""

    def __init__(self, rank: int, text: str) -> None:
        self.rank = rank
        self.text = text
        super().__init__(f"rank {rank} raised:\n{text.rstrip()}")

    def __reduce__(self) -> Tuple[Any, ...]:
        return RankError, (self.rank, self.text)


def run(func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None,
        num_proc: Optional[int] = None, min_num_proc: Optional[int] = None, max_num_proc: Optional[int] = None,
        slots: Optional[int] = None, reset_limit: Optional[int] = None,
        cooldown_range: Optional[Tuple[int, int]] = None, hosts: Hosts = None, hostfile: Optional[str] = None,
        host_discovery_script: Optional[str] = None, start_timeout: Optional[int] = None,
        ssh_port: Optional[int] = None, ssh_identity_file: Optional[str] = None, disable_cache: Optional[bool] = None,
        output_filename: Optional[str] = None, verbose: Optional[Union[bool, int]] = None,
        use_gloo: Optional[bool] = None, use_mpi: Optional[bool] = None, mpi_args: Optional[str] = None,
        network_interface: Optional[str] = None, network_interfaces: Optional[Union[str, Sequence[str]]] = None,
        executable: Optional[str] = None, np: Optional[int] = None, min_np: Optional[int] = None,
        max_np: Optional[int] = None) -> List[Any]:
    """Calls func(*args, **kwargs) in `num_proc` processes (1), which it starts like `horovodrun`, and returns their
    results by rank; an elastic run returns the results of its last world. Other arguments have the meaning of
    horovodrun's options with these names; `slots` is --slots-per-host, `cooldown_range` is --blacklist-cooldown-range,
    and np, min_np and max_np are older names.

    `executable`: the Python of the processes; default: this process's Python.

    Errors: SettingsError (a ValueError) with all faults of the arguments; TypeError if the function or a result cannot
    be sent; RankError if the function raised an exception on a rank; RuntimeError if a rank ended otherwise;
    KeyboardInterrupt after Ctrl-C.
    """
    faults: List[str] = []
    asked = _asked({
        "num_proc": (num_proc, np, "num_proc"), "min_num_proc": (min_num_proc, min_np, "min_num_proc"),
        "max_num_proc": (max_num_proc, max_np, "max_num_proc"), "slots_per_host": (slots, None, "slots"),
        "reset_limit": (reset_limit, None, "reset_limit"),
        "blacklist_cooldown_range": (cooldown_range, None, "cooldown_range"), "hosts": (hosts, None, "hosts"),
        "hostfile": (hostfile, None, "hostfile"),
        "host_discovery_script": (host_discovery_script, None, "host_discovery_script"),
        "start_timeout": (start_timeout, None, "start_timeout"), "ssh_port": (ssh_port, None, "ssh_port"),
        "ssh_identity_file": (ssh_identity_file, None, "ssh_identity_file"),
        "disable_cache": (disable_cache, None, "disable_cache"),
        "output_filename": (output_filename, None, "output_filename"),
        "verbose": (None if verbose is None else bool(verbose), None, "verbose"), "gloo": (use_gloo, None, "use_gloo"),
        "mpi_args": (mpi_args, None, "mpi_args"),
        "network_interfaces": (_joined(network_interfaces), network_interface, "network_interfaces")}, faults)
    if use_mpi:
        faults.append("use_mpi: only processes that this program starts can return results: omit it, or start the "
                      "program itself with horovodrun --mpi")
    if not callable(func):
        faults.append(f"func is a {type(func).__name__}, which cannot be called")
    if not {"num_proc", "min_num_proc", "max_num_proc", "hosts", "hostfile", "host_discovery_script"} & set(asked):
        asked["num_proc"] = (1, "num_proc")
    command = (executable or sys.executable, "-m", "muster.runner.rank_function")
    settings = settings_of(asked, command, os.environ, faults)
    function = Function(_package_of(func, args, kwargs or {}))
    environment = {**settings.environment, "PYTHONPATH": _python_path()}
    return _carry_out(settings._replace(function=function, environment=environment), function)


def _asked(arguments: Dict[str, Tuple[Any, Any, str]], faults: List[str]) -> Asked:
    by_key = {option.key: option for option in reversed(OPTIONS) if option.kind != NO}
    asked: Asked = {}
    for key, (value, older, name) in arguments.items():
        if value is not None and older is not None and value != older:
            faults.append(f"{name} is given under two names, as {value!r} and {older!r}: omit one of them")
        chosen = older if value is None else value
        if chosen is not None:
            take_value(by_key[key], chosen, name, asked, faults)
    return asked


def _joined(names: Optional[Union[str, Sequence[str]]]) -> Optional[str]:
    return names if names is None or isinstance(names, str) else ",".join(names)


def _python_path() -> str:
    """A PYTHONPATH with which the processes find this package where this process has found it."""
    own = str(Path(__file__).resolve().parents[2])
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != own]
    return os.pathsep.join([own, *others])


def _package_of(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    # The path is a separate pickle and comes first, since loading the function may need it.
    path = pickle.dumps([each for each in sys.path if each])
    try:
        from cloudpickle import dumps
        advice = ""
    except ImportError:
        from pickle import dumps
        advice = ": install cloudpickle, or define it in a module that the processes can import"
    try:
        if advice and getattr(func, "__module__", None) == "__main__":
            raise pickle.PicklingError("it is defined in the main program, which the processes do not run")
        called: bytes = dumps((func, tuple(args), dict(kwargs)))
        return path + called
    except Exception as error:
        raise TypeError(f"the function or its arguments cannot be sent to the processes: {error}{advice}") from error


def _carry_out(settings: Settings, function: Function) -> List[Any]:
    from .launch import launch
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    code = launch(settings)
    if code == 130:
        raise KeyboardInterrupt
    outcomes = {name: pickle.loads(result) for name, result in function.results.items()}
    if settings.is_elastic and code == 0:
        outcomes = _of_the_last_round(outcomes)
    # If several ranks raised exceptions, the first to end had the cause; the others failed as a consequence.
    for outcome in outcomes.values():
        if outcome["error"] is not None:
            raise RankError(outcome["rank"], outcome["error"]) from _exception_of(outcome)
    if code != 0:
        raise RuntimeError(f"the run ended with code {code}; its output above has the reason")
    silent = [] if settings.is_elastic else [str(rank) for rank in range(settings.num_proc or 0)
                                             if str(rank) not in outcomes]
    if silent or not outcomes:
        raise RuntimeError(f"no result came from {'rank ' + ', '.join(silent) if silent else 'any rank'}: the function "
                           "ended the process, for example with sys.exit(), instead of returning")
    return [_value_of(outcome) for outcome in sorted(outcomes.values(), key=lambda each: each["rank"])]


def _of_the_last_round(outcomes: Dict[str, Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """The results of a run that has succeeded. A worker that failed or was left behind was replaced meanwhile."""
    results = {name: each for name, each in outcomes.items() if each["error"] is None}
    last = max((each["round"] for each in results.values()), default=0)
    return {name: each for name, each in results.items() if each["round"] == last}


def _exception_of(outcome: Dict[str, Any]) -> Optional[BaseException]:
    try:
        cause = pickle.loads(outcome["value"])
    except Exception:
        return None
    return cause if isinstance(cause, BaseException) else None


def _value_of(outcome: Dict[str, Any]) -> Any:
    try:
        return pickle.loads(outcome["value"])
    except Exception as error:
        raise TypeError(f"cannot read the result of rank {outcome['rank']}: {error}") from error
