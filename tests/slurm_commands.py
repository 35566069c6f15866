"""Requests of tests to a Slurm cluster, by Slurm's own programs."""

import os
import re
import subprocess
import time

from slurm_daemons import BOUND

# States in which a job holds nothing and will not start any more.
OVER = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
        "PREEMPTED", "REVOKED", "TIMEOUT")


class SlurmCommands:
    """Commands for the cluster that SLURM_CONF in `environment` names; `nodes`: the names of its nodes; `folder`: a
    folder for files."""

    def __init__(self, folder, nodes):
        self.folder = folder
        self.nodes = nodes
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def whole_environment(self):
        """This process's environment, without variables that would change the behaviour of Slurm's programs."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SALLOC_", "SINFO_"))}
        return kept | self.environment

    def run(self, *words, code=0, input=None, environment=None):
        """Runs a program of Slurm; returns its output. `code`: the required exit code, or None."""
        ran = subprocess.run([str(word) for word in words], env=self.whole_environment() | (environment or {}),
                             input=input, stdin=subprocess.DEVNULL if input is None else None,
                             capture_output=True, text=True, timeout=BOUND, check=False, cwd="/")
        if code is not None and ran.returncode != code:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit code {ran.returncode}\n"
                               f"{ran.stdout}{ran.stderr}")
        return ran.stdout

    def submit(self, script, *options):
        """Submits a job of the test by sbatch; returns its id."""
        text = self.run("sbatch", "--parsable", "--output", self.folder / "hand-%j.out", *options,
                        input=f"#!/bin/sh\n{script}\n")
        return int(text.split(";")[0])

    def jobs(self):
        """Every job in the controller's memory; each component of a heterogeneous job is listed separately."""
        fields = ("id", "leader", "state", "reason", "restarts", "nodes", "partition", "account", "qos",
                  "name", "comment")
        names = ("JobID", "HetJobID", "State", "Reason", "RestartCnt", "NodeList", "Partition", "Account",
                 "QOS", "Name", "Comment")
        text = self.run("squeue", "--noheader", "--states=all", "-O", ",".join(f"{name}:\x1f" for name in names))
        return [dict(zip(fields, line.split("\x1f"))) for line in text.splitlines()]

    def job(self, identity):
        return next(job for job in self.jobs() if job["id"] == str(identity))

    def jobs_of_muster(self):
        """The jobs that a Muster has submitted, also ended ones."""
        return [job for job in self.jobs() if job["comment"].startswith("muster:")]

    def active_jobs(self):
        return [job for job in self.jobs() if job["state"] not in OVER]

    def await_state(self, identity, *states):
        """Returns the job once it is in one of these states."""
        return self.until(lambda: self._in_state(identity, states), f"job {identity} is {' or '.join(states)}")

    def until(self, true, what, bound=BOUND):
        """Polls until `true()` returns a value, because Slurm sends no events. `what`: a description for the error."""
        deadline = time.monotonic() + bound
        while not (answer := true()):
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not come that {what}:\n{self.run('squeue', '--all', code=None)}"
                                     f"{self.run('sinfo', '-R', code=None)}")
            time.sleep(0.05)
        return answer

    def token(self, seconds=600):
        """A token of root for slurmrestd."""
        return self.run("scontrol", "token", f"lifespan={seconds}").strip().partition("=")[2]

    def calls(self):
        """The number of calls of each kind to the controller since the last reset_calls(), without those of its own
        nodes."""
        text = self.run("sdiag").partition("statistics by message type")[2].partition("statistics by user")[0]
        rows = re.findall(r"(\w+)\s+\(\s*\d+\) count:(\d+)", text)
        return {name: int(count) for name, count in rows
                if not name.startswith("MESSAGE_") and name not in ("REQUEST_STATS_INFO", "REQUEST_STATS_RESET")}

    def reset_calls(self):
        self.run("sdiag", "--reset")

    def await_nodes(self, *states, nodes=None):
        wanted = nodes or self.nodes
        def there():
            listed = dict(line.split() for line in
                          self.run("sinfo", "--noheader", "-N", "-p", "main", "-o", "%N %T").splitlines())
            return all(listed[node] in states for node in wanted)
        self.until(there, f"{', '.join(wanted)} are {' or '.join(states)}")

    def drain(self, node, reason):
        self.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def undrain(self, node):
        # The command fails if the node is not drained: a restarted controller may have lost the drain.
        self.run("scontrol", "update", f"NodeName={node}", "State=UNDRAIN", code=None)

    def _in_state(self, identity, states):
        return next((job for job in self.jobs() if job["id"] == str(identity) and job["state"] in states), None)


def names_in(nodes):
    """The names of nodes in a list of Slurm, such as n1,n[3-4,6]."""
    names = set()
    for prefix, ranges, plain in re.findall(r"([^,\[]+)\[([^\]]*)\]|([^,\[]+)", nodes):
        if plain:
            names.add(plain)
        for each in ranges.split(",") if ranges else []:
            first, _, last = each.partition("-")
            names.update(f"{prefix}{number}" for number in range(int(first), int(last or first) + 1))
    return names
