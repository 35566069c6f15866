"""Tensors as the library uses them: memory with a type, a shape, and a text with both.

Inputs are read where TensorFlow keeps them. Outputs are memory that TensorFlow takes over without a copy: an empty
tensor in eager mode, an aligned array if a graph calls Python.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from ..common import data_types

#: A value for TensorFlow, and the array over its memory.
Output = Tuple[Any, np.ndarray]
MakeOutput = Callable[[Tuple[int, ...], np.dtype], Output]

#: TensorFlow takes over memory without a copy only with this alignment, in bytes.
_ALIGNMENT = 64


def check(tensor: Any) -> str:
    """The name of a tensor's type. Errors: ValueError if the library does not support the type."""
    name: str = tf.as_dtype(tensor.dtype).name
    if name not in data_types.NUMBERS:
        raise ValueError(f"Tensor type {name} is not supported; the supported types are: "
                         f"{', '.join(data_types.NAMES)}.")
    return name


def view(tensor: tf.Tensor) -> np.ndarray:
    """A tensor of eager mode as an array: over the same memory if the tensor is on the host."""
    if tensor.shape.rank == 0:
        # A scalar, which is a copy in any case.
        return np.array(tensor.numpy())
    return np.ascontiguousarray(np.asarray(tensor))


def views_in_graph(values: Sequence[Any]) -> List[np.ndarray]:
    """The arguments that a graph passes to Python: arrays over its tensors; scalars are plain numbers."""
    return [np.ascontiguousarray(value).reshape(np.shape(value)) for value in values]


def output_in_eager_mode(shape: Tuple[int, ...], dtype: np.dtype) -> Output:
    """A tensor that TensorFlow owns, into which the library writes before the program has access to it."""
    with tf.device("CPU:0"):
        # TensorFlow would return a scalar as a number, not as an array over its memory.
        tensor = tf.raw_ops.Empty(shape=shape or (1,), dtype=tf.as_dtype(dtype), init=False)
        return (tensor if shape else tf.reshape(tensor, ())), _writable(np.asarray(tensor)).reshape(shape)


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory, writable. TensorFlow gives read-only arrays, as a tensor usually has other holders."""
    if not array.nbytes:
        return array
    memory = (ctypes.c_ubyte * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(memory, np.uint8).view(array.dtype)


def output_in_graph(shape: Tuple[int, ...], dtype: np.dtype) -> Output:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start:start + size].view(dtype).reshape(shape)
    return array, array


def address_of(array: np.ndarray) -> int:
    address: int = array.ctypes.data
    return address


def row_bytes(array: np.ndarray) -> int:
    """Bytes of one element of the first dimension."""
    return int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize


def shape_text(array: np.ndarray, any_length: bool = False) -> str:
    """The text that must be equal on all ranks: "float32[3, 4]"; "float32[?, 4]" if the first dimension may differ."""
    sizes = [str(size) for size in array.shape]
    if any_length and sizes:
        sizes[0] = "?"
    return f"{array.dtype.name}[{', '.join(sizes)}]"
