"""What the tests of real training frameworks share: their Pythons, the examples that run on them, and what a training
says at its end."""

import re
import shutil

from muster_harness import ROOT

# TensorFlow's, from PyPI: `make deps-tensorflow` has made it.
TENSORFLOW = ROOT / "build" / "tensorflow" / "bin" / "python"
# Debian's, with Debian's torch.
TORCH = "/usr/bin/python3"
TORCHRUN = "/usr/bin/torchrun"


def add_examples(folder, *names):
    """Copies these folders of the examples, and the digits that they train on."""
    for name in ("data", *names):
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def accuracy_in(text):
    """Percent, as told once."""
    told = re.findall(r"test accuracy: ([0-9.]+)%", text)
    if len(told) != 1:
        raise AssertionError(f"told {len(told)} test accuracies:\n{text}")
    return float(told[0])


def checksums_in(text):
    """Of the weights, by the one that told: a task or a rank."""
    return {who: checksum for checksum, who in re.findall(r"weights checksum: (0x[0-9a-f]{8}) on (.+)", text)}
