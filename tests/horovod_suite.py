"""Runs test files of a Horovod checkout against the shim: `make test-horovod-suite HOROVOD_SOURCE=folder`.

    horovod_suite.py --source folder [--suites torch,common] [--launchers mpirun,horovodrun] [--ranks 2,3,4] [--runs 1]
                     [--tests expression] [--no-horovod]

The test files are run unchanged, by pytest on every rank. If build/horovod exists (`make deps-horovod`), Horovod
itself runs the same files once, and its numbers are printed beside ours; build/horovod keeps its outcomes for the next
time. The exit code is 0 if only tests in the table of docs/from-horovod.md, section "Horovod's own tests", differ from
Horovod. Each test of such a row runs separately.

A suite is one row of SUITES. A run that reports nothing for --silence seconds, or takes longer than --bound, is ended:
the output names the test that hangs, and the logs hold the stacks of all ranks. Logs: build/horovod-suite-logs.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "horovod-suite-logs"
# : pytest and similar tools, which any interpreter finds by PYTHONPATH.
TOOLS = ROOT / "build" / "horovod-suite" / "lib"
DOCUMENT = ROOT / "docs" / "from-horovod.md"
SECTION = "## Horovod's own tests"

#: By framework: the interpreter that has it. build/horovod has Horovod itself for Debian's PyTorch alone.
PYTHONS = {
    "torch": Path("/usr/bin/python3"),
    "tensorflow": ROOT / "build" / "tensorflow" / "bin" / "python",
}
HOROVOD = ROOT / "build" / "horovod" / "bin"

LAUNCHERS = {
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "{ranks}"],
    "horovodrun": ["{horovodrun}", "-np", "{ranks}", "--gloo"],
}


#: Runs into which a suite is divided at most, by tests that hang.
MOST_PARTS = 6

#: Seconds for which the run of a test with a known difference may report nothing, the import of TensorFlow included.
SILENCE_OF_ONE_TEST = 60


@dataclass(frozen=True)
class Suite:
    path: str
    framework: str = "torch"
    #: False: pytest runs once, without a launcher.
    on_ranks: bool = True
    environment: tuple[tuple[str, str], ...] = ()
    #: Multiplies --silence and --bound.
    patience: int = 1


#: Horovod 0.28.1 is older than Keras 3, and so are its tests.
_KERAS_2 = (("TF_USE_LEGACY_KERAS", "1"), ("TF_CPP_MIN_LOG_LEVEL", "3"))

SUITES = {
    "torch": Suite("test/parallel/test_torch.py"),
    "adasum_pytorch": Suite("test/parallel/test_adasum_pytorch.py"),
    "common": Suite("test/parallel/test_common.py"),
    "timeline": Suite("test/parallel/test_timeline.py"),
    # Some of its tests run a growing graph hundreds of times, which takes minutes with 4 ranks on 2 cores.
    "tensorflow": Suite("test/parallel/test_tensorflow.py", "tensorflow", environment=_KERAS_2, patience=5),
    "tensorflow2_keras": Suite("test/parallel/test_tensorflow2_keras.py", "tensorflow", environment=_KERAS_2),
    "tensorflow_keras": Suite("test/parallel/test_tensorflow_keras.py", "tensorflow", environment=_KERAS_2),
    "torch_elastic": Suite("test/single/test_torch_elastic.py", on_ranks=False),
    "run": Suite("test/single/test_run.py", on_ranks=False),
    "elastic_torch": Suite("test/integration/test_elastic_torch.py", on_ranks=False),
}


@dataclass(frozen=True)
class Difference:
    """A row of the table in the document. Each field but the last is a pattern of fnmatch."""

    suite: str
    test: str
    launcher: str
    ranks: str
    why: str

    def concerns(self, suite: str, launcher: str, ranks: int) -> bool:
        values = ((suite, self.suite), (launcher, self.launcher), (str(ranks), self.ranks))
        return all(fnmatch.fnmatchcase(value, pattern) for value, pattern in values)

    def covers(self, suite: str, test: str, launcher: str, ranks: int) -> bool:
        return self.concerns(suite, launcher, ranks) and fnmatch.fnmatchcase(test, self.test)


@dataclass
class Outcomes:
    """The outcomes of one run, as the ranks reported them."""

    of_test: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    hangs_in: list[str] = field(default_factory=list)
    log: Path | None = None

    def numbers(self) -> str:
        counts = Counter(self.of_test.values())
        more = f", {counts['not run']} not run" if counts["not run"] else ""
        return f"{counts['passed']:5} {counts['failed']:6} {counts['skipped']:7}{more}"


class Run:
    """One launcher with one test file."""

    def __init__(self, given, suite: Suite, launcher: str, ranks: int, is_horovod: bool, label: str,
                 only: list[str], apart: list[str], silence: float) -> None:
        """only: the names of the tests to run; if it is empty, all. apart: patterns of tests that run separately."""
        self.given = given
        self.silence = silence
        self.suite = suite
        self.only = only
        self.apart = apart
        self.folder = Path(tempfile.mkdtemp(prefix="horovod-suite-"))
        self.argv = self._argv(launcher, ranks, is_horovod)
        self.environment = self._environment(is_horovod)
        self.log = LOGS / f"{label}.log"

    def outcomes(self) -> Outcomes:
        try:
            with open(self.log, "wb") as log:
                process = subprocess.Popen(self.argv, env=self.environment, cwd=self.folder, stdout=log, stderr=log,
                                           stdin=subprocess.DEVNULL, start_new_session=True)
                try:
                    is_done = self._wait(process)
                    if not is_done:
                        self._dump_stacks()
                finally:
                    end_descendants()
                    process.wait()
            found = self._read(is_done)
            found.log = self.log
            return found
        finally:
            self._keep_stacks()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _argv(self, launcher: str, ranks: int, is_horovod: bool) -> list[str]:
        python = HOROVOD / "python" if is_horovod else PYTHONS[self.suite.framework]
        horovodrun = [str(HOROVOD / "horovodrun")] if is_horovod else [str(python), "-m", "horovod.runner.launch"]
        words: list[str] = []
        for word in LAUNCHERS.get(launcher, []):
            words += horovodrun if word == "{horovodrun}" else [word.format(ranks=ranks)]
        path = self.given.source.resolve() / self.suite.path
        tests = [f"{path}::{name}" for name in self.only] or [str(path)]
        selected = ["-k", self.given.tests] if self.given.tests else []
        return [*words, str(python), "-B", "-m", "pytest", "-v", "-p", "horovod_suite_plugin", "-p",
                "no:cacheprovider", "--capture=fd", "--tb=short", *selected, *tests]

    def _environment(self, is_horovod: bool) -> dict[str, str]:
        hidden = re.compile(r"(MUSTER|HOROVOD|OMPI|PRTE|PMIX|PMI|SLURM)_")
        kept = {name: value for name, value in os.environ.items()
                if not hidden.match(name) or name == "MUSTER_COLLECTIVE_LIBRARY"}
        shim = [] if is_horovod else [ROOT / "python" / "horovod-shim", ROOT / "python"]
        places = [*shim, ROOT / "tests", *TOOLS.glob("python*/site-packages")]
        # `horovodrun` and `python` for the scripts of the tests.
        programs = HOROVOD if is_horovod else self._programs()
        return {**kept, "PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONDONTWRITEBYTECODE": "1",
                "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder),
                "HOROVOD_SUITE_REPORTS": str(self.folder), "HOROVOD_SUITE_APART": " ".join(self.apart),
                **dict(self.suite.environment)}

    def _programs(self) -> Path:
        folder = self.folder / "bin"
        folder.mkdir()
        python = PYTHONS[self.suite.framework]
        (folder / "python").symlink_to(python)
        script = folder / "horovodrun"
        script.write_text(f"#!{python}\nfrom horovod.runner.launch import run_commandline\nrun_commandline()\n")
        script.chmod(0o755)
        return folder

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the launcher ended by itself. Looks at the reports once a second, for a launcher that is silent."""
        end = time.monotonic() + self.given.bound * self.suite.patience
        size, silent_since = -1, time.monotonic()
        while True:
            try:
                process.wait(1)
                return True
            except subprocess.TimeoutExpired:
                pass
            now, written = time.monotonic(), sum(path.stat().st_size for path in self.folder.glob("*.jsonl"))
            if written != size:
                size, silent_since = written, now
            if now > end or now - silent_since > self.silence:
                return False

    def _events(self) -> list[list[dict]]:
        return [[json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
                for path in sorted(self.folder.glob("rank-*.jsonl"))]

    def _dump_stacks(self) -> None:
        for events in self._events():
            try:
                os.kill(events[0]["pid"], signal.SIGUSR1)
            except ProcessLookupError:
                pass
        # Polled, since no event shows that a rank has written its stack. A rank that hangs in a system call
        # never does, so the limit is a second. No outcome of a test depends on this.
        end = time.monotonic() + 1
        stacks = list(self.folder.glob("*.stacks"))
        while time.monotonic() < end and not all(path.stat().st_size for path in stacks):
            time.sleep(0.02)

    def _keep_stacks(self) -> None:
        with open(self.log, "a") as log:
            for path in sorted(self.folder.glob("*.stacks")):
                if path.stat().st_size:
                    log.write(f"\n--- stacks of {path.stem}:\n{path.read_text()}")

    def _read(self, is_done: bool) -> Outcomes:
        """A test failed if it failed on any rank; otherwise it passed if it passed on any rank."""
        found = Outcomes()
        order = {"skipped": 0, "passed": 1, "not run": 2, "failed": 3}
        ranks = self._events()
        for rank, events in enumerate(ranks):
            begun, ended = "", set()
            for event in events:
                found.collected = event.get("collected", found.collected)
                found.apart = event.get("apart", found.apart)
                begun = event.get("begins", begun)
                if "test" in event:
                    name, outcome = event["test"], event["outcome"]
                    ended.add(name)
                    if order[outcome] >= order.get(found.of_test.get(name, ""), -1):
                        found.of_test[name] = outcome
                    if event.get("words", "") not in found.words.get(name, ""):
                        found.words[name] = f"{found.words.get(name, '')}--- rank {rank}:\n{event['words']}\n"
            if begun and begun not in ended:
                found.hangs_in.append(f"rank {rank} in {begun}")
                found.of_test[begun] = "failed"
                found.words[begun] = f"{found.words.get(begun, '')}--- rank {rank} did not end this test\n"
        for name in found.collected:
            found.of_test.setdefault(name, "not run")
        if not is_done and not found.hangs_in:
            found.hangs_in.append("the launcher, outside of a test")
        if not found.of_test and not found.apart:
            found.of_test["(start)"] = "failed"
            found.words["(start)"] = "no rank reported a test: see the log\n"
        return found


def outcomes_of(given, suite: Suite, launcher: str, ranks: int, is_horovod: bool, label: str,
                apart: list[str]) -> Outcomes:
    """Runs all tests of a suite. A test that hangs ends its run, and another run executes the remaining tests.

    Each test that matches a pattern of `apart` has its own run: if the test fails only on some ranks, the other ranks
    wait forever, which counts as a failure of this test.
    """
    usual = given.silence * suite.patience

    def run(number: int, only: list[str], apart: list[str], silence: float) -> Outcomes:
        part = f"-part{number}" if number > 1 else ""
        return Run(given, suite, launcher, ranks, is_horovod, f"{label}{part}", only, apart, silence).outcomes()

    whole = run(1, [], apart, usual)
    number = 2
    while number <= MOST_PARTS:
        rest = [test for test, outcome in whole.of_test.items() if outcome == "not run"]
        if not rest or not whole.hangs_in:
            break
        part = run(number, rest, [], usual)
        number += 1
        whole.of_test.update(part.of_test)
        whole.words.update(part.words)
        whole.hangs_in += part.hangs_in
        if not part.hangs_in:
            break
    for test in whole.apart:
        part = run(number, [test], [], min(usual, SILENCE_OF_ONE_TEST))
        number += 1
        whole.of_test.update(part.of_test)
        whole.words.update(part.words)
    return whole


def end_descendants() -> None:
    """Kills the remaining processes of the run. This process is the subreaper: orphans of the run are its children."""
    while True:
        children = [int(pid) for task in Path("/proc/self/task").iterdir()
                    for pid in children_of_thread(task)]
        running = [pid for pid in children if state_of(pid) != "Z"]
        if not running:
            return
        for pid in running:
            os.kill(pid, signal.SIGKILL)
        # The children of an ended process become children of this process. Ended processes must still be
        # waited for.
        for pid in running:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def children_of_thread(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # the thread has ended
        return []


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def differences() -> list[Difference]:
    """The rows of the first table of the section. (The second table has the counts of a run, for readers.)"""
    section = DOCUMENT.read_text().partition(f"\n{SECTION}\n")[2].partition("\n## ")[0]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip().strip("`") for cell in line.strip().strip("|").split("|")])
        elif rows:
            break
    return [Difference(*row) for row in rows[2:]]


