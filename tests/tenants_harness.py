"""Shared by the tests of hostile jobs on every engine: a server with two projects and a user in each, a victim's job in
one project, a job in the other project that runs attacks (tenants_attacker.py), and the table of attempts in
docs/isolation.md."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import tenants_attacker
from e2e_login import Person, TOKEN
from muster_harness import BOUND, ROOT, closed_port, descendants

SECRET = "hunter2-of-the-server"

# The victim: serves until it can read from the gate, or if there is no gate ("-"), until it is stopped.
VICTIM = r'''
import ctypes, http.server, os, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
port, key, abstract, gate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
for path in ("/tmp/victim-file", "/var/tmp/victim-file", "/dev/shm/victim-file", os.path.expanduser("~/victim-home")):
    try:
        open(path, "w").close()
    except OSError as error:
        print(error, flush=True)
server = http.server.ThreadingHTTPServer(("0.0.0.0", port), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + abstract)
listener.listen()
assert libc.shmget(key, 4096, 0o1666) >= 0 and libc.semget(key, 1, 0o1666) >= 0 and libc.msgget(key, 0o1666) >= 0
print("serves at", socket.gethostbyname(socket.gethostname()), flush=True)
if gate == "-":
    threading.Event().wait()
open(gate).read(1)
print("nice", os.nice(0), "home", sorted(os.listdir(os.path.expanduser("~"))), flush=True)
'''

# The project of each user.
PROJECTS = {"ada": "team-a", "mal": "team-b"}


def machine_addresses():
    """The addresses at which other machines reach this machine."""
    listed = json.loads(subprocess.run(["ip", "-j", "-4", "address", "show", "scope", "global"], capture_output=True,
                                       check=True).stdout)
    return [info["local"] for link in listed for info in link.get("addr_info", ())]


class Attacked:
    """A base class of tests: Ada's job is the victim, and Mal's job attacks it."""

    # Attempts that succeed on some machines, as docs/isolation.md states.
    KNOWN = set()

    # The server's setting tasks.accounts.
    accounts = "shared"

    # Whether the home of tasks is another folder than the home of the account.
    has_own_homes = True

    def serve(self, *words, environment=None, **options):
        started_with = {"PGPASSWORD": SECRET, "SSH_AUTH_SOCK": f"/tmp/{SECRET}", "DOCKER_HOST": f"unix:///run/{SECRET}",
                        "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/{SECRET}"}
        address = f"127.0.0.1:{closed_port(self)}"
        server = self.muster.start_server("--listen", address, "--task-accounts", self.accounts, *words,
                                          environment=started_with | (environment or {}), **options)
        self.url = f"https://{address}"
        self.fingerprint = self.muster.run("server", "--fingerprint").stdout.split()[-1].replace(":", "").lower()
        for team in ("team-a", "team-b"):
            self.muster.run("project", "create", team)
        self.ada = self.logged_in("ada", "team-a")
        self.mal = self.logged_in("mal", "team-b")
        self.prepare_users()
        return server

    def prepare_users(self):
        pass

    def logged_in(self, name, team):
        person = Person(self.muster, name)
        made = self.muster.run("user", "create", name, "--project", f"{team}=member").stdout
        person.run("login", self.url, "--name", "lab", "--fingerprint", self.fingerprint, "--token-stdin",
                   input=TOKEN.search(made).group(0) + "\n")
        return person

    def submit(self, person, kind, name, *words, **options):
        """Submits a job of the user's project, in the folder that all tasks of these tests see."""
        return person.run("submit", kind, name, "--project", PROJECTS[person.name], "--folder", self.muster.work, *words, **options)

    def wait_for(self, person, job, words):
        deadline = time.monotonic() + BOUND
        while words not in (text := person.run("logs", job, code=None).stdout):
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.2)
        return text

    def started_victim(self):
        self.gate = self.muster.gate()
        self.muster.script("victim.py", VICTIM, mode=0o644)
        self.submit(self.ada, "single", "victim", "--", "python3", self.muster.work / "victim.py",
                    *self.words_of_victim(self.muster.work / "gate"))
        facts, job = self.facts_of_victim()
        return facts | {"victim_pids": descendants(self.muster.shim_of(job, "main"))}

    def words_of_victim(self, gate):
        self.port, self.key = closed_port(self), os.getpid()
        return self.port, self.key, f"victim-{self.key}", gate, "victim-mark"

    def facts_of_victim(self):
        """Returns the facts that an attacker may know about the victim, except for its processes, and the job."""
        text = self.wait_for(self.ada, "victim", "serves at")
        job = json.loads(self.ada.run("get", "victim", "-o", "json").stdout)
        return {"state": str(self.muster.state), "secret": SECRET, "victim_id": job["id"],
                "victim_folder": str(self.muster.task_folder(job, "main")), "port": self.port,
                "address": re.search(r"serves at (\S+)", text).group(1), "shm_key": self.key,
                "abstract": f"victim-{self.key}", "home": self.account_home()}, job

    def account_home(self):
        return str(Path(f"~{self.account}").expanduser())

    def listen_as_the_account(self, facts):
        """Opens the sockets that other programs of the account would have (a tmux or ssh-agent, a session bus, a
        service of the machine), and stores a password in its home."""
        facts["password_file"] = self.password_file(facts["home"])
        if os.geteuid() == 0:
            self.listen_in_run()
        sockets = []
        facts["account_socket"] = f"/tmp/tmux-of-{os.getpid()}"
        facts["account_abstract"] = f"bus-of-{os.getpid()}"
        for family, address in ((socket.AF_UNIX, facts["account_socket"]),
                                (socket.AF_UNIX, "\0" + facts["account_abstract"]),
                                (socket.AF_INET, ("0.0.0.0", 0)), (socket.AF_INET, ("127.0.0.1", 0))):
            listener = socket.socket(family)
            self.addCleanup(listener.close)
            listener.bind(address)
            listener.listen()
            sockets.append(listener)
        os.chmod(facts["account_socket"], 0o777)
        self.addCleanup(os.unlink, facts["account_socket"])
        facts["open_port"], facts["machine_port"] = (each.getsockname()[1] for each in sockets[-2:])
        facts["machine_addresses"] = machine_addresses()

    def password_file(self, home):
        path = Path(home, ".pgpass")
        if self.has_own_homes and not path.exists():
            path = Path(home, f".pgpass-{os.getpid()}")
            path.write_text("password")
            self.addCleanup(path.unlink)
            path.chmod(0o600)
            os.chown(path, Path(home).stat().st_uid, -1)
        return str(path)

    def listen_in_run(self):
        """Opens a socket in /run, as Docker, D-Bus and `systemd --user` do."""
        folder = Path(f"/run/muster-t{os.getpid()}")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(folder / "docker.sock"))
        listener.listen()
        (folder / "docker.sock").chmod(0o777)

    def run_attack(self, facts):
        shutil.copy(ROOT / "tests" / "tenants_attacker.py", self.muster.work)
        path = self.muster.work / "facts.json"
        path.write_text(json.dumps(facts))
        os.chmod(path, 0o644)
        return self.submit(self.mal, "single", "attack", "--follow", "--no-prefix", "--",
                           "python3", self.muster.work / "tenants_attacker.py", path, code=None)

    def broken_by_attack(self, facts):
        """Runs the attack. Returns the attempts that succeeded, with the reason."""
        ran = self.run_attack(facts)
        self.assertIn("done", ran.stdout, ran.stderr)
        outcomes = dict(re.findall(r"^(\w+) (held|absent|BROKEN.*)", ran.stdout, re.MULTILINE))
        self.assertEqual(set(outcomes), set(tenants_attacker.ATTEMPTS))
        return {name: how for name, how in outcomes.items() if how.startswith("BROKEN")}


def rows_of_attempts():
    """Attempt -> the protection against it on the process engine, in containers and on Slurm, from
    docs/isolation.md."""
    page = (ROOT / "docs" / "isolation.md").read_text()
    table = page[page.index("| attempt |"):].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def not_kept_apart(column):
    """The attempts that succeed according to docs/isolation.md."""
    return {name.replace(" ", "_") for name, cells in rows_of_attempts().items()
            if cells[column] == "**not kept apart**"}
