"""The limits of tasks, as root (control groups), as an ordinary account (measured by the shim), and as an ordinary
account in control groups that root has handed over."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from muster_harness import BOUND, MUSTER, MusterTest, all_pids, await_end, await_no_process, main, read_bytes
from own_accounts import make_account

MIB = 1 << 20

# Allocates memory in pieces of 10 MiB and reports each piece.
HOG = "\n".join((
    "import signal",
    "held = []",
    "for piece in range(1, 60):",
    "    held.append(b'x' * (10 << 20))",
    "    print('holds', piece * 10, 'MiB', flush=True)",
    "signal.pause()"))  # until it is stopped

# No single process allocates much memory, but together they exceed the limit.
FORKING_HOG = "\n".join((
    "import os, signal, sys",
    "for _ in range(4):",
    "    if os.fork() == 0:",
    "        held = b'x' * (40 << 20)",
    "        signal.pause()",
    "os.wait()",
    "sys.exit('a process was killed')"))

# Uses 110 MiB. Adding up the memory of its processes would count shared memory several times: 450 MiB.
SHARING = "\n".join((
    "import mmap, os, signal",
    "shared = mmap.mmap(-1, 60 << 20)",
    "shared.write(b'x' * (60 << 20))",
    "held = b'x' * (50 << 20)",
    "children = []",
    "for _ in range(4):",
    "    reading, writing = os.pipe()",
    "    child = os.fork()",
    "    if child == 0:",
    "        seen = shared[::4096].count(b'x')",
    "        os.write(writing, b'.')",
    "        signal.pause()",
    "    os.read(reading, 1)",
    "    children.append(child)",
    "print('up', flush=True)",
    "open('gate').read(1)",
    "for child in children:",
    "    os.kill(child, signal.SIGKILL)",
    "print('fine')"))

FORKS = "\n".join((
    "import os, time",
    "made = 0",
    "try:",
    "    for _ in range(300):",
    "        if os.fork() == 0:",
    "            time.sleep(60)",
    "            os._exit(0)",
    "        made += 1",
    "except OSError as error:",
    "    print('refused after', made, 'processes:', error.strerror, flush=True)",
    "    raise",
    "else:",
    "    time.sleep(30)",
    "    print('was not stopped')"))

# Forks until the system refuses it, and then computes.
BUSY_AT_THE_LIMIT = "\n".join((
    "import os, signal, time",
    "children = []",
    "try:",
    "    while True:",
    "        child = os.fork()",
    "        if child == 0: signal.pause()",
    "        children.append(child)",
    "except OSError: pass",
    "end = time.process_time() + 0.5",
    "while time.process_time() < end: sum(range(1000))",
    "for child in children: os.kill(child, signal.SIGKILL)",
    "print('fine')"))

# Threads that try to start further threads without a pause.
THREAD_BOMB = r"""
#include <pthread.h>
static void* ask(void* none) {
  pthread_t thread;
  while (1) pthread_create(&thread, 0, ask, 0);
  return none;
}
int main(void) { ask(0); }
"""

# Uses nearly all its permitted processes to copy data, which keeps them in system calls.
COPIERS = "\n".join((
    "import os, time",
    "end = time.monotonic() + 4",
    "for _ in range(35):",
    "    if os.fork() == 0:",
    "        zero, null = open('/dev/zero', 'rb', 0), open('/dev/null', 'wb', 0)",
    "        while time.monotonic() < end: null.write(zero.read(1 << 20))",
    "        os._exit(0)",
    "for _ in range(35): os.wait()",
    "print('fine')"))

# The threads of the pool and their commands together nearly reach the limit of processes.
POOL = "\n".join((
    "import concurrent.futures, subprocess",
    "with concurrent.futures.ThreadPoolExecutor(18) as pool:",
    "    for ran in pool.map(lambda _: subprocess.run(['/bin/true']), range(1500)): assert ran.returncode == 0",
    "print('fine')"))

# A daemon in its own session, whose parents have ended, allocates memory. The program waits until the daemon ends.
DAEMON_HOG = "\n".join((
    "import os, signal, sys, time",
    "reading, writing = os.pipe()",
    "if os.fork() == 0:",
    "    os.setsid()",
    "    if os.fork() == 0:",
    "        os.setsid()",
    "        held = []",
    "        for piece in range(1, 60):",
    "            held.append(b'x' * (10 << 20))",
    "        signal.pause()",
    "    os._exit(0)",
    "os.wait()",
    "os.close(writing)",
    "os.read(reading, 1)",
    "sys.exit('the daemon has ended')"))

# Creates files without a name, which no listing of a folder shows.
DELETED_FILES = "\n".join((
    "import os, signal",
    "kept = []",
    "for number in range(8):",
    "    path = os.environ['TMPDIR'] + '/file'",
    "    kept.append(open(path, 'wb'))",
    "    kept[-1].write(b'x' * (5 << 20))",
    "    kept[-1].flush()",
    "    os.unlink(path)",
    "signal.pause()"))

CPUS = 'import os; print("runs on", *sorted(os.sched_getaffinity(0)), flush=True)'


def cpus_in(text):
    """The CPUs that each line of the output of CPUS names."""
    return [set(map(int, line.split())) for line in re.findall(r"runs on ([\d ]+)", text)]


class Configured:

    def configured(self, text):
        self.muster.configure(text)
        if hasattr(self, "uid"):
            subprocess.run(["chown", "-R", str(self.uid), self.muster.home], check=True)


class Limits(Configured):
    """The tests, for each kind of account."""

    def follow(self, *words, code=None):
        return self.muster.run("submit", "single", "job", "--follow", *words, code=code)

    def reached(self):
        """The limit that the task reached, as the API has it."""
        return self.muster.job("job")["tasks"][0]["exit"]["limit"]

    def assert_it_ran_out_of_memory(self, ran, bound=100 * MIB):
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("was not stopped", ran.stdout)
        self.assertRegex(ran.stderr, r"out of memory \(its limit is 100Mi, its peak was [\d.]+[MG]i\)")
        reached = self.reached()
        self.assertEqual((reached["limit"], reached["bound"]), ("memory", bound))
        self.assertGreater(reached["peak"], 0.9 * bound)
        self.assertTrue(self.muster.job("job")["tasks"][0]["exit"]["out_of_memory"])

    def test_a_task_that_takes_more_memory_than_it_claims_is_killed_with_limit_and_peak(self):
        ran = self.follow("--memory", "100Mi", "--", "python3", "-c", HOG)

        self.assert_it_ran_out_of_memory(ran)
        self.assertIn("--memory", ran.stderr)
        shown = self.muster.run("get", "job").stdout
        self.assertIn("out of memory (its limit is 100Mi", shown)

    def test_the_memory_of_all_processes_of_a_task_counts(self):
        ran = self.follow("--memory", "100Mi", "--", "python3", "-c", FORKING_HOG)

        self.assert_it_ran_out_of_memory(ran)

    def test_a_daemon_that_a_task_leaves_behind_is_within_its_limits(self):
        ran = self.follow("--memory", "100Mi", "--", "python3", "-c", DAEMON_HOG)

        self.assert_it_ran_out_of_memory(ran)

    def test_memory_that_processes_share_counts_once(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--folder", self.muster.work, "--memory", "200Mi", "--",
                        "python3", "-c", SHARING)
        self.muster.stream("logs", "job", "-f").until("up")
        # Runs for several measurements.
        for _ in range(3):
            self.muster.run("exec", "job", "--", "true")

        gate.open()

        job = self.muster.ended("job")
        self.assertEqual(job["phase"], "Succeeded", job.get("failure"))

    def test_a_task_within_its_claim_runs(self):
        ran = self.follow("--memory", "300Mi", "--", "python3", "-c", "held = b'x' * (50 << 20); print('fine')",
                          code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_task_gets_no_more_processes_than_it_may_have(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", FORKS)

        self.assertNotIn("was not stopped", ran.stdout)
        self.assertNotEqual(ran.returncode, 0)
        # If the kernel itself refuses processes of an account in a namespace, it does not count the refusals.
        if "refused after" not in ran.stdout or not hasattr(self, "uid") or self.in_groups:
            self.assertRegex(ran.stderr, r"too many processes and threads \(its limit is 40")
            reached = self.reached()
            self.assertEqual((reached["limit"], reached["bound"]), ("processes", 40))

    def test_a_fork_bomb_is_ended_with_the_reason(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", "import os\nwhile True:\n try: os.fork()\n except OSError: pass")

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("too many processes and threads (its limit is 40", ran.stderr)
        self.assertIn("tasks.processes", ran.stderr)

    def test_a_task_that_has_all_its_processes_and_computes_is_not_ended(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", BUSY_AT_THE_LIMIT)

        self.assertIn("fine", ran.stdout, ran.stderr)

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_a_bomb_of_threads_is_ended_with_the_reason(self):
        self.configured("tasks: {processes: 40}\n")
        bomb = self.muster.work / "bomb"
        subprocess.run(["cc", "-pthread", "-o", bomb, "-x", "c", "-"], input=THREAD_BOMB, text=True, check=True)

        ran = self.follow("--folder", self.muster.work, "--", bomb)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("too many processes and threads (its limit is 40", ran.stderr)

    def test_thousands_of_short_commands_are_not_ended(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "sh", "-c", "seq 3000 | xargs -P 34 -n 1 /bin/true && echo fine", code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_parallel_build_is_not_ended(self):
        self.configured("tasks: {processes: 40}\n")
        names = " ".join(f"t{number}" for number in range(400))
        self.muster.script("Makefile", f"all: {names}\n{names}:\n\t@sh -c 'true; /bin/true | cat'\n", mode=0o644)

        ran = self.follow("--folder", self.muster.work, "--", "sh", "-c", "make -j 12 && echo fine", code=0)

        self.assertIn("fine", ran.stdout)

    def test_processes_that_copy_data_at_the_limit_are_not_ended(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", COPIERS, code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_pool_of_threads_that_starts_commands_is_not_ended(self):
        self.configured("tasks: {processes: 40}\n")

        ran = self.follow("--", "python3", "-c", POOL, code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_program_beside_the_tasks_own_is_within_its_limits(self):
        self.configured("tasks: {processes: 40}\n")
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--", "sh", "-c", f"echo up; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("up")

        ran = self.muster.run("exec", "job", "--", "python3", "-c", FORKS, code=None)

        self.assertNotIn("was not stopped", ran.stdout)
        self.assertTrue("refused after" in ran.stdout or ran.returncode == 137, ran.stdout + ran.stderr)

    def test_the_memory_of_a_program_beside_the_tasks_own_counts(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--memory", "100Mi", "--", "sh", "-c", f"echo up; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("up")

        ran = self.muster.run("exec", "job", "--", "python3", "-c", HOG, code=None)

        self.assertNotIn("was not stopped", ran.stdout)
        self.assertNotEqual(ran.returncode, 0)

    def test_a_task_writes_no_larger_file_and_opens_no_more_files_than_it_may(self):
        self.configured("tasks: {file_size: 1Mi, open_files: 50}\n")

        ran = self.follow("--", "sh", "-c", "head -c 5000000 /dev/zero > $TMPDIR/big; wc -c < $TMPDIR/big; ulimit -n",
                          code=0)

        self.assertEqual(re.findall(r"\d+$", ran.stdout, re.MULTILINE), [str(MIB), "50"])

    def test_a_task_that_ends_by_the_size_of_a_file_names_that_limit(self):
        self.configured("tasks: {file_size: 1Mi}\n")

        ran = self.follow("--", "sh", "-c", "exec head -c 5000000 /dev/zero > $TMPDIR/big")

        self.assertRegex(ran.stderr, r"SIGXFSZ\): a file became too large \(its limit is 1Mi\)")
        self.assertIn("tasks.file_size", ran.stderr)
        self.assertEqual(self.reached(), {"limit": "file_size", "bound": MIB, "peak": 0})

    def assert_it_filled_the_disk(self, ran):
        self.assertNotEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr, r"too much scratch space \(its limit is 20Mi, its peak was [\d.]+Mi\)")
        self.assertIn("tasks.scratch", ran.stderr)
        reached = self.reached()
        self.assertEqual((reached["limit"], reached["bound"]), ("scratch", 20 * MIB))
        self.assertGreater(reached["peak"], 20 * MIB)

    def test_a_task_that_fills_the_disk_is_killed_with_the_reason(self):
        self.configured("tasks: {scratch: 20Mi}\n")

        self.assert_it_filled_the_disk(self.follow(
            "--", "sh", "-c", "while true; do head -c 10000000 /dev/zero >> $TMPDIR/big; sleep 0.1; done"))

    def test_deleted_files_that_are_open_fill_the_disk_as_well(self):
        self.configured("tasks: {scratch: 20Mi}\n")

        self.assert_it_filled_the_disk(self.follow("--", "python3", "-c", DELETED_FILES))

    def test_a_task_may_delete_and_rewrite_as_often_as_it_likes(self):
        self.configured("tasks: {scratch: 20Mi}\n")

        ran = self.follow("--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do head -c 9000000 /dev/zero > $TMPDIR/big; "
                          "rm $TMPDIR/big; done; echo fine", code=0)

        self.assertIn("fine", ran.stdout)

    def test_a_daemon_ends_with_its_task(self):
        mark = f"{987650000 + os.getpid()}"

        ran = self.follow("--", "sh", "-c", f"setsid -f setsid -f sleep {mark}; echo left", code=0)

        self.assertIn("left", ran.stdout)
        await_no_process(f"sleep\0{mark}", BOUND)

    def test_a_task_that_floods_its_log_keeps_the_last_of_it_and_delays_no_other_job(self):
        self.configured("log_quota: 1Mi\n")
        self.muster.run("submit", "single", "job", "--", "sh", "-c", "yes 0123456789 | head -n 4000000; echo last")

        other = self.muster.run("submit", "single", "other", "--follow", "--", "echo", "fine")

        self.assertIn("fine", other.stdout)
        job = self.muster.ended("job")
        self.assertEqual(self.muster.logs("job", "--tail", "1").split()[-1], "last")
        log = os.stat(self.muster.task_folder(job, "main") / "log")
        self.assertLess(log.st_blocks * 512, 4 * MIB)


class BoundCpus(Configured):
    """`tasks.cpu: bind`, for each kind of account. The tests require a machine with several CPUs."""

    def setUp(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("needs two CPUs")
        super().setUp()
        self.configured("tasks: {cpu: bind}\n")

    def test_tasks_that_claim_whole_cpus_have_cpus_of_their_own(self):
        ran = self.muster.run("submit", "torch", "pair", "--workers", 1, "--cpus", 1, "--set", "success=all",
                              "--follow", "--", "python3", "-c", CPUS)

        one, other = cpus_in(ran.stdout)
        self.assertEqual((len(one), len(other)), (1, 1))
        self.assertNotEqual(one, other)

    def test_a_program_beside_the_tasks_own_runs_on_the_same_cpus(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--cpus", 1, "--", "sh", "-c", f"python3 -c '{CPUS}'; {gate.wait}")
        text = self.muster.stream("logs", "job", "-f").until("runs on")

        ran = self.muster.run("exec", "job", "--", "python3", "-c", CPUS)

        self.assertEqual(cpus_in(ran.stdout), cpus_in(text))

    def test_cpus_are_free_again_after_a_restart_and_the_end(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "first", "--cpus", 1, "--", "sh", "-c",
                        f"python3 -c '{CPUS}'; {gate.wait}")
        first, = cpus_in(self.muster.stream("logs", "first", "-f").until("runs on"))
        self.muster.kill_server()

        second, = cpus_in(self.muster.run("submit", "single", "second", "--cpus", 1, "--follow", "--",
                                          "python3", "-c", CPUS).stdout)

        self.assertEqual(len(first), 1)
        self.assertFalse(first & second)
        gate.open()
        self.muster.ended("first")
        third, = cpus_in(self.muster.run("submit", "single", "third", "--cpus", 2, "--follow", "--",
                                         "python3", "-c", CPUS).stdout)
        self.assertEqual(len(third), 2)

    def test_a_claim_of_a_part_is_not_bound(self):
        seen, = cpus_in(self.muster.run("submit", "single", "job", "--cpus", "0.5", "--follow", "--",
                                        "python3", "-c", CPUS).stdout)

        self.assertEqual(seen, os.sched_getaffinity(0))

    def test_mpirun_binds_ranks_within_the_cpus_of_their_tasks(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--cpus", 1, "--set",
                              "leader.resources.cpus=0", "--follow", "--", "mpirun", "--allow-run-as-root", "-np", 2,
                              "--bind-to", self.mpi_binds_to, "--map-by", "node", "python3", "-c", CPUS)

        one, other = cpus_in(ran.stdout)
        self.assertEqual((len(one), len(other)), (1, 1))
        self.assertNotEqual(one, other)


def cpu_group(text):
    """In /proc/PID/cgroup: the group that divides CPU time."""
    for line in text.splitlines():
        if "cpu" in line.split(":")[1].split(","):
            return line.split(":", 2)[2]
    raise unittest.SkipTest("no control group of version 1 divides CPU time")


def await_processes_of(uid):
    """Waits until no process of an account exists, including ending processes, which no longer have a command line:
    userdel refuses to remove an account that has processes."""
    belongs = re.compile(rb"^Uid:.*\t%d\b" % uid, re.MULTILINE)
    for pid in [pid for pid in all_pids() if belongs.search(read_bytes(f"/proc/{pid}/status"))]:
        await_end(pid)


def account(test):
    """Creates an ordinary account for a test that runs as root. `test.muster` runs under this account."""
    test.user = f"muster-l{os.getpid()}"
    home = f"/tmp/{test.user}"
    test.addCleanup(shutil.rmtree, home)
    made = make_account(test, test.user, "--create-home", "--home-dir", home, "--shell", "/bin/sh")
    test.uid, gid = made.pw_uid, made.pw_gid
    test.addCleanup(await_processes_of, test.uid)
    programs = f"/tmp/{test.user}-programs"
    os.mkdir(programs, 0o755)
    test.addCleanup(shutil.rmtree, programs)
    for program in ("muster", "muster-shim", "muster-helper"):
        shutil.copy(MUSTER.with_name(program), programs)
    become = ["setpriv", f"--reuid={test.uid}", f"--regid={gid}", "--clear-groups"]
    test.muster = test.new_muster(prefix=become, uid=test.uid, binary=f"{programs}/{MUSTER.name}")
    test.muster.environment |= {"USER": test.user, "LOGNAME": test.user}


class AsThisAccount(Limits, MusterTest):
    in_groups = True

    @unittest.skipIf(os.geteuid() != 0, "needs control groups, which count what the kernel kills")
    def test_a_task_that_fills_its_memory_again_and_again_is_ended_with_the_reason(self):
        # Sixteen at a time share the memory, so each kill frees little, and the next one follows soon, also on a busy
        # machine: only more than five kills in a quarter of a second count.
        ran = self.follow("--memory", "32Mi", "--", "python3", "-c",
                          "import os\n"
                          "while True:\n"
                          "    for _ in range(16):\n"
                          "        if os.fork() == 0:\n"
                          "            bytearray(64 << 20)\n"
                          "            os._exit(0)\n"
                          "    for _ in range(16):\n"
                          "        os.wait()")

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("out of memory (its limit is 32Mi", ran.stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs control groups")
    def test_printing_uses_cpu_time_of_the_tasks_own_share(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--cpus", 2, "--", "sh", "-c",
                        f"cat /proc/self/cgroup; echo up; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("up")
        job = self.muster.job("job")
        shim = self.muster.shim_of(job, "main")
        own = cpu_group(self.muster.run("logs", "job", "--no-prefix").stdout)
        holder = cpu_group(Path(f"/proc/{shim}/cgroup").read_text())
        gate.open()

        self.assertEqual(own, holder + "/task")
        self.assertIn(job["id"], holder)

    def test_no_control_group_of_a_task_is_left(self):
        self.follow("--memory", "100Mi", "--", "true", code=0)

        left = subprocess.run(["find", "/sys/fs/cgroup", "-path", "*/muster/*", "-type", "d", "-name",
                               self.muster.job("job")["id"] + "*"], capture_output=True, text=True).stdout
        self.assertEqual(left, "")


class BoundAsThisAccount(BoundCpus, MusterTest):
    mpi_binds_to = "core"


class OfAnOrdinaryAccount:

    def setUp(self):
        account(self)


@unittest.skipIf(os.geteuid() != 0, "only root can become another account")
class AsAnOrdinaryAccount(Limits, OfAnOrdinaryAccount, MusterTest):
    in_groups = False


CONTROLLERS = ("memory", "pids", "cpu", "cpuset")


def own_group(controller):
    """The folder of this process's control group of version 1; None: there is no such hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        for mount in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, system = mount.split(" - ")
            if system.split()[0] == "cgroup" and controller in system.split()[2].split(","):
                root, point = fields.split()[3:5]
                below = path.removeprefix(root) if root != "/" else path
                return Path(point) / below.lstrip("/")
    return None


