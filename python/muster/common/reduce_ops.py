"""The operations of a reduction, with Horovod's numbers, and the arguments that select them."""

from __future__ import annotations

import enum
import warnings
from typing import Optional


class ReduceOp(enum.IntEnum):
    AVERAGE = 0
    SUM = 1
    ADASUM = 2
    MIN = 3
    MAX = 4
    PRODUCT = 5


Average = ReduceOp.AVERAGE
Sum = ReduceOp.SUM
Adasum = ReduceOp.ADASUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT


def choose(op: Optional[int], average: Optional[bool] = None) -> ReduceOp:
    """The operation that a call selects by `op`, by the older `average`, or by neither.

    Errors: ValueError if both are given, or if `op` is not a reduction. Warns if `average` is used.
    """
    if average is not None:
        if op is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of them.")
        warnings.warn("Parameter `average` has been replaced with `op` and is going away; "
                      "use op=Average and op=Sum.", DeprecationWarning, stacklevel=3)
        return ReduceOp.AVERAGE if average else ReduceOp.SUM
    if op is None:
        return ReduceOp.AVERAGE
    try:
        return ReduceOp(op)
    except ValueError:
        names = ", ".join(f"{each.name.capitalize()} ({each.value})" for each in ReduceOp)
        raise ValueError(f"op is {op!r}, which is not a reduction; valid reductions are {names}") from None
