"""Types some pages of the documentation: every command block is typed as printed, and its output is compared with the
page (docs_pages.py describes how). New blocks are typed automatically. SUBSTITUTED lists the replacements for printed
words. Blocks that are not commands have a method or a line in the page's class.
"""

import json
import os
import re
import subprocess
import unittest

from docs_pages import Names, blocks_of, steps_of
from documents_blocks import blocks_of as blocks_of_document
from muster_harness import BOUND, BUILD, DIGITS, FINAL, MUSTER, ROOT, MusterTest, Typed, kill_and_wait, main

# Open MPI refuses root otherwise, as the page says.
AS_ROOT = [("mpirun -np", "mpirun --allow-run-as-root -np"),
           ("[mpirun, -np", "[mpirun, --allow-run-as-root, -np")] if os.geteuid() == 0 else []

# A prompt of `muster bash`, and the typed command.
PROMPT = re.compile(r"^[\w.-]+/[\w.-]+:\S+[#$] (.*)$")


class PageTest(MusterTest):
    """A reader of PAGE, whose commands run in one shell's folder, one after another."""

    PAGE = None
    SUBSTITUTED = []
    # The first line of a block -> why this test does not type it.
    NOT_TYPED = {}

    def setUp(self):
        super().setUp()
        self.muster.environment |= {"PATH": f"{MUSTER.parent}:{os.environ['PATH']}"}
        self.names = Names()

    def substituted(self, command):
        for printed, ours in self.SUBSTITUTED:
            command = command.replace(printed, ours.format(work=self.muster.work, root=ROOT))
        return self.names.in_command(command)

    def walk(self, special):
        """`special`: the first line of a block -> the function that handles the block."""
        seen = set()
        for block in blocks_of(self.PAGE):
            first = block.text.splitlines()[0]
            seen.add(first)
            with self.subTest(str(block)):
                if first in special:
                    special[first](block)
                elif first not in self.NOT_TYPED:
                    self.type(block)
        self.assertEqual((set(special) | set(self.NOT_TYPED)) - seen, set(), "not on the page")

    def type(self, block):
        for step in steps_of(block):
            with self.subTest(f"{block}: {step.command}"):
                self.take(step, block.shows_output)

    def take(self, step, compares):
        if step.command.startswith("cat "):  # shows a file that the reader has to write
            text = self.substituted("\n".join(step.output)) + "\n"
            (self.muster.work / step.command.split()[1]).write_text(text)
        elif any(PROMPT.match(line) for line in step.output):
            self.sit_at_a_shell(step)
        else:
            printed = self.shell(step.command)
            if compares:
                self.compare(step, printed)

    def shell(self, command):
        """The output of a command. The page's class checks its exit code."""
        ran = subprocess.run(["bash", "-c", self.substituted(command) + "\n"],
                             env=self.muster.environment, cwd=self.muster.work, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, errors="replace", timeout=BOUND)
        self.assertNotIn(ran.returncode, (126, 127), ran.stdout)
        self.code = ran.returncode
        return ran.stdout

    def succeed(self, command):
        printed = self.shell(command)
        self.assertEqual(self.code, 0, f"{command}\n{printed}")
        return printed

    def compare(self, step, printed):
        """A command without output on the page must succeed."""
        if step.output:
            self.compare_lines(step.output, printed)
        else:
            self.assertEqual(self.code, 0, printed)

    def compare_lines(self, shown, printed):
        difference = self.names.difference(shown, printed.splitlines())
        if difference:
            kept = "".join(f"--- kept of {job['spec']['name']}:\n{self.muster.logs(job['id'])}"
                           for job in self.muster.jobs())
            self.fail(f"{difference}\n--- all that was printed:\n{printed}{kept}")

    def sit_at_a_shell(self, step):
        """Types the commands after the prompts, and compares the output between them."""
        shell = Typed(self.muster, rows=50, columns=200,
                      argv=["/bin/bash", "-c", self.substituted(step.command)])
        self.addCleanup(shell.close)
        typed = [PROMPT.match(line)[1] for line in step.output if PROMPT.match(line)]
        for number, line in enumerate(typed):
            shell.type(f"{line}; echo end-of-$(({number} + 0))\n".encode())
            shell.until(f"\nend-of-{number}".encode())
        shell.type(b"exit\n")
        self.assertEqual(shell.finish(), 0)
        text = shell.text.decode(errors="replace").replace("\r", "")
        for line in step.output:
            if not PROMPT.match(line):
                self.assertRegex(text, rf"(?m)^(\x1b\[\?2004l)?{re.escape(line)}$")


