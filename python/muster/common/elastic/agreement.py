"""All ranks decide alike whether the hosts have changed.

The driver's message reaches the ranks at different times. If each acted on its own, some would leave for a new world
while others wait for them in the next all-reduce. So the newest message that any rank has counts for all.
"""

from __future__ import annotations

import ctypes
from typing import Tuple

from .host_updates import HostUpdateResult
from .notification import notification_manager

_NAME = "muster.elastic.host_updates"


def agree_on_update(timestamp: float, result: HostUpdateResult) -> Tuple[float, HostUpdateResult]:
    """The newest timestamp and the union of the results that any rank has. Called by all ranks.

    Without a driver nobody is told of changes, and there is nothing to agree on. Errors: HorovodInternalError.
    """
    from .. import basics

    if not notification_manager.has_driver or not basics.is_initialized() or basics.size() == 1:
        return timestamp, result
    # One float64 and two bits; the driver's numbers are small whole ones, so nothing is rounded.
    values = (ctypes.c_double * 3)(timestamp, bool(result & HostUpdateResult.removed),
                                   bool(result & HostUpdateResult.added))
    _max_of_all_ranks(values)
    agreed = HostUpdateResult.no_update
    if values[1]:
        agreed |= HostUpdateResult.removed
    if values[2]:
        agreed |= HostUpdateResult.added
    return values[0], agreed


def _max_of_all_ranks(values: ctypes.Array[ctypes.c_double]) -> None:
    from .. import operations
    from ..process_sets import global_process_set
    from ..reduce_ops import ReduceOp

    address = ctypes.addressof(values)
    operations.run("all_reduce", _NAME, process_set=global_process_set, buffers=[(address, address, len(values))],
                   type="float64", op=ReduceOp.MAX, shape="float64[3]", keep=values)
