"""Jobs whose workers join and leave while they run, on a machine with three declared GPUs."""

import base64
import contextlib
import json
import os
import re
import signal
import sqlite3
from datetime import datetime

from muster_harness import BOUND, DIGITS, MusterTest, await_no_process, descendants, main

# Imitates elastic Horovod: reads the list of workers, starts a program on each new worker, and continues until the
# test creates the file that is its first argument. It accepts a list once all sources of the list agree.
WATCH = """\
import os, pathlib, subprocess, sys, time

SHELL = [os.environ["OMPI_MCA_plm_rsh_agent"], *os.environ.get("OMPI_MCA_plm_rsh_args", "").split()]
# Reads the host name at the start: the signal would also end a `hostname` that runs in the trap.
WORK = ("name=$(hostname); trap 'echo $name goes; exit 0' TERM; echo $name works; "
        "sleep 3600 & wait $!")

def told(script):
    return subprocess.run([script], check=True, capture_output=True, text=True).stdout.split()

def listed(path):
    return [line.replace(" slots=", ":") for line in pathlib.Path(path).read_text().splitlines()]

def hosts():
    one, *others = (told("/generated/discover_hosts.sh"), told("/etc/mpi/discover_hosts.sh"),
                    listed("/generated/hostfile"), listed("/etc/mpi/hostfile"))
    return one if all(other == one for other in others) else None

shells, seen = {}, None
while not os.path.exists(sys.argv[1]):
    if (now := hosts()) not in (None, seen):
        seen = now
        print("hosts", *seen, flush=True)
        for host in {one.split(":")[0] for one in seen} - shells.keys():
            shells[host] = subprocess.Popen([*SHELL, host, WORK], stdin=subprocess.DEVNULL)
    time.sleep(0.02)  # as elastic Horovod does: it asks again and again
for shell in shells.values():
    shell.kill()
print("done", flush=True)
"""


class ElasticTest(MusterTest):
    """Two of the three GPUs are promised to a team that has no job yet."""

    def setUp(self):
        super().setUp()
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "3"
        self.muster.run("project", "create", "team", "--gpus", 2)
        self.done = self.muster.work / "done"

    def watch(self, *flags, workers=(1, 3)):
        """Starts an MPI job that prints changes of its workers, each of which has one GPU. Returns the command that
        follows the job."""
        self.script = self.muster.script("watch.py", WATCH)
        return self.muster.stream("submit", "mpi", "dist", "--min-workers", workers[0], "--max-workers",
                                  workers[1], "--gpus", 1, "--resize", "live", *flags, "--follow", "--",
                                  "python3", self.script, self.done)

    def hold(self, name, gpus, *flags):
        """Starts a job that holds GPUs until its gate is opened."""
        gate = self.muster.gate(name)
        run = self.muster.stream("submit", "single", name, "--gpus", gpus, *flags, "--follow", "--", "sh", "-c",
                                 f"echo has room; {gate.wait}")
        run.until("has room")
        return gate, run

    def let_go(self, held):
        gate, run = held
        gate.open()
        self.assertEqual(run.finish(), 0, run.errors)

    def until_all(self, run, *words):
        """Reads until each of these lines has appeared, in any order."""
        left = {f"[launcher] {line}" for line in words}
        while left:
            line = run.line()
            self.assertIsNotNone(line, f"it ended before {left}\n{run.text}\n{run.errors}")
            left.discard(line)

    def assert_ends_well(self, run):
        self.done.touch()
        self.assertEqual(run.finish(), 0, run.text + run.errors)

    def events_of(self, name):
        return [event["text"] for event in self.muster.job(name)["events"]]

    def workers_of(self, name):
        """(name, whether it left) of each."""
        return [(task["name"], task["left"]) for task in self.muster.job(name)["tasks"]
                if task["role"] == "worker"]

    def until_event(self, name, words):
        self.muster.stream("events", name, "--follow").until(words)


