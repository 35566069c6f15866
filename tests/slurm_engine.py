#!/usr/bin/env python3
"""Runs the conformance suite of the engines (platform/engine/conformance.h) and the tests of the Slurm engine alone, on
a new cluster of Debian's Slurm.

    tests/slurm_engine.py                       through sbatch and squeue, with nodes that share the jobs' folder
    tests/slurm_engine.py --rest                through slurmrestd
    tests/slurm_engine.py --apart               nodes with a /tmp and processes of their own
    tests/slurm_engine.py --gtest_filter=*Exec*

To act on the cluster itself, a test connects to the socket that MUSTER_ENGINE_CONTROL names and sends one line, such
as "kill_controller", "kill_node n2", "drain n1 its fan is loud". The answer is "done", or the error.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from slurm_cluster import SlurmCluster
from slurm_daemons import ENDING_BOUND

PROGRAM = (Path(os.environ.get("MUSTER_BUILD", "build/release")) / "platform/engine/slurm_conformance_test")
# The requests and their numbers of arguments; the last argument is the rest of the line.
WORDS = {"kill_controller": 0, "start_controller": 0, "freeze_controller": 0, "thaw_controller": 0, "kill_node": 1,
         "start_node": 1, "drain": 2, "undrain": 1, "cancel": 1, "requeue": 1, "suspend": 1, "resume": 1}
# The requests that run a program of Slurm.
PROGRAMS = {"cancel": ["scancel"], "requeue": ["scontrol", "requeue"], "resume": ["scontrol", "resume"]}


class Control:
    """Acts on the cluster when a test requests it. Daemons end with the thread that has started them, so serve()
    carries out the requests on the thread that calls it."""

    def __init__(self, cluster, path):
        self._cluster = cluster
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()

    def serve(self):
        """Serves requests until stop()."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # stop() has closed it
                return
            with connection:
                try:
                    self._do(connection.makefile("r").readline().strip())
                    connection.sendall(b"done\n")
                except Exception as error:  # the test receives every error
                    connection.sendall(f"{error}\n".encode())

    def stop(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _do(self, line):
        word, *rest = line.split(None, 1)
        if word not in WORDS:
            raise ValueError(f"'{word}' is none of {' '.join(WORDS)}")
        rest = rest[0].split(None, WORDS[word] - 1) if rest else []
        if len(rest) != WORDS[word]:
            raise ValueError(f"'{word}' takes {WORDS[word]} words")
        if word in PROGRAMS:
            self._cluster.run(*PROGRAMS[word], *rest)
        else:
            getattr(self._cluster, word)(*rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--apart", action="store_true")
    options, more = parser.parse_known_args()

    # Tasks use the scratch folder of a test under the same path, so all nodes must see that path.
    with SlurmCluster(rest=options.rest, apart=options.apart) as cluster, tempfile.TemporaryDirectory(
            prefix="mt-", dir=cluster.folder) as name:
        path = Path(name) / "control"
        control = Control(cluster, path)
        environment = os.environ | cluster.environment | {"MUSTER_ENGINE_CONTROL": str(path), "TEST_TMPDIR": name}
        if options.rest:
            environment["MUSTER_SLURM_REST"] = f"unix://{cluster.rest_socket}"
        codes = []

        def test():
            codes.append(subprocess.run([PROGRAM, *more], env=environment, check=False).returncode)
            control.stop()

        testing = threading.Thread(target=test)
        testing.start()
        control.serve()
        testing.join()
        left = [f"{job['id']} {job['state']} {job['comment']}" for job in cluster.active_jobs()]
        cluster.until(lambda: all(job["state"] == "COMPLETING" for job in cluster.active_jobs()), "all has ended",
                      bound=ENDING_BOUND)
        left += cluster.left_on_nodes()
        if left:
            print("left behind:", *left, sep="\n  ", file=sys.stderr)
        return codes[0] or (1 if left else 0)


if __name__ == "__main__":
    sys.exit(main())
