"""Finding jobs: list with its filters, live and on a terminal; get; logs of a task and an attempt; settings that a running
server does not have."""

import csv
import io
import json

from e2e_login import SharedServerTest
from muster_harness import MusterTest, Typed, UnixConnection, main


class Lists(MusterTest):

    def names(self, *flags):
        return self.muster.run("list", "-o", "names", *flags).stdout.split()

    def three_jobs(self):
        self.muster.run("submit", "single", "train-1", "--label", "team=vision", "--follow", "--", "true")
        self.muster.run("submit", "single", "train-2", "--follow", "--", "sh", "-c", "exit 3", code=3)
        self.muster.run("submit", "mpi", "held", "--workers", 2, "--hold", "--", "true")

    def test_jobs_are_selected_and_ordered_by_the_server(self):
        self.three_jobs()

        self.assertEqual(self.names(), ["held", "train-2", "train-1"])
        self.assertEqual(self.names("--sort", "name"), ["held", "train-1", "train-2"])
        self.assertEqual(self.names("--phase", "failed", "--phase", "active"), ["held", "train-2"])
        self.assertEqual(self.names("--phase", "ended"), ["train-2", "train-1"])
        self.assertEqual(self.names("--search", "TRAIN"), ["train-2", "train-1"])
        self.assertEqual(self.names("--search", "exit 3"), ["train-2"])
        self.assertEqual(self.names("--label", "!team", "--kind", "single"), ["train-2"])
        self.assertEqual(self.names("--until", "1h"), [])
        self.assertEqual(self.names("--since", "1h", "--ended-since", "1h"), ["train-2", "train-1"])
        self.assertEqual(self.names("--mine"), self.names())
        self.assertEqual(self.names("--user", "nobody-else"), [])
        self.assertEqual(self.muster.run("ps", "-o", "names").stdout.split(), self.names())

    def test_a_page_is_followed_by_the_number_of_the_others(self):
        self.three_jobs()

        page = self.muster.run("list", "--limit", 2, "--columns", "name,tasks,phase")

        self.assertEqual([row.split() for row in page.stdout.splitlines()],
                         [["NAME", "TASKS", "PHASE"], ["held", "0/3", "Queued"], ["train-2", "1", "Failed"]])
        self.assertIn("muster: 2 of 3 rows; all: --limit 0", page.stderr)
        self.assertEqual(self.muster.run("list").stderr, "")

    def test_comma_separated_values_have_complete_timestamps(self):
        self.three_jobs()

        rows = list(csv.DictReader(io.StringIO(
            self.muster.run("list", "-o", "csv", "--columns", "name,exit,submitted,labels").stdout)))

        self.assertEqual([row["name"] for row in rows], ["held", "train-2", "train-1"])
        self.assertEqual([row["exit"] for row in rows], ["", "3", "0"])
        self.assertEqual(rows[2]["labels"], "team=vision")
        self.assertRegex(rows[0]["submitted"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_lines_are_cut_to_the_terminal_but_not_in_a_pipe(self):
        self.muster.run("submit", "single", "job", "--gpus", 1000, "--hold", "--", "true", code=None)
        self.muster.run("submit", "single", "long", "--label", "x=" + "y" * 60, "--", "true")
        columns = ("list", "--columns", "name,labels,id,user,submitted,reason")

        terminal = Typed(self.muster, *columns, columns=60)
        self.assertEqual(terminal.finish(), 0)
        terminal.close()

        lines = terminal.text.decode().splitlines()
        self.assertTrue(all(len(line) <= 60 for line in lines), lines)
        self.assertTrue(any(line.endswith("...") for line in lines), lines)
        self.assertIn("y" * 60, self.muster.run(*columns).stdout)

    def test_the_live_list_follows_changes_and_restores_the_terminal(self):
        gate = self.muster.gate()
        self.muster.run("submit", "single", "first", "--", "sh", "-c", gate.wait)

        live = Typed(self.muster, "list", "--watch", "--columns", "name,phase")
        live.until(b"first")
        self.muster.run("submit", "single", "second", "--follow", "--", "true")
        live.until(b"second")
        gate.open()
        live.until(b"first   Succeeded")
        live.type(b"q")

        self.assertEqual(live.finish(), 0)
        self.assertTrue(live.text.endswith(b"\x1b[?25h\x1b[?1049l"), live.text[-40:])
        live.close()
        refused = self.muster.run("list", "--watch", code=2)
        self.assertIn("--watch requires a terminal", refused.stderr)

    def test_rows_and_counts_are_in_the_api(self):
        self.three_jobs()

        connection = UnixConnection(self.muster.state / "muster.sock")
        connection.request("GET", "/v1/list?phase=ended&limit=1&count=true&sort=-submitted")
        page = json.loads(connection.getresponse().read())
        connection.close()

        self.assertEqual([row["name"] for row in page["rows"]], ["train-2"])
        self.assertNotIn("events", page["rows"][0])
        self.assertEqual(page["counts"], {"all": 2, "queued": 1, "starting": 0, "running": 0, "succeeded": 1,
                                          "failed": 1, "stopped": 0})
        self.assertIn("next", page)


class Jobs(MusterTest):

    def test_get_shows_limits_variables_and_the_ends_of_workers(self):
        self.muster.run("submit", "mpi", "dist", "--workers", 2, "--allow-launcher-only", "--time-limit", "2h",
                        "--retries", 2, "--env", "LR=value-of-lr", "--follow", "--", "true")

        page = self.muster.run("describe", "dist").stdout

        self.assertRegex(page, r"\nTIME LIMIT +2h\n")
        self.assertRegex(page, r"\nRETRIES +0 of 2 used\n")
        self.assertRegex(page, r"\nENVIRONMENT +.*\bLR\b")
        self.assertNotIn("value-of-lr", page)
        self.assertNotIn("SIGKILL", page)
        self.assertRegex(page, r"worker-1 .* Ended +ended after the job succeeded")

    def test_logs_of_a_task_and_of_an_attempt(self):
        marker = self.muster.work / "second"
        self.muster.run("submit", "single", "job", "--retries", 1, "--follow", "--", "sh", "-c",
                        f'if [ -e "{marker}" ]; then echo again; else touch "{marker}"; echo once; exit 5; fi')

        def logs(*words, code=0):
            return self.muster.run("logs", *words, code=code)

        self.assertEqual(logs("job/main").stdout, "[main] once\n[main] again\n")
        self.assertEqual(logs("job", "-n", 1).stdout, "[main] again\n")
        self.assertEqual(logs("job", "--attempt", 1).stdout, "[main] once\n")
        self.assertEqual(logs("job", "--attempt", 2).stdout, "[main] again\n")
        self.assertIn("job 'job' has no attempt 3: it has had 2 attempts", logs("job", "--attempt", 3, code=3).stderr)
        self.assertIn("has no task 'worker-1'", logs("job/worker-1", code=3).stderr)

    def test_a_program_runs_in_the_named_task(self):
        gate = self.muster.gate()
        self.muster.run("submit", "mpi", "dist", "--workers", 1, "--allow-launcher-only", "--", "sh", "-c", gate.wait)
        follow = self.muster.stream("events", "dist", "--follow")
        follow.until("running")

        self.assertEqual(self.muster.run("exec", "dist/worker-0", "--", "hostname").stdout, "dist-worker-0\n")
        gate.open()
        follow.finish()
        self.muster.run("cancel", "dist")


class Settings(MusterTest):

    def test_a_variable_that_the_server_does_not_have_causes_a_warning(self):
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"
        self.assertEqual(self.muster.run("list").stderr, "")

        ran = self.muster.run("list", environment={"MUSTER_DECLARE_GPUS": "8"})
        self.assertEqual(ran.stderr.splitlines(),
                         ["muster: warning: MUSTER_DECLARE_GPUS=8 has no effect: the running server has 4",
                          "  restart it: muster server --restart; jobs continue meanwhile"])
        other = self.muster.run("list", environment={"MUSTER_ENGINE": "container"})
        self.assertIn("MUSTER_ENGINE=container has no effect: the running server has process", other.stderr)

    def test_a_restart_reads_the_environment_and_keeps_the_jobs(self):
        self.muster.environment["MUSTER_DECLARE_GPUS"] = "4"
        gate = self.muster.gate()
        follow = self.muster.stream("submit", "single", "job", "--follow", "--", "sh", "-c",
                                    f"echo ready; {gate.wait}; echo done")
        follow.until("ready")

        self.muster.environment["MUSTER_DECLARE_GPUS"] = "8"
        restarted = self.muster.run("server", "--restart")

        self.assertEqual(restarted.stdout, "the server has restarted; jobs continue\n")
        self.assertEqual(self.muster.run("list").stderr, "")
        node = json.loads(self.muster.run("node", "list", "-o", "json").stdout)["nodes"][0]
        self.assertEqual(len(node["devices"]), 8)
        gate.open()
        self.assertEqual(follow.finish(), 0)
        self.assertIn("[main] done", follow.text)

    def test_a_server_that_was_started_by_hand_is_not_restarted(self):
        self.muster.start_server("--declare-gpus", "2")

        self.assertIn("MUSTER_DECLARE_GPUS=4 has no effect: the running server has 2\n  restart it as it was started",
                      self.muster.run("list", environment={"MUSTER_DECLARE_GPUS": "4"}).stderr)
        refused = self.muster.run("server", "--restart", code=4)
        self.assertIn("the server was started by 'muster server'", refused.stderr)
        self.assertIn("cannot be used with --restart",
                      self.muster.run("server", "--restart", "--declare-gpus", 2, code=2).stderr)


class SharedLists(SharedServerTest):

    def test_a_listing_contains_and_counts_only_visible_jobs(self):
        ada, ben = self.two_teams()
        self.submit(ada, "first", "team-a", "true")
        self.submit(ben, "second", "team-b", "true")

        self.assertEqual(ada.names("list"), ["first"])
        self.assertEqual(ben.names("list", "--sort", "-duration"), ["second"])
        self.assertEqual(ben.run("list", "--limit", 1).stderr, "")
        self.assertEqual(ben.names("list", "--user", "ada"), [])
        self.assertEqual(ben.names("list", "--search", "first"), [])
        self.assertIn("there is no project 'team-a'", ben.run("list", "--project", "team-a", code=3).stderr)
        self.assertEqual(sorted(self.admin("list", "-o", "names").stdout.split()), ["first", "second"])
        self.assertEqual(ada.names("list", "--mine"), ["first"])

    def test_a_member_of_one_project_uses_it_after_the_login(self):
        ada, _ = self.two_teams()

        ada.run("submit", "single", "job", "--folder", self.muster.work, "--follow", "--", "true")

        self.assertEqual(json.loads(ada.run("get", "job", "-o", "json").stdout)["spec"]["project"], "team-a")

    def test_a_logout_reports_where_commands_go(self):
        ada, _ = self.two_teams()

        left = ada.run("logout")

        self.assertEqual(left.stdout, f"logged out of {self.url}\ncommands go to context 'local' now, a server on this "
                                      f"machine; log in again: muster login {self.url}\n")


if __name__ == "__main__":
    main()
