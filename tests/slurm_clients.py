#!/usr/bin/env python3
"""Tests the contract of every client of Slurm (platform/engine/slurm/slurm_client.h) on a real cluster: the client of
Slurm's programs, and that of slurmrestd with and without tokens, in each version that slurmrestd serves.

    tests/slurm_clients.py [--gtest_filter=...]

The tests themselves are in slurm_client_contract_test.cc. This program starts the cluster, and kills or freezes the
controller for the tests that need it. It also counts the requests to the controller for one listing of the queue, by
the controller's own statistics.
"""

import os
import subprocess
import sys
from pathlib import Path

from slurm_cluster import SlurmCluster
from slurm_daemons import Daemon

PROGRAM = Path(os.environ.get("MUSTER_BUILD", "build/release")) / "platform/engine/slurm_client_test"


def start_own_rest(cluster, socket):
    """Starts a slurmrestd of this user, which identifies its clients by the socket."""
    # Without this variable, slurmrestd refuses to run as root.
    environment = dict(os.environ) | cluster.environment | {
        "SLURMRESTD_SECURITY": "disable_user_check,disable_unshare_sysv,disable_unshare_files"}
    environment.pop("SLURM_JWT", None)
    daemon = Daemon("slurmrestd", [
        "slurmrestd", "-v", "-a", "rest_auth/local",
        # With its accounting plugins, slurmrestd ends if there is no accounting database.
        "-s", "openapi/v0.0.36,openapi/v0.0.37,openapi/v0.0.38", f"unix:{socket}"],
        environment, cluster.folder / "own-rest.log")
    cluster.until(socket.exists, "slurmrestd listens")
    return daemon


def calls_of_a_look(environment, cluster, ways):
    """The calls to the controller for one listing of the queue, for each client."""
    found = {}
    for way in ways:
        cluster.reset_calls()
        run(environment, f"Look/*/{way}")
        found[way] = cluster.calls()
    return found


def run(environment, tests, *more):
    """Runs these tests; returns whether they passed. If no test ran, this is a failure."""
    listed = subprocess.run([PROGRAM, "--gtest_list_tests", f"--gtest_filter={tests}", *more],
                            env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    if not any(line.startswith("  ") for line in listed.splitlines()):
        return not more and print(f"there are no tests {tests}", file=sys.stderr)
    return subprocess.run([PROGRAM, f"--gtest_filter={tests}", *more], env=environment, timeout=900,
                          check=False).returncode == 0


def main():
    more = sys.argv[1:]
    with SlurmCluster(nodes=3, cpus=8, memory_mb=8000, gpus=2, rest=True) as cluster:
        socket = cluster.folder / "own-rest.sock"
        own = start_own_rest(cluster, socket)
        environment = dict(os.environ) | cluster.environment | {
            "MUSTER_SLURM_OWN_SOCKET": f"unix://{socket}",
            "MUSTER_SLURM_SOCKET": f"unix://{cluster.rest_socket}",
            "MUSTER_SLURM_PORT": cluster.rest_url,
            "MUSTER_SLURM_USER": "root"}
        try:
            passed = run(environment, "Ways/*", *more)
            if not more:
                for way, calls in calls_of_a_look(environment, cluster, ["Programs", "Own38"]).items():
                    print(f"a look at the queue by {way}: {calls}")
                    if calls.get("REQUEST_JOB_INFO", 0) + calls.get("REQUEST_JOB_USER_INFO", 0) != 1:
                        print(f"by {way} it is not one call for the jobs", file=sys.stderr)
                        passed = False
                cluster.kill_controller()
                passed = run(environment, "Down*/*") and passed
                cluster.start_controller()
                cluster.freeze_controller()
                passed = run(environment, "Mute/*") and passed
                cluster.thaw_controller()
                passed = run(environment, "After/*") and passed
        finally:
            own.end()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