def check(suite: str, launcher: str, ranks: int, ours: Outcomes, theirs: Outcomes | None,
          known: list[Difference]) -> list[str]:
    """The tests that differ from Horovod and are in no row of the table."""
    faults = []
    for test, outcome in ours.of_test.items():
        expected = theirs.of_test.get(test, "not run") if theirs is not None else "not run"
        is_same = outcome in (expected, "passed") or (expected == "not run" and outcome == "skipped")
        if is_same or expected == "failed":
            continue
        if not any(row.covers(suite, test, launcher, ranks) for row in known):
            faults.append(test)
    return faults


def outcomes_of_horovod(given, suite: Suite, launcher: str, ranks: int, label: str) -> Outcomes:
    """The stored outcomes of an earlier run of the same tests, if there was one."""
    kept = HOROVOD.parent / "suite-outcomes" / f"{label}{'-' + given.tests if given.tests else ''}.json"
    if kept.is_file():
        return Outcomes(of_test=json.loads(kept.read_text()))
    found = outcomes_of(given, suite, launcher, ranks, True, f"{label}-horovod", [])
    if "not run" not in found.of_test.values():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(found.of_test, indent=1))
    return found


def run_cell(given, name: str, launcher: str, ranks: int, known: list[Difference]) -> bool:
    """Makes all runs of one suite under one launcher; returns whether there was no unexpected difference."""
    suite = SUITES[name]
    label = f"{name}-{launcher}-{ranks}"
    theirs = None
    if suite.framework == "torch" and (HOROVOD / "horovodrun").exists() and not given.no_horovod:
        theirs = outcomes_of_horovod(given, suite, launcher, ranks, label)
    # A row that matches all tests of a suite is about their set-up.
    apart = [row.test for row in known if row.test != "*" and row.concerns(name, launcher, ranks)]
    is_good = True
    for number in range(1, given.runs + 1):
        ours = outcomes_of(given, suite, launcher, ranks, False, f"{label}-{number}", apart)
        faults = check(name, launcher, ranks, ours, theirs, known)
        beside = theirs.numbers() if theirs is not None and number == 1 else ""
        print(f"{name:16} {launcher:11} {ranks:5} {number:4}   {ours.numbers()}   {beside}".rstrip(), flush=True)
        for words in ours.hangs_in:
            print(f"  did not end: {words}", flush=True)
        for test in faults:
            print(f"  unexpected: {test} {ours.of_test[test]}", flush=True)
            for line in ours.words.get(test, "").splitlines():
                print(f"    {line}", flush=True)
        if faults or ours.hangs_in:
            is_good = False
            print(f"  log: {ours.log}", flush=True)
    return is_good


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Runs Horovod's own tests against the horovod shim.")
    parser.add_argument("--source", type=Path, required=True, help="a checkout of Horovod v0.28.1")
    parser.add_argument("--suites", default=",".join(SUITES), help="comma-separated (all)")
    parser.add_argument("--launchers", default="mpirun,horovodrun", help="comma-separated (mpirun,horovodrun)")
    parser.add_argument("--ranks", default="2,3,4", help="comma-separated (2,3,4)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each (1)")
    parser.add_argument("--tests", default="", help="only tests that match this expression of pytest -k")
    parser.add_argument("--no-horovod", action="store_true", help="leave Horovod itself out")
    parser.add_argument("--bound", type=float, default=1800, help="seconds for one run (1800)")
    parser.add_argument("--silence", type=float, default=180, help="seconds without an outcome that count as a hang")
    given = parser.parse_args(argv)
    unknown = [name for name in given.suites.split(",") if name not in SUITES]
    if unknown:
        parser.error(f"unknown suite {unknown[0]!r}; the suites are {', '.join(SUITES)}")
    missing = [name for name in given.suites.split(",") if not (given.source / SUITES[name].path).is_file()]
    if missing:
        parser.error(f"{given.source} has no {SUITES[missing[0]].path}: --source needs a checkout of Horovod v0.28.1")
    become_subreaper()
    LOGS.mkdir(parents=True, exist_ok=True)
    known = differences()
    print(f"{'suite':16} {'launcher':11} {'ranks':>5} {'run':>4}   {'passed failed skipped':21}   Horovod's", flush=True)
    good = []
    for name in given.suites.split(","):
        cells = [("alone", 1)] if not SUITES[name].on_ranks else [
            (launcher, int(ranks)) for launcher in given.launchers.split(",") for ranks in given.ranks.split(",")]
        good += [run_cell(given, name, launcher, ranks, known) for launcher, ranks in cells]
    return 0 if all(good) else 1


def become_subreaper() -> None:
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
