"""Run:AI's commands, as its users type them, through a real server with four GPUs."""

import json
import os
import select
import shutil
import subprocess

from e2e_commands import read_yaml
from muster_harness import (BOUND, MPIRUN, MusterTest, Typed, descendants, kill_and_wait, main,
                            without_mpirun_warnings)

IMAGE = "gcr.io/run-ai-demo/quickstart-distributed"

# Imitates the rendezvous of a PyTorch job with plain sockets: workers connect to the master, and try again until it
# listens.
MEET = """
import os, socket
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(place) as server:
        for _ in range(world - 1):
            peer = server.accept()[0]
            print("met", peer.makefile().readline().strip(), flush=True)
            peer.sendall(b"welcome")
            peer.shutdown(socket.SHUT_WR)
            peer.recv(1)  # until it has printed: the others are stopped soon after the master ends
            peer.close()
else:
    peer = socket.socket()
    while peer.connect_ex(place):
        peer.close()
        peer = socket.socket()
    peer.sendall(f"rank {rank} of {world}\\n".encode())
    print("was told", peer.makefile().read(), flush=True)
"""

# Prints the role of a task in a TensorFlow job, and checks that it can listen at its address.
LISTEN = """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
host, port = config["cluster"][task["type"]][task["index"]].split(":")
socket.create_server((host, int(port))).close()
print(json.dumps({"listens": socket.gethostname() == host, **config}), flush=True)
"""


def values_of(page):
    """The values of the first part of `runai describe job`, by name."""
    lines = page[:page.index("\n\n")].splitlines()
    return {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}


def part_of(page, title):
    """The lines below `title`, up to an empty line."""
    return page.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines()


def rows_of(table):
    return [line.split() for line in table]


class RunAiTest(MusterTest):

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"

    def runai(self, *words, **options):
        return self.muster.run("runai", *words, **options)

    def submit(self, name, *flags, script, kind="submit"):
        """Submits a job that runs a shell script. `kind`: the subcommand, such as submit-mpi."""
        return self.runai(*kind.split(), name, "-i", "image", *flags, "--", "sh", "-c", script)

    def events(self, name):
        return self.muster.stream("events", name, "--follow")

    def await_running(self, name):
        self.events(name).until("  running")

    def describe(self, name):
        return self.runai("describe", "job", name).stdout

    def status(self, name):
        return values_of(self.describe(name))["STATUS"]

    def pods(self, name):
        """The status of each pod."""
        return {row[0]: row[1] for row in rows_of(part_of(self.describe(name), "Pods")[1:])}

    def logs(self, name, *flags):
        return self.runai("logs", name, *flags).stdout

    def finished_logs(self, name, *flags):
        """The logs of an ended job, without the warning about a harmless race inside Open MPI 4:
        docs/troubleshooting.md."""
        self.muster.ended(name)
        return "".join(line + "\n" for line in without_mpirun_warnings(self.logs(name, *flags)))

    def holder(self, name, gpus):
        """Starts a job that holds GPUs until its gate opens."""
        gate = self.muster.gate(f"gate-{name}")
        self.submit(name, "-g", gpus, script=gate.wait)
        self.await_running(name)
        return gate

    def stream_with_errors(self, *words):
        """Both outputs of a command, as lines."""
        return self.muster.stream_of(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *self.muster.argv("runai", *words)])


