"""Two projects share one container engine. The job of one project tries to read, change, signal, slow down or name the
job of the other project, the machine and the server. The attempts are in tenants_attacker.py; docs/isolation.md has the
table of outcomes."""

import contextlib
import json
import os

from containers_harness import ContainerTest
from muster_harness import ROOT, main, processes_naming
from tenants_harness import PROJECTS, VICTIM, Attacked, not_kept_apart

PYTHON = "localhost/muster-test-python"


class OnContainers(Attacked, ContainerTest):
    account = "root"
    KNOWN = not_kept_apart(1)

    def submit_files(self, person, name, files, *words, follow=False):
        workspace = self.muster.workspace()
        for file, text in files.items():
            (workspace / file).write_text(text)
            os.chmod(workspace / file, 0o644)
        more = ["--follow", "--no-prefix"] if follow else []
        return person.run("submit", "single", name, "--project", PROJECTS[person.name], "-i", PYTHON,
                          "--workspace", workspace, *more, "--", "python3", *words, code=None if follow else 0)

    def started_victim(self):
        self.submit_files(self.ada, "victim", {"victim.py": VICTIM}, "victim.py", *self.words_of_victim("-"))
        facts, _ = self.facts_of_victim()
        # Not "victim-mark": the victim of another run of these tests has it, too.
        pids = processes_naming(f"victim-{self.key}\0-\0victim-mark")
        self.assertTrue(pids)
        return facts | {"victim_pids": pids}

    def run_attack(self, facts):
        attacker = (ROOT / "tests" / "tenants_attacker.py").read_text()
        return self.submit_files(self.mal, "attack", {"attacker.py": attacker, "facts.json": json.dumps(facts)},
                                 "attacker.py", "facts.json", follow=True)

    def test_a_hostile_job_gets_at_nothing_of_another_project(self):
        self.serve(environment={"DOCKER_HOST": self.engine.url})
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        broken = self.broken_by_attack(facts)

        self.assertEqual(set(broken), self.KNOWN, broken)
        self.assertFalse(os.path.exists(facts["home"] + "/.profile-of-attacker"))
        for pid in facts["victim_pids"]:
            with contextlib.suppress(ProcessLookupError):  # the command that submitted the job may have ended
                self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), os.getpriority(os.PRIO_PROCESS, 0))
        self.muster.run("stop", "--now", "victim")


if __name__ == "__main__":
    main()
