#!/usr/bin/env python3
"""Compiles every source and every other header by itself, with the compiler's front end.

    scripts/compile_alone.py BUILD [PATTERN...]

The build compiles sources in batches, in which a file may depend on an include of another file. Here each file is
compiled alone: a fault is a missing include. Precompiled headers are left out for the same reason. A header that a
source includes as its first line is checked by that source, and is not compiled a second time. BUILD is a configured
build of the preset `alone`, of which only compile_commands.json is used; a header is compiled with the options of the
sources in its folder. A file that passed, and of which nothing has changed since, is not compiled again. PATTERN (a part
of the path) selects files. Ends with the line "N passed, N failed", which also counts headers that sources check.
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
# Headers that are included in the middle of a source, as their first lines state, cannot stand alone.
FRAGMENTS = re.compile(r"^// (A fragment|Included by)", re.M)
FIRST_INCLUDE = re.compile(r'\A(?://[^\n]*\n|\s)*#include "([^"]+)"')
SEARCHED = re.compile(r"-I|-isystem|-D")


def plain(command):
    """The options of a compile command, without its source, its output and precompiled headers."""
    words = iter(shlex.split(command))
    options = []
    for word in words:
        if word in ("-o", "-c", "-include", "-MF", "-MT"):
            next(words)
        elif word not in ("-Winvalid-pch", "-fpch-preprocess", "-MD") and not re.match(r"-O[0-9]", word):
            options.append(word)
    while not re.search(r"(g\+\+|c\+\+|gcc|cc|clang\+\+)(-\d+)?$", options[0]):
        options.pop(0)
    return options


def searched(options):
    """The options that name folders of headers, each whole: "-Ifolder", or "-isystem" with its folder; and those that
    define macros."""
    words = iter(options)
    return [(word, next(words)) if word in ("-I", "-isystem") else (word,) for word in words if SEARCHED.match(word)]


def with_folders_of(options, others):
    """The options, with the include folders and the macros of `others` added."""
    known = searched(options)
    return options + [word for group in searched(others) if group not in known for word in group]


def proven_by(path, options):
    """The header that the source includes before anything else, or None."""
    match = FIRST_INCLUDE.match(path.read_text(encoding="utf-8"))
    if not match:
        return None
    for folder in [str(path.parent)] + [group[-1].removeprefix("-I") for group in searched(options)]:
        header = Path(folder) / match[1]
        if header.is_file():
            return header.resolve()
    return None


def jobs(build):
    """path -> (options, folder) for every source of the build and every header beside a source; and header -> the
    source that checks it."""
    found, of_folder, proven = {}, {}, {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "build"):
            continue
        job = found.setdefault(path, (plain(entry["command"]), entry["directory"]))
        if path.suffix == ".cc":
            options, _ = of_folder.setdefault(path.parent, job)
            of_folder[path.parent] = (with_folders_of(options, job[0]), job[1])
            header = proven_by(path, job[0])
            if header:
                proven.setdefault(header, path)
    for part in ("platform", "collective", "training", "examples", "bench", "tests"):
        for header in (ROOT / part).rglob("*.h"):
            # A folder whose sources this build leaves out, such as those that need PyTorch.
            if header.parent not in of_folder and next(header.parent.glob("*.cc"), None):
                continue
            above = header.parent
            while above != ROOT and above not in of_folder:
                above = above.parent
            folder = of_folder.get(above) or next(
                (job for path, job in of_folder.items() if path.is_relative_to(header.parent.parent)), None)
            if folder and not FRAGMENTS.search(header.read_text(encoding="utf-8")[:400]):
                found[header] = folder
    return found, proven


def compile_alone(path, options, folder, record):
    """The compiler's errors; empty if the file compiles, None if it did and has not changed since."""
    if record.is_current(path, options):
        return None
    language = "c" if path.suffix == ".c" else "c++"
    # Sources show the warnings of a header; compiled alone, its functions are unused.
    quiet = ["-w"] if path.suffix == ".h" else []
    began = time.time()
    run = subprocess.run([*options, *quiet, "-fsyntax-only", "-MMD", "-MF", "/dev/stdout", "-x", language, str(path)],
                         cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        record.passed(path, options, included_files(run.stdout, ROOT), began)
        return ""
    return run.stderr or f"exit code {run.returncode}"


def main():
    build, patterns = Path(sys.argv[1]).resolve(), sys.argv[2:]
    found, proven = jobs(build)
    chosen = {path: job for path, job in sorted(found.items())
              if not patterns or any(pattern in str(path) for pattern in patterns)}
    # A faulty header fails its source, which is also compiled if the whole tree is.
    compiled = {path: job for path, job in chosen.items() if proven.get(path) not in chosen}
    compiler = next(iter(found.values()))[0][0]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    record = CheckedUnits(build / "lint" / "alone", version)
    failed = unchanged = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = {pool.submit(compile_alone, path, *job, record): path for path, job in compiled.items()}
        for count, done in enumerate(concurrent.futures.as_completed(results), 1):
            if done.result() is None:
                unchanged += 1
            elif done.result():
                failed += 1
                print(f"{results[done].relative_to(ROOT)}:\n{done.result()}", flush=True)
            if sys.stderr.isatty():
                print(f"\r[{count}/{len(results)}]", end="", file=sys.stderr, flush=True)
    if unchanged:
        print(f"{unchanged} passed before, and have not changed")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
