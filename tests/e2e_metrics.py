"""Metrics, from the job to the terminal: reports of programs, usage of tasks, tables, charts and files."""

import csv
import json
import xml.etree.ElementTree

from muster_harness import MusterTest, Typed, main

# Reports metrics through the socket and by a printed line. It waits at the gate while the test reads the values.
TRAIN = """
import os, socket, sys

def report(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
        reports.sendto(text.encode(), os.environ["MUSTER_METRICS"])

for epoch in range(1, 5):
    report(f"epoch={epoch} epochs=4 loss={2 / epoch}")
    print(f"::metrics accuracy={epoch / 8}", flush=True)
    with open(sys.argv[1], "rb", buffering=0) as gate:
        gate.read(1)
"""


class MetricsTest(MusterTest):

    def train(self):
        self.muster.script("train.py", TRAIN)
        gate = self.muster.gate()
        self.muster.run("submit", "single", "train", "--", "python3", "train.py", self.muster.work / "gate")
        return gate

    def follow(self, *metrics):
        return self.muster.stream("metrics", "train", *metrics, "--follow", "--output", "csv")

    def gradient(self, *words):
        return self.muster.run("gradient", "experiments", "metrics", *words).stdout

    def test_values_are_shown_as_soon_as_they_are_reported(self):
        gate = self.train()
        follow = self.follow("accuracy", "loss")
        follow.until(",loss,main,,2")
        gate.open()
        follow.until(",accuracy,main,,0.25")
        gate.open(3)
        self.assertEqual(follow.finish(), 0)

        rows = list(csv.DictReader(follow.text.splitlines()))
        values = {metric: [float(row["value"]) for row in rows if row["metric"] == metric]
                  for metric in ("accuracy", "loss")}
        self.assertEqual(values, {"accuracy": [0.125, 0.25, 0.375, 0.5], "loss": [2, 1, 2 / 3, 0.5]})

    def test_every_listing_shows_the_progress_of_a_job(self):
        gate = self.train()
        self.follow("epoch").until(",epoch,main,,1")
        self.assertIn("epoch 1/4 25%", self.muster.run("list").stdout)
        self.assertEqual(self.muster.jobs()[0]["progress"], {"unit": "epoch", "done": 1, "total": 4})
        gate.open()
        self.follow("epoch").until(",epoch,main,,2")
        self.assertRegex(self.muster.run("get", "train").stdout, r"PROGRESS +epoch 2/4 50%")
        self.assertIn("ends", self.muster.job("train")["progress"])

        gate.open(3)
        self.muster.ended("train")
        self.assertEqual(self.muster.job("train")["progress"], {"unit": "epoch", "done": 4, "total": 4})
        self.assertNotIn("progress", self.muster.jobs()[0])

    def test_tables_charts_and_files_show_the_metrics(self):
        gate = self.train()
        self.follow("cpu_percent").until(",cpu_percent,main,,")
        self.follow("accuracy").until(",accuracy,main,,0.125")
        tables = self.muster.run("metrics", "train").stdout
        self.assertRegex(tables, r"train  Running  epoch 1/4 25%\n\nTASK +CPU +MEMORY")
        self.assertRegex(tables, r"\nloss +main +2 ")

        gate.open(4)
        self.muster.ended("train")
        chart = self.muster.run("metrics", "train", "loss", environment={"LC_ALL": "C"}).stdout
        self.assertRegex(chart, r"train  Succeeded  epoch 4/4 100%\n\nloss\n")
        self.assertIn("  * main  0.5  (0.5 to 2)\n", chart)
        self.muster.run("metrics", "train", "loss", "accuracy", "--svg", "chart.svg")
        picture = xml.etree.ElementTree.parse(self.muster.work / "chart.svg").getroot()
        self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(len(picture.findall("{*}polyline")), 2)
        series = json.loads(self.muster.run("metrics", "train", "loss", "-o", "json").stdout)["series"]
        self.assertEqual([point["value"] for point in series[0]["points"]], [2, 1, 2 / 3, 0.5])

        wrong = self.muster.run("metrics", "train", "los", code=3).stderr
        self.assertIn("no metric 'los'; did you mean 'loss'?\n  it has accuracy, ", wrong)
        self.muster.run("delete", "train")
        self.muster.run("metrics", "train", code=3)

    def test_a_chart_is_redrawn_on_the_terminal_until_the_job_has_ended(self):
        gate = self.train()
        self.follow("loss").until(",loss,main,,2")
        left = Typed(self.muster, "metrics", "train", "loss", "--follow")
        left.until(b"train  Running  epoch 1/4 25%")
        left.type(b"q")
        self.assertEqual(left.finish(), 0)
        left.close()

        stays = Typed(self.muster, "metrics", "train", "loss", "--follow")
        stays.until(b"epoch 1/4 25%")
        gate.open()
        stays.until(b"epoch 2/4 50%")
        gate.open(3)
        self.assertEqual(stays.finish(), 0)
        stays.close()
        self.assertIn(b"train  Succeeded  epoch 4/4 100%", stays.text)

    def test_a_restarted_server_has_the_earlier_metrics(self):
        gate = self.train()
        self.follow("loss").until(",loss,main,,2")
        self.muster.kill_server()
        self.assertIn("epoch 1/4 25%", self.muster.run("list").stdout)
        gate.open(4)
        self.muster.ended("train")
        self.assertEqual(self.muster.job("train")["progress"]["done"], 4)

    def test_gradient_shows_them_under_its_own_names(self):
        gate = self.train()
        self.follow("memory_bytes").until(",memory_bytes,main,,")
        id = self.muster.job("train")["id"]
        pod = f"mljob-{id}-0-worker"
        stream = self.muster.stream("gradient", "experiments", "metrics", "stream", "--id", id,
                                    "--interval", "1s")
        stream.until(f"| {pod} |")
        gate.open(4)
        self.assertEqual(stream.finish(), 0)
        self.assertEqual(stream.text.splitlines()[-4].split(), ["|", "Pod", "|", "cpuPercentage", "|",
                                                                "memoryUsage", "|"])

        usual = json.loads(self.gradient("get", "--id", id))
        self.assertEqual(sorted(usual), ["cpuPercentage", "memoryUsage"])
        self.assertGreater(int(usual["memoryUsage"][pod][-1]["time_stamp"]), 1_700_000_000)
        self.assertGreater(float(usual["memoryUsage"][pod][-1]["value"]), 0)
        # A single interval on any day: the next one begins in 2029.
        loss = json.loads(self.gradient("get", "--id", id, "--metric", "loss", "--interval", "3650d"))
        self.assertAlmostEqual(float(loss["loss"][pod][0]["value"]), (2 + 1 + 2 / 3 + 0.5) / 4)
        self.assertEqual(sorted(json.loads(self.gradient("list", "--id", id))),
                         ["accuracy", "epoch", "epochs", "loss"])
        self.assertEqual(self.gradient("get", "--id", id, "--metric", "gpuTemp"), "{}\n")


if __name__ == "__main__":
    main()
