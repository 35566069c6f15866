"""Invalid input: every fault is named, with its place and a suggestion."""

from muster_harness import MusterTest, main

FIVE_FAULTS = """\
name: Not A Name
kind: mpi
workers: three
command: [python3, train.py]
enviroment:
  LEARNING_RATE: "0.1"
resources:
  memory: 16 parsecs
grace: soon
"""


class BadInput(MusterTest):

    def refused(self, *words, code=2, input=None):
        ran = self.muster.run(*words, code=code, input=input)
        self.assertEqual(ran.stdout, "")
        self.assertTrue(ran.stderr.startswith("muster: "), ran.stderr)
        return ran.stderr

    def test_five_faults_of_a_yaml_file_are_reported_with_line_and_field(self):
        (self.muster.work / "job.yaml").write_text(FIVE_FAULTS)

        said = self.refused("submit", "-f", "job.yaml").splitlines()

        self.assertIn("'job.yaml' has 5 faults", said[0])
        faults = [line.strip() for line in said if line.strip().startswith("line ")]
        for fault, (line, field, words) in zip(faults, (
                (1, "name", "'Not A Name' is not a job name"),
                (3, "workers", "'three' is not a whole number"),
                (5, "enviroment", "did you mean 'environment'?"),
                (8, "resources.memory", "16 parsecs"),
                (9, "grace", "soon")), strict=True):
            self.assertTrue(fault.startswith(f"line {line}: {field}: "), fault)
            self.assertIn(words, fault)
        self.assertEqual(self.muster.jobs(), [])

    def test_a_yaml_file_without_faults_runs_from_a_file_and_from_standard_input(self):
        text = "name: {}\nkind: single\ncommand: echo from $MUSTER_JOB\n"
        self.muster.script("job.yaml", text.format("file"))

        self.assertEqual(self.muster.run("submit", "-f", "job.yaml", "--follow").stdout,
                         "[main] from file\n")
        self.assertEqual(
            self.muster.run("submit", "-f", "-", "--follow", input=text.format("input")).stdout,
            "[main] from input\n")

    def test_text_that_is_not_yaml_is_reported_with_its_line(self):
        self.assertIn("line 2", self.refused("submit", "-f", "-", input="name: a\n\tkind: [single\n"))

    def test_a_missing_yaml_file_is_named(self):
        self.assertIn("nowhere.yaml", self.refused("submit", "-f", "nowhere.yaml"))

    def test_a_name_that_is_not_a_dns_label_is_refused_with_the_rule(self):
        for name in ("My_Job", "-x-", "job.1", "ünïcode", "a" * 49, ""):
            with self.subTest(name):
                said = self.refused("run", "--name", name, "--", "true")
                self.assertIn(f"'{name}' is not a job name; use 1 to 48 of a-z, 0-9 and '-'", said)

    def test_an_empty_command_is_refused(self):
        for words in (("submit", "single", "job"), ("submit", "single", "job", "--"), ("run", "--"),
                      ("submit", "mpi", "job", "--workers", 2, "--", "")):
            with self.subTest(words):
                self.assertRegex(self.refused(*words), "(?i)command|CMD")

    def test_an_unknown_flag_is_refused_with_the_nearest_flag(self):
        self.assertIn("--workers", self.refused("submit", "mpi", "job", "--wrokers", 2, "--", "true"))
        self.assertIn("--follow", self.refused("logs", "job", "--folow"))

    def test_an_unknown_command_is_refused_with_the_nearest_command(self):
        self.assertIn("submit", self.refused("sumbit", "single", "job", "--", "true"))

    def test_flags_of_the_program_are_left_to_the_program(self):
        ran = self.muster.run("run", "--", "echo", "--wrokers", "--help", "-n")

        self.assertEqual(ran.stdout, "[main] --wrokers --help -n\n")

    def test_all_faults_of_a_command_line_are_reported_at_once(self):
        said = self.refused("submit", "mpi", "Bad_Name", "--workers", "many", "--grace", "soon", "--",
                            "true")

        self.assertIn("3 errors in the command line", said)
        for words in ("NAME", "--workers", "--grace"):
            self.assertIn(words, said)

    def test_numbers_out_of_range_are_refused(self):
        for flags in (("--workers", 0), ("--workers", -1), ("--workers", "99999999999999999999"),
                      ("--workers", 2, "--slots-per-worker", 0)):
            with self.subTest(flags):
                self.refused("submit", "mpi", "job", *flags, "--", "true")

    def test_a_second_job_of_the_same_name_is_a_conflict(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "true")

        said = self.refused("submit", "single", "job", "--", "true", code=4)

        self.assertIn("job 'job' exists already", said)
        self.assertIn("muster delete job", said)
        self.assertEqual(len(self.muster.jobs()), 1)

    def test_an_unknown_job_is_not_found_and_the_nearest_name_offered(self):
        self.muster.run("submit", "single", "training", "--follow", "--", "true")

        for words in (("get", "trainign"), ("logs", "trainign"), ("stop", "trainign"),
                      ("delete", "trainign")):
            with self.subTest(words):
                said = self.refused(*words, code=3)
                self.assertIn("there is no job 'trainign'", said)
                self.assertIn("did you mean 'training'?", said)

    def test_an_unknown_task_is_not_found(self):
        self.muster.run("submit", "single", "job", "--follow", "--", "true")

        self.assertIn("no task 'worker-7'", self.refused("logs", "job", "--task", "worker-7", code=3))

    def test_a_claim_beyond_the_resources_of_the_machine_is_refused_with_the_numbers(self):
        self.assertIn("1000 GPUs", self.refused("submit", "single", "big", "--gpus", 1000, "--", "true",
                                                code=4))

        self.assertEqual(self.muster.jobs(), [])


if __name__ == "__main__":
    main()
