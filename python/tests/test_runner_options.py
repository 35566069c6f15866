"""The options of horovodrun: the settings that they make, and all their faults together."""

import importlib.util
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from launched import horovodrun
from muster.runner.asked import settings_of
from muster.runner.command_line import read_command_line, read_config_file
from muster.runner.option_table import COUNT, NO, NUMBER, OPTIONS, RANGE, TEXT, YES
from muster.runner.settings import Host, Settings, SettingsError

NEEDED = ("-np", "2")
ELASTIC = ("--min-np", "1")

#: Words of the command line, the field of the settings, and its value.
SETTINGS = (
    (("-np", "3"), "num_proc", 3), (("--num-proc=3",), "num_proc", 3), (("-np=3",), "num_proc", 3),
    ((*NEEDED, "-H", "a:1,b:3"), "hosts", (Host("a", 1), Host("b", 3))),
    ((*NEEDED, "--hosts", "a:2"), "hosts", (Host("a", 2),)),
    ((*NEEDED, "-Ha:2"), "hosts", (Host("a", 2),)),
    (NEEDED, "hosts", (Host("localhost", 2),)),
    (("-H", "a:2,b:3"), "num_proc", 5),
    ((*NEEDED, *ELASTIC), "min_num_proc", 1), ((*NEEDED, "--min-num-proc", "2"), "min_num_proc", 2),
    ((*NEEDED, "--max-np", "4"), "max_num_proc", 4),
    ((*NEEDED, "--max-num-proc", "4"), "max_num_proc", 4),
    ((*NEEDED, "--host-discovery-script", "./s"), "host_discovery_script", "./s"),
    ((*NEEDED, *ELASTIC, "--slots-per-host", "3"), "slots_per_host", 3),
    ((*NEEDED, *ELASTIC, "--elastic-timeout", "9"), "elastic_timeout", 9),
    ((*NEEDED, *ELASTIC), "elastic_timeout", 600),
    ((*NEEDED, *ELASTIC, "--reset-limit", "0"), "reset_limit", 0),
    ((*NEEDED, *ELASTIC, "--blacklist-cooldown-range", "1", "10"), "blacklist_cooldown_range", (1, 10)),
    ((*NEEDED, "--start-timeout", "7"), "start_timeout", 7), (NEEDED, "start_timeout", 30),
    ((*NEEDED, "--network-interface", "eth0,eth1"), "network_interfaces", ("eth0", "eth1")),
    ((*NEEDED, "--network-interfaces", "eth0"), "network_interfaces", ("eth0",)),
    ((*NEEDED, "-p", "22"), "ssh_port", 22), ((*NEEDED, "-p22"), "ssh_port", 22),
    ((*NEEDED, "--ssh-port=22"), "ssh_port", 22),
    ((*NEEDED, "-i", __file__), "ssh_identity_file", __file__),
    ((*NEEDED, "--output-filename", "/o"), "output_filename", "/o"),
    ((*NEEDED, "--prefix-output-with-timestamp"), "prefix_output_with_timestamp", True),
    ((*NEEDED, "-prefix-timestamp"), "prefix_output_with_timestamp", True),
    ((*NEEDED, "--verbose"), "verbose", True), ((*NEEDED, "--gloo"), "launcher", "gloo"),
    ((*NEEDED, "--mpi"), "launcher", "mpi"),
    ((*NEEDED, "--mpi", "--mpi-args", "-x A"), "mpi_args", "-x A"),
    ((*NEEDED, "--mpi", "--mpi-args=-x A"), "mpi_args", "-x A"),
    ((*NEEDED, "--mpi", "--tcp"), "tcp", True),
    ((*NEEDED, "--mpi", "--binding-args", "-bind-to core"), "binding_args", "-bind-to core"),
    ((*NEEDED, "--ssh-identity-file", __file__), "ssh_identity_file", __file__),
    ((*NEEDED, "--ssh-port", "22"), "ssh_port", 22),
    ((*NEEDED, "--nics", "eth0"), "network_interfaces", ("eth0",)))