class GettingStarted(PageTest):
    PAGE = "getting-started.md"
    SUBSTITUTED = AS_ROOT
    NOT_TYPED = {
        "git clone URL-OF-THIS-REPOSITORY muster && cd muster": "make quickstart is a target",
        "export PATH=$PWD/build/release/platform:$PATH": "so is make install; setUp has the path",
    }
    # Interactive commands -> the typed text.
    AT_A_TERMINAL = {"muster top": b"q", "muster bash dist --task worker-1": b"exit\n"}

    def setUp(self):
        super().setUp()
        self.gate = self.muster.gate("../gate")  # outside the workspace that is sent
        # The two ranks of the page's job train until the job is stopped. In other jobs the program ends by itself.
        self.muster.script("train", f'#!/bin/sh\necho "rank $OMPI_COMM_WORLD_RANK trains"\n'
                                    f'[ "$OMP_NUM_THREADS" = 1 ] || {self.gate.wait}\n')
        (self.muster.work / "train.py").write_text(
            "import os\nprint('worker', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")

    def test_every_block_does_what_the_page_shows(self):
        self.walk({
            "muster list               # the newest jobs, and why they wait": self.commands_of_dist,
            "$ cat job.yaml": self.written_down,
            "$ muster submit torch ddp --workers 1 --workspace . -- python3 train.py": self.ddp,
            "source <(muster completion bash)             # zsh and fish too": self.completion,
        })

    def commands_of_dist(self, block):
        running = self.muster.stream("logs", "dist", "-f")
        running.until("rank 1 trains")
        for line in block.text.splitlines():
            command = line.split("  #")[0].strip()
            with self.subTest(command):
                if command in self.AT_A_TERMINAL:
                    shown = Typed(self.muster, argv=["/bin/bash", "-c", command])
                    self.addCleanup(shown.close)
                    shown.until(b"dist")
                    shown.type(self.AT_A_TERMINAL[command])
                    self.assertEqual(shown.finish(), 0)
                elif command.endswith(" -f"):
                    follower = Typed(self.muster, argv=["/bin/bash", "-c", command])
                    self.addCleanup(follower.close)
                    follower.until(b"rank 0 trains")
                    follower.type(b"\x03")  # detaches
                    follower.finish()
                    self.assertEqual(self.muster.job("dist")["phase"], "Running")
                else:
                    self.succeed(command)
        self.assertEqual(self.muster.jobs()[0]["spec"]["name"].split("-")[0], "run")

    def written_down(self, block):
        cat, submit = steps_of(block)
        self.take(cat, compares=False)
        printed = self.succeed(submit.command)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} trains", printed)

    def ddp(self, block):
        self.succeed(block.text.removeprefix("$ "))
        self.assertEqual(self.muster.ended("ddp")["phase"], "Succeeded")
        self.assertIn("[master] worker 0 of 2", self.muster.logs("ddp"))

    def completion(self, block):
        sourced, _ = block.text.splitlines()
        shown = self.succeed(sourced + "\n"
                             "COMP_WORDS=(muster logs ''); COMP_CWORD=2; COMP_LINE='muster logs '\n"
                             "COMP_POINT=${#COMP_LINE}; COMP_TYPE=9\n"
                             "$(complete -p muster | sed -E 's/.*-F ([^ ]+).*/\\1/') muster '' logs\n"
                             "printf '%s\\n' \"${COMPREPLY[@]}\"")
        self.assertIn("ddp", shown.split())


