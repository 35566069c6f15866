"""Jobs that wait for other jobs, for a time, or for a singleton."""

import datetime
import json

from muster_harness import MusterTest, main


class After(MusterTest):

    def submit(self, name, *flags, command=("true",), code=0):
        return self.muster.run("submit", "single", name, *flags, "--", *command, code=code)

    def explained(self, name):
        return json.loads(self.muster.run("explain", name, "-o", "json").stdout)

    def test_a_chain_runs_in_order_even_if_the_server_is_killed(self):
        gate = self.muster.gate()
        log = self.muster.work / "order"
        self.submit("first", command=("sh", "-c", f"{gate.wait}; echo first >> {log}"))
        self.submit("second", "--after", "first", command=("sh", "-c", f"echo second >> {log}"))
        self.submit("third", "--after", "second:any", "--after", "first", command=("sh", "-c", f"echo third >> {log}"))

        self.assertEqual(self.explained("second")["constraint"], "dependency")
        self.assertIn("starts when 'first' has succeeded", self.muster.run("get", "second").stdout)
        self.assertIn("starts when 'second' has ended and 'first' has succeeded", self.muster.run("queue").stdout)
        self.muster.kill_server()
        gate.open()

        self.assertEqual(self.muster.ended("third")["phase"], "Succeeded")
        self.assertEqual(log.read_text().split(), ["first", "second", "third"])
        self.assertEqual([each["met"] for each in self.muster.job("third")["awaited"]], [True, True])

    def test_a_failed_job_ends_jobs_that_wait_for_its_success_and_starts_jobs_that_wait_for_its_failure(self):
        gate = self.muster.gate()
        self.submit("a", command=("sh", "-c", f"{gate.wait}; exit 3"))
        self.submit("b", "--after", "a")
        self.submit("c", "--after", "b:ok")
        self.submit("clean", "--after", "c:failed")
        gate.open()

        self.assertEqual(self.muster.ended("clean")["phase"], "Succeeded")
        for name, other in (("b", "a"), ("c", "b")):
            job = self.muster.job(name)
            self.assertEqual((job["phase"], job["exit_code"], job["attempt"]), ("Failed", 1, 0))
            self.assertIn(f"did not start: '{other}' had to succeed, but failed", self.muster.run("get", name).stdout)
        failed = self.muster.run("submit", "single", "d", "--after", "a", "--follow", "--", "true", code=1)
        self.assertIn("did not start: 'a' had to succeed, but failed", failed.stderr)

    def test_the_other_job_may_be_deleted_after_its_end(self):
        gate = self.muster.gate()
        self.submit("a")
        self.submit("b", command=("sh", "-c", gate.wait))
        self.submit("c", "--after", "a", "--after", "b")
        self.muster.ended("a")
        self.muster.run("delete", "a")
        gate.open()

        self.assertEqual(self.muster.ended("c")["phase"], "Succeeded")

    def test_unknown_jobs_and_conditions_are_refused(self):
        self.submit("prep")

        self.assertIn("project 'default' has no job 'prpe'; did you mean 'prep'?",
                      self.submit("train", "--after", "prpe", code=3).stderr)
        self.assertIn("'prep:maybe' is not JOB, JOB:ok, JOB:any or JOB:failed",
                      self.submit("train", "--after", "prep:maybe", code=2).stderr)
        self.assertIn("a job cannot wait for itself", self.submit("train", "--after", "train", code=2).stderr)
        self.assertIn("'soon' is not a time", self.submit("train", "--begin", "soon", code=2).stderr)

    def test_jobs_of_other_projects_are_unknown(self):
        self.muster.start_server()
        for project in ("red", "blue"):
            self.muster.run("project", "create", project)
        self.submit("plan", "--project", "red")
        other = json.loads(self.muster.run("get", "plan", "--project", "red", "-o", "json").stdout)

        for name in ("plan", other["id"]):
            refused = self.submit("spy", "--project", "blue", "--after", name, code=3).stderr
            self.assertIn(f"project 'blue' has no job '{name}'", refused)
            self.assertNotIn("red", refused)

    def test_a_job_begins_at_its_time(self):
        self.submit("soon", "--begin", "+1s")
        self.submit("later", "--begin", "+2h")
        dry = self.muster.run("submit", "single", "dry", "--begin", "+2h", "--dry-run", "--", "true").stdout

        self.assertIn("does not start before", dry)
        self.assertEqual(self.muster.ended("soon")["phase"], "Succeeded")
        later = self.muster.job("later")
        self.assertEqual(later["phase"], "Queued")
        self.assertEqual(later["may_start"], later["spec"]["scheduling"]["begin"])
        self.assertEqual(self.explained("later")["constraint"], "begin")
        begin = datetime.datetime.fromisoformat(later["spec"]["scheduling"]["begin"][:19] + "+00:00")
        self.assertGreater(begin, datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))

    def test_jobs_with_one_singleton_run_one_at_a_time(self):
        gate = self.muster.gate()
        self.submit("first", "--singleton", "nightly", command=("sh", "-c", gate.wait))
        self.submit("second", "--singleton", "nightly")
        self.submit("other", "--singleton", "weekly")

        self.assertEqual(self.muster.ended("other")["phase"], "Succeeded")
        self.assertEqual(self.explained("second")["constraint"], "singleton")
        self.assertIn("both have singleton 'nightly'", self.muster.run("get", "second").stdout)
        gate.open()
        self.assertEqual(self.muster.ended("second")["phase"], "Succeeded")

    def test_a_job_file_names_the_jobs_that_it_waits_for(self):
        self.submit("prep")
        file = self.muster.script("job.yaml", "name: train\ncommand: [\"true\"]\n"
                                              "after: [prep, 'prep:any', {job: prep, condition: ok}]\n"
                                              "scheduling: {singleton: nightly}\n")
        self.muster.run("submit", "-f", file)

        job = self.muster.ended("train")
        self.assertEqual(job["phase"], "Succeeded")
        self.assertEqual(len(job["awaited"]), 3)

    def test_the_documents_of_a_file_wait_for_each_other(self):
        log = self.muster.work / "order"
        documents = [f"name: {name}\ncommand: [sh, -c, \"echo {name} >> {log}\"]\nafter: [{after}]\n"
                     for name, after in (("third", "second, first"), ("second", "first"), ("first", ""))]
        file = self.muster.script("jobs.yaml", "---\n".join(documents))
        self.muster.run("submit", "-f", file)

        self.assertEqual(self.muster.ended("third")["phase"], "Succeeded")
        self.assertEqual(log.read_text().split(), ["first", "second", "third"])

        circle = self.muster.script("circle.yaml", "---\n".join(
            f"name: {name}\ncommand: [\"true\"]\nafter: [{after}]\n"
            for name, after in (("a", "b"), ("b", "c"), ("c", "a"))))
        refused = self.muster.run("submit", "-f", circle, code=2).stderr
        self.assertIn("jobs wait for each other in a circle: a waits for b waits for c waits for a", refused)
        self.assertEqual(len(self.muster.jobs()), 3)


if __name__ == "__main__":
    main()
