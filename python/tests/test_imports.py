"""No module of the package imports itself through others, neither when it is loaded nor within a function.

A circle of imports works only in one order of loading, and a module in it cannot be understood without the others.
"""

import ast
import os
import tempfile
import unittest
from pathlib import Path
from typing import Dict, Iterator, List, Set

PACKAGES = (Path(__file__).resolve().parent.parent / "muster",
            Path(__file__).resolve().parent.parent / "horovod-shim" / "horovod")


def modules_of(package: Path) -> Dict[str, Path]:
    """The files of a package, by the name of the module."""
    found = {}
    for path in package.rglob("*.py"):
        parts = list(path.relative_to(package.parent).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def imported_names(module: str, path: Path) -> Iterator[str]:
    """The absolute names of all imports of the file, at any level."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[:len(parents) - node.level + 1] + ([base] if base else []))
            for alias in node.names:
                yield f"{base}.{alias.name}"


def imports_of(module: str, modules: Dict[str, Path]) -> Set[str]:
    """The modules of the package that `module` imports: the modules that it names, and the __init__ of each package on
    the way to them that does not contain `module`, which Python runs first."""
    found = set()
    for name in imported_names(module, modules[module]):
        named = target = name if name in modules else name.rpartition(".")[0]
        while target in modules:
            is_around = module == target or module.startswith(target + ".")
            if target == named or not is_around:
                found.add(target)
            target = target.rpartition(".")[0]
    return found - {module}


def circles_of(package: Path) -> List[str]:
    """Each circle of imports as a line: "a -> b -> a"."""
    modules = modules_of(package)
    graph = {module: sorted(imports_of(module, modules)) for module in sorted(modules)}
    circles: List[str] = []
    finished: Set[str] = set()

    def visit(module: str, way: List[str]) -> None:
        if module in way:
            circles.append(" -> ".join(way[way.index(module):] + [module]))
        elif module not in finished:
            for imported in graph[module]:
                visit(imported, way + [module])
            finished.add(module)

    for module in graph:
        visit(module, [])
    return circles


def public_names(path: Path) -> Set[str]:
    """The names that the __init__.py of a package imports from its modules or defines, without those that begin with
    an underscore."""
    found: Set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
    return {name for name in found if not name.startswith("_")}


def listed_names(path: Path) -> List[str]:
    """The value of __all__."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


class Imports(unittest.TestCase):
    def test_all_lists_every_public_name(self):
        loaded_at_first_use = {"torch": {"elastic"}, "tensorflow": {"elastic", "keras", "SyncBatchNormalization"}}
        for package, late in loaded_at_first_use.items():
            with self.subTest(package):
                path = PACKAGES[0] / package / "__init__.py"
                self.assertEqual(sorted(listed_names(path)), sorted(public_names(path) | late))

    def test_no_module_imports_itself_by_way_of_others(self):
        for package in PACKAGES:
            with self.subTest(package=package.name):
                self.assertEqual(circles_of(package), [])

    def test_a_circle_is_found(self):
        cases = {
            "at the top of a file": ({"a.py": "from .b import x", "b.py": "from . import a"},
                                     ["package.a -> package.b -> package.a"]),
            "within a function": ({"a.py": "from .b import x", "b.py": "def f():\n    from .a import y"},
                                  ["package.a -> package.b -> package.a"]),
            "by an absolute name": ({"a.py": "import package.b", "b.py": "import package.a"},
                                    ["package.a -> package.b -> package.a"]),
            "through the __init__ of a package": (
                {"a.py": "from .inner.c import z", "inner/__init__.py": "from .d import w", "inner/c.py": "",
                 "inner/d.py": "from ..a import y"},
                ["package.a -> package.inner -> package.inner.d -> package.a"]),
            "none": ({"a.py": "from .b import x", "b.py": "import os\nfrom .inner import c", "inner/__init__.py": "",
                      "inner/c.py": "from . import d", "inner/d.py": ""}, []),
        }
        for name, (files, circles) in cases.items():
            with self.subTest(case=name), tempfile.TemporaryDirectory() as folder:
                package = Path(folder) / "package"
                for file, text in {"__init__.py": "", **files}.items():
                    os.makedirs((package / file).parent, exist_ok=True)
                    (package / file).write_text(text)
                self.assertEqual(circles_of(package), circles)


if __name__ == "__main__":
    unittest.main()
