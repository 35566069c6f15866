"""`muster simulate`: the scheduler in simulated time, without a server."""

import json
import re
import xml.etree.ElementTree

from muster_harness import ROOT, MusterTest, main

TRACE = ROOT / "examples" / "traces" / "two_teams.csv"
SCENARIOS = ROOT / "tests" / "data" / "scheduler-scenarios.md"


class Simulate(MusterTest):

    def replay(self, *flags, nodes=4):
        words = ("simulate", "--trace", TRACE, "--nodes", nodes, "-o", "json", *flags)
        return json.loads(self.muster.run(*words).stdout)

    def test_every_scenario_has_a_line_and_the_count_comes_last(self):
        ran = self.muster.run("simulate", "--scenarios", SCENARIOS, code=1)

        *lines, count = ran.stdout.splitlines()
        self.assertEqual(len(lines), 104)
        as_expected = [line for line in lines if line.startswith("ok ")]
        self.assertEqual(count, f"{len(as_expected)} of 104")
        for line in set(lines) - set(as_expected):
            self.assertRegex(line, r"^differs .+: (expected .+ got .+|cannot be read: .+)$")

    def test_the_exit_code_is_0_if_all_scenarios_have_the_expected_result(self):
        text = SCENARIOS.read_text()
        first = text[text.index("## allocate/allocate_test.go"):text.index("- **1 job running on node0, "
                                                                           "3 pending jobs - only")]
        (self.muster.work / "one.md").write_text(first)

        ran = self.muster.run("simulate", "--scenarios", "one.md")

        self.assertEqual(ran.stdout.splitlines()[-1], "1 of 1")

    def test_a_trace_is_replayed_the_same_each_time_and_every_job_ends(self):
        report = self.replay()

        self.assertEqual(report, self.replay())
        self.assertEqual(report["jobs"], 300)
        self.assertEqual(sum(project["jobs"] for project in report["projects"]), 300)
        self.assertLessEqual(report["utilisation"], 1)
        self.assertGreater(report["utilisation"], 0.3)

    def test_more_nodes_mean_less_waiting(self):
        waits = [self.replay(nodes=nodes)["waiting_s"]["mean"] for nodes in (4, 6, 40)]

        self.assertGreater(waits[0], waits[1])
        self.assertGreater(waits[1], waits[2])
        self.assertEqual(waits[2], 0)

    def test_backfill_waits_less_than_strict_order_of_submission(self):
        fifo = self.replay("--policy", "fifo")
        backfill = self.replay("--policy", "backfill")

        self.assertLess(backfill["waiting_s"]["mean"], fifo["waiting_s"]["mean"])
        self.assertEqual((fifo["preemptions"], backfill["preemptions"]), (0, 0))

    def test_the_chart_is_a_picture_with_its_axes_named(self):
        self.muster.run("simulate", "--trace", TRACE, "--nodes", 4, "--chart", "queue.svg")

        svg = xml.etree.ElementTree.parse(self.muster.work / "queue.svg").getroot()
        words = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
        for label in ("jobs waiting", "GPUs in use", "4 nodes of 8 GPUs, policy fair"):
            self.assertIn(label, words)

    def test_a_table_shows_waiting_completion_and_each_project(self):
        out = self.muster.run("simulate", "--trace", TRACE, "--nodes", 4, "--per-project").stdout

        for line in (r"^waiting +\S+ +\S+ +\S+ +\S+$", r"^completion ", r"^utilisation +[\d.]+ %$",
                     r"^preemptions +\d+", r"^language +10\.7 "):
            self.assertTrue(re.search(line, out, re.MULTILINE), f"{line}\n{out}")

    def test_no_server_is_started_for_it(self):
        self.replay()

        self.assertFalse((self.muster.state / "server.log").exists())

    def test_faults_name_the_flag_or_the_line(self):
        ran = self.muster.run("simulate", "--trace", TRACE, "--nodes", 4, "--project", "langage=3",
                              code=2)
        self.assertIn("--project", ran.stderr)
        self.assertIn("did you mean 'language'?", ran.stderr)
        (self.muster.work / "bad.csv").write_text("submit_s,duration_s,gpus\n1,2,3\n")
        ran = self.muster.run("simulate", "--trace", "bad.csv", "--nodes", 4, code=2)
        self.assertIn("bad.csv", ran.stderr)
        self.assertIn("project", ran.stderr)


if __name__ == "__main__":
    main()
