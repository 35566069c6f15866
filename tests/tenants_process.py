"""Two users of two projects on one machine, with the process engine, as an ordinary account and as root. The job of one
user tries to read, change, signal, slow down or name the job of the other user and the server.

The attempts are in tenants_attacker.py. docs/isolation.md has a table of them, with which the last tests compare
them."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest
from pathlib import Path

import tenants_attacker
from muster_harness import (BOUND, MUSTER, ROOT, MusterTest, Typed, all_below, main, matching, processes_naming,
                            programs_below, read_bytes)
from own_accounts import enter_own_etc, make_account
from tenants_harness import SECRET, Attacked, rows_of_attempts


class Tenants(Attacked):
    """A base class: the tests for each kind of account."""

    # The niceness of tasks. It is 0 under root, whose control groups divide the CPU time instead.
    niceness = 0

    def test_a_hostile_job_gets_at_nothing_of_another_project(self):
        self.serve()
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        broken = self.broken_by_attack(facts)

        self.assertLessEqual(set(broken), self.KNOWN, broken)
        self.assertFalse(os.path.exists(facts["home"] + "/.profile-of-attacker"))
        self.gate.open()
        text = self.wait_for(self.ada, "victim", "nice ")
        names = sorted(["victim-home", *programs_below(facts["home"])])
        self.assertIn(f"nice {self.niceness or os.nice(0)} home {names}", text)

    def test_a_program_beside_the_tasks_own_is_as_confined(self):
        self.serve()
        self.gate = self.muster.gate()
        self.submit(self.mal, "single", "job", "--", "sh", "-c", f"echo up; {self.gate.wait}")
        self.wait_for(self.mal, "job", "up")

        ran = self.mal.run("exec", "job", "--", "python3", "-c",
                           "import ctypes, socket\n"
                           "print('unshare', ctypes.CDLL(None).unshare(0x10000000))\n"
                           "print('reaches', socket.socket().connect_ex(('127.0.0.1', %d)))\n" % tls_port_of(self.url))

        self.assertIn("unshare -1", ran.stdout)
        self.assertRegex(ran.stdout, r"reaches [1-9]")
        self.gate.open()

    def test_a_program_left_in_the_home_runs_in_no_job_of_another_user(self):
        self.serve()
        path = "$(python3 -c 'import site; print(site.getusersitepackages())')"
        leave = f'mkdir -p {path}; echo "import sys; print(10 * chr(33))" > {path}/x.pth; echo "echo !!!!!!!!!!" > ~/.bashrc'
        look = "python3 -c 'print(1)'; HOME=$HOME bash -ic true; ls -a ~"

        left = self.submit(self.mal, "single", "leaves", "--follow", "--no-prefix", "--", "sh", "-c", f"{leave}; {look}")
        other = self.submit(self.ada, "single", "looks", "--follow", "--no-prefix", "--", "sh", "-c", look)

        self.assertEqual((left.stdout + left.stderr).count("!!!!!!!!!!"), 2, "both run in jobs of the same user")
        self.assertNotIn("!!!!!!!!!!", other.stdout + other.stderr)
        self.assertNotIn(".bashrc", other.stdout)

    def test_a_task_that_stops_all_its_processes_is_ended(self):
        self.serve()
        self.submit(self.mal, "single", "frozen", "--grace", "1s", "--", "sh", "-c",
                    "sleep 1000000 & echo up; kill -STOP -1; kill -STOP $$")
        self.wait_for(self.mal, "frozen", "up")

        self.mal.run("stop", "frozen")
        self.mal.run("logs", "frozen", "-f", "--tail", "0", code=None)

        self.assertEqual(json.loads(self.mal.run("get", "frozen", "-o", "json").stdout)["phase"], "Stopped")
        self.mal.run("delete", "frozen")

    def test_tasks_of_one_job_reach_each_other(self):
        self.serve()

        ran = self.submit(self.mal, "mpi", "dist", "--workers", 2, "--follow", "--",
                           "mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c", "echo rank on $(hostname)")

        self.assertEqual(sorted(re.findall(r"rank on (\S+)", ran.stdout)), ["dist-worker-0", "dist-worker-1"])

    def test_a_port_of_a_job_is_forwarded_out_of_its_network(self):
        self.serve()
        facts = self.started_victim()
        forward = self.ada_stream("port-forward", "victim", f":{facts['port']}")
        try:
            local = int(re.search(rb"Forwarding \S+:(\d+) ", forward.stdout.readline())[1])
            self.assertIn(b"200 OK", self.fetched(local))
        finally:
            forward.terminate()
            forward.communicate()
        self.gate.open()

    def ada_stream(self, *words):
        return subprocess.Popen([str(MUSTER), *words], env=self.ada.environment, cwd=self.ada.home,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def fetched(self, port):
        deadline = time.monotonic() + BOUND
        while True:
            with socket.socket() as client:
                client.settimeout(BOUND)
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    return client.recv(4096)
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_a_job_that_outlives_its_server_keeps_its_network(self):
        server = self.serve()
        facts = self.started_victim()
        self.muster.run("server", "--stop")
        server.finish()
        self.muster.start_server("--listen", self.url.removeprefix("https://"), "--task-accounts", self.accounts)

        ran = self.ada.run("exec", "victim", "--", "python3", "-c",
                           f"import socket; print(socket.create_connection(('127.0.0.1', {facts['port']})) and 'there')")

        self.assertIn("there", ran.stdout)
        self.gate.open()


def tls_port_of(url):
    return int(url.rsplit(":", 1)[1])


class WithAccounts:
    """A base class: the tests for servers, under any account, whose users have separate ids."""

    accounts = "own"

    def owners(self, folder):
        """The uids of all files below the folder, without following links."""
        return {os.lstat(path).st_uid for path in [folder, *all_below(folder)]}

    def test_a_job_of_a_user_is_started_by_no_server_that_would_not_isolate_it(self):
        server = self.serve()
        node, = (node["name"] for node in json.loads(self.muster.run("node", "list", "-o", "json").stdout)["nodes"])
        self.muster.run("node", "cordon", node)
        self.submit(self.ada, "single", "waits", "--", "cat", "/proc/self/uid_map")
        self.muster.run("server", "--stop")
        server.finish()

        refused = self.muster.run("node", "uncordon", node, code=5)
        private = self.muster.start_server("--take-over")
        self.muster.run("node", "uncordon", node)

        self.assertIn("listens for a team", refused.stderr)
        self.assertIn("would not isolate a job of user 'ada'", self.muster.run("explain", "waits").stdout)
        self.muster.run("run", "--", "true")
        self.assertEqual(self.muster.job("waits")["phase"], "Queued")
        self.muster.run("server", "--stop")
        private.finish()
        self.muster.start_server("--listen", self.url.removeprefix("https://"), "--task-accounts", self.accounts)
        self.assertEqual(self.muster.ended("waits")["phase"], "Succeeded")

    def test_files_of_a_job_belong_to_its_user_and_the_server_collects_them(self):
        self.serve()
        code = ("umask 077; echo home > ~/kept; echo scratch > $TMPDIR/x; mkdir -p /artifacts/deep; "
                "echo result > /artifacts/deep/out; cd /storage/data && mkdir -p by-$0 && echo s > by-$0/file; "
                "id -u; echo done")
        for person in (self.ada, self.mal):
            ran = self.submit(person, "single", f"of-{person.name}", "--artifacts", "--volume",
                              "storage/data:/storage/data", "--follow", "--no-prefix", "--", "sh", "-c", code,
                              person.name)
            self.assertIn("done", ran.stdout)
        uids = {}
        for person in (self.ada, self.mal):
            found = self.owners(self.muster.state / "jobs" / "homes" / person.name)
            self.assertEqual(len(found), 1, found)
            uids[person.name] = found.pop()
            self.assertNotIn(uids[person.name], (0, self.server_uid()))
            copied = self.muster.work / f"copy-{person.name}"
            person.run("artifacts", "get", f"of-{person.name}", "--to", copied)
            self.assertEqual((copied / "deep" / "out").read_text(), "result\n")
        self.assertNotEqual(uids["ada"], uids["mal"])
        storage = self.muster.state / "jobs" / "storage" / "team-a" / "data" / "by-ada" / "file"
        self.assertEqual(storage.lstat().st_uid, uids["ada"])

        for person in (self.ada, self.mal):
            person.run("delete", f"of-{person.name}")
        self.wait_until(lambda: not matching(self.muster.state / "jobs", ".removed/*"))

    def server_uid(self):
        return (self.muster.state / "muster.db").stat().st_uid

    def wait_until(self, holds):
        deadline = time.monotonic() + BOUND
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_users_of_one_project_write_to_its_storage(self):
        self.serve()
        self.muster.run("user", "set", "mal", "--project", "team-a=member")
        write = "umask 077; cd /data; echo $0 >> shared-file; mkdir -p deep; echo $0 > deep/$0; cat shared-file; rm -f old; echo o > old"
        texts = []
        for person in (self.ada, self.mal):
            texts.append(person.run("submit", "single", f"of-{person.name}", "--project", "team-a", "--folder",
                                    self.muster.work, "--volume", "storage/s:/data", "--follow", "--no-prefix",
                                    "--", "sh", "-c", write, person.name).stdout)
        self.assertIn("ada\nmal\n", texts[1])

    def test_a_task_has_terminals_of_its_own(self):
        self.serve()
        facts = self.started_victim()
        typed = Typed(self.muster, argv=[str(MUSTER), "exec", "-t", "victim", "--", "sh", "-c",
                                         "tty; ls -C /dev/pts; echo me=$(id -u) >$(tty); stty size"],
                      environment=self.ada.environment)
        typed.until(b"24 80")
        self.assertIn(b"/dev/pts/0", typed.text)
        self.assertIn(b"0  ptmx", typed.text)
        self.assertIn(b"me=", typed.text)
        self.assertEqual(typed.finish(), 0)
        typed.close()
        del facts
        self.gate.open()

    def test_a_job_on_a_terminal_can_be_attached_to(self):
        self.serve()
        self.submit(self.ada, "single", "shell", "--tty", "--", "sh", "-c", "tty; read line; echo got-$line")
        self.wait_for(self.ada, "shell", "/dev/pts/0")
        typed = Typed(self.muster, argv=[str(MUSTER), "attach", "shell"],
                      environment=self.ada.environment)
        typed.type(b"hello\n")
        typed.until(b"got-hello")
        typed.finish()
        typed.close()

    def test_standard_output_can_be_opened_again(self):
        self.serve()
        ran = self.submit(self.ada, "single", "again", "--follow", "--no-prefix", "--", "sh", "-c",
                          "echo one > /dev/stdout; echo two > /dev/stderr")
        self.assertIn("one", ran.stdout)

    @unittest.skipIf(os.geteuid() != 0, "only root replaces files of /etc")
    def test_files_of_etc_that_are_replaced_do_not_take_the_tasks_own(self):
        enter_own_etc()
        self.serve()
        self.gate = self.muster.gate()
        self.submit(self.ada, "mpi", "dist", "--workers", 2, "--", "sh", "-c",
                    f"echo up; {self.gate.wait}; grep -c dist-worker /etc/hosts; touch /etc/new || echo read-only; "
                    "mpirun --allow-run-as-root -np 2 sh -c 'echo rank on $(hostname)'")
        self.wait_for(self.ada, "dist", "up")
        for name in ("passwd", "shadow", "hosts"):
            copy = Path(f"/etc/{name}.{os.getpid()}")
            self.addCleanup(copy.unlink, missing_ok=True)
            subprocess.run(["cp", "--preserve=all", f"/etc/{name}", copy], check=True)
            copy.rename(f"/etc/{name}")

        self.gate.open()

        text = self.ada.run("logs", "dist", "-f", "--no-prefix").stdout
        self.assertIn("up\n2\n", text)
        self.assertIn("read-only\n", text)
        self.assertEqual(sorted(re.findall(r"rank on (\S+)", text)), ["dist-worker-0", "dist-worker-1"])

    def test_a_user_is_removed_while_a_job_runs(self):
        self.serve()
        self.started_victim()
        self.muster.run("user", "delete", "ada")

        self.gate.open()

        self.muster.run("logs", "victim", "--project", "team-a", "-f", "--tail", "0")
        job = json.loads(self.muster.run("get", "victim", "--project", "team-a", "-o", "json").stdout)
        self.assertEqual(job["phase"], "Succeeded")
        self.muster.run("delete", "victim", "--project", "team-a")
        self.wait_until(lambda: not matching(self.muster.state / "jobs", ".removed/*"))

    def test_a_daemon_ends_with_its_task(self):
        self.serve()
        mark = f"daemon-of-{os.getpid()}"
        code = ("import os, time\n"
                "reader, writer = os.pipe()\n"
                "if os.fork() == 0:\n"
                "    os.setsid()\n"
                "    if os.fork() == 0:\n"
                "        print('daemon up', flush=True)\n"
                "        os.write(writer, b'.')\n"
                "        time.sleep(100000)\n"
                "    os._exit(0)\n"
                "os.wait(); os.read(reader, 1)\n")
        self.muster.script("daemon.py", code, mode=0o644)
        ran = self.submit(self.mal, "single", "daemon", "--follow", "--no-prefix", "--", "python3",
                          self.muster.work / "daemon.py", mark, code=None)
        self.assertIn("daemon up", ran.stdout)
        self.wait_until(lambda: not [pid for pid in processes_naming(mark)
                                     if b"daemon.py" in read_bytes(f"/proc/{pid}/cmdline")])

    def test_a_task_replaces_by_links_and_freezes_what_it_can_reach(self):
        self.serve()
        secret = self.muster.state / "secret-of-the-server"
        secret.write_text(SECRET)
        os.chmod(secret, 0o600)
        code = f"""
