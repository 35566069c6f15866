"""Arrays of jobs with a real server: every command on the whole and on one member, limits, and kill -9."""

import json
import os
import subprocess
import time

from muster_harness import BOUND, MusterTest, Typed, main


class Arrays(MusterTest):
    def call(self, *words, code=0):
        done = self.muster.run(*words, code=code)
        self.errors = done.stderr
        return done.stdout

    def array(self, name):
        return json.loads(self.call("get", name, "--output", "json"))

    def submit(self, name, *words, code=0):
        return self.call("submit", "single", name, *words, code=code)

    def finish(self, name):
        """Waits for the end of the array and returns it."""
        self.call("logs", name, "-f")
        return self.array(name)

    def test_members_get_their_index(self):
        self.submit("train", "--array", "2-8:3", "--", "sh", "-c",
                    "echo $MUSTER_ARRAY_INDEX of $MUSTER_ARRAY_COUNT, $MUSTER_ARRAY_MIN to $MUSTER_ARRAY_MAX")
        self.assertEqual(self.finish("train")["counts"]["succeeded"], 3)
        lines = self.call("logs", "train").splitlines()
        self.assertIn("[train[2]] 2 of 3, 2 to 8", lines)
        self.assertEqual(len(lines), 3)
        self.assertIn("5 of 3, 2 to 8", self.call("logs", "train[5]"))
        self.assertEqual(self.call("logs", "train-5"), self.call("logs", "train[5]"))
        self.assertIn("Succeeded", self.call("get", "train[8]"))

    def test_members_get_their_line(self):
        (self.muster.work / "names").write_text("ada\ngrace hopper\n")
        self.submit("lines", "--each-line", "names", "--", "sh", "-c", 'echo "$MUSTER_ARRAY_INDEX:$MUSTER_ARRAY_LINE"')
        self.finish("lines")
        self.assertIn("[lines[1]] 1:grace hopper", self.call("logs", "lines"))

    def test_members_get_the_fields_of_their_json(self):
        (self.muster.work / "runs.json").write_text('[{"lr": 0.1, "model": "a b"}, {"lr": 0.01}]')
        self.submit("json", "--each-json", "runs.json", "--", "sh", "-c", 'echo "$MUSTER_ITEM_LR/$MUSTER_ITEM_MODEL"')
        self.finish("json")
        self.assertIn("[json[0]] 0.1/a b", self.call("logs", "json"))
        self.assertIn("[json[1]] 0.01/", self.call("logs", "json"))

    def test_a_job_file_has_an_array(self):
        (self.muster.work / "job.yaml").write_text("name: filed\ncommand: exit $MUSTER_ARRAY_INDEX\narray: 0-1%1\n")
        self.call("submit", "-f", "job.yaml")
        array = self.finish("filed")
        self.assertEqual((array["phase"], array["counts"]["failed"]), ("Failed", 1))
        page = self.call("get", "filed")
        self.assertRegex(page, r"filed\[1\] +Failed +1 ")
        self.assertIn("at most 1 run", page)

    def test_follow_exits_with_1_if_a_member_fails(self):
        out = self.submit("mixed", "--array", "0-3", "--follow", "--", "sh", "-c",
                          "echo here; exit $((MUSTER_ARRAY_INDEX == 2))", code=1)
        self.assertEqual(out.count("here"), 4)
        self.assertIn("4 of 4 done (100%): 3 succeeded, 1 failed", self.errors)
        self.assertEqual(self.submit("fine", "--array", "0-3", "--follow", "--", "true"), "")

    def test_failed_members_run_again(self):
        self.submit("flaky", "--array", "0-5", "--", "sh", "-c",
                    f"test -e {self.muster.work}/repaired || exit $((MUSTER_ARRAY_INDEX % 2))")
        self.assertEqual(self.finish("flaky")["counts"]["failed"], 3)
        (self.muster.work / "repaired").touch()
        self.call("rerun", "--failed", "flaky")
        self.assertEqual(self.finish("flaky")["counts"]["succeeded"], 6)
        self.call("rerun", "--failed", "flaky", code=4)
        self.assertIn("no member of array 'flaky' has failed", self.errors)

    def test_wait_takes_arrays_and_jobs(self):
        self.submit("fine", "--array", "0-3", "--", "true")
        self.submit("single", "--", "true")
        out = self.call("wait", "single", "fine")
        self.assertIn("fine: 4 of 4 done (100%): 4 succeeded", out)
        self.assertIn("single: Succeeded", out)
        self.submit("mixed", "--array", "0-1", "--", "sh", "-c", "exit $MUSTER_ARRAY_INDEX")
        self.call("wait", "fine", "mixed", code=1)
        self.submit("long", "--array", "0-1", "--", "sleep", "1000")
        self.call("wait", "long", "--for", "started")
        self.call("wait", "long", "--timeout", "10ms", code=124)
        self.assertIn("job 'long' has not ended after 10ms; it continues", self.errors)
        shown = json.loads(self.call("wait", "fine", "--output", "json"))
        self.assertEqual(shown["arrays"][0]["counts"]["succeeded"], 4)
        self.assertIn("long has ended", self.call("stop", "long", "--now", "--wait"))

    def test_a_whole_array_runs_again(self):
        (self.muster.work / "names").write_text("ada\ngrace\n")
        self.submit("lines", "--each-line", "names", "--", "sh", "-c", 'echo "$GREETING $MUSTER_ARRAY_LINE"')
        self.finish("lines")
        self.assertIn("submitted lines-rerun-1: 2 members", self.call("rerun", "lines", "-e", "GREETING=hello"))
        self.finish("lines-rerun-1")
        self.assertIn("[lines-rerun-1[1]] hello grace", self.call("logs", "lines-rerun-1"))
        self.assertIn("lines-rerun-2", self.call("rerun", "lines"))
        self.assertIn("submitted again: 2 members", self.call("rerun", "lines", "--name", "again"))

    def test_the_printed_job_file_of_an_array_has_its_lines(self):
        (self.muster.work / "names").write_text("ada\ngrace hopper\n")
        self.submit("lines", "--each-line", "names", "--", "sh", "-c", 'echo "$MUSTER_ARRAY_INDEX:$MUSTER_ARRAY_LINE"')
        (self.muster.work / "again.yaml").write_text(self.call("get", "lines", "--spec"))
        self.call("submit", "-f", "again.yaml", "--name", "again")
        self.finish("again")
        self.assertIn("[again[1]] 1:grace hopper", self.call("logs", "again"))

    def logs_written_to(self, descriptor, *words):
        return subprocess.run(self.muster.argv("logs", *words), env=self.muster.environment, cwd=self.muster.work,
                              stdin=subprocess.DEVNULL, stdout=descriptor, stderr=subprocess.PIPE, text=True,
                              timeout=BOUND)

    def test_logs_that_cannot_be_written_are_an_error_and_a_closed_pipe_has_its_code(self):
        self.submit("loud", "--array", "0-1", "--", "echo", "here")
        self.finish("loud")
        for flags in ((), ("-o", "json"), ("--follow",)):
            with open("/dev/full", "wb") as full:
                ran = self.logs_written_to(full, "loud", *flags)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn("cannot write the logs: No space left on device", ran.stderr)
            reading, writing = os.pipe()
            os.close(reading)
            try:
                ran = self.logs_written_to(writing, "loud", *flags)
            finally:
                os.close(writing)
            self.assertEqual(ran.returncode, 141, ran.stderr)

    def test_the_json_of_logs_is_harmless_to_a_terminal(self):
        self.submit("odd", "--array", "0-1", "--", "printf", r"\177 \302\23331m\n")
        self.finish("odd")
        command = Typed(self.muster, "logs", "odd", "-o", "json")
        self.addCleanup(command.close)
        self.assertEqual(command.finish(), 0, command.text)
        self.assertEqual(command.text.count(rb"\u007f \u009b31m"), 2, command.text)

    def test_the_result_of_a_member_outlives_its_log(self):
        self.submit("train", "--array", "0-2", "--keep-for", "1h", "--", "sh", "-c", "exit $MUSTER_ARRAY_INDEX")
        self.finish("train")
        self.call("delete", "train[1]")
        self.assertEqual(self.array("train")["counts"]["failed"], 2)
        self.call("logs", "train[1]", code=4)
        self.assertIn("no longer kept", self.errors)
        page = self.call("get", "train[1]")
        self.assertIn("Failed", page)
        self.assertIn("its log is no longer kept", page)
        self.assertEqual(len(self.call("logs", "train").splitlines()), 0)

    def test_an_array_is_removed_by_the_rules_of_retention(self):
        self.submit("brief", "--array", "0-2", "--keep-for", "0s", "--", "true")
        self.call("wait", "brief", code=None)
        deadline = time.monotonic() + BOUND
        while self.call("list", "--output", "names"):
            self.assertLess(time.monotonic(), deadline)
        self.submit("brief", "--array", "0-2", "--", "true")

    def test_members_wait_for_the_members_of_another_array(self):
        self.submit("prep", "--array", "0-2", "--", "sh", "-c", "exit $((MUSTER_ARRAY_INDEX == 1))")
        self.submit("train", "--array", "0-3", "--after-member", "prep", "--", "true", code=3)
        self.assertIn("array 'prep' has no member 3, for which train[3] would wait", self.errors)
        self.submit("train", "--array", "0-2", "--after-member", "prep", "--", "true")
        array = self.finish("train")
        self.assertEqual((array["counts"]["succeeded"], array["counts"]["failed"]), (2, 1))
        self.assertIn("'prep-1' had to succeed, but failed", self.call("get", "train[1]"))

    def test_the_origin_of_the_first_member_has_its_index(self):
        self.submit("train", "--array", "0-1", "--", "true")
        self.finish("train")
        self.assertEqual(json.loads(self.call("get", "train[0]", "--output", "json"))["origin"]["member"], 0)

    def test_max_failures_stops_the_array(self):
        self.submit("bad", "--array", "0-99%2", "--max-failures", "2", "--", "false")
        array = self.finish("bad")
        self.assertTrue(array["too_many_failures"])
        self.assertEqual(array["phase"], "Failed")
        self.assertLess(array["counts"]["failed"], 7)
        self.assertEqual(array["counts"]["failed"] + array["counts"]["stopped"], 100)

    def test_is_stopped_and_deleted(self):
        self.submit("long", "--array", "0-999%2", "--", "sleep", "1000")
        self.call("stop", "long[900]")
        self.assertEqual(self.array("long")["counts"]["stopped"], 1)
        self.call("delete", "long", code=4)
        self.assertIn("waits in array 'long'", self.call("logs", "long[800]", code=4) + self.errors)
        self.call("stop", "--now", "long")
        array = self.finish("long")
        self.assertEqual((array["phase"], array["counts"]["stopped"]), ("Stopped", 1000))
        self.call("delete", "long")
        self.call("get", "long", code=3)
        self.submit("long", "--array", "0-1", "--", "true")

    def test_members_that_are_not_jobs_yet_can_be_awaited(self):
        gate = self.muster.gate()
        self.submit("train", "--array", "0-99%8", "--", "sh", "-c", gate.wait)
        self.assertIn("waits for its turn in array 'train'", self.call("get", "train[99]"))
        wait = self.muster.stream("wait", "train[99]")
        gate.open(times=100)
        self.assertEqual(wait.line(), "train-99: Succeeded")
        self.assertEqual(wait.finish(), 0, wait.errors)
        self.assertNotIn("deleted", wait.errors)

    def test_the_wait_for_a_member_ends_with_its_array(self):
        self.submit("long", "--array", "0-999%2", "--", "sleep", "1000")
        wait = self.muster.stream("wait", "long[900]")
        self.call("stop", "--now", "long")
        self.assertEqual(wait.line(), "long-900: Stopped")
        self.assertNotEqual(wait.finish(), 0)

    def test_runai_deletes_whole_arrays(self):
        self.submit("long", "--array", "0-199%2", "--grace", "1s", "--", "sleep", "1000")
        self.call("wait", "long", "--for", "started")
        self.assertEqual(self.call("runai", "delete", "-A"), "Job long deleted successfully.\n")
        self.assertEqual(self.call("list", "--members", "-o", "names"), "")

    def test_names_of_members_cannot_be_used_for_other_jobs(self):
        self.submit("train", "--array", "0-9", "--", "true")
        self.submit("train-3", "--", "true", code=4)
        self.submit("train", "--", "true", code=4)
        self.submit("train-10", "--", "true")

    def test_settings_that_members_cannot_have_are_refused(self):
        self.submit("a", "--array", "5-1", "--", "true", code=2)
        self.assertIn("--array", self.errors)
        self.submit("a", "--array", "0-9", "--set", "environment.MUSTER_ARRAY_INDEX=3", "--", "true", code=2)
        self.assertIn("differs between the members of an array", self.errors)

    def test_dry_run_has_the_number_of_members(self):
        forecast = json.loads(self.submit("a", "--array", "0-41", "--dry-run", "--output", "json", "--", "true"))
        self.assertEqual(forecast["members"], 42)
        self.call("get", "a", code=3)

    def test_is_suspended_and_resumed(self):
        self.submit("held", "--array", "0-3", "--hold", "--", "true")
        self.assertEqual(self.array("held")["counts"]["queued"], 4)
        self.call("resume", "held")
        self.assertEqual(self.finish("held")["counts"]["succeeded"], 4)

    def test_a_killed_server_loses_and_doubles_no_member(self):
        count = 60
        self.submit("train", "--array", f"0-{count - 1}%8", "--", "sh", "-c",
                    f"echo $MUSTER_ARRAY_INDEX >> {self.muster.work}/ran; sleep 0.1")
        for _ in range(3):
            self.muster.kill_server()
            self.array("train")  # starts the next server
        array = self.finish("train")
        self.assertEqual(array["counts"]["succeeded"], count)
        ran = (self.muster.work / "ran").read_text().split()
        self.assertEqual(sorted(map(int, ran)), list(range(count)))


if __name__ == "__main__":
    main()
