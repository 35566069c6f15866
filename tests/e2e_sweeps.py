"""Sweeps with a real server and small programs: the values reach the programs, poor trials are paused and promoted with
their checkpoints, and a killed server continues."""

import json
import subprocess
import sys
import time
import unittest

from muster_harness import BOUND, ROOT, MusterTest, main

sys.path.insert(0, str(ROOT / "python"))
import muster  # noqa: E402

OPTUNA = ROOT / "build" / "optuna" / "bin" / "python"

# Trains from its checkpoint in /artifacts until its budget. Its accuracy depends on x alone.
TRAIN = """
import json, os

folder = os.environ["CHECKPOINTS"]
checkpoint = os.path.join(folder, "step")
step = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
x = float(os.environ["X"])
assert json.loads(os.environ["MUSTER_PARAMETERS"])["x"] == x == float(os.environ["MUSTER_PARAM_X"])
while step < int(os.environ["MUSTER_SWEEP_STEPS"]):
    step += 1
    with open(checkpoint + ".new", "w") as file:
        file.write(str(step))
    os.replace(checkpoint + ".new", checkpoint)
    # Last, because the trial may be paused as soon as it has used its budget.
    print(f"::metrics step={step} accuracy={x * (1 - 0.5 ** step)}", flush=True)
print("trained until", step, flush=True)
"""

# The same program without a budget: it trains until it is stopped.
ENDLESS = """
import sys, time
step = 0
while True:
    step += 1
    print(f"::metrics step={step} accuracy={sys.argv[1]}", flush=True)
    time.sleep(0.05)
"""