import os, signal, subprocess, time
art = "/artifacts"
os.symlink("{secret}", art + "/link")
os.symlink("{self.muster.state}", art + "/folder")
os.mkdir(art + "/closed", 0o000)
open(art + "/unreadable", "w").close()
os.chmod(art + "/unreadable", 0)
for name in ("ranks", "metrics", "output", "hostfile", "ssh"):
    path = os.environ["MUSTER_GENERATED"] + "/" + name
    try:
        os.rename(path, path + "-moved")
    except OSError:
        pass
    try:
        os.symlink("{self.muster.state}", path)
    except OSError:
        pass
os.chmod(os.environ["MUSTER_GENERATED"], 0)
os.chmod(os.path.expanduser("~"), 0)
stopped = subprocess.Popen(["sleep", "1000000"], start_new_session=True)
os.kill(stopped.pid, signal.SIGSTOP)
print("hostile", flush=True)
"""
        self.muster.script("hostile.py", code, mode=0o644)
        ran = self.submit(self.mal, "single", "hostile", "--artifacts", "--follow", "--no-prefix",
                          "--", "python3", self.muster.work / "hostile.py", code=None)
        self.assertIn("hostile", ran.stdout, ran.stderr)
        copied = self.muster.work / "copied"
        self.mal.run("artifacts", "get", "hostile", "--to", copied, code=None)
        for path in copied.rglob("*"):
            self.assertNotIn(SECRET.encode(), b"" if path.is_symlink() else read_bytes(path))
        self.assertEqual(secret.read_text(), SECRET)
        self.assertEqual(secret.stat().st_uid, os.geteuid())

        self.mal.run("delete", "hostile")

        self.wait_until(lambda: not matching(self.muster.state / "jobs", ".removed/*"))
        self.assertTrue(secret.exists())

    def test_the_server_and_doctor_report_the_accounts(self):
        server = self.serve()
        self.assertIn(self.announced, server.errors)
        self.muster.configure("listen: 127.0.0.1:0")
        text = self.muster.run("doctor", code=None).stdout
        self.assertRegex(" ".join(text.split()), "accounts .*" + self.diagnosed)


@unittest.skipIf(os.geteuid() != 0, "the account of the tests is another class's")
class AsRootUnderOneAccount(Tenants, MusterTest):
    account = "root"

    def test_jobs_of_several_projects_are_refused_unless_they_trust_each_other(self):
        self.serve(trusting=False)
        self.gate = self.muster.gate()
        self.submit(self.ada, "single", "first", "--", "sh", "-c", f"echo up; {self.gate.wait}")

        refused = self.submit(self.mal, "single", "second", "--", "true", code=None)

        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("cannot isolate projects from each other: its tasks run as root", refused.stderr)
        self.assertIn("trust_each_other", refused.stderr)
        self.assertNotIn("team-a", refused.stderr)
        self.gate.open()
        self.wait_for(self.ada, "first", "up")


class Account:
    """An ordinary account of this machine, with keys in its home and a copy of Muster's programs. The end of the test
    removes it."""

    count = 0

    def __init__(self, test):
        Account.count += 1
        self.name = f"muster-t{os.getpid()}-{Account.count}"
        home, programs = f"/tmp/{self.name}", f"/tmp/{self.name}-programs"
        test.addCleanup(shutil.rmtree, home)
        made = make_account(test, self.name, "--create-home", "--home-dir", home, "--shell", "/bin/sh")
        self.uid, gid = made.pw_uid, made.pw_gid
        os.mkdir(f"{home}/.ssh")
        Path(f"{home}/.ssh/id_ed25519").write_text("key")
        Path(f"{home}/.pgpass").write_text("password")
        subprocess.run(["chown", "-R", f"{self.uid}:{gid}", home], check=True)
        os.mkdir(programs, 0o755)
        test.addCleanup(shutil.rmtree, programs)
        for program in ("muster", "muster-shim", "muster-helper"):
            shutil.copy(MUSTER.with_name(program), programs)
        self.become = ["setpriv", f"--reuid={self.uid}", f"--regid={gid}", "--clear-groups"]
        self.muster = f"{programs}/{MUSTER.name}"


@unittest.skipIf(os.geteuid() != 0, "only root gives ids away")
class AsRootWithSubIds(WithAccounts, Tenants, MusterTest):
    account = "root"
    announced = "or else under ids of their own (tasks.subids)"
    diagnosed = "the Unix account of each user, else ids of its own"

    def test_several_projects_have_jobs_at_once(self):
        self.serve(trusting=False)
        self.gate = self.muster.gate()
        self.submit(self.ada, "single", "first", "--", "sh", "-c", f"echo up; {self.gate.wait}")

        self.submit(self.mal, "single", "second", "--follow", "--", "true")

        self.gate.open()
        self.wait_for(self.ada, "first", "up")

    def test_root_in_a_job_is_nobody_outside(self):
        self.serve()
        ran = self.submit(self.mal, "single", "root", "--follow", "--no-prefix", "--", "sh", "-c",
                          "id -u; touch /tmp/x && chown 1000 /tmp/x && echo chowned; cat /proc/self/uid_map; "
                          "cat /etc/shadow; chmod u+s /tmp/x; id -u root")
        self.assertIn("chowned", ran.stdout)
        self.assertRegex(ran.stdout, r"0 +1[89]\d{8} +65536")
        self.assertNotIn("root:", ran.stdout)

    def test_ids_that_are_used_up_are_reported(self):
        self.serve("--task-subids", "1900000000:131072")
        self.submit(self.ada, "single", "first", "--follow", "--", "true")

        refused = self.submit(self.mal, "single", "second", "--follow", "--", "true", code=None)

        self.assertNotEqual(refused.returncode, 0)
        text = refused.stdout + refused.stderr
        self.assertIn("no user ids are left for 'mal'", text)
        self.assertIn("tasks.subids", text)

    def test_ids_of_others_are_refused_at_the_start_all_at_once(self):
        name = f"mt{os.getpid()}-lent"
        make_account(self, name, "--no-create-home")
        first = int(re.search(rf"^{name}:(\d+):", Path("/etc/subuid").read_text(), re.MULTILINE).group(1))
        ran = self.muster.run("server", "--listen", "127.0.0.1:0", "--task-accounts", "own", "--task-subids",
                              f"{first}:200000", code=None)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("the ids of tasks.subids are in use", ran.stderr)
        for file in ("subuid", "subgid"):
            self.assertIn(f"/etc/{file} assigns to '{name}'", ran.stderr)


@unittest.skipIf(os.geteuid() != 0, "only root becomes another account")
class AsRootWithMappedAccounts(WithAccounts, Tenants, MusterTest):
    account = "root"
    announced = "tasks run under the Unix account of their user"
    diagnosed = "the Unix account of each user"

    def prepare_users(self):
        for person in (self.ada, self.mal):
            name = f"mt{os.getpid()}-{person.name}"
            make_account(self, name, "--no-create-home", "--home-dir", f"/home/{name}")
            self.muster.run("user", "set", person.name, "--account", name)

    def test_a_job_runs_under_the_account(self):
        self.serve()
        ran = self.submit(self.ada, "single", "who", "--follow", "--no-prefix", "--", "sh", "-c",
                          "id -un; grep Cap /proc/self/status; cat /proc/self/uid_map")
        self.assertIn(f"mt{os.getpid()}-ada", ran.stdout)
        self.assertEqual(set(re.findall(r"Cap\w+:\s+(\w+)", ran.stdout)), {"0" * 16})

    def test_the_processes_of_each_task_of_an_account_are_counted_apart(self):
        self.serve("--task-processes", "40")
        self.gate = self.muster.gate()
        sleepers = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 100000 & done"
        self.submit(self.ada, "single", "first", "--", "sh", "-c",
                    f"grep processes /proc/self/limits; {sleepers}; echo up; {self.gate.wait}")
        text = self.wait_for(self.ada, "first", "up")

        second = self.submit(self.ada, "single", "second", "--follow", "--no-prefix", "--", "sh", "-c",
                             f"{sleepers}; echo up; stat -L -c 'owner %u:%g' /etc/passwd")

        self.assertRegex(text, r"Max processes +40 +40 ")
        self.assertIn("up", second.stdout)
        # Files of the machine are shown with their real ids.
        self.assertIn("owner 0:0", second.stdout)
        self.gate.open()

    def test_a_fork_bomb_of_an_account_is_ended_with_the_reason(self):
        self.serve("--task-processes", "40")

        ran = self.submit(self.mal, "single", "bomb", "--follow", "--", "python3", "-c",
                          "import os\nwhile True:\n try: os.fork()\n except OSError: pass", code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("too many processes and threads (its limit is 40", ran.stderr)

    def test_accounts_that_cannot_be_used_are_refused(self):
        self.serve()
        for account, why in (("no-such-account", "there is no account 'no-such-account'"),
                             ("root", "is root, and jobs may not run as root"), ("7", "is not the name of a Unix account")):
            refused = self.muster.run("user", "set", "ada", "--account", account, code=None)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(why, refused.stderr)


class Ordinary:
    """A base class: the server runs under an ordinary account."""

    niceness = 10

    def setUp(self):
        if os.geteuid() != 0:
            self.account = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
            self.muster = self.new_muster()
            return
        account = Account(self)
        self.account = account.name
        self.muster = self.new_muster(prefix=account.become, uid=account.uid, binary=account.muster)
        self.muster.environment |= {"USER": self.account, "LOGNAME": self.account}


@unittest.skipUnless(shutil.which("newuidmap"), "uidmap is not installed")
class AsAnOrdinaryAccountWithSubIds(Ordinary, WithAccounts, Tenants, MusterTest):
    announced = "tasks run under ids of their user (/etc/subuid)"
    diagnosed = "ids of its own for each user"


class AsAnOrdinaryAccount(Ordinary, Tenants, MusterTest):

    def test_without_newuidmap_all_tasks_run_under_one_account(self):
        self.accounts = "auto"
        programs = self.muster.work / "path"
        programs.mkdir()
        for folder in os.environ["PATH"].split(":"):
            for program in Path(folder).glob("*") if Path(folder).is_dir() else ():
                link = programs / program.name
                if program.name not in ("newuidmap", "newgidmap") and not link.is_symlink():
                    link.symlink_to(program)
        server = self.serve(environment={"PATH": str(programs)})

        self.assertIn("newuidmap is not installed", server.errors)
        ran = self.submit(self.ada, "single", "who", "--follow", "--no-prefix", "--", "id", "-u")
        self.assertIn(str(self.muster.state.stat().st_uid), ran.stdout)

    def test_an_sshd_accepts_no_key_of_another_job(self):
        self.serve("--task-network", "shared")
        self.gate = self.muster.gate()
        self.submit(self.ada, "mpi", "own", "--workers", 1, "--", "sh", "-c",
                    f"cat /generated/ssh/config; ssh -F /generated/ssh/config own-worker-0 echo within; {self.gate.wait}")
        text = self.wait_for(self.ada, "own", "within")
        address, port = (re.search(rf"{word} +(\S+)", text).group(1) for word in ("HostName", "Port"))

        ran = self.submit(self.mal, "mpi", "other", "--workers", 1, "--follow", "--no-prefix", "--", "sh", "-c",
                          "ssh -F /generated/ssh/config other-worker-0 echo own key; "
                          f"ssh -F /generated/ssh/config -o HostName={address} -o Port={port} -o StrictHostKeyChecking=no "
                          "-o UserKnownHostsFile=/dev/null other-worker-0 echo intruded", code=None)

        self.assertIn("own key", ran.stdout)
        self.assertIn("Permission denied (publickey", ran.stdout + ran.stderr)
        self.assertNotIn("intruded", ran.stdout)
        self.gate.open()

    def test_a_shared_network_makes_the_server_take_one_project_at_a_time(self):
        self.serve("--task-network", "shared", trusting=False)
        self.gate = self.muster.gate()
        self.submit(self.ada, "single", "first", "--", "sh", "-c", f"echo up; {self.gate.wait}")

        refused = self.submit(self.mal, "single", "second", "--", "true", code=None)

        self.assertIn("its tasks share the machine's network", refused.stderr)
        self.gate.open()
        self.wait_for(self.ada, "first", "up")

    def test_several_projects_have_jobs_where_they_are_kept_apart(self):
        self.serve(trusting=False)
        self.gate = self.muster.gate()
        self.submit(self.ada, "single", "first", "--", "sh", "-c", f"echo up; {self.gate.wait}")

        self.submit(self.mal, "single", "second", "--follow", "--", "true")

        self.gate.open()
        self.wait_for(self.ada, "first", "up")


class Documentation(unittest.TestCase):

    def test_the_page_lists_every_attempt(self):
        self.assertEqual(set(rows_of_attempts()), {name.replace("_", " ") for name in tenants_attacker.ATTEMPTS})

    def test_the_page_names_only_tests_that_exist(self):
        page = (ROOT / "docs" / "isolation.md").read_text()
        table = page[page.index("| promise |"):].split("\n\n")[0].splitlines()[2:]
        for row in table:
            files = [ROOT / path for path in re.findall(r"`([\w/]+\.(?:py|cc))`", row)]
            names = re.findall(r"`(\w+)`", row.split(" | ")[1])
            self.assertTrue(files and names, row)
            text = "\n".join(file.read_text() for file in files)
            for name in names:
                self.assertRegex(text, rf"\b{name}\b", row)


if __name__ == "__main__":
    main()
