"""Every command block of the five documents, pasted into a shell as it is printed.

SUBSTITUTED lists everything that is replaced: keys, addresses, and the training program. Images keep their names; the
server's configuration replaces them. Each test prints what it substituted and what the commands printed.
"""

import json
import os
import re
import subprocess
import sys
import unittest

from documents_blocks import blocks_of, documents
from muster_harness import BOUND, DIGITS, MUSTER, MusterTest, Typed

IMAGE = "gcr.io/run-ai-demo/quickstart-distributed"

# Replacements for printed words. {repository}: the test's repository; {digits}: the training program.
SUBSTITUTED = [
    ("--projectId xxxxxxx", "--projectId default", "key"),
    ("--clusterId xxxxxxx", "--clusterId default", "key"),
    ("https://github.com/horovod/horovod.git", "{repository}", "address"),
    ("https://github.com/Paperspace/horovod-distributed-example.git", "{repository}", "address"),
    ("python examples/keras_mnist.py", "{digits}", "training program"),
    ("python examples/", "{digits}", "training program, whose name was left out"),
    ("python main.py", "{digits}", "training program"),
    ("/generated/hostfile python", "/generated/hostfile {digits}",
     "training program, whose name was left out"),
    ("horovodrun -np 2 python scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py",
     "mpirun --allow-run-as-root -np 2 {digits}", "training program"),
    ("horovodrun -np %RUNAI_MPI_NUM_WORKERS% python scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py",
     "mpirun --allow-run-as-root -np $RUNAI_MPI_NUM_WORKERS {digits}", "training program"),
    (re.compile(r" *\\\n +--model=resnet20.*?--variable_update=horovod", re.DOTALL), "",
     "training program: its options"),
]

ran_blocks = set()


