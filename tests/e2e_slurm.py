"""Jobs on Slurm, as their users see them: every kind of job with its host names, files, ranks and GPUs, on nodes that
share the jobs' folder and on nodes that do not."""

import json
import re

from containers_harness import add_digits
from e2e_limits import HOG
from muster_harness import DOCUMENTS_MPIRUN, MPIRUN, ROOT, main, without_mpirun_warnings
from slurm_harness import SlurmTest

# One claim for all tasks, including the launcher, which then has a node of its own.
CLAIM = ["--cpus", 1, "--memory", "200M"]


class Jobs:
    """The tests that run on both kinds of nodes."""

    def test_a_task_has_a_hostname_and_files_of_its_own_and_its_exit_code_is_the_jobs(self):
        ran = self.muster.run("submit", "single", "hello", "--follow", "--", "sh", "-c",
                              "hostname; echo err >&2; pwd; exit 7", code=7)

        self.assertEqual(sorted(ran.stdout.splitlines()),
                         [f"[main] {self.muster.work}", "[main] err", "[main] hello-main"])
        self.assertRegex(ran.stderr, r"hello +Failed +7 +\d")
        identity = self.muster.slurm_job("hello")["id"]
        self.cluster.await_state(identity, "FAILED")  # and Slurm lists the same

    def test_a_task_is_held_to_its_memory_though_this_slurm_enforces_nothing(self):
        ran = self.muster.run("submit", "single", "hog", "--cpus", 1, "--memory", "100Mi", "--follow", "--",
                              "python3", "-c", HOG, code=None)

        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("was not stopped", ran.stdout)
        self.assertIn("out of memory (its limit is 100Mi", ran.stderr)
        limit = self.muster.job("hog")["tasks"][0]["exit"]["limit"]
        self.assertEqual((limit["limit"], limit["bound"]), ("memory", 100 << 20))

    def test_the_documents_command_runs_each_rank_on_a_node_of_its_own(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, *CLAIM, "--follow", "--", *DOCUMENTS_MPIRUN,
                              "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"
                              "; cat /generated/hostfile")

        ranks = [line for line in ran.stdout.splitlines() if not line.startswith("[launcher]")]
        self.assertEqual(sorted(ranks), sorted(
            line for rank in (0, 1) for line in (
                f"[{rank}@dist-worker-{rank}] rank {rank} of 2 on dist-worker-{rank}",
                f"[{rank}@dist-worker-{rank}] dist-worker-0 slots=1",
                f"[{rank}@dist-worker-{rank}] dist-worker-1 slots=1")))
        tasks = {task["name"]: task["node"] for task in self.muster.job("dist")["tasks"]}
        self.assertNotEqual(tasks["worker-0"], tasks["worker-1"])
        self.assertTrue(set(tasks.values()) <= set(self.cluster.nodes), tasks)

    def test_digits_trains_on_two_nodes(self):
        folder = self.muster.work / "training"
        folder.mkdir()
        add_digits(folder)

        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, *CLAIM, "--workspace", folder, "--follow",
                              "--", *DOCUMENTS_MPIRUN, "./digits", "--data", "data")

        found = re.search(r"^\[0@dist-worker-0\] .*test accuracy\D*([0-9.]+)", ran.stdout, re.MULTILINE)
        self.assertTrue(found, ran.stdout[-2000:])
        self.assertGreaterEqual(float(found[1]), 96)
        self.assertEqual(len({task["node"] for task in self.muster.job("dist")["tasks"]
                              if task["name"] != "launcher"}), 2)

    def test_a_tensorflow_cluster_has_the_addresses_of_its_tasks(self):
        gate = self.muster.gate()  # the others are stopped soon after the chief ends
        self.muster.run("submit", "grpc", "net", "--workers", 1, "--parameter-servers", 1, "--", "sh", "-c",
                        f"echo \"$TF_CONFIG\"; case $MUSTER_TASK in ps-*) sleep 1000;; esac; {gate.wait}")
        logs = self.muster.stream("logs", "net", "-f")
        for _ in range(3):
            logs.until("{")
        gate.open(2)
        self.assertEqual(logs.finish(), 0)

        said = dict(re.findall(r"^\[(\S+)\] (\{.*\})$", logs.text, re.MULTILINE))
        self.assertEqual(set(said), {"chief", "worker-0", "ps-0"})
        for task, text in said.items():
            config = json.loads(text)
            self.assertEqual({role: len(hosts) for role, hosts in config["cluster"].items()},
                             {"chief": 1, "worker": 1, "ps": 1})
            self.assertEqual(config["task"]["type"], task.partition("-")[0])

    def test_a_torch_jobs_ranks_meet_at_the_master(self):
        meet = ("import os, socket\n"
                "where = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
                "if os.environ['RANK'] == '0':\n"
                "    with socket.create_server(('', where[1])) as server:\n"
                "        print('heard', server.accept()[0].recv(100).decode(), flush=True)\n"
                "else:\n"
                "    while True:\n"
                "        try:\n"
                "            socket.create_connection(where).sendall(b'rank ' + os.environ['RANK'].encode())\n"
                "            break\n"
                "        except ConnectionRefusedError:\n"
                "            pass\n")
        ran = self.muster.run("submit", "torch", "ddp", "--workers", 1, "--follow", "--", "python3", "-c", meet)

        self.assertIn("heard rank 1", ran.stdout)

    def test_each_task_sees_the_gpus_that_slurm_gave_it_and_no_others(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, "--gpus", 2, "--follow", "--", *MPIRUN, "sh",
                              "-c", "echo sees $CUDA_VISIBLE_DEVICES")

        self.assertEqual(sorted(line for line in ran.stdout.splitlines() if "sees" in line),
                         ["[0@dist-worker-0] sees 0,1", "[1@dist-worker-1] sees 0,1"])

    def test_two_jobs_share_the_gpus_of_a_node(self):
        one_gate, one = self.at_the_gate("one", "--gpus", 3)
        script = "echo sees $CUDA_VISIBLE_DEVICES"
        node = self.muster.job("one")["tasks"][0]["node"]
        self.cluster.run("scontrol", "update", "PartitionName=main", f"Nodes={node}")
        self.addCleanup(self.cluster.run, "scontrol", "update", "PartitionName=main", "Nodes=ALL")

        two = self.muster.run("submit", "single", "two", "--gpus", 1, "--follow", "--", "sh", "-c", script)

        self.assertIn("[main] sees 3\n", two.stdout)
        one_gate.open()
        self.assertEqual(one.finish(), 0, one.errors)

    def test_a_launcher_with_its_own_claims_is_its_own_component_of_the_slurm_job(self):
        path = self.muster.work / "job.yaml"
        path.write_text("name: dist\nkind: mpi\nworkers: 2\nresources: {cpus: 2, memory: 300M, gpus: 1}\n"
                        "leader: {resources: {cpus: 1, memory: 100M}}\n"
                        "command: [mpirun, --allow-run-as-root, -np, '2', hostname]\n")
        self.muster.run("submit", "-f", path)

        self.ends_well("dist")

        components = [job for job in self.muster.cluster.jobs_of_muster() if job["leader"] != "N/A"]
        self.assertEqual(len(components), 2, components)
        lines = without_mpirun_warnings(self.muster.logs("dist", "--no-prefix"))
        self.assertEqual(sorted(lines), ["dist-worker-0", "dist-worker-1"])
        nodes = [task["node"] for task in self.muster.job("dist")["tasks"]]
        self.assertEqual(len(set(nodes)), 3, nodes)

    def test_srun_starts_the_ranks_on_request(self):
        ran = self.muster.run("submit", "mpi", "dist", "--workers", 2, *CLAIM, "--launch", "srun", "--follow", "--",
                              self.where())

        self.assertEqual(sorted(line.partition("] ")[2].partition(" by ")[0] for line in ran.stdout.splitlines()
                                if "rank" in line),
                         ["rank 0 of 2 on dist-worker-0", "rank 1 of 2 on dist-worker-1"])

    def test_a_hundred_thousand_lines_arrive_whole_and_in_order(self):
        ran = self.muster.run("submit", "torch", "talk", "--workers", 1, "--follow", "--", "sh", "-c", "seq 50000")

        for task in ("master", "worker-0"):
            prefix = f"[{task}] "
            lines = [line[len(prefix):] for line in ran.stdout.splitlines() if line.startswith(prefix)]
            self.assertEqual(lines, [str(number) for number in range(1, 50001)], task)
        self.assertEqual(self.muster.logs("talk").count("\n"), 100000)

    def test_the_artifacts_of_a_job_are_fetched(self):
        self.muster.run("submit", "single", "job", "--artifacts", "--follow", "--", "sh", "-c",
                        "mkdir -p /artifacts/deep && head -c 3000000 /dev/urandom | tee /artifacts/deep/data | "
                        "sha256sum")
        wanted = self.muster.logs("job", "--no-prefix").split()[0]

        self.muster.run("artifacts", "get", "job", "--to", self.muster.work / "got")

        got = self.cluster.run("sha256sum", self.muster.work / "got" / "deep" / "data").split()[0]
        self.assertEqual(got, wanted)

    def where(self):
        """tests/mpi_where.c, compiled."""
        program = self.muster.work / "where"
        self.cluster.run("mpicc.openmpi", "-O1", "-o", program, ROOT / "tests" / "mpi_where.c")
        return program


class OnNodesThatSeeTheFolderOfTheJobs(Jobs, SlurmTest):
    pass


class OnNodesWithFilesOfTheirOwn(Jobs, SlurmTest):
    CLUSTER = {"apart": True}


class OnGpusThatAreOnlyCounted(SlurmTest):
    """Slurm reports the number of GPUs, but not their indices."""
    CLUSTER = {"nodes": 2, "counted_gpus": True}

    def test_tasks_see_as_many_gpus_as_they_claim(self):
        ran = self.muster.run("submit", "single", "job", "--gpus", 2, "--follow", "--", "sh", "-c",
                              "echo sees $CUDA_VISIBLE_DEVICES")

        self.assertEqual(ran.stdout, "[main] sees 0,1\n")


if __name__ == "__main__":
    main()
