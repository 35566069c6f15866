"""What became of the hosts, as the driver tells its workers."""

import enum


class HostUpdateResult(enum.IntFlag):
    """Bits: a change may be of both kinds."""

    no_update = 0
    removed = 1
    added = 2
    mixed = 3
