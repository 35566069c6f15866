"""Remembers which units passed a slow check, so that the next run checks only what has changed since.

A unit is current if its command, the check itself, and the contents of all files of the project that it includes are
those of the run that it passed. Headers of the system are not compared; the identity of a check contains the version
of its compiler.
"""

import hashlib
import json
import re
import threading
from pathlib import Path


class CheckedUnits:
    """The record of one check: a file of JSON lines, one for each unit that passed, of which the last one counts.
    Several threads may use it. `identity` is what decides a result besides the unit: versions and settings."""

    def __init__(self, record, identity):
        self._record = Path(record)
        self._identity = identity
        self._lock = threading.Lock()
        self._contents = {}
        self._units = {}
        self._record.parent.mkdir(parents=True, exist_ok=True)
        lines = self._record.read_text(encoding="utf-8").splitlines() if self._record.exists() else []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # the last line of a run that was killed
                continue
            self._units[entry["unit"]] = entry
        self._record.write_text("".join(json.dumps(entry) + "\n" for entry in self._units.values()), encoding="utf-8")

    def is_current(self, unit, command):
        """Whether `unit`, a path, passed with this command (a list of words), and nothing has changed since."""
        known = self._units.get(str(unit))
        return bool(known) and known["passed"] == self._state(command, known["files"])

    def passed(self, unit, command, files, began):
        """Records that `unit`, which includes `files`, passed a check that began at `began` (time.time()). A file that
        has changed since then may not be what was checked, so the unit is not recorded."""
        if any(Path(path).stat().st_mtime >= began for path in files):
            return
        entry = {"unit": str(unit), "files": [str(path) for path in files]}
        entry["passed"] = self._state(command, entry["files"])
        with self._lock, self._record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(entry) + "\n")

    def _state(self, command, files):
        digest = hashlib.sha256("\0".join([self._identity, *command]).encode())
        for path in files:
            digest.update(f"\0{path}\0{self._content(path)}".encode())
        return digest.hexdigest()

    def _content(self, path):
        """The digest of a file as it was when this run first read it, or "missing"."""
        with self._lock:
            if path not in self._contents:
                try:
                    self._contents[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                except OSError:
                    self._contents[path] = "missing"
            return self._contents[path]


def included_files(rule, root):
    """The files below `root` that a dependency rule of make, as compilers write it, names after its colon."""
    words = re.findall(r"(?:\\ |[^\s\\])+", rule.replace("\\\n", " ").partition(": ")[2])
    paths = (Path(word.replace("\\ ", " ")) for word in words)
    return sorted({path for path in paths if path.is_relative_to(root)})
