"""Two projects on one engine of containers: the job of one tries in many ways to read, change, signal, slow down or name
the job of the other, the machine, and the server. The attempts are in tenants_attacker.py; docs/isolation.md has the
table of outcomes, which the last test compares."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import unittest
from pathlib import Path

import tenants_attacker
from containers_harness import ContainerTest
from e2e_login import Person, TOKEN
from muster_harness import BOUND, ROOT, processes_naming, tls_port, main
from tenants_process import SECRET, Tenants, free_port, not_kept_apart

PYTHON = "localhost/muster-test-python"

VICTIM = r'''
import ctypes, http.server, os, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
port, key, abstract = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for place in ("/tmp", "/var/tmp", "/dev/shm"):
    try:
        open(place + "/victim-file", "w").close()
    except OSError:
        pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", port), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + abstract)
listener.listen()
assert libc.shmget(key, 4096, 0o1666) >= 0 and libc.semget(key, 1, 0o1666) >= 0 and libc.msgget(key, 0o1666) >= 0
print("serves at", socket.gethostbyname(socket.gethostname()), flush=True)
threading.Event().wait()
'''


class OnContainers(Tenants, ContainerTest):
    account = "root"
    KNOWN = not_kept_apart(1)

    def submit_files(self, person, name, files, *words, follow=False):
        workspace = self.muster.workspace()
        for file, text in files.items():
            (workspace / file).write_text(text)
            os.chmod(workspace / file, 0o644)
        project = {"ada": "team-a", "mal": "team-b"}[person.name]
        more = ["--follow", "--no-prefix"] if follow else []
        return person.run("submit", "single", name, "--project", project, "-i", PYTHON, "--workspace", workspace,
                          *more, "--", "python3", *words, code=None if follow else 0)

    def started_victim(self):
        self.port, key = free_port(), os.getpid()
        self.submit_files(self.ada, "victim", {"victim.py": VICTIM}, "victim.py", self.port, key, f"victim-{key}",
                          "victim-mark")
        text = self.wait_for(self.ada, "victim", "serves at")
        job = json.loads(self.ada.run("get", "victim", "-o", "json").stdout)
        return {"state": str(self.muster.state), "secret": SECRET, "victim_id": job["id"],
                "victim_folder": str(self.muster.task_folder(job, "main")), "port": self.port,
                "address": re.search(r"serves at (\S+)", text).group(1), "shm_key": key,
                "abstract": f"victim-{key}", "home": self.account_home(), "victim_pids": processes_naming("victim-mark")}

    def outcomes(self, facts):
        attacker = (ROOT / "tests" / "tenants_attacker.py").read_text()
        ran = self.submit_files(self.mal, "attack", {"attacker.py": attacker, "facts.json": json.dumps(facts)},
                                "attacker.py", "facts.json", follow=True)
        self.assertIn("done", ran.stdout, ran.stderr)
        return dict(re.findall(r"^(\w+) (held|absent|BROKEN.*)", ran.stdout, re.MULTILINE))

    def test_a_hostile_job_gets_at_nothing_of_another_project(self):
        self.serve()
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        outcomes = self.outcomes(facts)

        self.assertEqual(set(outcomes), set(tenants_attacker.ATTEMPTS))
        broken = {name: how for name, how in outcomes.items() if how.startswith("BROKEN")}
        self.assertEqual(set(broken), self.KNOWN, broken)
        self.assertFalse(os.path.exists(facts["home"] + "/.profile-of-attacker"))
        for pid in facts["victim_pids"]:
            with contextlib.suppress(ProcessLookupError):  # of the command that submitted it
                self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), 0)
        self.muster.run("stop", "--now", "victim")


# Inherited tests that need the process engine.
for name in [name for name in dir(Tenants) if name.startswith("test_") and name not in vars(OnContainers)]:
    setattr(OnContainers, name, None)


if __name__ == "__main__":
    main()
