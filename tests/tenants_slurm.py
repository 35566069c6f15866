"""Two projects share the nodes of a Slurm cluster. The job of one project tries to read, change, signal, slow down or
name the job of the other project, the node and the server. The attempts are in tenants_attacker.py; docs/isolation.md
has the table of outcomes."""

from pathlib import Path

from muster_harness import main
from slurm_harness import SlurmTest
from tenants_harness import Attacked, not_kept_apart


class OnSlurm(Attacked, SlurmTest):
    account = "root"
    CLUSTER = {"nodes": 1}
    has_own_homes = False
    KNOWN = not_kept_apart(2)

    def test_a_hostile_job_gets_at_nothing_of_another_project_but_what_is_documented(self):
        self.serve()
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        for path in (f"{facts['home']}/.profile-of-attacker", f"{facts['home']}/victim-home", "/tmp/victim-file",
                     "/var/tmp/victim-file"):
            self.addCleanup(Path(path).unlink, missing_ok=True)

        broken = self.broken_by_attack(facts)

        if Path(facts["home"], ".profile-of-attacker").exists():
            broken["leave_a_program_for_others_in_the_home"] = "wrote it"
        self.assertEqual(set(broken), self.KNOWN, broken)
        self.gate.open()


if __name__ == "__main__":
    main()
