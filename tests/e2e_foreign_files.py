"""Job files of Kubernetes (MPIJob, PyTorchJob, TFJob, TrainJob, Job, CronJob), run by a real server with the process
engine."""

import json

from e2e_commands import read_yaml
from muster_harness import BOUND, MusterTest, await_end, main, without_mpirun_warnings

MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
spec:
  slotsPerWorker: 1
  sshAuthMountPath: /home/mpiuser/.ssh
  runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 86400}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: mpioperator/mpi-pi:openmpi
            command: [COMMAND]
            env: [{name: WHO, value: launcher}]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: worker
            image: mpioperator/mpi-pi:openmpi
            command: [/usr/sbin/sshd]
            args: [-De, -f, /home/mpiuser/.sshd_config]
            resources: {limits: {cpu: 100m, memory: 64Mi}}
"""

TORCH_JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: ddp
spec:
  nprocPerNode: "2"
  pytorchReplicaSpecs:
    Master: &replicas
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: pytorch
            image: torch:1
            command: [sh, -c, 'echo "$0 of $1 asks $MASTER_ADDR for $PET_NPROC_PER_NODE"', $(RANK), $(WORLD_SIZE)]
    Worker:
      <<: *replicas
"""

TF_JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: tf
spec:
  successPolicy: AllWorkers
  tfReplicaSpecs:
    PS:
      template: &pod
        spec:
          containers:
          - name: tensorflow
            image: tf:1
            command: [sh, -c, 'echo "$TF_CONFIG"; case $MUSTER_TASK in ps-*) TELL; exec sleep 1000;; esac; WAIT']
    Worker:
      replicas: 2
      template: *pod
"""

TRAIN_JOB = """
apiVersion: v1
kind: ConfigMap
metadata: {name: code}
data:
  train.sh: |
    echo "$PET_NODE_RANK of $PET_NNODES at rate $RATE"
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: plain-torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                volumes: [{name: code, configMap: {name: code}}]
                containers:
                - name: node
                  image: torch:1
                  command: [sh, /code/train.sh]
                  volumeMounts: [{name: code, mountPath: /code}]
                  env: [{name: RATE, value: "0.1"}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: nodes}
spec:
  runtimeRef: {kind: TrainingRuntime, name: plain-torch}
  trainer:
    numNodes: 3
    env: [{name: RATE, value: "0.2"}]
"""

INDEXED_JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  generateName: sweep-
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      subdomain: sweep
      containers:
      - name: main
        image: busybox
        command: [sh, -c, 'echo "$JOB_COMPLETION_INDEX is $POD on $WHERE"; exit $((JOB_COMPLETION_INDEX == FAILS))']
        env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: WHERE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: FAILS, value: "9"}
"""

CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * 1-5"
  timeZone: Europe/Zurich
  concurrencyPolicy: Forbid
  suspend: true
  jobTemplate:
    metadata: {labels: {team: vision}}
    spec:
      backoffLimit: 2
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - {name: main, image: busybox, command: [sh, -c, 'echo "a run at $RATE"'], env: [{name: RATE, value: "0.1"}]}
"""

SIMPLE = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: busybox, command: [echo, "I am NAME"]}
"""


