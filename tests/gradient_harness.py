"""Shared by the end-to-end tests of Gradient's dialect: its commands, and the flags of most experiments."""

from muster_harness import MusterTest

WORKER = ["--workerContainer", "image", "--workerMachineType", "C3"]
MASTER = ["--masterContainer", "image", "--masterMachineType", "C3", "--masterCount", 1]
SINGLE = ["--container", "image", "--machineType", "C3"]


def grpc(command, workers=2, servers=1):
    """The flags for a cluster whose tasks all run `command`. The first worker is the chief."""
    return ["--experimentType", "GRPC", *WORKER, "--workerCommand", command, "--workerCount",
            workers, "--parameterServerContainer", "image", "--parameterServerMachineType", "C3",
            "--parameterServerCommand", command, "--parameterServerCount", servers]


class GradientTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "5"

    def gradient(self, *words, **options):
        return self.muster.run("gradient", *words, **options)

    def experiments(self, *words, **options):
        return self.gradient("experiments", *words, **options)

    def create(self, *words, verb="create", kind="singlenode"):
        """Creates an experiment without following it; returns its ID."""
        more = ["--no-logs"] if verb == "run" else []
        said = self.experiments(verb, kind, *words, *more).stdout
        done = "created and started" if verb == "run" else "created"
        self.assertRegex(said, rf"\ANew experiment {done} with ID: [a-z0-9]{{12}}\n\Z")
        return said.split()[-1]

    def run_to_its_end(self, *words, kind="singlenode", code=0):
        """The lines that its tasks have printed, without Gradient's prefixes."""
        ran = self.experiments("run", kind, *words, code=code)
        first, second, *lines = ran.stdout.splitlines()
        self.assertRegex(first, r"\ANew experiment created and started with ID: \w+\Z")
        self.assertEqual(second, "Awaiting logs...")
        return [line.split("\t", 2)[2] for line in lines]

    def folder(self, name, **files):
        path = self.muster.work / name
        path.mkdir()
        for file, text in files.items():
            (path / file).write_text(text)
        return path
