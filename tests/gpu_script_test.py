"""The logic of tests/gpu.py and bench/gpu.py, which needs no GPU: arguments, table, exit codes."""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_" + path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu = module_of(ROOT / "tests" / "gpu.py")


def called(main, *arguments, **given):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        code = main(list(arguments), **given)
    return code, output.getvalue()


def skips(machine):
    raise gpu.Skipped("no libnccl.so.2")


def fails(machine):
    raise gpu.Failed("first line\nsecond line")


def breaks(machine):
    return 1 // 0


FAKE_CHECKS = {"good": lambda machine: f"{machine.gpus} seen", "absent": skips, "bad": fails, "broken": breaks}


class Script(unittest.TestCase):
    def test_without_a_gpu(self):
        for main in (gpu.main, module_of(ROOT / "bench" / "gpu.py").main):
            code, output = called(main, gpus_of=lambda: (0, "no driver"))
            self.assertEqual((code, output), (77, "no NVIDIA GPU: no driver\n"))

    def test_the_driver_is_looked_for(self):
        count, text = gpu.count_of_gpus("libthere-is-no-such-driver.so")
        self.assertEqual(count, 0)
        self.assertIn("not installed", text)

    def test_table_and_exit_code(self):
        code, output = called(gpu.main, gpus_of=lambda: (2, "2 x Fake"), checks=FAKE_CHECKS)
        lines = [line.split() for line in output.splitlines()]
        self.assertEqual(code, 1)
        self.assertEqual(lines[0], ["2", "x", "Fake"])
        self.assertEqual(lines[1], ["check", "result", "s"])
        self.assertEqual([line[:2] for line in lines[2:6]], [["good", "passed"], ["absent", "skipped"],
                                                             ["bad", "FAILED"], ["broken", "FAILED"]])
        self.assertIn("2 seen", output)
        self.assertIn("no libnccl.so.2", output)
        self.assertTrue(output.endswith("bad:\n  first line\n  second line\n\nbroken:\n  ZeroDivisionError: integer "
                                        "division or modulo by zero\n1 passed, 2 failed\n"), output)

    def test_skipped_checks_are_no_failures(self):
        code, output = called(gpu.main, "--only", "good", "--only", "absent", gpus_of=lambda: (1, "Fake"),
                              checks=FAKE_CHECKS)
        self.assertEqual(code, 0)
        self.assertNotIn("bad", output)
        self.assertTrue(output.endswith("\n1 passed, 0 failed\n"), output)

    def test_names(self):
        code, output = called(gpu.main, "--list")
        self.assertEqual((code, output.split()), (0, list(gpu.CHECKS)))
        with self.assertRaises(SystemExit) as ended:
            called(gpu.main, "--only", "unknown")
        self.assertEqual(ended.exception.code, 2)
        for name in gpu.CHECKS:
            self.assertIn(f"  {name} ", gpu.__doc__)

    def test_the_machine_alone(self):
        code, output = called(gpu.main, "--machine", gpus_of=lambda: (1, "Fake"), checks=FAKE_CHECKS)
        self.assertEqual((code, output), (0, "Fake\n"))

    def test_a_python_without_cuda(self):
        with self.assertRaises(gpu.Skipped) as caught:
            gpu.torch_python(["/there/is/no/python", sys.executable])
        self.assertIn("/there/is/no/python", str(caught.exception))

    def test_values_of_metrics(self):
        self.assertEqual(sorted(gpu.numbers_of('{"series": [{"points": [{"value": 3}, {"value": 5.5}], "name": 7}]}')),
                         [3, 5.5])
        self.assertEqual(list(gpu.numbers_of("no JSON")), [])

    def test_as_a_program(self):
        done = subprocess.run([sys.executable, "-B", str(ROOT / "tests" / "gpu.py"), "--list"], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stdout.split()), (0, list(gpu.CHECKS)))


if __name__ == "__main__":
    unittest.main()
