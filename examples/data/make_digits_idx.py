#!/usr/bin/env python3
"""Converts the UCI optical digits, as scikit-learn ships them, into four IDX files.

    make_digits_idx.py digits.csv.gz FOLDER

Each line of digits.csv.gz is one image: 64 values from 0 to 16, row by row, then the digit that it
shows. The test set is every fifth image, beginning with the first; the rest, in the order of the
file, is the training set. IDX is the format of MNIST: a big-endian header of a magic number and the
size of each dimension, then unsigned bytes.
"""

import csv
import gzip
import pathlib
import struct
import sys

SIDE = 8
LARGEST_VALUE = 16
TEST_EVERY = 5


def read_images(path):
    """All images as pairs of 64 bytes and a label."""
    with gzip.open(path, "rt", newline="") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            values = [int(float(field)) for field in row]
            if len(values) != SIDE * SIDE + 1:
                sys.exit(f"{path}, line {number}: {len(values)} values, not {SIDE * SIDE + 1}")
            *pixels, label = values
            if not all(0 <= pixel <= LARGEST_VALUE for pixel in pixels) or not 0 <= label <= 9:
                sys.exit(f"{path}, line {number}: a value is out of range")
            yield bytes(pixels), label


def write_idx(folder, name, images):
    """Writes the two files of one set."""
    header = struct.pack(">IIII", 0x00000803, len(images), SIDE, SIDE)
    pixels = b"".join(pixels for pixels, _ in images)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(header + pixels)
    labels = bytes(label for _, label in images)
    header = struct.pack(">II", 0x00000801, len(images))
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(header + labels)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    images = list(read_images(sys.argv[1]))
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    test = images[::TEST_EVERY]
    train = [image for i, image in enumerate(images) if i % TEST_EVERY != 0]
    write_idx(folder, "train", train)
    write_idx(folder, "t10k", test)
    print(f"{len(train)} training images, {len(test)} test images in {folder}")


if __name__ == "__main__":
    main()
