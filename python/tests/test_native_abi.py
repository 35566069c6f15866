"""python/muster/_native against the C header, and the search for the library."""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from muster._native import abi, library

HEADER = Path(__file__).resolve().parents[2] / "collective" / "include" / "muster" / "collective.h"

C_TYPES = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
           "double": ctypes.c_double, "const char*": ctypes.c_char_p, "void*": ctypes.c_void_p,
           "const void*": ctypes.c_void_p, "muster_ticket": ctypes.c_uint64, "void": None}
STRUCTS = {"muster_options": abi.Options, "muster_tensor": abi.Tensor, "muster_session_options": abi.SessionOptions,
           "muster_operation": abi.Operation}


def header():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return re.sub(r"//.*|^#.*(\\\n.*)*", "", text, flags=re.MULTILINE)


class Header(unittest.TestCase):
    def test_numbers(self):
        found = {name: int(value) for name, value in re.findall(r"\bMUSTER_(\w+) = (\d+)", header())}
        self.assertEqual({name: getattr(abi, name, None) for name in found}, found)
        self.assertGreater(len(found), 30)

    def test_structs_have_the_same_fields_in_the_same_order(self):
        found = {name: body for body, name in
                 re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header(), flags=re.DOTALL)}
        self.assertEqual(set(found), set(STRUCTS))
        for name, body in found.items():
            fields = [re.fullmatch(r"(.*?)\s*(\w+)", " ".join(each.split())).groups()
                      for each in body.split(";") if each.strip()]
            mirrored = STRUCTS[name]._fields_
            with self.subTest(name):
                self.assertEqual([each[0].rstrip("_") for each in mirrored], [each[1] for each in fields])
                for (field, kind), (written, _) in zip(mirrored, fields):
                    self.check_type(f"{name}.{field}", kind, written)

    def check_type(self, what, kind, written):
        if written in C_TYPES:
            self.assertIs(kind, C_TYPES[written], what)
        elif written.endswith("*"):
            self.assertEqual(ctypes.sizeof(kind), ctypes.sizeof(ctypes.c_void_p), what)
        else:
            self.assertIn(written, ("muster_on_stall",), what)  # functions, which are pointers

    def test_functions_have_as_many_arguments_and_return_the_same(self):
        found = {name: (" ".join(result.split()), arguments) for result, name, arguments in
                 re.findall(r"^([\w *]+?)\s*\b(muster_\w+)\(([^;]*?)\);", header(), flags=re.MULTILINE | re.DOTALL)}
        self.assertEqual(set(abi.FUNCTIONS), set(found), "the library has one interface, the one that Python uses")
        for name, (result, arguments) in abi.FUNCTIONS.items():
            with self.subTest(name):
                written, listed = found[name]
                self.assertEqual(len(arguments), 0 if listed.strip() == "void" else listed.count(",") + 1)
                if written in C_TYPES:
                    self.assertIs(result, C_TYPES[written])

    def test_the_library_agrees_about_sizes_of_types(self):
        loaded = library.load()
        sizes = {abi.FLOAT32: 4, abi.FLOAT64: 8, abi.INT32: 4, abi.INT64: 8, abi.FLOAT16: 2, abi.BFLOAT16: 2,
                 abi.INT8: 1, abi.UINT8: 1, abi.INT16: 2, abi.UINT16: 2, abi.UINT32: 4, abi.UINT64: 8, abi.BOOL: 1}
        self.assertEqual({number: loaded.muster_size_of(number) for number in sizes}, sizes)
        self.assertEqual(loaded.muster_size_of(0), 0)


class Finding(unittest.TestCase):
    def test_a_file_that_is_named_goes_before_all_others(self):
        with tempfile.NamedTemporaryFile() as file:
            self.assertEqual(library.find({library.VARIABLE: file.name}), Path(file.name))

    def test_a_missing_named_file_is_an_error_without_a_fallback(self):
        with self.assertRaisesRegex(library.LibraryError, "COLLECTIVE_LIBRARY names /nowhere.so, which does not exist"):
            library.find({library.VARIABLE: "/nowhere.so"})

    def test_the_error_names_the_searched_places_and_gives_advice(self):
        with mock.patch.object(library, "places", lambda _: [Path("/one.so"), Path("/two.so")]):
            with self.assertRaisesRegex(library.LibraryError, "looked for /one.so, /two.so: install the wheel"):
                library.find({})

    def test_a_foreign_library_is_refused(self):
        for name, words in (("libm.so.6", "cannot be loaded as the collective library"), (__file__, "cannot be loaded")):
            with self.assertRaisesRegex(library.LibraryError, words):
                library._load(Path(name))

    def test_versions(self):
        for version, is_good in (("0.2.0", True), ("0.10.0", True), ("1.0.0-rc1", True), ("0.1.9", False)):
            self.assertEqual(abi.speaks(version), is_good, version)


class Imports(unittest.TestCase):
    def modules_after(self, statement):
        ran = subprocess.run([sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"], check=True,
                             stdout=subprocess.PIPE, text=True, env=os.environ)
        return set(ran.stdout.split())

    def test_the_client_and_the_training_side_do_not_load_each_other(self):
        self.assertFalse({name for name in self.modules_after("import muster")
                          if name.startswith("muster.") and name != "muster._version"})
        loaded = self.modules_after("import muster.common.basics")
        self.assertFalse({"muster.client", "muster._generated", "torch", "numpy", "tensorflow", "ssl"} & loaded)
        self.assertNotIn("muster.common.basics", self.modules_after("import muster; muster.Client; muster.JobSpec"))

    def test_every_name_of_the_client_is_still_there(self):
        loaded = self.modules_after("from muster import *; assert Client and JobSpec and NotFound and errors and Text")
        self.assertIn("muster.client", loaded)

    def test_an_unknown_name_is_an_attribute_error(self):
        import muster
        with self.assertRaisesRegex(AttributeError, "module 'muster' has no attribute 'nothing'"):
            muster.nothing
        self.assertIn("Client", dir(muster))


if __name__ == "__main__":
    unittest.main()