@unittest.skipIf(os.geteuid() != 0, "only root can become another account and hand over control groups")
class InHandedOverGroups(Limits, MusterTest):
    """An ordinary account in groups of version 1 that are its own, below groups of root with a limit."""

    in_groups = True

    def setUp(self):
        homes = [own_group(controller) for controller in CONTROLLERS]
        if not all(home and os.access(home, os.W_OK) for home in homes):
            self.skipTest("needs control groups of version 1")
        tops = [home / f"muster-l{os.getpid()}" for home in homes]
        groups = [top / "own" for top in tops]
        for group in groups:
            group.parent.mkdir()
            self.addCleanup(group.parent.rmdir)
            group.mkdir()
            self.addCleanup(group.rmdir)
        for home, top, group in zip(homes, tops, groups):
            if (top / "cpuset.cpus").exists():
                for folder in (top, group):
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        (folder / name).write_text((home / name).read_text())
        (tops[0] / "memory.limit_in_bytes").write_text(str(400 * MIB))
        account(self)
        for group in groups:
            for path in (group, *group.iterdir()):
                os.chown(path, self.uid, -1)
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        self.muster.prefix = ["sh", "-c", enter + 'exec "$@"', "sh", *self.muster.prefix]
        self.groups = groups

    def test_the_kernel_holds_a_task_by_groups_below_those_of_the_account(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "job", "--memory", "100Mi", "--", "sh", "-c",
                        f"cat /proc/self/cgroup; echo up; {gate.wait}")
        self.muster.stream("logs", "job", "-f").until("up")

        job = self.muster.job("job")
        limit = self.groups[0] / "muster" / f"{job['id']}-{job['attempt']}-main" / "memory.limit_in_bytes"
        self.assertEqual(int(limit.read_text()), 100 * MIB)

    def test_a_limit_of_root_holds_a_task_without_a_claim(self):
        ran = self.follow("--", "python3", "-c", HOG)

        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("was not stopped", ran.stdout)
        reached = self.reached()
        self.assertEqual((reached["limit"], reached["bound"]), ("memory", 0))
        self.assertIn("the kernel's out-of-memory killer ended a process", ran.stderr)


@unittest.skipIf(os.geteuid() != 0, "only root can become another account")
class BoundAsAnOrdinaryAccount(BoundCpus, OfAnOrdinaryAccount, MusterTest):
    # Without a control group, Open MPI binds ranks to any CPU of the machine.
    mpi_binds_to = "none"


if __name__ == "__main__":
    main()
