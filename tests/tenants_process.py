"""Two users of two projects on one machine: the job of one tries in many ways to read, change, signal, slow down or name
the job of the other, and the server. On the process engine, as an ordinary account and as root.

The attempts are in tenants_attacker.py; docs/isolation.md has the table of them, which the last test compares."""

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
from e2e_login import Person, TOKEN
from muster_harness import BOUND, MUSTER, ROOT, MusterTest, descendants, main, tls_port

SECRET = "hunter2-of-the-server"

VICTIM = r'''
import ctypes, http.server, json, os, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
port, key, abstract, gate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
for place in ("/tmp", "/var/tmp", "/dev/shm"):
    open(place + "/victim-file", "w").close()
open(os.path.expanduser("~/victim-home"), "w").close()
server = http.server.ThreadingHTTPServer(("0.0.0.0", port), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + abstract)
listener.listen()
assert libc.shmget(key, 4096, 0o1666) >= 0 and libc.semget(key, 1, 0o1666) >= 0 and libc.msgget(key, 0o1666) >= 0
print("serves at", socket.gethostbyname(socket.gethostname()), flush=True)
open(gate).read(1)
print("nice", os.nice(0), "home", sorted(os.listdir(os.path.expanduser("~"))), flush=True)
'''


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Tenants:
    """Shared by both kinds of account; not a test by itself."""

    # Attempts that succeed on some machines, and are documented as such.
    KNOWN = set()

    def serve(self, *words, **options):
        server = self.muster.start_server("--listen", "127.0.0.1:0", *words,
                                          environment={"PGPASSWORD": SECRET}, **options)
        self.url = f"https://127.0.0.1:{tls_port(server)}"
        self.fingerprint = self.muster.run("server", "--fingerprint").stdout.split()[-1].replace(":", "").lower()
        for team in ("team-a", "team-b"):
            self.muster.run("project", "create", team)
        self.ada = self.logged_in("ada", "team-a")
        self.mal = self.logged_in("mal", "team-b")
        return server

    def logged_in(self, name, team):
        person = Person(self.muster, name)
        made = self.muster.run("user", "create", name, "--project", f"{team}=member").stdout
        person.run("login", self.url, "--name", "lab", "--fingerprint", self.fingerprint, "--token-stdin",
                   input=TOKEN.search(made).group(0) + "\n")
        return person

    def submit(self, person, kind, name, *words, **options):
        """Submits a job of the user's project, in the folder that all tasks of these tests see."""
        project = {"ada": "team-a", "mal": "team-b"}[person.name]
        return person.run("submit", kind, name, "--project", project, "--folder", self.muster.work, *words, **options)

    def wait_for(self, person, job, words):
        deadline = time.monotonic() + BOUND
        while words not in (text := person.run("logs", job, code=None).stdout):
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.2)
        return text

    def started_victim(self):
        self.gate = self.muster.gate()
        self.port, key = free_port(), os.getpid()
        self.muster.script("victim.py", VICTIM, mode=0o644)
        self.submit(self.ada, "single", "victim", "--", "python3",
                     self.muster.work / "victim.py", self.port, key, f"victim-{key}", self.muster.work / "gate",
                     "victim-mark")
        text = self.wait_for(self.ada, "victim", "serves at")
        job = json.loads(self.ada.run("get", "victim", "-o", "json").stdout)
        return {"state": str(self.muster.state), "secret": SECRET, "victim_id": job["id"],
                "victim_folder": str(self.muster.task_folder(job, "main")), "port": self.port,
                "address": re.search(r"serves at (\S+)", text).group(1), "shm_key": key,
                "abstract": f"victim-{key}", "home": self.account_home(),
                "victim_pids": descendants(self.muster.shim_of(job, "main"))}

    def account_home(self):
        return str(Path(f"~{self.account}").expanduser())

    def listen_as_the_account(self, facts):
        """Starts other programs of the account: a tmux, a session bus, a service of the machine."""
        sockets = []
        facts["account_socket"] = f"/tmp/tmux-of-{os.getpid()}"
        facts["account_abstract"] = f"bus-of-{os.getpid()}"
        for family, address in ((socket.AF_UNIX, facts["account_socket"]),
                                (socket.AF_UNIX, "\0" + facts["account_abstract"]),
                                (socket.AF_INET, ("127.0.0.1", 0))):
            listener = socket.socket(family)
            self.addCleanup(listener.close)
            listener.bind(address)
            listener.listen()
            sockets.append(listener)
        os.chmod(facts["account_socket"], 0o777)
        self.addCleanup(os.unlink, facts["account_socket"])
        facts["machine_port"] = sockets[-1].getsockname()[1]

    def outcomes(self, facts):
        shutil.copy(ROOT / "tests" / "tenants_attacker.py", self.muster.work)
        path = self.muster.work / "facts.json"
        path.write_text(json.dumps(facts))
        os.chmod(path, 0o644)
        ran = self.submit(self.mal, "single", "attack", "--follow", "--no-prefix", "--",
                           "python3", self.muster.work / "tenants_attacker.py", path, code=None)
        self.assertIn("done", ran.stdout, ran.stderr)
        return dict(re.findall(r"^(\w+) (held|absent|BROKEN.*)", ran.stdout, re.MULTILINE))

    def test_a_hostile_job_gets_at_nothing_of_another_project(self):
        self.serve()
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        outcomes = self.outcomes(facts)

        self.assertEqual(set(outcomes), set(tenants_attacker.ATTEMPTS))
        broken = {name: how for name, how in outcomes.items() if how.startswith("BROKEN")}
        self.assertLessEqual(set(broken), self.KNOWN, broken)
        self.assertFalse(os.path.exists(facts["home"] + "/.profile-of-attacker"))
        self.gate.open()
        text = self.wait_for(self.ada, "victim", "nice ")
        self.assertRegex(text, r"nice 0 home \['victim-home'\]")

    def test_a_program_beside_the_tasks_own_is_as_confined(self):
        self.serve()
        self.gate = self.muster.gate()
        self.submit(self.mal, "single", "job", "--", "sh", "-c", f"echo up; {self.gate.wait}")
        self.wait_for(self.mal, "job", "up")

        ran = self.mal.run("exec", "job", "--", "python3", "-c",
                           "import ctypes, socket\n"
                           "print('unshare', ctypes.CDLL(None).unshare(0x10000000))\n"
                           "print('reaches', socket.socket().connect_ex(('127.0.0.1', %d)))\n"
                           "print('cores', open('/proc/self/limits').read().count('4096'))" % tls_port_of(self.url))

        self.assertIn("unshare -1", ran.stdout)
        self.assertNotIn("reaches 0", ran.stdout)
        self.gate.open()

    def test_tasks_of_one_job_reach_each_other_and_ports_are_forwarded(self):
        self.serve()

        ran = self.submit(self.mal, "mpi", "dist", "--workers", 2, "--follow", "--",
                           "mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c", "echo rank on $(hostname)")

        self.assertEqual(sorted(re.findall(r"rank on (\S+)", ran.stdout)), ["dist-worker-0", "dist-worker-1"])

    def test_a_port_of_a_job_is_forwarded_out_of_its_network(self):
        self.serve()
        facts = self.started_victim()
        local = free_port()
        forward = self.ada_stream("port-forward", "victim", f"{local}:{facts['port']}")
        try:
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
        self.muster.start_server("--listen", self.url.removeprefix("https://"))

        ran = self.ada.run("exec", "victim", "--", "python3", "-c",
                           f"import socket; print(socket.create_connection(('127.0.0.1', {facts['port']})) and 'there')")

        self.assertIn("there", ran.stdout)
        self.gate.open()