class Documents(MusterTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["PATH"] = f"{MUSTER.parent}:{os.environ['PATH']}"
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"
        self.repository = self.make_repository()

    def make_repository(self):
        """Creates a repository in place of the ones that the documents name."""
        folder = self.muster.work / "horovod.git"
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder)]
        folder.mkdir()
        (folder / "main.py").write_text("print('the training script')\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First"]):
            subprocess.run([*git, *words], check=True)
        return f"file://{folder}"

    def substituted(self, text):
        for printed, ours, kind in SUBSTITUTED:
            ours = ours.format(repository=self.repository, digits=DIGITS)
            before = text
            text = printed.sub(ours, text) if isinstance(printed, re.Pattern) else \
                text.replace(printed, ours)
            if text != before:
                shown = printed.pattern if isinstance(printed, re.Pattern) else printed
                print(f"    substituted ({kind}): {shown}  ->  {ours or 'nothing'}")
        return text

    def paste(self, block, text=None, code=0):
        """Runs a block in a shell, as if it had been pasted, without the prompt."""
        print(f"\n{block}")
        ran_blocks.add((block.document, block.line))
        text = self.substituted(text or block.text)
        return self.shell(re.sub(r"^\$ ", "", text), code)

    def shell(self, text, code=0):
        print("  $ " + text.replace("\n", "\n    "))
        ran = subprocess.run(["bash", "-c", text + "\n"], env=self.muster.environment,
                             cwd=self.muster.work, capture_output=True, text=True, timeout=BOUND)
        print("".join(f"  | {line}\n" for line in (ran.stdout + ran.stderr).splitlines()))
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran

    def block(self, document, beginning, nth=0):
        return [block for block in blocks_of(document)
                if block.text.removeprefix("$ ").startswith(beginning)][nth]

    def experiment_of(self, ran):
        first = ran.stdout.splitlines()[0]
        self.assertRegex(first, r"^New experiment created with ID: \w+$")
        return first.split()[-1]

    def train(self, experiment, ranks):
        """Checks the document's claim that `create` starts the experiment."""
        ran = self.shell(f"gradient experiments start --id {experiment} --logs")
        self.assertIn("Experiment started\n", ran.stdout)
        self.assertRegex(ran.stdout, r"test accuracy: +9\d")
        job = self.muster.job(experiment)
        self.assertEqual(job["phase"], "Succeeded")
        self.assertIn(f"world of {ranks},", ran.stdout)
        return job

    # --- the multi-node commands of Gradient

    def test_the_horovod_page_creates_an_experiment_that_trains_on_all_three_machines(self):
        block = self.block("gradient-horovod.md", "gradient experiments create")

        experiment = self.experiment_of(self.paste(block))

        self.train(experiment, ranks=3)

    def test_the_missing_backslash_of_the_page_on_mpi_is_reported(self):
        block = self.block("gradient-mpi.md", "gradient experiments create")

        broken = self.paste(block, code=127)  # the second line is no command

        self.assertIn("--workerContainer", broken.stderr)
        self.assertIn("is a '\\' missing at the end of its line?", broken.stderr)
        self.assertEqual(self.muster.jobs(), [])
        mended = block.text.replace("--experimentType MPI \n", "--experimentType MPI \\\n")
        self.assertNotEqual(mended, block.text)
        self.train(self.experiment_of(self.paste(block, mended)), ranks=1)

    def test_the_missing_backslash_and_workspace_of_the_older_page_are_reported(self):
        block = self.block("gradient-mpi-aws-vpc.md", "gradient experiments create")

        self.assertIn("is a '\\' missing at the end of its line?", self.paste(block, code=127).stderr)
        mended = block.text.replace("--experimentType MPI\n", "--experimentType MPI \\\n")
        self.assertIn("--workspaceUrl", self.paste(block, mended, code=2).stderr)
        self.assertEqual(self.muster.jobs(), [])

        whole = mended.replace("--workspaceUrl \\", f"--workspaceUrl {self.repository}")
        self.train(self.experiment_of(self.paste(block, whole)), ranks=1)

    def master_command(self, block, command):
        """An experiment whose master runs the command of the page."""
        print(f"\n{block}")
        ran_blocks.add((block.document, block.line))
        ran = self.shell(
            "gradient experiments create multinode --experimentType MPI --workerContainer c "
            "--workerMachineType p2.xlarge --workerCount 2 --masterContainer c --masterMachineType "
            f"C3 --masterCount 1 --masterCommand '{self.substituted(command)}'")
        return self.experiment_of(ran)

    def test_the_mpirun_lines_of_each_page_run_on_the_workers(self):
        for document in documents():
            for block in blocks_of(document):
                if not block.text.startswith("mpirun"):
                    continue
                with self.subTest(str(block)):
                    job = self.train(self.master_command(block, block.text.strip()), ranks=2)
                    places = {task["name"]: task["exit"] for task in job["tasks"]}
                    self.assertEqual(set(places), {"launcher", "worker-0", "worker-1"})

    def test_the_hostfile_option_of_each_page_is_all_that_mpirun_needs(self):
        for document in documents():
            for block in blocks_of(document):
                if not block.text.startswith("--hostfile"):
                    continue
                with self.subTest(str(block)):
                    command = f"mpirun --allow-run-as-root {block.text.strip()} {DIGITS}"
                    self.train(self.master_command(block, command), ranks=2)

    # --- the walk-through of Run:AI

    def run_ai_blocks(self):
        return iter(blocks_of("runai-distributed-training.md"))

    def write_image(self, block):
        """The image's own script, as the page shows it."""
        print(f"\n{block}\n  (what {IMAGE} runs)")
        ran_blocks.add((block.document, block.line))
        script = self.muster.script("quickstart.sh", "#!/bin/sh\n" + self.substituted(block.text))
        self.muster.configure(f"images:\n  {IMAGE}:\n    command: [{script}]\n")

    def test_the_walk_through_of_run_ai(self):
        blocks = list(self.run_ai_blocks())
        self.assertEqual(len(blocks), 9)
        submit, script, listing, get, logs, delete, interactive, bash, in_shell = blocks
        self.write_image(script)
        # "Add a project named team-a. Allocate 2 GPUs to the project."
        self.muster.run("project", "create", "team-a", "--gpus", "2")

        ran = self.paste(submit)
        self.assertIn("Project team-a has been set as default project\n", ran.stdout)
        self.assertIn("The job 'dist' has been submitted successfully\n", ran.stdout)
        self.muster.ended("dist")

        table = self.paste(listing).stdout
        self.assertTrue(table.startswith("Showing jobs for project team-a\n"), table)
        self.assertRegex(table, r"\ndist +Succeeded .*team-a")
        page = self.paste(get).stdout
        for pod in ("dist-launcher", "dist-worker-0", "dist-worker-1"):
            self.assertRegex(page, rf"\n{pod} +")
        merged = self.paste(logs).stdout
        self.assertRegex(merged, r"test accuracy: +9\d")
        for worker in range(2):
            self.assertIn(f"rank {worker} of 2 on dist-worker-{worker}", merged)
        self.assertEqual(self.paste(delete).stdout, "Job dist deleted successfully.\n")
        self.assertEqual(self.muster.jobs(), [])

        self.interactive_part(interactive, bash, in_shell)

    def interactive_part(self, interactive, bash, in_shell):
        broken = self.paste(interactive, code=127)  # a blank behind the first '\'
        self.assertIn("'\\'", broken.stderr)
        self.assertEqual(self.muster.jobs(), [])
        self.paste(interactive, interactive.text.replace("\\ \n", "\\\n"))
        watched = self.muster.stream("events", "dist-int", "--follow")
        watched.until("running")
        page = self.muster.run("runai", "get", "dist-int").stdout
        self.assertRegex(page, r"STATUS: +Running\n")
        self.assertRegex(page, r"TYPE: +Interactive\n")

        print(f"\n{bash}\n  $ {bash.text}")
        ran_blocks.add((bash.document, bash.line))
        shell = Typed(self.muster, argv=["/bin/bash", "-c", bash.text])
        self.addCleanup(shell.close)
        print(f"\n{in_shell}")
        ran_blocks.add((in_shell.document, in_shell.line))
        shell.type(self.substituted(in_shell.text).encode() + b"; exit\n")
        self.assertEqual(shell.finish(), 0)
        text = shell.text.decode(errors="replace")
        print("".join(f"  | {line}\n" for line in text.splitlines()))
        self.assertRegex(text, r"test accuracy: +9\d")
        self.assertIn("world of 2,", text)
        self.assertEqual(self.muster.run("runai", "delete", "dist-int").stdout,
                         "Job dist-int deleted successfully.\n")


class Coverage(unittest.TestCase):

    def test_there_are_five_documents_with_eighteen_blocks(self):
        self.assertEqual(len(documents()), 5)
        self.assertEqual(sum(len(blocks_of(name)) for name in documents()), 18)


def all_blocks():
    return {(block.document, block.line) for name in documents() for block in blocks_of(name)}


if __name__ == "__main__":
    print(json.dumps({"program": str(MUSTER), "training program": str(DIGITS)}))
    outcome = unittest.main(exit=False, verbosity=2).result
    left_out = sorted(all_blocks() - ran_blocks) if len(sys.argv) == 1 else []
    for document, line in left_out:
        print(f"not run: {document}:{line}")
    passed = outcome.testsRun - len(outcome.failures) - len(outcome.errors)
    print(f"{len(ran_blocks)} of {len(all_blocks())} blocks run")
    print(f"{passed} passed, {outcome.testsRun - passed} failed")
    sys.exit(not outcome.wasSuccessful() or bool(left_out))
