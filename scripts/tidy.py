#!/usr/bin/env python3
"""Runs clang-tidy over the batches of sources of a build, so that each header is parsed once for many files.

    scripts/tidy.py BUILD [PATTERN...]

BUILD is a configured build with batches, whose generated headers exist. A batch that passed, and of which nothing has
changed since, is not read again: a batch takes a minute. PATTERN (a part of the path of a batch or of one of its
sources) selects batches. Ends with the line "N passed, N failed", which counts batches.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from checked_units import CheckedUnits, included_files

ROOT = Path(__file__).resolve().parent.parent
TIDY, CLANG = "clang-tidy-19", "clang++-19"
# Generated code, and the benchmarks, are left out.
CHECKED = re.compile(r"/(platform|collective|training|examples)/(?!.*_(messages|stub)\.dir).*\.(cc|cxx)$")
# Lines about how many warnings system headers caused.
NOISE = re.compile(r"^\d+ warnings? (generated|and)|^Suppressed |^Use -header-filter|^$")


def batches(build):
    """path -> (compile command as words, folder), the largest batches first, so that no core waits for the last one."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        if CHECKED.search(entry["file"].removeprefix(str(ROOT))):
            found[Path(entry["file"])] = (shlex.split(entry["command"]), entry["directory"])
    return dict(sorted(found.items(), key=lambda item: -length(item[0])))


def sources(batch):
    """The sources of a batch, or the source itself if it is compiled alone."""
    text = batch.read_text(encoding="utf-8")
    return [Path(path) for path in re.findall(r'^#include "(/[^"]+)"', text, re.M)] or [batch]


def length(batch):
    """The bytes of the sources of a batch. A generated source may be missing, if the build is not complete."""
    return sum(path.stat().st_size for path in sources(batch) if path.exists())


def includes(command, folder):
    """The files of the project that a batch includes."""
    words = iter(command[1:])
    options = [CLANG, "-MM", "-w"]
    for word in words:
        if word in ("-o", "-MF", "-MT"):
            next(words)
        elif word not in ("-c", "-MD") and not word.startswith("--param"):
            options.append(word)
    run = subprocess.run(options, cwd=folder, capture_output=True, text=True, check=True)
    return included_files(run.stdout, ROOT)


def check(batch, command, folder, build, record):
    """What clang-tidy finds in a batch; empty if it finds nothing, None if the batch has not changed since then."""
    if record.is_current(batch, command):
        return None
    began = time.time()
    run = subprocess.run([TIDY, "-quiet", "-p", str(build), str(batch)], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        record.passed(batch, command, includes(command, folder), began)
        return ""
    lines = (run.stdout + run.stderr).splitlines()
    return "\n".join(line for line in lines if not NOISE.search(line)) or f"exit code {run.returncode}"


def main():
    build, patterns = Path(sys.argv[1]).resolve(), sys.argv[2:]
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    record = CheckedUnits(build / "lint" / "tidy", version + (ROOT / ".clang-tidy").read_text(encoding="utf-8"))
    chosen = {batch: job for batch, job in batches(build).items()
              if not patterns or any(pattern in str(path) for pattern in patterns for path in (batch, *sources(batch)))}
    failed = unchanged = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = {pool.submit(check, batch, *job, build, record): batch for batch, job in chosen.items()}
        for count, done in enumerate(concurrent.futures.as_completed(results), 1):
            if done.result() is None:
                unchanged += 1
            elif done.result():
                failed += 1
                print(f"{results[done].relative_to(build)}:\n{done.result()}", flush=True)
            if sys.stderr.isatty():
                print(f"\r[{count}/{len(results)}]", end="", file=sys.stderr, flush=True)
    if unchanged:
        print(f"{unchanged} passed before, and have not changed")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