class Quickstart(MusterTest):
    """The script that `make quickstart` runs after the build, as getting-started.md describes."""

    def quickstart(self, succeeds=True, **environment):
        ran = subprocess.run([ROOT / "scripts" / "quickstart.sh"], cwd=self.muster.work, text=True,
                             env=self.muster.environment | {"MUSTER_BUILD": str(BUILD)} | environment,
                             stdin=subprocess.DEVNULL, capture_output=True, errors="replace", timeout=BOUND)
        self.assertEqual(ran.returncode == 0, succeeds, ran.stdout + ran.stderr)
        if succeeds:
            self.assertRegex(ran.stdout, r"test accuracy +[0-9.]+ %")
            self.assertRegex(ran.stdout, r"(?m)^quickstart +.*Succeeded")
        return ran.stdout

    def test_it_deletes_the_job_of_an_earlier_quickstart_and_no_other(self):
        # As `muster rerun quickstart --name dist` makes it: with the label.
        self.muster.run("submit", "single", "dist", "--label", "made-by=quickstart", "--", "sleep", "1000")
        own = self.muster.job("dist")["id"]

        self.quickstart()
        earlier = self.muster.job("quickstart")["id"]
        self.quickstart()

        later = self.muster.job("quickstart")["id"]
        self.assertNotEqual(later, earlier)
        self.assertEqual([job["id"] for job in self.muster.jobs()], [own, later])
        self.assertNotIn(self.muster.job("dist")["phase"], FINAL)

    def test_it_deletes_the_running_job_of_an_interrupted_quickstart(self):
        self.muster.run("submit", "single", "quickstart", "--label", "made-by=quickstart", "--", "sleep", "1000")
        interrupted = self.muster.job("quickstart")["id"]

        self.quickstart()

        self.assertNotIn(interrupted, [job["id"] for job in self.muster.jobs()])

    def test_it_keeps_a_users_own_job_of_the_same_name(self):
        self.muster.run("submit", "single", "quickstart", "--", "sleep", "1000")
        own = self.muster.job("quickstart")["id"]

        printed = self.quickstart(succeeds=False)

        self.assertIn("job 'quickstart' exists already", printed)
        self.assertEqual([job["id"] for job in self.muster.jobs()], [own])

    def test_it_uses_no_server_of_a_team(self):
        unreachable = "https://127.0.0.1:1"
        folder = self.muster.folder / "config" / "muster"
        folder.mkdir(parents=True)
        contexts = folder / "contexts.json"
        contexts.touch(mode=0o600)
        contexts.write_text(json.dumps({"version": 1, "in_use": "lab", "contexts": [
            {"name": "lab", "server": unreachable, "token": "x"}]}))

        self.quickstart(XDG_CONFIG_HOME=str(folder.parent), MUSTER_SERVER=unreachable, MUSTER_TOKEN="x",
                        MUSTER_PROJECT="team-a")

        self.assertEqual([job["spec"]["name"] for job in self.muster.jobs()], ["quickstart"])


class FromGradient(PageTest):
    PAGE = "from-gradient.md"
    SUBSTITUTED = [
        ("https://github.com/horovod/horovod.git", "file://{work}/horovod.git"),
        # "and `python3` for `python`"
        (" python examples/", " python3 examples/"),
    ]
    NOT_TYPED = {
        "make install PREFIX=$HOME/.local     # installs gradient beside muster; \"muster gradient ...\" works without it":
            "the programs lie beside each other in the build",
        "muster login https://lab.example.org:7443           # once; then gradient uses that server and session":
            "there is no such server; e2e_gradient.py logs in to one",
    }

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"
        self.make_repository()
        for name, text in (("train.py", "print('hello')\n"), ("net.py", ""), ("data/mnist.bin", "x" * 1000)):
            path = self.muster.work / "model" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def make_repository(self):
        """A repository of two files, as the page describes, in place of Horovod's."""
        folder = self.muster.work / "horovod.git"
        (folder / "examples").mkdir(parents=True)
        (folder / "README.md").write_text("# Examples\n")
        (folder / "examples" / "keras_mnist.py").write_text(
            "import os, socket\n"
            "print('rank', os.environ['OMPI_COMM_WORLD_RANK'], 'on', socket.gethostname(), 'in', os.getcwd())\n")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder)]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First"]):
            subprocess.run([*git, *words], check=True)

    def test_every_block_does_what_the_page_shows(self):
        self.walk({
            "[0@distributed-horovod-worker-0] rank 0 on distributed-horovod-worker-0 in /home/paperspace":
                self.three_ranks,
            "$ gradient experiments run singlenode --container python:3.11 --machineType C3 --command 'ls -R' \\":
                self.in_a_folder,
            "name: mnist": self.options_file,
            "gradient: 'options.yaml' has 2 faults": self.faults_of_options,
        })

    def three_ranks(self, block):
        """"The Horovod page's command starts three": workers and a master of type p3.2xlarge."""
        page, = (found for found in blocks_of_document("gradient-horovod.md")
                 if "create multinode" in found.text)
        command = page.text.removeprefix("$ ").replace("xxxxxxx", "default").replace(
            "https://github.com/Paperspace/horovod-distributed-example.git",
            "https://github.com/horovod/horovod.git").replace("main.py", "examples/keras_mnist.py")
        created = self.succeed(command)
        experiment = re.search(r"created with ID: (\w+)", created)[1]
        printed = self.succeed(f"gradient experiments start --id {experiment} --logs")
        lines = [line.split("\t", 2)[-1] for line in printed.splitlines()]
        self.compare_lines(block.text.splitlines() + ["..."], "\n".join(lines))

    def in_a_folder(self, block):
        step, = steps_of(block)
        self.compare(step, self.succeed("cd model\n" + step.command))

    def options_file(self, block):
        path = self.muster.work / "options.yaml"
        path.write_text(block.text.replace("../mnist", str(self.muster.work / "model")))
        printed = self.succeed("gradient experiments run singlenode --optionsFile options.yaml "
                               "--workspace model")
        self.assertIn("hello", printed)

    def faults_of_options(self, block):
        (self.muster.work / "options.yaml").write_text(
            "name: mnist\ncontaner: python:3.11\nmachineType: V100\nisPreemptible: maybe\n")
        printed = self.shell("gradient experiments run singlenode --optionsFile options.yaml")
        self.assertEqual(self.code, 2)
        self.compare_lines(block.text.splitlines() + ["..."], printed)


