#!/usr/bin/env python3
"""The conformance suite of the engines (platform/engine/conformance.h) and the tests of what only Slurm
does, on a cluster of Debian's Slurm that is started for them.

    tests/slurm_engine.py                       by sbatch and squeue, nodes that see the jobs' folder
    tests/slurm_engine.py --rest                by slurmrestd
    tests/slurm_engine.py --apart               nodes with a /tmp and processes of their own
    tests/slurm_engine.py --gtest_filter=*Exec*

What a test wants to happen to the cluster itself it says, a line a connection, to the socket that
MUSTER_ENGINE_CONTROL names, as in "kill_controller", "kill_node n2", "drain n1 its fan is loud"; "done"
comes back once it has happened, else what was wrong.
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
# What may be asked for, and how many words go with it; the last takes the rest of the line.
WORDS = {"kill_controller": 0, "start_controller": 0, "freeze_controller": 0, "thaw_controller": 0, "kill_node": 1,
         "start_node": 1, "drain": 2, "undrain": 1, "cancel": 1, "requeue": 1, "suspend": 1, "resume": 1}
# Those that are a program of Slurm's.
PROGRAMS = {"cancel": ["scancel"], "requeue": ["scontrol", "requeue"], "suspend": ["scontrol", "suspend"],
            "resume": ["scontrol", "resume"]}


class Control:
    """Does to the cluster what the tests ask for. Daemons end with the thread that has started them, so
    what is asked for is done by serve(), on the thread that calls it."""

    def __init__(self, cluster, path):
        self._cluster = cluster
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()

    def serve(self):
        """Until stop()."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # stop() has closed it
                return
            with connection:
                try:
                    self._do(connection.makefile("r").readline().strip())
                    connection.sendall(b"done\n")
                except Exception as error:  # whatever it is, the test there has to hear of it
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

    # Tasks find a test's scratch folder at its own path, so it lies where all nodes see it.
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
