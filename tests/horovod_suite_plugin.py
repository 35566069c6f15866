"""A pytest plugin that horovod_suite.py loads into every rank. It appends one line of JSON to a file of the rank for
each test that begins and for each outcome, so that the outcomes survive a rank that hangs or is killed."""

import faulthandler
import fnmatch
import json
import os
import signal

import pytest

#: The folder for the files.
FOLDER = "HOROVOD_SUITE_REPORTS"
#: Patterns of tests that run separately.
APART = "HOROVOD_SUITE_APART"

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK")

_rank = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), "0")
_path = os.path.join(os.environ[FOLDER], f"rank-{_rank}")
_lines = open(f"{_path}.jsonl", "a", buffering=1)
_stacks = open(f"{_path}.stacks", "a")
# Tests start processes of their own, which inherit FOLDER and must not write into the file of their rank.
_owner = os.getpid()
faulthandler.register(signal.SIGUSR1, _stacks, all_threads=True)
_write_line = _lines.write


def _write(**event):
    if os.getpid() == _owner:
        _write_line(json.dumps(event) + "\n")


def _name(nodeid):
    """Class and function, without the path of the file."""
    return nodeid.partition("::")[2] or nodeid


_write(pid=_owner)


def pytest_collectreport(report):
    if report.failed:
        _write(test=_name(report.nodeid), outcome="failed", words=report.longreprtext)


# After pytest's own hook, which removes tests that -k does not match.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    patterns = os.environ.get(APART, "").split()
    apart = [item for item in items if any(fnmatch.fnmatchcase(_name(item.nodeid), pattern) for pattern in patterns)]
    items[:] = [item for item in items if item not in apart]
    config.hook.pytest_deselected(items=apart)
    _write(apart=[_name(item.nodeid) for item in apart])


def pytest_collection_finish(session):
    _write(collected=[_name(item.nodeid) for item in session.items])


def pytest_runtest_logstart(nodeid):
    _write(begins=_name(nodeid))


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        _write(test=_name(report.nodeid), outcome=report.outcome, words=report.longreprtext if report.failed else "")


def pytest_sessionfinish(session):
    # A launcher ends all ranks once one of them exits with a code other than 0. The outcomes are in the file.
    session.exitstatus = 0
    _write(ends=True)
