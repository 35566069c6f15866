"""Reads the handwritten digits of this folder, or MNIST's own files, with NumPy."""

from pathlib import Path

import numpy

FOLDER = Path(__file__).resolve().parent / "digits"
CLASSES = 10


def load(part, folder=FOLDER):
    """The images of a part, "train" or "t10k", as rows of floats from 0 to 1, and their labels."""
    pixels = _read_idx(Path(folder) / f"{part}-images-idx3-ubyte").astype(numpy.float32)
    labels = _read_idx(Path(folder) / f"{part}-labels-idx1-ubyte").astype(numpy.int64)
    return pixels.reshape(len(pixels), -1) / pixels.max(), labels


def _read_idx(path):
    """Reads an IDX file: two zeros, the type (8: bytes), the number of dimensions, the size of each, the bytes."""
    data = path.read_bytes()
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    start = 4 + 4 * data[3]
    shape = numpy.frombuffer(data, ">u4", data[3], offset=4)
    return numpy.frombuffer(data, numpy.uint8, offset=start).reshape(shape)
