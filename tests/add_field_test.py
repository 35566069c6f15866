#!/usr/bin/env python3
"""A field of a job is written down once. Three edits in a scratch copy of the sources (the member, its row, its
meaning) give JobSpec the field `nice` in JSON, YAML, --set, the flag, the API's document, the Python client and the
store.

The edits are those of CONTRIBUTING.md, "Adding a field", and are read from there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The sources of a spec, compiled as one unit.
PARTS = ("base/bytes.cc", "base/error.cc", "base/json_text.cc", "base/text.cc", "base/units.cc", "record/*.cc",
         "job/*.cc")


def edits():
    """(file, the line after which the new lines go, the new lines), as CONTRIBUTING.md shows them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.split("### Adding a field", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"In `([\w/.]+)`,\s+after\s+`(.+?)`:\n+ +```cpp\n(.*?) +```", section, re.DOTALL)
    return [(file, behind, lines) for file, behind, lines in found]


class AddedField(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="muster-add-field-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        for folder in ("base", "record", "job"):
            shutil.copytree(ROOT / "platform" / folder, cls.work / "platform" / folder)
        for file, behind, lines in edits():
            path = cls.work / file
            text = path.read_text()
            if text.count(behind) != 1:
                raise AssertionError(f"{file} has {text.count(behind)} times: {behind}")
            end = text.index("\n", text.index(behind)) + 1
            path.write_text(text[:end] + lines + text[end:])
        sources = [source for part in PARTS for source in sorted((cls.work / "platform").glob(part))
                   if not source.name.endswith("_test.cc")]
        unit = cls.work / "unit.cc"
        unit.write_text("".join(f'#include "{source}"\n' for source in [*sources, ROOT / "tests" / "add_field_probe.cc"]))
        compiler = os.environ.get("CXX", "g++")
        subprocess.run([compiler, "-std=c++20", "-O0", "-I", str(cls.work / "platform"), str(unit), "-o",
                        str(cls.work / "probe")], check=True)
        answer = subprocess.run([str(cls.work / "probe")], check=True, capture_output=True, text=True).stdout
        cls.seen = json.loads(answer)

    def test_takes_three_edits(self):
        self.assertEqual(len(edits()), 3)

    def test_is_in_json_yaml_and_the_store(self):
        self.assertEqual([self.seen[place] for place in ("json", "yaml", "store")], [7, 7, 7])
        self.assertTrue(self.seen["read back"])

    def test_can_be_set(self):
        self.assertTrue(self.seen["set"])
        self.assertEqual(self.seen["flag"], "--nice")

    def test_is_validated(self):
        self.assertEqual(self.seen["fault"], "nice 20 is out of range; give 0 to 19")

    def test_is_in_the_document_of_the_api_and_in_the_python_client(self):
        schema = self.seen["schemas"]["JobSpec"]["properties"]["nice"]
        self.assertEqual((schema["minimum"], schema["maximum"]), (0, 19))
        base = json.loads((ROOT / "platform" / "api" / "openapi_base.json").read_text())
        base["components"]["schemas"].update(self.seen["schemas"])
        sys.path.insert(0, str(ROOT / "python"))
        import generate_client
        types = generate_client.Types(base["components"]["schemas"])
        written = generate_client.write_class("JobSpec", base["components"]["schemas"]["JobSpec"], types, True, True)
        self.assertIn("    nice: int = 0\n", written)


if __name__ == "__main__":
    unittest.main()