class SweepTest(MusterTest):

    def sweep(self, name):
        return json.loads(self.muster.run("sweep", "get", name, "-o", "json").stdout)

    def asha(self, name="lr", *flags, trials=8):
        self.muster.script("train.py", TRAIN)
        return self.muster.run(
            "sweep", "create", name, "--param", "x=0..1", "--method", "asha", "--metric", "accuracy",
            "--max-trials", trials, "--max-concurrent", 2, "--max-steps", 16, "--artifacts",
            "--env", "CHECKPOINTS=/artifacts", *flags, "--", "python3", "train.py")

    def check_asha(self, name="lr", trials=8):
        sweep = self.sweep(name)
        self.assertEqual(sweep["phase"], "Succeeded")
        self.assertEqual(sweep["trials_started"], trials)
        self.assertEqual(sorted(trial["number"] for trial in sweep["trials"]), list(range(1, trials + 1)))
        self.assertEqual(sweep["budgets"], [1, 4, 16])
        best = sweep["trials"][0]
        self.assertEqual(best["number"], sweep["best_trial"])
        # The best of four or more trials is promoted to the next rung.
        self.assertGreaterEqual(best["steps"], 4)
        self.assertLess(sum(trial["steps"] for trial in sweep["trials"]), trials * 16)
        return sweep

    def test_asha_finds_the_best_trial_and_continues_it_from_its_checkpoint(self):
        self.assertEqual(self.asha().stdout, "created sweep lr of 8 trials\n")
        self.muster.run("sweep", "wait", "lr", "--timeout", "240s", bound=270)
        sweep = self.check_asha()
        best = f"lr-{sweep['best_trial']}"

        # The attempts of the promoted trial went on from the checkpoint.
        job = self.muster.job(best)
        self.assertGreaterEqual(job["attempt"], 2)
        self.assertEqual(job["origin"], {"kind": "sweep", "name": "lr", "id": sweep["id"],
                                         "member": sweep["best_trial"]})
        self.assertEqual(self.muster.logs(best).count("step=1 "), 1)
        paused = [trial for trial in sweep["trials"] if trial["steps"] == 1]
        self.assertGreaterEqual(len(paused), 4)

        page = self.muster.run("sweep", "get", "lr").stdout
        self.assertRegex(page, r"PHASE +Succeeded|phase +Succeeded")
        self.assertRegex(page, rf"\n{best} ")
        self.assertIn("rerun " + best, self.muster.run("sweep", "best", "lr").stdout)
        self.assertRegex(self.muster.run("sweep", "list").stdout, r"lr +default +asha +Succeeded +8/8")
        chart = self.muster.run("sweep", "get", "lr", "--chart", environment={"LC_ALL": "C"}).stdout
        self.assertIn("\naccuracy\n", chart)

        self.muster.run("sweep", "delete", "lr")
        self.assertEqual(self.muster.jobs(), [])
        self.assertEqual(self.muster.run("sweep", "list", "-o", "names").stdout, "")

    def test_a_killed_server_continues_without_doubling_a_trial(self):
        self.asha()
        kills = 0
        while "ended" not in self.sweep("lr"):
            self.muster.kill_server()
            kills += 1
            # The next command starts a server, which continues; it gets some time before it is killed, too.
            self.muster.run("sweep", "wait", "lr", "--timeout", f"{kills}s", code=None)
        self.check_asha()
        names = [job["spec"]["name"] for job in self.muster.jobs()]
        self.assertEqual(sorted(names), [f"lr-{number}" for number in range(1, 9)])

    def test_a_file_describes_a_grid_and_a_program_that_exceeds_its_budget_is_stopped(self):
        self.muster.script("endless.py", ENDLESS)
        (self.muster.work / "sweep.yaml").write_text("""
name: grid
command: [python3, endless.py, "{x}"]
sweep:
  method: grid
  metric: accuracy
  goal: minimize
  max_steps: 2
  max_concurrent: 1
  parameters:
    x: [0.25, 0.5]
""")
        plan = self.muster.run("sweep", "-f", "sweep.yaml", "--dry-run").stdout
        self.assertIn("2, at most 1 at the same time", plan)
        self.assertRegex(plan, r"\ngrid-1 +0.25\ngrid-2 +0.5\n")
        self.assertEqual(self.muster.run("sweep", "list", "-o", "names").stdout, "")

        self.muster.run("sweep", "-f", "sweep.yaml")
        self.muster.run("sweep", "wait", "grid", "--timeout", "240s", bound=270)
        sweep = self.sweep("grid")
        self.assertEqual([(trial["number"], trial["phase"], trial["best"]) for trial in sweep["trials"]],
                         [(1, "Completed", 0.25), (2, "Completed", 0.5)])

    def test_a_file_has_a_workspace_and_the_values_are_in_a_file(self):
        (self.muster.work / "code").mkdir()
        (self.muster.work / "code" / "train.py").write_text(
            "import json, os\n"
            "values = json.load(open(os.environ['MUSTER_GENERATED'] + '/parameters.json'))\n"
            "print('::metrics accuracy=' + str(values['x']))\n")
        (self.muster.work / "sweep.yaml").write_text("""
name: sent
command: python3 train.py
workspace: code
sweep: {method: grid, metric: accuracy, parameters: {x: [0.25, 0.5]}}
""")
        self.muster.run("sweep", "-f", "sweep.yaml")
        self.muster.run("sweep", "wait", "sent", "--timeout", "240s", bound=270)
        self.assertEqual([trial["best"] for trial in self.sweep("sent")["trials"]], [0.5, 0.25])

    def test_trials_may_have_several_tasks(self):
        self.muster.run("sweep", "create", "ddp", "--kind", "torch", "--workers", 1, "--param", "x=1,2", "--method", "grid",
                        "--metric", "score", "--", "sh", "-c", "test $RANK != 0 || echo ::metrics score=$X$WORLD_SIZE")
        self.muster.run("sweep", "wait", "ddp", "--timeout", "240s", bound=270)
        self.assertEqual([trial["best"] for trial in self.sweep("ddp")["trials"]], [22, 12])

    def test_a_trial_that_is_evicted_starts_again_and_its_values_count(self):
        self.muster.script("train.py", """
import os, sys, time
first = os.environ["MUSTER_RESTART_COUNT"] == "0"
print("::metrics accuracy=" + ("0.9" if first else "0.5"), flush=True)
if first:
    time.sleep(1000)
""")
        self.muster.run("sweep", "create", "evicted", "--param", "x=1", "--method", "grid", "--metric", "accuracy", "--",
                        "python3", "train.py")
        self.muster.run("wait", "evicted-1", "--for", "started")
        deadline = time.monotonic() + BOUND
        while self.sweep("evicted")["trials"][0].get("best") != 0.9:
            self.assertLess(time.monotonic(), deadline)
        self.muster.run("suspend", "evicted-1")
        self.muster.run("resume", "evicted-1")
        self.muster.run("sweep", "wait", "evicted", "--timeout", "240s", bound=270)
        trial = self.sweep("evicted")["trials"][0]
        self.assertEqual((trial["phase"], trial["best"], trial["last"]), ("Completed", 0.9, 0.5))

    def test_a_trial_that_hangs_is_stopped_and_the_others_go_on(self):
        self.muster.run("sweep", "create", "hangs", "--param", "x=1,2", "--method", "grid", "--metric", "accuracy",
                        "--metric-timeout", "10s", "--", "sh", "-c",
                        "test {x} = 1 && exec sleep 1000; echo ::metrics accuracy={x}")
        self.muster.run("sweep", "wait", "hangs", "--timeout", "240s", bound=270)
        trials = {trial["number"]: trial for trial in self.sweep("hangs")["trials"]}
        self.assertEqual((trials[1]["phase"], trials[2]["phase"]), ("Failed", "Completed"))
        self.assertIn("reported no value of 'accuracy' for 10s", trials[1]["fault"])

    def test_a_trial_that_the_scheduler_evicts_goes_on_with_its_next_attempt(self):
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "1"
        self.muster.run("project", "create", "guests", "--gpus", 0)
        self.muster.run("project", "create", "owners", "--gpus", 1)
        gate = self.muster.gate()
        self.muster.script("train.py", """
import os, sys, time
again = os.environ["MUSTER_RESTART_COUNT"] != "0"
print("::metrics accuracy=" + ("0.5" if again else "0.9"), flush=True)
if not again:
    time.sleep(1000)
""")
        self.muster.run("sweep", "create", "lr", "--project", "guests", "--gpus", 1, "--param", "x=1", "--method", "grid",
                        "--metric", "accuracy", "--", "python3", "train.py")
        self.muster.stream("logs", "lr-1", "-f").until("accuracy")
        self.muster.run("submit", "single", "owner", "--project", "owners", "--gpus", 1, "--", "sh", "-c", gate.wait)
        self.muster.run("wait", "owner", "--for", "started")
        self.assertEqual(self.sweep("lr")["trials"][0]["phase"], "Active")
        gate.open()
        self.muster.run("sweep", "wait", "lr", "--timeout", "240s", bound=270)
        trial = self.sweep("lr")["trials"][0]
        self.assertEqual((trial["phase"], trial["best"], trial["last"]), ("Completed", 0.9, 0.5))
        self.assertEqual(self.muster.job("lr-1")["restarts"], 1)

    def test_a_trial_whose_metric_is_nan_ranks_last(self):
        # The larger half of the values gives NaN, as a learning rate that is too large does.
        self.muster.script("train.py", """
import os
x = float(os.environ["X"])
for step in range(1, int(os.environ["MUSTER_SWEEP_STEPS"]) + 1):
    print(f"::metrics step={step} loss={'nan' if x > 0.5 else 1 - x}", flush=True)
""")
        self.muster.run("sweep", "create", "lr", "--param", "x=0.1,0.9,0.2,0.8,0.3,0.7,0.4,0.6", "--method", "grid",
                        "--metric", "loss", "--goal", "minimize", "--max-steps", 4, "--", "python3", "train.py")
        self.muster.run("sweep", "wait", "lr", "--timeout", "240s", bound=270)
        sweep = self.sweep("lr")
        trials = [(trial["values"]["x"], trial.get("best")) for trial in sweep["trials"]]
        self.assertEqual(trials[:4], [("0.4", 0.6), ("0.3", 0.7), ("0.2", 0.8), ("0.1", 0.9)])
        self.assertEqual([best for _, best in trials[4:]], [None] * 4)

    def test_a_wrong_metric_stops_the_sweep_early(self):
        self.muster.run("sweep", "create", "typo", "--param", "x=0..1", "--metric", "acuracy", "--max-trials", 50,
                        "--", "sh", "-c", "echo ::metrics accuracy=1")
        self.muster.run("sweep", "wait", "typo", "--timeout", "240s", bound=270, code=1)
        sweep = self.sweep("typo")
        self.assertEqual((sweep["phase"], sweep["end"]), ("Failed", "no-metric"))
        self.assertLess(sweep["trials_started"], 12)
        self.assertIn("no trial reported the metric 'acuracy'", self.muster.run("sweep", "get", "typo").stdout)

    def test_bad_input_is_refused_with_every_fault(self):
        refused = self.muster.run("sweep", "create", "bad", "--param", "x=log:0..1", "--method", "asha",
                                  "--max-trials", "4", "--", "true", code=2).stderr
        for words in ("--metric: ", "--max-steps: method asha requires", "--param: 'x=log:0..1': a logarithmic range begins above 0"):
            self.assertIn(words, refused)
        refused = self.muster.run("sweep", "create", "bad", "--param", "y", "--metric", "m", "--max-trials", "4", "--",
                                  "true", code=2).stderr
        self.assertIn("--param 'y' is not NAME=VALUES", refused)
        self.assertIn("no sweep 'lr'", self.muster.run("sweep", "get", "lr", code=3).stderr)

    def test_the_python_client_creates_and_waits(self):
        self.muster.start_server()
        with muster.Client(socket=str(self.muster.state / "muster.sock"), patience=BOUND) as client:
            job = muster.JobSpec("py", ["/bin/sh", "-c", "echo ::metrics loss={x}{y}"], "/", sandbox="none")
            made = client.sweep(job, {"x": [3, 1], "y": (4, 5)}, metric="loss", method="grid", goal="minimize")
            self.assertEqual((made.trials_total, made.name), (4, "py"))
            ended = client.wait_sweep(made, timeout=3 * BOUND)
            self.assertEqual((ended.phase, ended.best), ("Succeeded", 14))
            self.assertEqual(ended.trials[0].values, {"x": "1", "y": "4"})
            self.assertEqual([each.name for each in client.list_sweeps().sweeps], ["py"])
            with self.assertRaises(muster.Invalid):
                client.sweep(job, {}, metric="loss")
            client.delete_sweep("py")
            self.assertEqual(client.jobs(), [])

    @unittest.skipUnless(OPTUNA.exists(), "scripts/python_env.sh optuna makes build/optuna")
    def test_optuna_chooses_parameters_and_receives_results(self):
        self.muster.start_server()
        self.muster.script("train.sh", "echo ::metrics accuracy=$1\n")
        ran = subprocess.run(
            [OPTUNA, ROOT / "examples" / "optuna" / "ask_and_tell.py", "--trials", "3", "--", "sh", "train.sh", "{lr}", "{batch}"],
            env=self.muster.environment | {"PYTHONPATH": str(ROOT / "python")}, cwd=self.muster.work, text=True,
            capture_output=True, timeout=3 * BOUND)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        reported = [float(line.split()[1]) for line in ran.stdout.splitlines() if line.startswith("optuna-")]
        self.assertEqual(len(reported), 3)
        self.assertIn(f"best: {max(reported):.4f} with", ran.stdout)
        self.assertEqual([job["phase"] for job in self.muster.jobs()], ["Succeeded"] * 3)

    def test_stop_ends_all_trials_and_names_stay_taken(self):
        self.muster.run("sweep", "create", "long", "--param", "x=1,2,3", "--method", "grid", "--metric", "m",
                        "--max-concurrent", 2, "--", "sleep", "infinity")
        self.assertIn("long-3", self.muster.run("submit", "single", "long-3", "--", "true", code=4).stderr)
        self.muster.run("sweep", "delete", "long", code=4)
        self.assertEqual(self.muster.run("sweep", "pause", "long").stdout, "paused long\n")
        self.assertEqual(self.muster.run("sweep", "resume", "long").stdout, "resumed long\n")
        self.assertRegex(self.muster.run("sweep", "stop", "long").stdout, r"\Astopping long: 2 of 3 started")
        self.muster.run("sweep", "wait", "long", "--timeout", "240s", bound=270, code=1)
        for action in ("pause", "resume"):
            self.assertIn("sweep 'long' has ended", self.muster.run("sweep", action, "long", code=4).stderr)
        for job in self.muster.jobs():
            self.assertEqual(self.muster.ended(job["spec"]["name"])["phase"], "Stopped")


if __name__ == "__main__":
    main()
