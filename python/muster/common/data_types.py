"""Types of elements by name, as in all frameworks.

A 16-bit float is stored as its 16 bits, a bool as a byte. Complex numbers are not supported.
"""

from __future__ import annotations

from typing import Dict, Tuple

from .._native import abi

#: By name: the number of the type in the C interface, and the bytes of an element.
_TYPES: Dict[str, Tuple[int, int]] = {
    "float32": (abi.FLOAT32, 4), "float64": (abi.FLOAT64, 8), "float16": (abi.FLOAT16, 2),
    "bfloat16": (abi.BFLOAT16, 2), "int8": (abi.INT8, 1), "uint8": (abi.UINT8, 1), "int16": (abi.INT16, 2),
    "uint16": (abi.UINT16, 2), "int32": (abi.INT32, 4), "uint32": (abi.UINT32, 4), "int64": (abi.INT64, 8),
    "uint64": (abi.UINT64, 8), "bool": (abi.BOOL, 1)}

NAMES: Tuple[str, ...] = tuple(_TYPES)

#: The same as number_of(), without a call, for frequent operations.
NUMBERS: Dict[str, int] = {name: number for name, (number, _) in _TYPES.items()}
SIZES: Dict[str, int] = {name: size for name, (_, size) in _TYPES.items()}


def number_of(name: str) -> int:
    """The number of a type. Errors: ValueError, listing the supported types."""
    number = NUMBERS.get(name)
    if number is None:
        raise ValueError(f"Tensor type {name} is not supported; supported types: {', '.join(NAMES)}.")
    return number


def size_of(name: str) -> int:
    """The bytes of one element. Errors: as number_of()."""
    number_of(name)
    return SIZES[name]