class DistributedJobs(RunAiTest):

    def variables(self, pod):
        text = self.runai("exec", "dist", "--pod", pod, "--", "env", "-0").stdout
        return dict(entry.split("=", 1) for entry in text.split("\0") if entry)

    def test_the_pods_of_an_mpi_job_find_run_ais_variables_and_its_hostfile(self):
        gate = self.muster.gate()
        self.submit("dist", "--processes=2", "-g", "1", "-e", "A=b=c", kind="submit-mpi",
                    script=gate.wait)
        self.await_running("dist")
        job = self.muster.job("dist")

        for pod, index, gpus in (("dist-launcher", "0", "0"), ("dist-worker-0", "0", "1"),
                                 ("dist-worker-1", "1", "1")):
            with self.subTest(pod):
                found = self.variables(pod)
                expected = {"RUNAI_MPI_NUM_WORKERS": "2", "RUNAI_NUM_OF_GPUS": gpus,
                            "JOB_NAME": "dist", "RUNAI_JOB_NAME": "dist", "JOB_UUID": job["id"],
                            "RUNAI_JOB_UUID": job["id"], "POD_INDEX": index, "A": "b=c",
                            "NODE_NAME": job["tasks"][0]["node"], "RUNAI_PROJECT": "default"}
                self.assertEqual(found, found | expected)
                self.assertEqual(
                    self.runai("exec", "dist", "--pod", pod, "cat", "/etc/mpi/hostfile").stdout,
                    "dist-worker-0 slots=1\ndist-worker-1 slots=1\n")
        devices = [self.variables(f"dist-{task}")["CUDA_VISIBLE_DEVICES"]
                   for task in ("launcher", "worker-0", "worker-1")]
        self.assertEqual(devices[0], "")
        self.assertEqual(sorted(devices[1:]), ["0", "1"])
        pod_uuids = {self.variables(f"dist-{task}")["POD_UUID"]
                     for task in ("launcher", "worker-0", "worker-1")}
        self.assertEqual(len(pod_uuids), 3)

    def test_the_ranks_that_a_script_starts_have_the_variables_of_their_own_pod(self):
        script = self.muster.script("image.sh", "#!/bin/sh\n" + " ".join(
            MPIRUN[:-1]) + " $RUNAI_MPI_NUM_WORKERS sh -c 'echo $(hostname) $POD_INDEX "
            "$RUNAI_NUM_OF_GPUS $A $RUNAI_MPI_NUM_WORKERS'\n")
        self.muster.configure(f"images:\n  {IMAGE}:\n    command: [{script}]\n")
        self.runai("submit-mpi", "dist", "--processes=2", "-g", "1", "-e", "A=b=c", "-i", IMAGE)

        lines = self.finished_logs("dist", "--pod", "dist-launcher").splitlines()

        self.assertEqual(sorted(lines), ["dist-worker-0 0 1 b=c 2", "dist-worker-1 1 1 b=c 2"])

    def test_a_gang_that_does_not_fit_explains_its_wait_and_runs_when_it_fits(self):
        held = self.holder("other", 3)
        gate = self.muster.gate()
        self.submit("dist", "--processes=2", "-g", "1", kind="submit-mpi", script=gate.wait)
        waits = self.events("dist")
        waits.until("lacks GPUs")

        page = self.describe("dist")
        values = values_of(page)

        self.assertEqual(values["STATUS"], "Pending")
        self.assertEqual((values["TOTAL REQUESTED GPUS"], values["ALLOCATED GPUS"]), ("2", "0"))
        self.assertEqual((values["RUNNING PODS"], values["PENDING PODS"]), ("0", "3"))
        self.assertIn("needs 3 tasks at once", part_of(page, "Reason")[0])
        self.assertIn("1 GPU free", part_of(page, "Reason")[0])
        self.assertEqual(set(self.pods("dist").values()), {"PENDING"})
        self.assertRegex(self.runai("list").stdout,
                         r"\ndist +Pending +\w+ +N/A +image +Train +default .* 0 \(2\) +0 \(3\)")
        held.open()
        waits.until("  running")
        self.assertEqual(self.status("dist"), "Running")
        self.assertEqual(set(self.pods("dist").values()), {"RUNNING"})
        self.assertNotIn("\nReason:\n", self.describe("dist"))

    def test_a_gang_is_not_running_while_a_worker_is_not_ready(self):
        """The sshd of the worker is stopped before its greeting, so the launcher must wait for it."""
        gate = self.muster.gate()
        asked = self.muster.work / "asked"
        os.mkfifo(asked)
        sshd = shutil.copy("/usr/sbin/sshd", self.muster.work / "real-sshd")
        opened = self.muster.work / "opened"
        held = self.muster.script(
            "sshd", f'#!/bin/sh\nif [ "$(hostname)" = dist-worker-1 ] && ! [ -e {opened} ]\n'
            f'then echo > {asked}; {gate.wait}\nfi\nexec {sshd} "$@"\n')
        self.muster.start_server(
            prefix=["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(held), "/usr/sbin/sshd"])
        reading = os.open(asked, os.O_RDWR | os.O_CLOEXEC)
        self.addCleanup(os.close, reading)
        self.submit("dist", "--processes=2", "-g", "1", kind="submit-mpi",
                    script=f"{' '.join(MPIRUN)} true")
        self.assertTrue(select.select([reading], [], [], BOUND)[0], "worker-1 was not asked")

        page = self.describe("dist")

        self.assertEqual(values_of(page)["STATUS"], "Init:0/1")
        self.assertEqual(self.pods("dist")["dist-launcher"], "INIT:0/1")
        self.assertRegex(self.runai("list").stdout, r"\ndist +Init:0/1 ")
        self.assertNotRegex(self.runai("top", "job").stdout, r"\ndist ")
        self.assertEqual(json.loads(self.runai("get", "dist", "-o", "json").stdout)["status"],
                         "Init:0/1")
        opened.touch()
        gate.open(100)
        self.assertEqual(self.muster.ended("dist")["phase"], "Succeeded")
        self.assertEqual(self.status("dist"), "Succeeded")

    def test_a_worker_that_is_killed_is_named(self):
        gate = self.muster.gate()
        self.runai("submit-mpi", "dist", "--processes=2", "-g", "1", "--backoff-limit", "0", "-i",
                   "image", "--", *MPIRUN, "sh", "-c", f"echo training; {gate.wait}")
        logs = self.muster.stream("runai", "logs", "dist", "-f")
        for _ in range(2):
            logs.until("training")

        for pid in descendants(self.muster.shim_of(self.muster.job("dist"), "worker-1")):
            try:
                kill_and_wait(pid)
            except ProcessLookupError:
                pass  # it ended together with another process
        logs.finish()

        page = self.describe("dist")
        self.assertEqual(values_of(page)["STATUS"], "Failed")
        self.assertEqual(part_of(page, "Reason")[0].strip(),
                         "worker-1 was killed by signal 9 (SIGKILL)")
        self.assertEqual(self.pods("dist")["dist-worker-1"], "ERROR")
        self.assertRegex(page, r"\njob/dist +Warning +\w+ +worker-1 was killed by signal 9")

    def test_the_tasks_of_a_pytorch_job_meet_at_the_master(self):
        self.runai("submit-dist", "pytorch", "ddp", "--workers=1", "-g", "1", "-i", "image",
                   "--command", "--", "python3", "-c", MEET)

        self.assertEqual(self.muster.ended("ddp")["phase"], "Succeeded")
        self.assertEqual(self.logs("ddp", "--pod", "ddp-master"), "met rank 1 of 2\n")
        self.assertEqual(self.logs("ddp", "--pod", "ddp-worker-0"), "was told welcome\n")
        self.assertEqual(set(self.pods("ddp").values()), {"COMPLETED"})
        self.assertEqual(values_of(self.describe("ddp"))["TOTAL REQUESTED GPUS"], "2")

    def test_the_tasks_of_a_tensorflow_job_get_the_addresses_of_the_others(self):
        program = self.muster.script("listen.py", LISTEN)
        gate = self.muster.gate()  # the others are stopped soon after the chief ends
        self.submit("keras", "--workers=2", "--backoff-limit", "0", kind="submit-dist tf",
                    script=f"python3 {program} && {gate.wait}")
        logs = self.muster.stream("logs", "keras", "-f")
        for _ in range(3):
            logs.until('"cluster"')
        gate.open(3)
        self.assertEqual(self.muster.ended("keras")["phase"], "Succeeded", self.describe("keras"))

        told = {pod: json.loads(self.logs("keras", "--pod", f"keras-{pod}"))
                for pod in ("chief", "worker-0", "worker-1")}

        self.assertEqual({pod: config["task"] for pod, config in told.items()},
                         {"chief": {"type": "chief", "index": 0},
                          "worker-0": {"type": "worker", "index": 0},
                          "worker-1": {"type": "worker", "index": 1}})
        self.assertTrue(all(config["listens"] for config in told.values()))
        clusters = [config["cluster"] for config in told.values()]
        self.assertEqual(clusters, clusters[:1] * 3)
        self.assertEqual({role: len(places) for role, places in clusters[0].items()},
                         {"chief": 1, "worker": 2})


class Looking(RunAiTest):

    def test_list_shows_the_jobs_of_the_project_in_use_or_of_every_project(self):
        for project in ("team-a", "team-b"):
            self.muster.run("project", "create", project)
            self.submit(f"of-{project}", "-p", project, script="true")

        set_text = self.runai("project", "set", "team-a").stdout
        table = self.runai("list").stdout

        self.assertEqual(set_text, "Project team-a has been set as default project\n")
        self.assertTrue(table.startswith("Showing jobs for project team-a\nNAME "), table)
        self.assertIn("\nof-team-a ", table)
        self.assertNotIn("of-team-b", table)
        self.assertIn("\nof-team-b ", self.runai("list", "-p", "team-b").stdout)
        for flag in ("-A", "--all-projects"):
            rows = rows_of(self.runai("list", flag).stdout.splitlines())
            self.assertEqual([row[0] for row in rows], ["NAME", "of-team-a", "of-team-b"])
        self.assertEqual(self.runai("list", "jobs", "-A", "-o", "names").stdout,
                         "of-team-a\nof-team-b\n")

    def test_describe_prints_json_and_yaml_with_the_same_content(self):
        self.runai("submit-mpi", "dist", "--processes", "2", "-i", "image", "--", *MPIRUN, "true")
        self.muster.ended("dist")

        job = json.loads(self.runai("describe", "job", "dist", "-o", "json").stdout)
        same = read_yaml(self.runai("get", "dist", "-o", "yaml").stdout)

        def without_ages(page):
            return {key: value for key, value in page.items() if key != "instances"} | {
                "instances": [pod | {"age": None} for pod in page["instances"]]}

        self.assertEqual(without_ages(same), without_ages(job))
        self.assertEqual(job["status"], "Succeeded")
        self.assertEqual(job["chiefName"], "dist-launcher")
        self.assertEqual(job["commandLine"],
                         f"runai submit-mpi dist --processes 2 -i image -- {' '.join(MPIRUN)} true")
        self.assertEqual([(pod["name"], pod["status"], pod["chief"]) for pod in job["instances"]],
                         [("dist-launcher", "Completed", True),
                          ("dist-worker-0", "Completed", False),
                          ("dist-worker-1", "Completed", False)])

    def test_logs_are_merged_from_all_pods_or_from_one(self):
        self.runai("submit-mpi", "dist", "--processes=2", "-i", "image", "--", *MPIRUN, "sh", "-c",
                   "echo on $(hostname); echo end")

        merged = self.finished_logs("dist").splitlines()

        self.assertEqual(sorted(merged),
                         ["[0@dist-worker-0] end", "[0@dist-worker-0] on dist-worker-0",
                          "[1@dist-worker-1] end", "[1@dist-worker-1] on dist-worker-1"])
        self.assertEqual(self.logs("dist", "--pod", "dist-worker-1"), "on dist-worker-1\nend\n")
        self.assertEqual(self.logs("dist", "--pod", "worker-0", "--tail", "1"), "end\n")
        self.assertEqual(self.finished_logs("dist", "-t", "-1").splitlines(), merged)
        self.assertEqual(self.logs("dist", "--tail=1"), self.logs("dist").splitlines()[-1] + "\n")
        self.assertRegex(self.logs("dist", "--timestamps", "-t", "1"),
                         r"^\d{4}-\d\d-\d\dT[\d:.]+Z \[.*\] .*\n$")
        missing = self.runai("logs", "dist", "--pod", "dist-worker-2", code=3).stderr
        self.assertIn("its pods: dist-launcher, dist-worker-0, dist-worker-1", missing)

    def test_logs_are_followed_until_the_job_has_ended(self):
        gate = self.muster.gate()
        self.submit("train", "--backoff-limit", "0", script=f"echo one; {gate.wait}; echo two")
        logs = self.muster.stream("runai", "logs", "train", "--follow")
        self.assertEqual(logs.line(), "one")

        gate.open()

        self.assertEqual(logs.line(), "two")
        self.assertIsNone(logs.line())
        self.assertEqual(logs.finish(), 0, logs.errors)

    def test_a_missing_thing_is_reported_in_run_ais_words(self):
        missing = ("The job dist does not exist in project default. If the job exists in a "
                   "different project, use -p <project name>.")
        for words in (("get", "dist"), ("describe", "job", "dist"), ("logs", "dist"),
                      ("bash", "dist"), ("exec", "dist", "ls"), ("attach", "dist")):
            with self.subTest(words):
                self.assertIn(missing, self.runai(*words, code=3).stderr)
        for words in (("project", "set", "team-x"), ("config", "project", "team-x"),
                      ("list", "-p", "team-x"),
                      ("submit", "job", "-p", "team-x", "-i", "image", "--", "true")):
            with self.subTest(words):
                self.assertIn("project team-x was not found. Please run 'runai list project' to "
                              "view all avaliable projects", self.runai(*words, code=3).stderr)
        self.assertIn("\ndefault (default) ", self.runai("list", "project").stdout)


class Submitting(RunAiTest):

    def test_a_taken_name_is_reported_and_jobs_without_a_name_are_numbered(self):
        first = self.submit("train", script="true").stdout
        taken = self.runai("submit", "train", "-i", "image", "--", "true", code=4)

        self.assertEqual(first, "The job 'train' has been submitted successfully\nYou can run "
                         "`runai describe job train -p default` to check the job status\n")
        self.assertIn("the job train already exists, please delete it first "
                      "(use 'runai delete train')\n", taken.stderr)
        self.assertEqual(taken.stdout, "")
        for number in range(2):
            text = self.runai("submit", "-i", "image", "--", "true").stdout
            self.assertIn(f"The job 'job-{number}' has been submitted", text)

    def test_a_dry_run_shows_the_job_and_submits_nothing(self):
        text = self.runai("submit-mpi", "dist", "--processes=2", "-g", "1", "-i", IMAGE,
                          "--dry-run").stdout

        self.assertIn("name: dist\n", text)
        self.assertIn("workers: 2\n", text)
        self.assertIn(f"image: {IMAGE}\n", text)
        self.assertFalse(self.muster.state.exists())  # the command does not even start a server
        self.assertEqual(self.runai("list", "-A", "-o", "names").stdout, "")

    def test_all_faults_of_a_command_line_are_reported_at_once(self):
        told = self.runai("submit-mpi", "Bad_Name", "--procesess=2", code=2).stderr

        self.assertIn("3 errors in the command line", told)
        self.assertIn("unknown flag '--procesess'; did you mean '--processes'?", told)
        self.assertIn("-i, --image: must be set", told)
        self.assertIn("Job names must consist of lower case alphanumeric characters", told)

    def test_a_repository_is_cloned_for_every_pod(self):
        repository = self.muster.work / "code.git"
        repository.mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
        for branch in ("main", "side"):
            (repository / "train.sh").write_text(f"echo {branch} on $(hostname)\n")
            checkout = ["init", "-q", "-b", branch] if branch == "main" else \
                ["checkout", "-q", "-b", branch]
            for words in (checkout, ["add", "."], ["commit", "-q", "-m", branch]):
                subprocess.run([*git, *words], check=True)
        source = f"source=file://{repository}"

        self.runai("submit-mpi", "dist", "--processes=2", "-i", "image", "--git-sync",
                   f"{source},branch=main", "--", *MPIRUN, "sh", "/code/train.sh")
        self.runai("submit", "single", "-i", "image", "--git-sync",
                   f"{source},rev=side,target=/src", "--", "sh", "/src/train.sh")

        for worker in range(2):
            self.assertEqual(self.finished_logs("dist", "--pod", f"dist-worker-{worker}"),
                             f"main on dist-worker-{worker}\n")
        self.assertEqual(self.finished_logs("single"), "side on single-main\n")
        wrong = self.runai("submit", "x", "-i", "image", "--git-sync", "branch=main", "--", "true",
                           code=2)
        self.assertIn("git sync must contain Repository", wrong.stderr)

    def test_a_folder_of_the_machine_is_mounted_at_the_requested_path_and_may_be_read_only(self):
        for name in ("data", "out"):
            (self.muster.work / name).mkdir()
        (self.muster.work / "data" / "file").write_text("content\n")

        self.runai("submit-mpi", "dist", "--processes=1", "-i", "image", "-v",
                   f"{self.muster.work}/data:/data:ro", "-v", f"{self.muster.work}/out:/out", "--",
                   *MPIRUN[:-1], "1", "sh", "-c",
                   "cat /data/file; touch /data/new || echo refused; hostname > /out/host")

        self.assertIn("content\n", self.finished_logs("dist", "--pod", "dist-worker-0"))
        self.assertIn("refused\n", self.logs("dist", "--pod", "dist-worker-0"))
        self.assertEqual((self.muster.work / "out" / "host").read_text(), "dist-worker-0\n")
        self.assertEqual(os.listdir(self.muster.work / "data"), ["file"])

    def test_an_interactive_job_is_not_evicted_and_a_training_job_is(self):
        self.muster.configure("scheduler:\n  forbearance: 0s\n")
        self.muster.run("project", "create", "team-a", "--gpus", "4")
        self.runai("project", "set", "team-a")
        gate = self.muster.gate()
        script = f"echo start $MUSTER_RESTART_COUNT; {gate.wait} & wait $!"
        self.submit("note", "--interactive", "-g", "2", script=script)
        self.submit("train", "-g", "2", script=script)
        self.await_running("note")
        self.await_running("train")

        self.submit("serve", "--inference", "-g", "2", script=script)
        self.await_running("serve")
        self.submit("more", "--inference", "-g", "2", script=script)
        waits = self.events("more")
        waits.until("needs 2 GPUs")

        self.assertEqual(self.status("more"), "Pending")
        self.assertEqual(self.status("train"), "Pending")
        page = values_of(self.describe("note"))
        self.assertEqual((page["STATUS"], page["TYPE"]), ("Running", "Interactive"))
        self.assertEqual(self.logs("note"), "start 0\n")

    def test_a_submission_with_attach_shows_all_output_and_exits_with_the_jobs_code(self):
        for number in range(3):
            ran = self.runai("submit", f"short-{number}", "-i", "image", "--backoff-limit", "0",
                             "--attach", "--", "sh", "-c", "echo all of it; exit 7", code=7)
            self.assertTrue(ran.stdout.endswith("\nall of it\n"), ran.stdout)


class Changing(RunAiTest):

    def test_delete_removes_several_jobs_although_one_is_unknown(self):
        self.submit("a", script="sleep 1000000")
        self.submit("b", script="true")
        self.await_running("a")
        self.muster.ended("b")

        ran = self.runai("delete", "a", "nobody", "b", code=3)

        self.assertEqual(ran.stdout, "Job a deleted successfully.\nJob b deleted successfully.\n")
        self.assertEqual(ran.stderr, "runai: Job nobody does not exist in project default. If the "
                         "job exists in a different project, use -p <project-name>.\n")
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual(self.muster.job_folders(), [])

    def test_simultaneous_deletes_of_a_job_all_report_success(self):
        self.submit("dist", "--processes=2", kind="submit-mpi",
                    script="echo up; sleep 1000000 & wait $!")
        self.muster.stream("runai", "logs", "dist", "-f").until("up")

        deletions = [self.stream_with_errors("delete", "dist") for _ in range(4)]

        answers = sorted((one.finish(), one.text) for one in deletions)
        done = (0, "Job dist deleted successfully.\n")
        # For a command that runs after the job has ended.
        gone = (3, "runai: Job dist does not exist in project default. If the job exists in a "
                   "different project, use -p <project-name>.\n")
        self.assertEqual(answers[0], done)
        self.assertLessEqual(set(answers), {done, gone})
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual(self.muster.job_folders(), [])

    def test_a_suspended_job_releases_its_resources_and_runs_again_when_it_is_resumed(self):
        self.submit("train", "-g", "4", script="echo start $MUSTER_RESTART_COUNT; "
                                               "sleep 1000000 & wait $!")
        logs = self.muster.stream("runai", "logs", "train", "-f")
        logs.until("start 0")

        ran = self.runai("suspend", "train", "nobody", code=3)

        self.assertEqual(ran.stdout, "Job train suspended successfully.\n")
        self.assertEqual(ran.stderr, "runai: Job nobody not found \n")
        self.events("train").until("its resources are free")
        self.assertEqual(self.status("train"), "Suspended")
        self.submit("other", "-g", "4", script="true")
        self.assertEqual(self.muster.ended("other")["phase"], "Succeeded")
        self.assertEqual(self.runai("resume", "-A").stdout, "Job train resumed successfully.\n")
        logs.until("start 1")
        self.await_running("train")
        self.assertEqual(self.status("train"), "Running")


class Inside(RunAiTest):

    def setUp(self):
        super().setUp()
        self.gate = self.muster.gate()
        self.submit("dist", "--processes=2", kind="submit-mpi", script=self.gate.wait)
        self.await_running("dist")

    def test_exec_passes_flags_after_the_command_to_the_command(self):
        def exec(*words, **options):
            return self.runai("exec", "dist", *words, **options)

        self.assertEqual(exec("echo", "-n", "--pod", "-it").stdout, "--pod -it")
        self.assertEqual(exec("hostname").stdout, "dist-launcher\n")
        self.assertEqual(exec("--pod", "dist-worker-1", "hostname").stdout, "dist-worker-1\n")
        self.assertEqual(exec("-i", "--", "cat", input="typed\n").stdout, "typed\n")
        self.assertEqual(exec("sh", "-c", "echo err >&2; exit 7", code=7).stderr, "err\n")
        exec("sh", "-c", "kill -9 $$", code=137)
        self.assertIn("no program 'no-such-program'", exec("no-such-program", code=3).stderr)
        self.assertIn("the command to run is missing", exec(code=2).stderr)

    def test_exec_without_i_does_not_read_the_input_of_a_script(self):
        runai = " ".join(self.muster.argv("runai"))

        ran = subprocess.run(["sh", "-c", f"{runai} exec dist cat; read line; echo $line"],
                             input="for the script\n", capture_output=True, text=True,
                             env=self.muster.environment, timeout=BOUND)

        self.assertEqual(ran.stdout, "for the script\n", ran.stderr)

    def test_bash_opens_a_shell_in_the_launcher_or_another_pod(self):
        shell = Typed(self.muster, "runai", "bash", "dist")
        self.addCleanup(shell.close)
        shell.type(b"hostname; test -t 0 && echo a ter''minal; exit 5\n")

        self.assertEqual(shell.finish(), 5, shell.text)
        self.assertIn(b"dist-launcher\r\n", shell.text)
        self.assertIn(b"a terminal\r\n", shell.text)
        piped = self.runai("bash", "dist", "--pod", "dist-worker-0", input="hostname; exit 3", code=3)
        self.assertEqual(piped.stdout, "dist-worker-0\n")

    def test_a_pod_that_does_not_run_is_not_entered(self):
        self.gate.open()
        self.muster.ended("dist")

        for words in (("exec", "dist", "true"), ("bash", "dist")):
            self.assertIn("Unable to run command in a pod that is not running",
                          self.runai(*words, code=4).stderr)


class Attaching(RunAiTest):

    def test_attach_waits_until_the_pod_runs_shows_it_and_ends_with_the_job(self):
        held = self.holder("other", 4)
        gate = self.muster.gate()
        self.submit("train", "-g", "1", "--backoff-limit", "0",
                    script=f"echo first words; {gate.wait}; exit 6")

        attached = self.stream_with_errors("attach", "train")
        self.assertEqual(attached.line(), "Connecting to pod train-main")
        self.assertEqual(attached.line(), "Waiting for pod to start running...")
        held.open()
        self.assertEqual(attached.line(), "first words")
        gate.open()

        self.assertEqual(attached.finish(), 6)
        self.assertIn("runai: job 'train' failed: main exited with code 6", attached.text)
        self.assertIn("job train has ended", self.runai("attach", "train", code=4).stderr)

    def test_ctrl_c_detaches_and_the_job_continues(self):
        held = self.holder("other", 4)
        gate = self.muster.gate()
        self.submit("train", "-g", "1", script=f"echo first words; {gate.wait}")
        attached = self.stream_with_errors("attach", "train", "--no-tty")
        attached.until("Waiting for pod")
        held.open()
        attached.until("first words")

        attached.interrupt()

        self.assertEqual(attached.finish(), 130)
        self.assertIn("Detached; the job continues. Attach again: runai attach train",
                      attached.text)
        self.assertEqual(self.status("train"), "Running")
        gate.open()
        self.assertEqual(self.muster.ended("train")["phase"], "Succeeded")


if __name__ == "__main__":
    main()
