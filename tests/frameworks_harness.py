"""Shared by the tests of real training frameworks: their Python environments, the examples, and the results of a
training."""

import re
import shutil

from muster_harness import ROOT

# The Python with TensorFlow from PyPI, which `make deps-tensorflow` creates.
TENSORFLOW = ROOT / "build" / "tensorflow" / "bin" / "python"
# Debian's Python, with Debian's torch.
TORCH = "/usr/bin/python3"
TORCHRUN = "/usr/bin/torchrun"


def add_examples(folder, *names):
    """Copies these folders of the examples, and the digits that they train on."""
    for name in ("data", *names):
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def accuracy_in(text):
    """The accuracy in per cent, which the text must contain exactly once."""
    told = re.findall(r"test accuracy: ([0-9.]+)%", text)
    if len(told) != 1:
        raise AssertionError(f"told {len(told)} test accuracies:\n{text}")
    return float(told[0])


def checksums_in(text):
    """The checksums of the weights, by the task or rank that printed them."""
    return {who: checksum for checksum, who in re.findall(r"weights checksum: (0x[0-9a-f]{8}) on (.+)", text)}
