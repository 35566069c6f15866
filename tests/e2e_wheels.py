"""The two wheels of python/, as users install them: built, installed into an empty environment, and used there. `make
test-horovod` runs it; scripts/python_env.sh wheel creates the build tools. The wheels are installed from a folder,
without an index, beside Debian's PyTorch. The tree is not on the Python path.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "python"
TOOLS = ROOT / "build" / "wheel-tools" / "bin" / "python"
# Kept between runs, so that only changed files are compiled.
BUILD = ROOT / "build" / "wheel"
# Debian's, which has Debian's PyTorch.
DEBIAN_PYTHON = "/usr/bin/python3"
# The newest symbols of glibc that docs/python.md allows a wheel built on Debian 12 to need.
GLIBC = (2, 36)
LOCAL = ["--disable-pip-version-check", "--no-index"]

PUBLIC = (ROOT / "tests" / "data" / "horovod-torch-names.txt").read_text().split("\n")

IMPORTS = """
import importlib, os, sys
names = sys.argv[1:]
for name in names:
    assert importlib.import_module("horovod." + name) is importlib.import_module("muster." + name), name
import muster, horovod
for package in (muster, horovod):
    assert package.__file__.startswith(sys.prefix), package.__file__
"""

SIGNATURES = """
import inspect, sys
import horovod.torch, horovod.torch.mpi_ops, horovod.torch.elastic
faults = []
for line in sys.stdin.read().split("\\n"):
    name, opens, parameters = line.partition("(")
    value = horovod
    try:
        for part in name.split("."):
            value = getattr(value, part)
    except AttributeError:
        faults.append(f"{name} is missing")
        continue
    if not opens:
        continue
    said = []
    for parameter in inspect.signature(value).parameters.values():
        default = parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            said.append("**" + parameter.name)
        elif default is parameter.empty:
            said.append(parameter.name)
        else:
            shown = {id(horovod.torch.global_process_set): "global_process_set", id(horovod.torch.Average): "Average",
                     id(horovod.torch.Compression.none): "Compression.none"}
            said.append(f"{parameter.name}={shown.get(id(default), repr(default))}")
    expected = parameters.rstrip(")")
    asked = len(expected.split(", ")) if expected else 0
    # More of our own may stand behind them, which no such program gives.
    if ", ".join(said[:asked]) != expected or not all("=" in more for more in said[asked:]):
        faults.append(f"{name}({', '.join(said)}) should be {line}")