class Resizing(ElasticTest):

    def grow_and_shrink(self, *flags):
        first = self.hold("first", 2)
        run = self.watch(*flags)
        self.until_all(run, "hosts dist-worker-0:1", "dist-worker-0 works")
        self.assertRegex(self.muster.run("get", "dist").stdout, r"WORKERS +1 of 1-3\n")

        self.let_go(first)
        self.until_all(run, "hosts dist-worker-0:1 dist-worker-1:1 dist-worker-2:1", "dist-worker-1 works",
                       "dist-worker-2 works")
        owner = self.hold("owner", 2, "--project", "team")
        self.until_all(run, "hosts dist-worker-0:1", "dist-worker-1 goes", "dist-worker-2 goes")
        return run, owner

    def assert_they_come_and_go(self, launch):
        run, owner = self.grow_and_shrink("--launch", launch)
        self.let_go(owner)
        self.until_all(run, "hosts dist-worker-0:1 dist-worker-3:1 dist-worker-4:1", "dist-worker-3 works",
                       "dist-worker-4 works")

        self.assert_ends_well(run)

        job = self.muster.job("dist")
        self.assertEqual((job["phase"], job["attempt"], job["restarts"]), ("Succeeded", 1, 0))

    def test_jobs_grow_and_shrink_with_the_free_gpus_and_reach_each_new_worker_by_ssh(self):
        self.assert_they_come_and_go("ssh")

    def test_jobs_grow_and_shrink_with_the_free_gpus_and_reach_each_new_worker_by_agent(self):
        self.assert_they_come_and_go("agent")

    def test_other_workers_are_notified_before_a_worker_is_stopped(self):
        run, owner = self.grow_and_shrink()
        job = self.muster.job("dist")

        told = (self.muster.task_folder(job, "launcher") / "generated" / "hostfile").stat().st_ctime
        goodbyes = re.findall(r"^(\S+) \[launcher\] dist-worker-[12] goes$",
                              self.muster.logs("dist", "--timestamps"), re.MULTILINE)
        self.assertEqual(len(goodbyes), 2)
        for goodbye in goodbyes:
            self.assertLess(told, datetime.fromisoformat(goodbye).timestamp())
        self.let_go(owner)
        self.assert_ends_well(run)

    def test_each_command_reports_the_changes_in_its_own_terms(self):
        run, owner = self.grow_and_shrink()

        page = self.muster.run("get", "dist").stdout
        self.assertRegex(page, r"WORKERS +1 of 1-3\n")
        self.assertRegex(page, r"REASON +runs with 1 of 3 workers\n")
        self.assertRegex(page, r"\n  worker-0 +worker +dist-worker-0 +\S+ +\d +Running +-\n")
        for worker in (1, 2):
            self.assertRegex(page, rf"\n  worker-{worker} +worker +dist-worker-{worker} +\S+ +\d +Left +"
                                   r"was stopped \(SIGTERM\)\n")
        use = page.partition("\nUSE\n")[2]
        self.assertNotIn("worker-1", use)
        self.assertRegex(self.muster.run("list").stdout, r"\ndist +default +mpi +Running +2/4 .*"
                                                         "runs with 1 of 3 workers\n")
        explained = self.muster.run("explain", "dist").stdout
        self.assertNotIn("needs", explained, "it never waited")
        for event in (r"placed on \S+, attempt 1, with 1 of 3 workers",
                      r"worker-1 joins on \S+: 2 of 3 workers",
                      "worker-[12] has joined: the job continues with 3 of 3 workers",
                      "worker-[12], worker-[12] leave: each was evicted for 'owner' of project team, which claims its "
                      "share: .*; the job continues with 1 of 3 workers"):
            self.assertRegex(explained, rf"Z  {event}\n")
        self.assertEqual(self.workers_of("dist"), [("worker-0", False), ("worker-1", True), ("worker-2", True)])
        self.let_go(owner)
        self.assert_ends_well(run)


# Each task prints its variables and waits; the leader waits until the test releases it.
TOLD = """\
import os, signal, sys
print(*(f"{name}={os.environ.get(name)}" for name in sys.argv[2:]), flush=True)
if "-master" in os.uname().nodename:
    open(sys.argv[1]).read(1)
else:
    signal.pause()
"""


