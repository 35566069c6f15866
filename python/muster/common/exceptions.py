"""The exceptions of training, under the names that programs written for Horovod catch."""

from __future__ import annotations

NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."


class HorovodInternalError(RuntimeError):
    """The world failed: a rank died, left or does not answer. The world is unusable. shutdown() and init() make a new
    world, as elastic training does.

    `rank` and `host` are those of the rank at fault if it is known; otherwise None and "".
    """

    def __init__(self, *arguments: object, rank: "int | None" = None, host: str = "") -> None:
        super().__init__(*arguments)
        self.rank = rank
        self.host = host


class MismatchError(HorovodInternalError):
    """The ranks disagree about one operation: it has another type, shape, root or kind under the same name, or a rank
    has joined. Raised on each of them, with both versions; the world stays usable.

    Derived from HorovodInternalError, since Horovod raises that exception here.
    """


class ConfigurationError(RuntimeError):
    """The environment or the arguments are invalid or contradictory."""


class HorovodVersionMismatchError(ImportError):
    """The versions of this package, of the library that it loads, or of the framework's binding differ."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(f"{name} is version {version} here and {installed_version} there: install both from one "
                         f"release")
        self.name_of_part = name
        self.version = version
        self.installed_version = installed_version


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts were added or removed. Elastic training commits and joins a new world.

    `skip_sync`: only removals, so that the state of the remaining ranks is still equal.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of this job have changed")
        self.skip_sync = skip_sync
