"""Two projects on a Slurm cluster whose nodes are shared: the job of one tries in many ways to read, change, signal, slow
down or name the job of the other, the node, and the server. The attempts are in tenants_attacker.py; docs/isolation.md has
the table of outcomes."""

from pathlib import Path

import tenants_attacker
from muster_harness import main
from slurm_harness import SlurmTest
from tenants_process import Tenants, not_kept_apart


class OnSlurm(Tenants, SlurmTest):
    account = "root"
    CLUSTER = {"nodes": 1}
    KNOWN = not_kept_apart(2)

    def test_a_hostile_job_gets_at_nothing_of_another_project_but_what_is_documented(self):
        self.serve()
        facts = self.started_victim()
        self.listen_as_the_account(facts)

        self.addCleanup(Path(facts["home"], ".profile-of-attacker").unlink, missing_ok=True)
        for place in ("/tmp", "/var/tmp"):
            self.addCleanup(Path(place, "victim-file").unlink, missing_ok=True)

        outcomes = self.outcomes(facts)

        self.assertEqual(set(outcomes), set(tenants_attacker.ATTEMPTS))
        broken = {name: how for name, how in outcomes.items() if how.startswith("BROKEN")}
        if Path(facts["home"], ".profile-of-attacker").exists():
            broken["leave_a_program_for_others_in_the_home"] = "wrote it"
        self.assertEqual(set(broken), self.KNOWN, broken)
        self.gate.open()


# Of the process engine alone.
for name in [name for name in dir(Tenants) if name.startswith("test_") and name not in vars(OnSlurm)]:
    setattr(OnSlurm, name, None)


if __name__ == "__main__":
    main()