class LostWorkers(ElasticTest):

    def torch(self, *flags):
        """Starts a torch job with a master and two workers, of which one is the minimum."""
        self.gate = self.muster.gate()
        told = self.muster.script("told.py", TOLD)
        run = self.muster.stream("submit", "torch", "ddp", "--workers", 2, "--min-workers", 1, "--resize", "live",
                                 *flags, "--follow", "--", "python3", told, self.muster.work / "gate",
                                 "PET_NNODES", "PET_NODE_RANK", "PET_RDZV_CONF")
        told = {run.until("PET_NNODES") for _ in range(3)}
        self.assertEqual({line.split()[0] for line in told}, {"[master]", "[worker-0]", "[worker-1]"})
        for line in told:
            self.assertIn("PET_NNODES=2:3 ", line)
        return run

    def test_a_killed_worker_is_replaced_by_a_worker_with_the_same_resources(self):
        run = self.torch()

        self.muster.kill_program(self.muster.job("ddp"), "worker-0")

        told = run.until("PET_NNODES")
        self.assertRegex(told, r"\A\[worker-2\] PET_NNODES=2:3 PET_NODE_RANK=1 PET_RDZV_CONF=is_host=0,")
        self.until_event("ddp", "worker-2 has joined: the job continues with 2 of 2 workers")
        self.assertIn("worker-0 was lost: it was killed by signal 9 (SIGKILL); the job continues with 1 of 2 workers",
                      self.events_of("ddp"))
        self.assertEqual(self.workers_of("ddp"), [("worker-0", True), ("worker-1", False), ("worker-2", False)])
        self.gate.open()
        self.assertEqual(run.finish(), 0, run.errors)
        log = self.muster.logs("ddp")
        for task in ("master", "worker-0", "worker-1", "worker-2"):
            self.assertEqual(log.count(f"[{task}] PET_NNODES=2:3 "), 1, log)

    def test_a_killed_master_fails_the_job_and_is_named(self):
        run = self.torch()

        self.muster.kill_program(self.muster.job("ddp"), "master")

        self.assertEqual(run.finish(), 137)
        self.assertIn("job 'ddp' failed: master was killed by signal 9 (SIGKILL)", run.errors)
        await_no_process(str(self.muster.state / "jobs"), BOUND)

    def test_a_job_fails_after_three_workers_in_a_row_have_failed(self):
        master, workers = self.muster.gate("master"), self.muster.gate("workers")
        command = f"case $(hostname) in *-master) {master.wait};; *) {workers.wait}; exit 3;; esac"
        self.muster.run("submit", "torch", "ddp", "--max-workers", 1, "--resize", "live", "--", "sh", "-c", command)
        self.until_event("ddp", "running")

        workers.open(times=3)

        job = self.muster.ended("ddp")
        self.assertEqual((job["phase"], job["attempt"], job["failure"]["task"]), ("Failed", 1, "worker-2"))
        self.assertEqual(job["failure"]["cause"], "worker-2 exited with code 3; the third worker in a row that was lost within 1m of its start")
        self.assertNotEqual(job["exit_code"], 0)
        self.assertEqual([(task["name"], task["exit"]["code"]) for task in job["tasks"] if task["role"] == "worker"],
                         [("worker-0", 3), ("worker-1", 3), ("worker-2", 3)])

    def test_a_replacement_continues_a_training_with_parameter_servers_under_the_number_of_the_lost_worker(self):
        # No rank is more than a step ahead of worker-1, which is held while worker-0 is lost and replaced. On a slow
        # machine this takes longer than the default of --silence, after which worker-1 would be lost, too.
        command = (f"echo $TF_CONFIG; exec {DIGITS} --strategy parameter-server --staleness 1 --epochs 100 "
                   f"--silence {10 * BOUND}")
        run = self.muster.stream("submit", "grpc", "digits", "--workers", 2, "--min-workers", 1, "--resize", "live",
                                 "--parameter-servers", 1, "--follow", "--", "sh", "-c", command)
        run.until("[chief] epoch ")
        job = self.muster.job("digits")
        held = descendants(self.muster.shim_of(job, "worker-1"))[-1]
        os.kill(held, signal.SIGSTOP)

        self.muster.kill_program(job, "worker-0")

        config = json.loads(run.until("[worker-2] {").partition("] ")[2])
        self.assertEqual(config["task"], {"type": "worker", "index": 0})
        self.assertRegex(config["cluster"]["worker"][0], r"\Adigits-worker-2:\d+\Z")
        run.until("[worker-2] worker 1 of 3: ")
        os.kill(held, signal.SIGCONT)
        self.assertEqual(run.finish(), 0, run.text + run.errors)
        self.assertRegex(run.text, r"\[chief\] test accuracy: 9\d")
        self.assertRegex(run.text, r"\[ps-0\] .* 3 workers left, 1 lost")
        job = self.muster.job("digits")
        self.assertEqual((job["phase"], job["attempt"]), ("Succeeded", 1))