def tls_port_of(url):
    return int(url.rsplit(":", 1)[1])


@unittest.skipIf(os.geteuid() != 0, "the account of the tests is the next class's")
class AsRoot(Tenants, MusterTest):
    account = "root"

    def test_jobs_of_several_projects_are_refused_unless_they_trust_each_other(self):
        self.serve(trusting=False)
        self.gate = self.muster.gate()
        self.submit(self.ada, "single", "first", "--", "sh", "-c", f"echo up; {self.gate.wait}")

        refused = self.submit(self.mal, "single", "second", "--", "true", code=None)

        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("cannot keep projects apart: its tasks run as root", refused.stderr)
        self.assertIn("trust_each_other", refused.stderr)
        self.assertNotIn("team-a", refused.stderr)
        self.gate.open()
        self.wait_for(self.ada, "first", "up")


class AsAnOrdinaryAccount(Tenants, MusterTest):

    def setUp(self):
        if os.geteuid() != 0:
            self.account = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
            self.muster = self.new_muster()
            return
        self.account = f"muster-t{os.getpid()}"
        home = f"/tmp/{self.account}"
        self.addCleanup(shutil.rmtree, home)
        subprocess.run(["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", self.account],
                       check=True)
        self.addCleanup(subprocess.run, ["userdel", self.account], check=True, capture_output=True)
        uid, gid = (int(subprocess.run(["id", flag, self.account], capture_output=True, text=True).stdout)
                    for flag in ("-u", "-g"))
        os.mkdir(f"{home}/.ssh")
        Path(f"{home}/.ssh/id_ed25519").write_text("key")
        Path(f"{home}/.pgpass").write_text("password")
        subprocess.run(["chown", "-R", f"{uid}:{gid}", home], check=True)
        programs = f"/tmp/{self.account}-programs"
        os.mkdir(programs, 0o755)
        self.addCleanup(shutil.rmtree, programs)
        for program in ("muster", "muster-shim", "muster-helper"):
            shutil.copy(MUSTER.with_name(program), programs)
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        self.muster = self.new_muster(prefix=become, uid=uid, binary=f"{programs}/{MUSTER.name}")
        self.muster.environment |= {"USER": self.account, "LOGNAME": self.account}

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
        page = (ROOT / "docs" / "isolation.md").read_text()
        for name in tenants_attacker.ATTEMPTS:
            self.assertIn(f"| {name.replace('_', ' ')} |", page)


if __name__ == "__main__":
    main()
