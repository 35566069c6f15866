"""Runs PyTorch's own tests of a backend (torch.testing._internal.distributed.distributed_test) with gloo and with
muster.

    torch_suite.py [--python FILE] [--ranks 3] [--tests REGEX] [--only gloo,muster] [--log FILE]

The tests create a backend by its name, and decorators with lists of names skip most tests for an unknown backend.
Therefore Muster's backend has the name "gloo" here (MUSTER_TORCH_BACKEND=1), so that it runs every test that gloo runs.
The results are printed side by side. The program fails if a test that passes with gloo does not pass with muster,
unless the test is in EXPECTED.
"""

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Tests that may have another result than with gloo: pattern -> reason.
EXPECTED = [("test_ddp_logging_data_cpu", "the log of DDP has the real name of the backend, which is not gloo")]


def stand_in_for_expecttest():
    """Installs a fake of the package expecttest, from which PyTorch's tests import a base class."""
    import unittest

    fake = types.ModuleType("expecttest")
    fake.TestCase = unittest.TestCase
    fake.ACCEPT = False
    fake.assert_expected_inline = lambda *_: None
    sys.modules.setdefault("expecttest", fake)


def run_one(which, ranks, pattern, results):
    """Runs the suite in this process with the backend `which`. Writes the outcome of each test to a file."""
    import unittest

    stand_in_for_expecttest()
    folder = tempfile.mkdtemp()
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(ranks), TEMP_DIR=folder, MASTER_ADDR="127.0.0.1",
                      OMP_NUM_THREADS="1", TORCH_FR_BUFFER_SIZE=os.environ.get("TORCH_FR_BUFFER_SIZE", "0"))
    if which == "muster":
        os.environ.update(MUSTER_TORCH_BACKEND="1", MUSTER_JOB="suite")
        import muster.torch  # noqa: F401
    import torch.multiprocessing

    torch.multiprocessing.set_sharing_strategy("file_system")
    from torch.testing._internal.distributed import distributed_test

    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    loader = unittest.TestLoader()
    names = [name for name in loader.getTestCaseNames(Suite) if re.search(pattern, name)]
    outcomes = {}

    class Result(unittest.TextTestResult):
        def addSuccess(self, test):
            super().addSuccess(test)
            outcomes[test._testMethodName] = "passed"

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            outcomes[test._testMethodName] = f"skipped: {reason}"

        def addFailure(self, test, error):
            super().addFailure(test, error)
            outcomes[test._testMethodName] = "failed"

        def addError(self, test, error):
            super().addError(test, error)
            outcomes[getattr(test, "_testMethodName", str(test))] = "failed"

    suite = unittest.TestSuite(Suite(name) for name in names)
    unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    Path(results).write_text(json.dumps(outcomes))


def run_apart(python, which, ranks, pattern, log):
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": folder}
        with open(log, "a") if log else open(os.devnull, "w") as output:
            subprocess.run([python, "-W", "ignore", __file__, "--one", which, "--ranks", str(ranks), "--tests", pattern,
                            "--results", str(results)], env=environment, stdout=output, stderr=output, check=False)
        return json.loads(results.read_text()) if results.exists() else {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--tests", default="")
    parser.add_argument("--only", default="gloo,muster")
    parser.add_argument("--log", help="the output of the tests is added to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--results", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.ranks, options.tests, options.results)
        return 0
    version = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], text=True,
                             capture_output=True, check=True).stdout.strip()
    found = {}
    print(f"PyTorch {version}, {options.ranks} ranks")
    for which in options.only.split(","):
        found[which] = run_apart(options.python, which, options.ranks, options.tests, options.log)
        kinds = [outcome.split(":")[0] for outcome in found[which].values()]
        print(f"  {which:7} {len(kinds)} run: " + ", ".join(
            f"{kinds.count(kind)} {kind}" for kind in ("passed", "failed", "skipped")), flush=True)
        if not kinds:
            print(f"  {which}: the suite could not run; --log FILE has its output")
            return 1
    unexpected = []
    for name, outcome in sorted(found.get("muster", {}).items()):
        control = found.get("gloo", {}).get(name, "not run")
        if outcome in (control, "passed") or outcome.startswith("skipped"):
            continue
        why = next((why for pattern, why in EXPECTED if fnmatch.fnmatch(name, pattern)), None)
        print(f"  {name}: {outcome} with muster, {control} with gloo" + (f" (expected: {why})" if why else ""))
        if why is None and control == "passed":
            unexpected.append(name)
    if unexpected:
        print(f"{len(unexpected)} tests pass with gloo but not with muster")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