class RestartedServer(ElasticTest):

    def test_a_new_server_grows_and_shrinks_a_job_that_it_took_over(self):
        first = self.hold("first", 2)
        run = self.watch()
        self.until_all(run, "dist-worker-0 works")

        self.muster.kill_server()

        self.let_go(first)
        self.until_all(run, "hosts dist-worker-0:1 dist-worker-1:1 dist-worker-2:1", "dist-worker-1 works",
                       "dist-worker-2 works")
        owner = self.hold("owner", 2, "--project", "team")
        self.until_all(run, "hosts dist-worker-0:1", "dist-worker-1 goes", "dist-worker-2 goes")
        self.assertIn("adopted by a new server", self.events_of("dist"))
        self.let_go(owner)
        self.assert_ends_well(run)
        self.assertEqual(self.muster.job("dist")["attempt"], 1)

    def test_the_shared_key_of_its_workers_is_stored_encrypted(self):
        run = self.watch()
        self.until_all(run, "dist-worker-2 works")
        self.assertIn(b"sealed_seed", self.kept())

        key = self.private_key(self.muster.job("dist"))
        for path in self.muster.state.glob("*"):
            if path.is_file():
                content = path.read_bytes()
                for form in (key, key.hex().encode(), base64.b64encode(key)[:40]):
                    self.assertNotIn(form, content, path)

        self.assert_ends_well(run)
        self.assertNotIn(b"sealed_seed", self.kept())

    def kept(self):
        """The record of the job in the database."""
        with contextlib.closing(sqlite3.connect(f"file:{self.muster.state}/muster.db?mode=ro", uri=True)) as database:
            (document,) = database.execute("SELECT document FROM job WHERE name = 'dist'").fetchone()
        return document

    def private_key(self, job):
        """The 32 bytes of the ed25519 key with which the workers of a job are reached."""
        folder = self.muster.task_folder(job, "launcher") / "generated" / "ssh"
        keys = self.muster.private_keys(folder)
        self.assertEqual(len(keys), 1)
        lines = keys[0].read_text().splitlines()
        blob = base64.b64decode("".join(lines[1:-1]))
        name = b"ssh-ed25519"
        public = blob[blob.index(name) + len(name) + 4:][:32]
        # The private part ends with the secret, followed by the public key again.
        end = blob.rindex(public)
        return blob[end - 32:end]


class Ends(ElasticTest):

    def assert_nothing_runs(self):
        await_no_process(str(self.muster.state / "jobs"), BOUND)
        self.assertEqual(self.muster.private_keys(), [])

    def grown(self):
        """Starts a job with one worker, which then grows to three."""
        first = self.hold("first", 2)
        run = self.watch()
        self.until_all(run, "dist-worker-0 works")
        self.let_go(first)
        self.until_all(run, "dist-worker-1 works", "dist-worker-2 works")
        return run

    def test_a_suspended_job_starts_again_with_all_workers_that_fit(self):
        run = self.grown()

        self.muster.run("suspend", "dist")
        other = self.hold("other", 3)
        job = self.muster.job("dist")
        self.assertEqual((job["phase"], job["reason"]),
                         ("Queued", "is suspended; muster resume dist continues it"))
        self.assertFalse((self.muster.task_folder(job, "launcher") / "generated").exists())
        self.assertEqual(self.muster.private_keys(), [])
        self.let_go(other)

        self.muster.run("resume", "dist")
        self.until_all(run, "hosts dist-worker-0:1 dist-worker-1:1 dist-worker-2:1", "dist-worker-2 works")
        self.assert_ends_well(run)
        job = self.muster.job("dist")
        self.assertEqual((job["phase"], job["attempt"], job["restarts"]), ("Succeeded", 2, 1))

    def test_a_stopped_job_leaves_nothing(self):
        run = self.grown()

        self.muster.run("stop", "dist")

        run.finish()
        self.assertEqual(self.muster.job("dist")["phase"], "Stopped")
        self.assert_nothing_runs()

    def test_a_job_that_reaches_its_time_limit_leaves_nothing(self):
        first = self.hold("first", 2)
        run = self.watch("--time-limit", "2s")
        self.let_go(first)

        self.assertNotEqual(run.finish(), 0)
        self.assertEqual(self.muster.job("dist")["phase"], "Failed")
        self.assertIn("2s", run.errors)
        self.assert_nothing_runs()


class Restarts(ElasticTest):

    def test_a_command_that_cannot_change_its_ranks_is_started_again_with_fewer(self):
        gate = self.muster.gate()
        run = self.muster.stream("submit", "mpi", "dist", "--min-workers", 1, "--max-workers", 3, "--gpus", 1,
                                 "--follow", "--", "mpirun", "--allow-run-as-root", "sh", "-c",
                                 "echo start $MUSTER_RESTART_COUNT of $OMPI_COMM_WORLD_SIZE ranks; "
                                 f"{gate.wait} & wait $!")
        for _ in range(3):
            run.until("start 0 of 3 ranks")

        owner = self.hold("owner", 2, "--project", "team")

        run.until("start 1 of 1 ranks")
        self.let_go(owner)
        gate.open()
        self.assertEqual(run.finish(), 0, run.errors)
        job = self.muster.job("dist")
        self.assertEqual((job["phase"], job["attempt"], job["restarts"]), ("Succeeded", 2, 1))


if __name__ == "__main__":
    main()
