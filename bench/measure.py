"""The common part of the benchmarks: subjects that are measured in turn, and the table at the end.

Every benchmark prints one row for each measurement: median, 10th and 90th percentile and, if there is an aim, the aim
and the word `ok` or `short`. The exit code is 0 in either case, since people judge the figures.
"""

import os
import pathlib
import statistics
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()
MUSTER = BUILD / "platform" / "muster"


def interleaved(subjects, rounds):
    """Calls each of `subjects` (name -> function that returns a figure) in turn, `rounds` times, so that other load on
    the machine affects all of them alike. The first round is not counted, since it warms caches. Returns name -> list
    of figures."""
    samples = {name: [] for name in subjects}
    for count in range(rounds + 1):
        for name, take in subjects.items():
            figure = take()
            if count > 0:
                samples[name].append(figure)
    return samples


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name, samples, unit, digits=0):
    return [name, f"{statistics.median(samples):.{digits}f}", f"{percentile(samples, 0.1):.{digits}f}",
            f"{percentile(samples, 0.9):.{digits}f}", unit, ""]


def verdict(holds):
    return "ok" if holds else "short"


def print_table(rows):
    rows = [["", "median", "p10", "p90", "unit", "aim"], *rows]
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    for line in rows:
        cells = [line[0].ljust(widths[0])]
        cells += [line[column].rjust(widths[column]) for column in range(1, 4)]
        cells += [line[4].ljust(widths[4]), line[5]]
        print("  ".join(cells).rstrip())


class Server:
    """A Muster server with a state folder of its own, removed at the end with all jobs."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self.environment = dict(os.environ, MUSTER_STATE_DIR=self.folder.name)
        self.muster("list")
        return self

    def __exit__(self, *ignored):
        self.muster("server", "--stop")
        self.folder.cleanup()

    def muster(self, *arguments):
        return subprocess.run([MUSTER, *arguments], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