class ForeignFilesTest(MusterTest):

    def write(self, text, name="job.yaml"):
        path = self.muster.work / name
        path.write_text(text)
        return path

    def submit(self, text, *flags, code=0):
        return self.muster.run("submit", "-f", self.write(text), *flags, code=code)

    def lines(self, name, *flags):
        return sorted(without_mpirun_warnings(self.muster.logs(name, "--no-prefix", *flags)))

    def succeeded(self, name):
        job = self.muster.ended(name)
        self.assertEqual(job["phase"], "Succeeded", self.muster.logs(name))
        return job

    def test_an_mpi_job_runs_its_ranks_in_its_workers(self):
        # Without --allow-run-as-root, as in the files of users.
        words = ["mpirun", "-np", "2", "-x", "WHO", "sh", "-c", "echo $WHO of $(hostname)"]
        ran = self.submit(MPI_JOB.replace("COMMAND", ", ".join(json.dumps(word) for word in words)))
        self.assertEqual(ran.stdout, "submitted pi\n")
        self.assertEqual(ran.stderr, "  to follow it: muster logs -f pi\n")
        job = self.succeeded("pi")
        self.assertEqual(job["spec"]["keep_for_ms"], 86_400_000)
        text = "\n".join(self.lines("pi"))
        for worker in ("pi-worker-0", "pi-worker-1"):
            self.assertIn(f"launcher of {worker}", text)

    def test_a_pytorch_job_has_its_rank_and_its_master(self):
        self.submit(TORCH_JOB)
        self.succeeded("ddp")
        self.assertEqual(self.lines("ddp", "--task", "master"), ["0 of 2 asks ddp-master for 2"])
        self.assertEqual(self.lines("ddp", "--task", "worker-0"), ["1 of 2 asks ddp-master for 2"])

    def test_a_tf_job_without_a_chief_numbers_its_workers_from_zero(self):
        said = self.muster.gate()  # the workers stay until the parameter server has printed
        self.submit(TF_JOB.replace("TELL", said.tell(2)).replace("WAIT", said.wait))
        self.succeeded("tf")
        places = {}
        for task in ("chief", "worker-0", "ps-0"):
            config = json.loads(self.muster.logs("tf", "--no-prefix", "--task", task))
            self.assertEqual(sorted(config["cluster"]), ["ps", "worker"])
            self.assertEqual([host.split(":")[0] for host in config["cluster"]["worker"]],
                             ["tf-chief", "tf-worker-0"])
            places[task] = config["task"]
        self.assertEqual(places, {"chief": {"type": "worker", "index": 0},
                                  "worker-0": {"type": "worker", "index": 1},
                                  "ps-0": {"type": "ps", "index": 0}})

    def test_a_train_job_runs_on_the_runtime_of_its_file_with_the_files_of_a_config_map(self):
        self.submit(TRAIN_JOB)
        self.succeeded("nodes")
        self.assertEqual(self.lines("nodes"),
                         [f"{rank} of 3 at rate 0.2" for rank in range(3)])

    def test_every_task_of_an_indexed_job_has_its_index_and_must_succeed(self):
        name = self.submit(INDEXED_JOB).stdout.split()[1]
        self.assertRegex(name, r"^sweep-[a-z0-9]{5}$")
        self.succeeded(name)
        node = self.muster.job(name)["tasks"][0]["node"]
        self.assertEqual(self.lines(name),
                         sorted([f"0 is {name}-master on {node}",
                                 f"1 is {name}-worker-0 on {node}",
                                 f"2 is {name}-worker-1 on {node}"]))
        self.submit(INDEXED_JOB.replace('"9"', '"2"'), "--name", "last")
        job = self.muster.ended("last")
        self.assertEqual((job["phase"], job["failure"]["task"]), ("Failed", "worker-1"))

    def test_a_job_with_fewer_pods_than_completions_runs_them_one_after_the_other(self):
        ran = self.submit(INDEXED_JOB.replace("completions: 3", "completions: 7"), "--name", "many")
        self.assertIn("each of the 3 tasks runs its share of the 7 completions", ran.stderr)
        self.succeeded("many")
        self.assertEqual([line.split()[0] for line in self.lines("many")], list("0123456"))

    def test_the_workers_of_a_job_end_after_its_leader(self):
        leader, others = self.muster.gate("leader"), self.muster.gate("others")
        text = INDEXED_JOB.replace(
            'echo "$JOB', f'if [ $JOB_COMPLETION_INDEX = 0 ]; then {leader.wait}; else {others.wait}; fi; echo "$JOB')
        self.submit(text, "--name", "slow")
        self.muster.stream("events", "slow", "--follow").until("running")
        shim = self.muster.shim_of(self.muster.job("slow"), "master")
        leader.open()
        self.assertTrue(await_end(shim, BOUND))
        self.assertEqual(self.muster.job("slow")["phase"], "Running")
        others.open(2)
        self.succeeded("slow")
        self.assertEqual(len(self.lines("slow")), 3)

    def test_a_file_is_printed_as_a_job_file_and_submitted_from_it(self):
        printed = self.submit(TORCH_JOB, "--spec").stdout
        spec = read_yaml(printed)
        self.assertEqual((spec["name"], spec["kind"], spec["workers"]), ("ddp", "torch", 1))
        self.assertEqual(self.muster.run("list").stdout.count("ddp"), 0)
        self.submit(printed, "--name", "again")
        self.succeeded("again")
        self.assertEqual(self.lines("again", "--task", "master"), ["0 of 2 asks again-master for 2"])

    def test_several_documents_are_all_submitted_or_none(self):
        both = SIMPLE.replace("NAME", "one") + "---" + SIMPLE.replace("NAME", "two")
        ran = self.submit(both)
        self.assertEqual(ran.stdout, "submitted one\nsubmitted two\n")
        for name in ("one", "two"):
            self.succeeded(name)
            self.assertEqual(self.lines(name), [f"I am {name}"])
        third = SIMPLE.replace("NAME", "three") + "---" + SIMPLE.replace("NAME", "two")
        ran = self.submit(third, code=4)
        self.assertIn("job 'two' exists already; none of the 2 jobs was submitted", ran.stderr)
        self.assertNotIn("three", self.muster.run("list").stdout)
        ran = self.submit(both, "--follow", code=2)
        self.assertIn("--follow is for one job", ran.stderr)

    def test_documents_of_muster_may_be_several_too(self):
        self.submit("name: a\ncommand: [echo, a]\n---\nname: b\ncommand: [echo, b]\n")
        for name in ("a", "b"):
            self.succeeded(name)
            self.assertEqual(self.lines(name), [name])
        ran = self.submit("name: c\ncommand: []\n---\nname: D\ncommand: [echo]\n", code=2)
        self.assertIn("has 2 faults", ran.stderr)

    def test_a_forecast_is_printed_for_each_document(self):
        both = SIMPLE.replace("NAME", "one") + "---" + SIMPLE.replace("NAME", "two")
        forecasts = json.loads(self.submit(both, "--dry-run", "-o", "json").stdout)
        self.assertEqual(len(forecasts), 2)

    def test_every_fault_is_named_with_its_line_and_path(self):
        text = MPI_JOB.replace("COMMAND", "mpirun").replace(
            "            resources:", "            volumeMounts: [{name: keys, mountPath: /keys}]\n"
            "            livenesProbe: {}\n            resources:").replace(
            "slotsPerWorker: 1", "slotsPerWorker: 0")
        ran = self.submit(text, code=2)
        self.assertIn("has 3 faults", ran.stderr)
        container = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0]"
        for words in ("spec.slotsPerWorker: must be a whole number from 1 to 1024",
                      f"{container}.volumeMounts[0].name: 'keys' is not one of the pod's volumes",
                      f"{container}.livenesProbe: is an unknown key; did you mean 'livenessProbe'?"):
            self.assertIn(words, ran.stderr)

    def test_a_cron_job_is_a_schedule(self):
        file = self.write(CRON_JOB)
        self.assertIn("muster schedule create -f", self.muster.run("submit", "-f", file, code=2).stderr)
        page = self.muster.run("schedule", "create", "-f", file, "-e", "RATE=0.2").stdout
        self.assertRegex(page, r"NAME +nightly\n")
        self.assertRegex(page, r"STATE +paused\nCRON +0 3 \* \* 1-5\nTIMEZONE +Europe/Zurich\nOVERLAP +forbid\n")
        run = json.loads(self.muster.run("schedule", "run", "nightly", "-o", "json").stdout)
        self.succeeded(run["spec"]["name"])
        self.assertEqual(self.lines(run["spec"]["name"]), ["a run at 0.2"])
        self.assertEqual((run["spec"]["labels"], run["spec"]["scheduling"]["retries"]), ({"team": "vision"}, 2))

        self.muster.run("schedule", "create", "weekly", "--cron", "@weekly", "--overlap", "allow", "-f", file)
        weekly = json.loads(self.muster.run("schedule", "get", "weekly", "-o", "json").stdout)
        self.assertEqual((weekly["spec"]["cron"], weekly["spec"]["overlap"], weekly["spec"]["timezone"]),
                         ("@weekly", "allow", "Europe/Zurich"))
        self.assertTrue(weekly["paused"])
        refused = self.muster.run("schedule", "create", "-f", self.write(SIMPLE.replace("NAME", "one")), code=2).stderr
        self.assertIn("--cron: is missing", refused)
        wrong = self.muster.run("schedule", "create", "-f", self.write(CRON_JOB.replace("timeZone", "timezone")), code=2)
        self.assertIn("spec.timezone: is an unknown key; did you mean 'timeZone'?", wrong.stderr)

    def test_a_secret_of_a_pod_is_a_secret_of_the_project(self):
        text = SIMPLE.replace("NAME", "hidden").replace(
            'command: [echo, "I am hidden"]',
            "command: [sh, -c, 'test \"$TOKEN\" = xyz'], env: [{name: TOKEN, valueFrom: "
            "{secretKeyRef: {name: hf-secret, key: token}}}]")
        ran = self.submit(text, code=3)
        self.assertIn("there is no secret 'hf_secret_token'", ran.stderr)
        self.muster.run("secret", "set", "hf_secret_token", input="xyz")
        self.submit(text)
        self.succeeded("hidden")


if __name__ == "__main__":
    main()