class FromKubeflow(PageTest):
    PAGE = "from-kubeflow.md"
    SUBSTITUTED = AS_ROOT
    NOT_TYPED = {"$ cat fetch.yaml": "requires a cluster; e2e_kubernetes.py runs such a file"}

    def test_every_block_does_what_the_page_shows(self):
        self.walk({"muster logs ddp -f": self.ranks, "$ cat squares.yaml": self.squares})
        for rank in (0, 1):
            self.assertIn(f"rank {rank} on pi-worker-{rank}", self.muster.logs("pi"))

    def ranks(self, block):
        self.muster.ended("ddp")
        printed = self.succeed(block.text)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} of 2 at rate 0.1", printed)

    def squares(self, block):
        self.type(block)
        self.muster.ended("squares")
        self.assertEqual(sorted(self.muster.logs("squares", "--no-prefix").split()), ["0", "1", "4", "9"])


class FromRunAi(PageTest):
    PAGE = "from-runai.md"
    SUBSTITUTED = [("/opt/quickstart/", "{work}/quickstart/")]
    NOT_TYPED = {
        "make install PREFIX=$HOME/.local     # installs runai beside muster; \"muster runai ...\" works without it":
            "the programs lie beside each other in the build",
    }

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"
        folder = self.muster.work / "quickstart"
        folder.mkdir()
        (folder / "train").symlink_to(DIGITS)
        (folder / "digits").symlink_to(ROOT / "examples" / "data" / "digits")

    def test_every_block_does_what_the_page_shows(self):
        self.walk({
            "images:": lambda block: self.muster.configure(self.substituted(block.text) + "\n"),
            "#!/bin/sh": lambda block: self.muster.script("quickstart/run.sh",
                                                          self.substituted(block.text) + "\n"),
            "$ muster project create team-a --gpus 2": self.walk_through,
            "$ runai submit-mpi dist-int --processes=2 -g 1 \\": self.interactive,
            "Reason:": self.reasons,
            "$ runai submit-mpi env --processes=2 -g 1 -i x -e A=b=c -- mpirun --allow-run-as-root -np 2 \\":
                self.environment,
        })

    def walk_through(self, block):
        for step in steps_of(block):
            with self.subTest(step.command):
                self.compare(step, self.succeed(step.command))
                if step.command.startswith("runai submit-mpi"):
                    self.muster.ended("dist")

    def interactive(self, block):
        submit, bash = steps_of(block)
        self.compare(submit, self.succeed(submit.command))
        self.muster.stream("events", "dist-int", "--follow").until("running")
        self.sit_at_a_shell(bash)

    def reasons(self, block):
        if "dist3" in block.text:  # beside dist-int, which still runs
            self.succeed("runai submit-mpi dist3 --processes=2 -g 1 -i x --interactive -- true")
            printed = self.succeed("runai describe job dist3")
            self.succeed("runai delete dist3 dist-int")
        else:
            self.succeed("runai submit-mpi w --processes=2 -g 1 -i x --backoff-limit 0 -- sleep 1000")
            self.muster.stream("events", "w", "--follow").until("running")
            kill_and_wait(self.muster.shim_of(self.muster.job("w"), "worker-1"))
            self.muster.ended("w")
            printed = self.succeed("runai describe job w")
        self.compare_lines(["...", *block.text.splitlines(), "..."], printed)

    def environment(self, block):
        submit, logs = steps_of(block)
        self.succeed(submit.command)
        self.muster.ended("env")
        self.compare(logs, self.succeed(logs.command))


if __name__ == "__main__":
    main()