#: Words of the command line, the variable of the ranks, and its value.
VARIABLES = (
    ("--fusion-threshold-mb 64", "HOROVOD_FUSION_THRESHOLD", "67108864"),
    ("--cycle-time-ms 3.5", "HOROVOD_CYCLE_TIME", "3.5"),
    ("--cache-capacity 512", "HOROVOD_CACHE_CAPACITY", "512"),
    ("--hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", "1"),
    ("--no-hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", "0"),
    ("--hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER", "1"),
    ("--no-hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER", "0"),
    ("--torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", "1"),
    ("--no-torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", "0"),
    ("--autotune", "HOROVOD_AUTOTUNE", "1"), ("--no-autotune", "HOROVOD_AUTOTUNE", "0"),
    ("--autotune-log-file /l", "HOROVOD_AUTOTUNE_LOG", "/l"),
    ("--autotune-warmup-samples 1", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "1"),
    ("--autotune-steps-per-sample 2", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "2"),
    ("--autotune-bayes-opt-max-samples 3", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "3"),
    ("--autotune-gaussian-process-noise 0.5", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.5"),
    ("--timeline-filename t.json", "HOROVOD_TIMELINE", os.path.abspath("t.json")),
    ("--timeline-filename DYNAMIC", "HOROVOD_TIMELINE", "DYNAMIC"),
    ("--timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "1"),
    ("--no-timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "0"),
    ("--stall-check", "HOROVOD_STALL_CHECK_DISABLE", "0"),
    ("--no-stall-check", "HOROVOD_STALL_CHECK_DISABLE", "1"),
    ("--stall-check-warning-time-seconds 5", "HOROVOD_STALL_CHECK_TIME_SECONDS", "5"),
    ("--stall-check-shutdown-time-seconds 6", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "6"),
    ("--mpi-threads-disable", "HOROVOD_MPI_THREADS_DISABLE", "1"),
    ("--no-mpi-threads-disable", "HOROVOD_MPI_THREADS_DISABLE", "0"),
    ("--num-nccl-streams 2", "HOROVOD_NUM_NCCL_STREAMS", "2"),
    ("--thread-affinity 1", "HOROVOD_THREAD_AFFINITY", "1"),
    ("--gloo-timeout-seconds 45", "HOROVOD_GLOO_TIMEOUT_SECONDS", "45"),
    ("--log-level DEBUG", "HOROVOD_LOG_LEVEL", "debug"),
    ("--log-with-timestamp", "HOROVOD_LOG_HIDE_TIME", "0"),
    ("--log-without-timestamp", "HOROVOD_LOG_HIDE_TIME", "1"),
    ("--log-hide-timestamp", "HOROVOD_LOG_HIDE_TIME", "1"))


def settings(*words, environment=None, needed=NEEDED):
    faults = []
    line = read_command_line([*needed, *map(str, words), "train"], faults)
    return settings_of(line.asked, line.command, environment or {}, faults)


def faults_of(*words, environment=None, command=("train",)):
    faults = []
    line = read_command_line([*map(str, words), *command], faults)
    try:
        settings_of(line.asked, line.command, environment or {}, faults)
    except SettingsError as error:
        return list(error.faults)
    return []


class Meaning(unittest.TestCase):
    def test_options_that_are_settings(self):
        for words, field, value in SETTINGS:
            with self.subTest(words):
                self.assertEqual(getattr(settings(*words, needed=()), field), value)

    def test_options_that_are_variables_of_the_ranks(self):
        for words, variable, value in VARIABLES:
            with self.subTest(words):
                self.assertEqual(dict(settings(*words.split()).environment), {variable: value})

    def test_every_name_of_every_option_has_been_tried_here(self):
        tried = {word.partition("=")[0] for words, _, _ in SETTINGS for word in words}
        tried |= {words.partition(" ")[0] for words, _, _ in VARIABLES}
        elsewhere = {"help", "version", "check_build", "config_file", "jsrun", "disable_cache", "hostfile"}
        for option in OPTIONS:
            for name in option.names if option.key not in elsewhere else ():
                self.assertIn(name, tried)

    def test_the_command_begins_with_the_first_word_that_is_no_option(self):
        for words, command in [(["python3", "-np", "3", "--", "x"], ("python3", "-np", "3", "--", "x")),
                               (["--", "--odd", "name"], ("--odd", "name"))]:
            self.assertEqual(read_command_line([*NEEDED, *words], []).command, command)

    def test_omitted_options_have_defaults(self):
        said = settings()
        self.assertEqual(said, Settings(command=("train",), num_proc=2, hosts=(Host("localhost", 2),),
                                        working_folder=os.getcwd()))
        self.assertEqual(settings(environment={"HOROVOD_START_TIMEOUT": "12"}).start_timeout, 12)

    def test_in_a_muster_job_hosts_and_the_way_to_them_are_its_own(self):
        folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, folder)
        (folder / "hostfile").write_text("dist-worker-0 slots=2\ndist-worker-1 slots=2\n")
        script = folder / "discover_hosts.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o700)
        job = {"MUSTER_GENERATED": str(folder), "OMPI_MCA_plm_rsh_agent": "ssh",
               "OMPI_MCA_plm_rsh_args": f"-F {folder}/ssh/config"}
        said = settings(environment=job, needed=())
        self.assertEqual(said.hosts, (Host("dist-worker-0", 2), Host("dist-worker-1", 2)))
        self.assertEqual((said.num_proc, said.remote_shell), (4, ("ssh", "-F", f"{folder}/ssh/config")))
        self.assertEqual(settings("--min-np", "1", environment=job, needed=()).host_discovery_script, str(script))
        self.assertEqual(settings("-H", "a:2", environment=job).hosts, (Host("a", 2),))


class Faults(unittest.TestCase):
    def test_all_faults_are_reported_together(self):
        found = faults_of("-np", "none", "--min-np", "4", "--max-np", "2", "--log-level", "loud", "--verbos",
                          "-p", "70000", "--cycle-time-ms", "nan", "-i", "/no/such/key", "--gloo", "--mpi", command=())
        for part in ("-np none: expected a whole number from 1", "--min-np 4 exceeds --max-np 2",
                     "--log-level loud: expected one of trace, debug, info, warning, error, fatal",
                     "--verbos is not an option of this program (did you mean --verbose?)",
                     "-p 70000: the highest port is 65535",
                     "--cycle-time-ms nan: expected a number from 0", "/no/such/key: the file does not exist",
                     "--gloo and --mpi contradict each other", "the command is missing"):
            self.assertEqual(len([each for each in found if part in each]), 1, (part, found))

    def test_each_fault(self):
        for words, part in [
                ("", "the number of ranks is missing: set -np N"), ("-np", "the command is missing"),
                ("-np 0", "-np 0: expected a whole number from 1"), ("-np -1", "-np -1"), ("-np 1.5", "-np 1.5"),
                ("-np 99999999999999999999", "-np 99999999999999999999"),
                ("-np 3 -H a:1,b:1", "3 ranks need as many slots, but the hosts have 2 (a:1, b:1)"),
                ("-np 2 -H a:1 --hostfile f", "-H and --hostfile contradict each other"),
                ("-np 2 -H a --host-discovery-script s", "contradict each other"),
                ("-np 2 -np 3", "-np is given twice with different values"),
                ("-np 2 --num-proc 3", "-np and --num-proc contradict each other"),
                ("-np 2 --autotune --no-autotune", "--autotune and --no-autotune contradict each other"),
                ("-np 2 --autotune=yes", "--autotune takes no value"),
                ("-np 2 -H a:x", "'x' is not a number of ranks for a"), ("-np 2 -H :2", "'' is not a host name"),
                ("-np 2 -H -oProxyCommand=x:2", "is not a host name"),
                ("-np 2 --hostfile /no/such/file", "--hostfile /no/such/file: cannot be read: No such file"),
                ("-np 2 --jsrun", "--jsrun: not supported"),
                ("-np 2 --mpi --min-np 1", "--mpi and --min-np contradict each other"),
                ("-np 2 --reset-limit 3", "--reset-limit: for elastic runs only"),
                ("-np 1 --min-np 2", "--min-np 2 exceeds -np 1"),
                ("-np 3 --max-np 2", "-np 3 exceeds --max-np 2"),
                ("--host-discovery-script s", "the minimum number of ranks is missing"),
                ("--min-np 4 -H a:2", "4 ranks need as many slots, but the hosts have 2"),
                ("-np 2 --min-np 1 --blacklist-cooldown-range 5 1", "the first number must not exceed"),
                ("-np 2 --network-interface a,,b", "expected names of interfaces"),
                ("-np 2 --output-filename=", "--output-filename is empty"),
                ("-np 2 --log-level loud", "expected one of trace, debug"),
                ("-np 2 --nonsense", "--nonsense is not an option")]:
            with self.subTest(words):
                found = faults_of(*words.split())
                self.assertTrue(any(part in each for each in found), found)

    def test_every_option_with_a_number_refuses_other_texts(self):
        for option in OPTIONS:
            for bad in ("", "x", "-5", "nan", "inf", "1e400", "0x10") if option.kind in (COUNT, NUMBER) else ():
                with self.subTest(option.names[0], bad=bad):
                    found = faults_of("-np", "2", f"{option.names[-1]}={bad}")
                    self.assertTrue(any(each.startswith(option.names[-1] + " ") for each in found), found)

    def test_every_option_that_requires_a_value_reports_its_absence_at_the_end(self):
        for option in OPTIONS:
            wanted = {TEXT: "a value", COUNT: "a value", NUMBER: "a value", RANGE: "2 values", YES: "", NO: ""}
            if wanted[option.kind]:
                found = faults_of(*NEEDED, option.names[0], command=())
                self.assertTrue(any(f"{option.names[0]} requires {wanted[option.kind]}" in each for each in found), found)

    def test_an_invalid_variable_is_an_error(self):
        self.assertEqual(faults_of(*NEEDED, environment={"HOROVOD_START_TIMEOUT": "soon"}),
                         ["HOROVOD_START_TIMEOUT is 'soon': expected a whole number of seconds from 1"])


class ConfigFile(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-runner-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "config.yaml"

    def read(self, text, *words):
        self.file.write_text(text)
        faults = []
        line = read_command_line([*NEEDED, *words, "train"], faults)
        asked = {**read_config_file(str(self.file), line.asked, faults), **line.asked}
        return settings_of(asked, line.command, {}, faults)

    def faults(self, text):
        with self.assertRaises(SettingsError) as caught:
            self.read(text)
        return caught.exception.faults

    FULL = """
verbose: false
params:
  fusion-threshold-mb: 32
  cycle-time-ms: 5
  cache_capacity: 2048
  hierarchical-allreduce: true
  hierarchical-allgather: false
  torus-allreduce: true
autotune:
  enabled: true
  log-file: /tmp/log.csv
  warmup-samples: 5
  steps-per-sample: 20
  bayes-opt-max-samples: 50
  gaussian-process-noise: 0.9
timeline:
  filename: /tmp/t.json
  mark-cycles: true
stall-check:
  enabled: false
  warning-time-seconds: 120
  shutdown-time-seconds: 240
library_options:
  mpi-threads-disable: true
  num-nccl-streams: 2
  thread-affinity: 1
  gloo-timeout-seconds: 60
logging:
  level: INFO
  hide-timestamp: true
"""

    def test_all_that_a_file_may_say(self):
        self.assertEqual(dict(self.read(self.FULL).environment), {
            "HOROVOD_FUSION_THRESHOLD": str(32 << 20), "HOROVOD_CYCLE_TIME": "5", "HOROVOD_CACHE_CAPACITY": "2048",
            "HOROVOD_HIERARCHICAL_ALLREDUCE": "1", "HOROVOD_HIERARCHICAL_ALLGATHER": "0",
            "HOROVOD_TORUS_ALLREDUCE": "1", "HOROVOD_AUTOTUNE": "1", "HOROVOD_AUTOTUNE_LOG": "/tmp/log.csv",
            "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": "5",
            "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": "20", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES": "50",
            "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE": "0.9", "HOROVOD_TIMELINE": "/tmp/t.json",
            "HOROVOD_TIMELINE_MARK_CYCLES": "1", "HOROVOD_STALL_CHECK_DISABLE": "1",
            "HOROVOD_STALL_CHECK_TIME_SECONDS": "120", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "240",
            "HOROVOD_MPI_THREADS_DISABLE": "1", "HOROVOD_NUM_NCCL_STREAMS": "2", "HOROVOD_THREAD_AFFINITY": "1",
            "HOROVOD_GLOO_TIMEOUT_SECONDS": "60", "HOROVOD_LOG_LEVEL": "info", "HOROVOD_LOG_HIDE_TIME": "1"})

    def test_options_win(self):
        said = self.read(self.FULL, "--fusion-threshold-mb", "8", "--no-autotune", "--stall-check")
        self.assertEqual((said.environment["HOROVOD_FUSION_THRESHOLD"], said.environment["HOROVOD_AUTOTUNE"],
                          said.environment["HOROVOD_STALL_CHECK_DISABLE"]), (str(8 << 20), "0", "0"))

    def test_an_empty_file_sets_nothing(self):
        self.assertEqual(dict(self.read("").environment), {})

    def test_all_faults_are_reported_with_their_positions(self):
        found = self.faults("params:\n  fusion-threshold: 1\n  cycle-time-ms: fast\n  cache-capacity: [1]\n"
                            "autotune:\n  enabled: 3\nnonsense:\n  a: 1\nlogging:\n  level: loud\n")
        for part in ("params: fusion-threshold: unknown setting (did you mean 'params: fusion-threshold-mb'?)",
                     "params: cycle-time-ms fast: expected a number from 0",
                     "params: cache-capacity: [1] is not a number",
                     "autotune: enabled: 3 is not true or false", "nonsense: a: unknown setting",
                     "logging: level loud: expected one of"):
            self.assertEqual(len([each for each in found if part in each]), 1, (part, found))

    def test_invalid_and_missing_files_are_errors(self):
        for text, part in (("params: [", "invalid YAML"), ("- a\n", "expected sections"),
                           ("!!python/object:os.system {}", "invalid YAML"), ("[" * 5000, "invalid YAML")):
            self.assertTrue(any(part in each for each in self.faults(text)), text[:20])
        faults = []
        with mock.patch.dict("sys.modules", yaml=None):
            read_config_file(str(self.file), {}, faults)
        self.assertEqual(faults, [f"--config-file {self.file}: reading it requires PyYAML, which is not installed: "
                                  "python3 -m pip install pyyaml"])
        faults = []
        read_config_file("/no/such/file", {}, faults)
        self.assertEqual(faults, ["--config-file /no/such/file: cannot be read: No such file or directory"])


class Command(unittest.TestCase):
    def test_wrong_options_start_nothing_and_end_with_2(self):
        ran = horovodrun("-np", "0", "--nonsense", "echo", "started")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertEqual(len(ran.stderr.splitlines()), 3)

    def test_help_names_every_option(self):
        said = horovodrun("--help").stdout
        for option in OPTIONS:
            for name in option.names:
                self.assertIn(name, said)

    def test_the_version_and_what_is_built(self):
        self.assertRegex(horovodrun("--version").stdout, r"^\d+\.\d+\.\d+\n$")
        said = horovodrun("--check-build")
        self.assertEqual(said.returncode, 0)
        torch = "X" if importlib.util.find_spec("torch") else " "
        for part in ("Available Frameworks:", f"[{torch}] PyTorch", "[ ] MXNet", "Available Controllers:", "[X] Gloo",
                     "Available Tensor Operations:", "[ ] DDL"):
            self.assertIn(part, said.stdout)

    def test_options_without_effect_are_reported_once_with_verbose(self):
        words = ("-np", "1", "--cycle-time-ms", "5", "--mpi-args", "x", "--disable-cache", "--no-torus-allreduce")
        self.assertEqual(horovodrun(*words, "true").stderr, "")
        said = horovodrun(*words, "--verbose", "true").stderr.splitlines()
        for name in ("--cycle-time-ms", "--mpi-args", "--disable-cache", "--no-torus-allreduce"):
            notes = [each for each in said if each.startswith(f"horovodrun: {name} has no effect")]
            self.assertEqual(len(notes), 1, said)


if __name__ == "__main__":
    unittest.main()
