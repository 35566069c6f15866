#!/usr/bin/env python3
"""Starts a private Slurm cluster (slurm_cluster.py), and runs a command with SLURM_CONF set to it. Exits with the code
of the command, and removes the cluster. Requires root.

    tests/with_slurm.py COMMAND...
    tests/with_slurm.py --rest COMMAND...     also starts slurmrestd, at SLURM_REST_URL and SLURM_REST_SOCKET
    tests/with_slurm.py --apart COMMAND...    nodes with a /tmp and processes of their own
    tests/with_slurm.py --nodes 8 COMMAND...
"""

import argparse
import os
import subprocess
import sys

from slurm_cluster import SlurmCluster


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("say what to run")
    with SlurmCluster(nodes=options.nodes, rest=options.rest, apart=options.apart) as cluster:
        environment = os.environ | cluster.environment
        if options.rest:
            environment |= {"SLURM_REST_URL": cluster.rest_url, "SLURM_REST_SOCKET": str(cluster.rest_socket)}
        return subprocess.run(options.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