print("\\n".join(faults), end="")
sys.exit(bool(faults))
"""

TRAINING = """
import sys, torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.ones(3, dtype=torch.float64) * (hvd.rank() + 1), op=hvd.Sum, name="x")
print("rank", hvd.rank(), "of", hvd.size(), "has", total.tolist())
assert hvd.__file__.startswith(sys.prefix), hvd.__file__
hvd.shutdown()
"""


def run(*command, accept=(0,), **words):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTHON", "MUSTER_", "HOROVOD_", "PIP_", "VIRTUAL_ENV"))}
    done = subprocess.run([str(word) for word in command], env={**environment, "OMP_NUM_THREADS": "1"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800, **words)
    if accept is not None and done.returncode not in accept:
        raise AssertionError(f"{' '.join(map(str, command[:6]))} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done


def wheel_of(project, folder, build=None):
    """Builds a wheel with the versions of requirements-build.lock, without an index."""
    options = ["--config-settings", f"build-dir={build}"] if build else []
    run(TOOLS, "-m", "pip", "wheel", *LOCAL, "--no-build-isolation", "--no-deps", *options, "-w", folder, project)


def symbols_of_glibc(library):
    listing = run("objdump", "-T", library).stdout
    return {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", listing)}


class WheelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not TOOLS.exists():
            raise AssertionError(f"{TOOLS} is missing: scripts/python_env.sh wheel makes it")
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="muster-wheels-")))
        cls.wheels = cls.folder / "wheels"
        wheel_of(PYTHON, cls.wheels, BUILD)
        wheel_of(PYTHON / "horovod-shim", cls.wheels)
        cls.bin = cls.environment("installed")
        run(cls.bin / "pip", "install", *LOCAL, "--find-links", cls.wheels, "muster-horovod")

    @classmethod
    def environment(cls, name):
        run(DEBIAN_PYTHON, "-m", "venv", "--system-site-packages", cls.folder / name)
        return cls.folder / name / "bin"

    def wheel(self, name):
        found = list(self.wheels.glob(f"{name}-[0-9]*.whl"))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_one_wheel_serves_every_python_on_this_kind_of_machine(self):
        machine = os.uname().machine
        self.assertRegex(self.wheel("muster").name, rf"^muster-[0-9.]+-py3-none-linux_{machine}\.whl$")
        self.assertRegex(self.wheel("muster_horovod").name, r"^muster_horovod-[0-9.]+-py3-none-any\.whl$")

    def test_it_contains_the_library_with_its_dependencies(self):
        with zipfile.ZipFile(self.wheel("muster")) as wheel:
            names = wheel.namelist()
            wheel.extractall(self.folder / "unpacked")
        libraries = [name for name in names if ".so" in name]
        self.assertIn("muster/_native/lib/libmuster_collective.so.0", libraries)
        self.assertIn("muster/_native/lib/muster-collective/muster_collective_nccl.so", libraries)
        self.assertFalse([name for name in names if "test" in name or name.endswith((".h", ".cc", ".a", ".pyc"))])
        for name in libraries:
            path = self.folder / "unpacked" / name
            needs = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path).stdout))
            needs -= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
            expected = {"muster_collective_openmpi.so": {"libmpi.so.40"},
                        "muster_collective_mpich.so": {"libmpich.so.12"}}.get(path.name, set())
            self.assertEqual(needs, expected, name)
            self.assertLessEqual(max(symbols_of_glibc(path)), GLIBC, name)

    def test_every_module_is_there_under_both_names(self):
        names = ["common", "common.basics", "common.elastic", "common.exceptions", "common.process_sets", "runner",
                 "runner.launch", "torch", "torch.compression", "torch.elastic", "torch.functions", "torch.mpi_ops",
                 "torch.optimizer", "torch.sync_batch_norm"]
        run(self.bin / "python", "-c", IMPORTS, *names)

    def test_the_public_names_of_horovod_torch_have_the_signatures_that_programs_call(self):
        done = run(self.bin / "python", "-c", SIGNATURES, accept=None,
                   input="\n".join(line for line in PUBLIC if line and not line.startswith("#")))
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_horovodrun_runs_a_program_of_horovods(self):
        program = self.folder / "program.py"
        program.write_text(TRAINING)
        for command in ("horovodrun", "muster-horovodrun"):
            done = run(self.bin / command, "-np", "2", self.bin / "python", program)
            self.assertIn("rank 0 of 2 has [3.0, 3.0, 3.0]", done.stdout)
            self.assertIn("rank 1 of 2 has [3.0, 3.0, 3.0]", done.stdout)

    def test_a_wheel_comes_out_of_an_sdist_too(self):
        run(TOOLS, "-m", "build", "--no-isolation", "--sdist", "-o", self.folder / "sdist", PYTHON)
        archive, = (self.folder / "sdist").iterdir()
        shutil.unpack_archive(archive, self.folder / "sdist")
        source = self.folder / "sdist" / archive.name[:-len(".tar.gz")]
        self.assertTrue((source / "collective" / "src" / "c" / "session.cc").exists())
        # Only configured, not compiled again: CMake checks that all sources exist.
        run("cmake", "-S", source, "-B", self.folder / "from-sdist", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")

    def test_the_shim_is_not_installed_over_horovod_itself(self):
        taken = self.environment("taken")
        packages = Path(run(taken / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
                        .stdout.strip())
        metadata = packages / "horovod-0.28.1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")

        tools = next((TOOLS.parent.parent / "lib").glob("python3*/site-packages"))
        built = run("env", f"PYTHONPATH={tools}", taken / "python", "-m", "pip", "install", *LOCAL, "--no-deps",
                    "--no-build-isolation", PYTHON / "horovod-shim", accept=None)
        self.assertNotEqual(built.returncode, 0)
        self.assertIn(f"Horovod 0.28.1 is installed in {packages}", built.stdout)
        self.assertIn("pip uninstall horovod", built.stdout)
        self.assertFalse((packages / "horovod").exists())

        # pip builds nothing from a wheel.
        run(taken / "pip", "install", *LOCAL, "--find-links", self.wheels, "muster-horovod")
        done = run(taken / "python", "-c", "import horovod.torch", accept=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"Horovod 0.28.1 and muster-horovod are both installed in {packages}", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
