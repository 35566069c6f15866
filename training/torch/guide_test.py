#!/usr/bin/env python3
"""Checks that the C++ blocks of docs/training-cpp.md occur in the program that contains them, and runs it.

    guide_test.py PROGRAM

The lines of a block must occur in guide.cc in order, with any indentation; "..." stands for any lines.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GUIDE = HERE.parent.parent / "docs" / "training-cpp.md"
LIMIT = 100  # seconds


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def pieces_of(block):
    """The runs of lines between the lines "..." of a block."""
    pieces, piece = [], []
    for line in lines_of(block):
        if line == "...":
            pieces.append(piece)
            piece = []
        else:
            piece.append(line)
    return [piece for piece in pieces + [piece] if piece]


def stands_in(piece, program):
    return any(program[i:i + len(piece)] == piece for i in range(len(program)))


def main():
    program = lines_of((HERE / "guide.cc").read_text(encoding="utf-8"))
    blocks = re.findall(r"```cpp\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    faults = [piece for block in blocks for piece in pieces_of(block) if not stands_in(piece, program)]
    for piece in faults:
        print("not in guide.cc:\n  " + "\n  ".join(piece), file=sys.stderr)
    if not blocks:
        print(f"{GUIDE} has no C++", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
        done = subprocess.run([sys.argv[1], folder], env=dict(kept, OMP_NUM_THREADS="1"), timeout=LIMIT, check=False)
    print(f"{len(blocks)} blocks, {len(faults)} faults, exit code {done.returncode}")
    return 1 if faults or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
