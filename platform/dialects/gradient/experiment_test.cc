#include "dialects/gradient/experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "dialects/gradient/test_experiment.h"
#include "job/validate.h"

namespace muster::dialects::gradient {

namespace {

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words single(const Words& more = {}) {
  return Words{"experiments", "create",        "singlenode", "--name",    "one",  "--container",
               "python:3",    "--machineType", "C3",         "--command", "ls -l"} +
         more;
}

Words mpi(const Words& more = {}) {
  return Words{"experiments",
               "create",
               "multinode",
               "--name",
               "two",
               "--experimentType",
               "MPI",
               "--workerContainer",
               "w",
               "--workerMachineType",
               "V100",
               "--workerCount",
               "3",
               "--masterContainer",
               "m",
               "--masterMachineType",
               "C3",
               "--masterCommand",
               "mpirun a",
               "--masterCount",
               "1"} +
         more;
}

Words grpc(const Words& more = {}) {
  return Words{"experiments",
               "create",
               "multinode",
               "--experimentType",
               "grpc",
               "--workerContainer",
               "w",
               "--workerMachineType",
               "V100",
               "--workerCommand",
               "train",
               "--workerCount",
               "3",
               "--parameterServerContainer",
               "p",
               "--parameterServerMachineType",
               "C3",
               "--parameterServerCommand",
               "serve",
               "--parameterServerCount",
               "2"} +
         more;
}

std::string annotation(const Experiment& experiment, const std::string& flag) {
  const auto found = experiment.spec.annotations.find("gradient/" + flag);
  return found == experiment.spec.annotations.end() ? "(none)" : found->second;
}

TEST(Experiment, OfASingleNodeIsOneTaskWithItsMachineType) {
  const Experiment experiment = accepted(single());

  EXPECT_EQ(experiment.spec.kind, job::Kind::kSingle);
  EXPECT_EQ(experiment.spec.image, "python:3");
  EXPECT_EQ(experiment.spec.command, (Words{"sh", "-c", "ls -l"}));
  EXPECT_EQ(experiment.spec.resources, job::Resources{});
  EXPECT_EQ(experiment.spec.environment,
            (std::map<std::string, std::string>{{"HOME", "/home/paperspace"}}));
  EXPECT_EQ(annotation(experiment, "experimentType"), "single");
  EXPECT_EQ(annotation(experiment, "machineType"), "C3");
}

TEST(Experiment, IsHeldByCreateAndStartedByRun) {
  const auto run = [](Words words) {
    words[1] = "run";
    return accepted(words);
  };
  EXPECT_TRUE(accepted(mpi()).spec.held);
  EXPECT_FALSE(run(mpi()).spec.held);
  EXPECT_TRUE(run(mpi()).follows);
  EXPECT_FALSE(run(mpi({"--no-logs"})).follows);
}

TEST(Experiment, WorkersOfMpiHaveOneSlotForEachGpuAndAtLeastOne) {
  const job::MachineTypes types{{"cpu", {}},
                                {"two", {.resources = {.gpus = 2}}},
                                {"four", {.resources = {.gpus = 4, .cpu_milli = 1000}}}};
  const auto slots = [&](const std::string& worker, const std::string& master) {
    ReadExperiment result = read(mpi());
    result.experiment.worker_machine = worker;
    result.experiment.leader_machine = master;
    EXPECT_TRUE(use_machines(types, result.experiment));
    return std::pair{result.experiment.spec.slots_per_worker, result.experiment.spec.leader_slots};
  };
  EXPECT_EQ(slots("cpu", "cpu"), (std::pair{1, 0}));
  EXPECT_EQ(slots("two", "cpu"), (std::pair{2, 0}));
  EXPECT_EQ(slots("four", "two"), (std::pair{4, 2}));
}

TEST(Experiment, WorkersOfMpiSleepByDefault) {
  EXPECT_EQ(accepted(mpi()).spec.worker_command, Words{});
  EXPECT_EQ(annotation(accepted(mpi()), "workerCommand"), "sleep infinity");
  EXPECT_EQ(accepted(mpi({"--workerCommand", "sleep infinity"})).spec.worker_command, Words{});
  EXPECT_EQ(accepted(mpi({"--workerCommand", "prepare; sleep 1"})).spec.worker_command,
            (Words{"sh", "-c", "prepare; sleep 1"}));
}

TEST(Experiment, TheFirstWorkerOfGrpcIsTheChief) {
  const Experiment experiment = accepted(grpc());

  EXPECT_EQ(experiment.spec.kind, job::Kind::kGrpc);
  EXPECT_EQ(experiment.spec.workers, 2);
  EXPECT_EQ(experiment.spec.parameter_servers, 2);
  EXPECT_EQ(experiment.spec.leader.resources.gpus, 1);
  EXPECT_EQ(experiment.spec.parameter_server.resources.gpus, 0);
  EXPECT_EQ(experiment.spec.parameter_server.command, (Words{"sh", "-c", "serve"}));
  EXPECT_EQ(annotation(experiment, "workerCount"), "3");
  EXPECT_EQ(annotation(experiment, "experimentType"), "GRPC");
}

TEST(Experiment, AllMissingFlagsAreNamedAtOnce) {
  EXPECT_EQ(read({"experiments", "create", "singlenode"}).fault_text(),
            "--container: is missing\n--machineType: is missing\n--command: is missing\n");
  EXPECT_EQ(read({"experiments", "create", "multinode"}).fault_text(),
            "--experimentType: is missing; give GRPC or MPI\n--workerContainer: is missing\n"
            "--workerMachineType: is missing\n--workerCount: is missing\n");
  EXPECT_EQ(read({"experiments", "run", "multinode", "--experimentType", "GRPC"}).fault_text(),
            "--workerContainer: is missing\n--workerMachineType: is missing\n"
            "--workerCount: is missing\n--workerCommand: is missing\n"
            "--parameterServerContainer: is missing\n--parameterServerMachineType: is missing\n"
            "--parameterServerCommand: is missing\n--parameterServerCount: is missing\n");
}

TEST(Experiment, AFlagWithoutItsValueIsReportedOnce) {
  Words words = mpi();
  words.pop_back();
  EXPECT_EQ(read(words).fault_text(), "--masterCount: needs a value\n");
}

TEST(Experiment, FaultsOfEveryKindAreReportedTogether) {
  const ReadExperiment result =
      read(mpi({"--workerCont", "x", "--masterCommand", " ", "--masterCount", "2",
                "--experimentEnv", "{", "--tags", "a=b"}));

  EXPECT_EQ(result.fault_text(),
            "--masterCommand: is given more than once\n"
            "--masterCount: is given more than once\n"
            "unknown flag '--workerCont'; did you mean '--workerCount'?\n"
            "--masterCommand: is empty\n"
            "--masterCount: '2' is invalid: an MPI experiment has one master; give 1\n"
            "--experimentEnv: '{' is not a JSON object such as '{\"EPOCHS\": 5}'\n"
            "--tag: 'a=b' contains '=', which separates name and value\n");
}

struct Refused {
  Words words;
  std::string fault_text;
};

void expect_refused(const std::vector<Refused>& cases) {
  for (const Refused& each : cases) {
    EXPECT_EQ(read(each.words).fault_text(), each.fault_text + "\n");
  }
}

/// `words` with another value of a flag.
Words with(Words words, const std::string& flag, const std::string& value) {
  *(std::find(words.begin(), words.end(), flag) + 1) = value;
  return words;
}

TEST(Experiment, InvalidCountsAreRefused) {
  expect_refused({
      {with(grpc(), "--parameterServerCount", "0"),
       "--parameterServerCount: 0 is out of range; give 1 to 1000"},
      {with(mpi(), "--workerCount", "0"), "--workerCount: 0 is out of range; give 1 to 1000"},
      {with(mpi(), "--workerCount", "-1"), "--workerCount: -1 is out of range; give 1 to 1000"},
      {with(mpi(), "--workerCount", "1001"), "--workerCount: 1001 is out of range; give 1 to 1000"},
      {with(mpi(), "--workerCount", ""), "--workerCount: is empty"},
      {with(mpi(), "--masterCount", " "), "--masterCount: is empty"},
      {with(mpi(), "--workerCount", "two"), "--workerCount: 'two' is not a whole number"},
      {with(mpi(), "--masterCount", "2"),
       "--masterCount: '2' is invalid: an MPI experiment has one master; give 1"},
  });
}

TEST(Experiment, TheTypeIsReadInAnyCaseAndByItsFormerNumber) {
  const auto type_of = [](Words words, const std::string& flag, const std::string& value) {
    auto place = std::find(words.begin(), words.end(), "--experimentType");
    *place = flag;
    *(place + 1) = value;
    return read(words);
  };
  EXPECT_EQ(type_of(mpi(), "--experimentType", "mPi").fault_text(), "");
  EXPECT_EQ(type_of(mpi(), "--experimentTypeId", "3").experiment.type, Experiment::Type::kMpi);
  EXPECT_EQ(type_of(grpc(), "--experimentTypeId", "2").experiment.type, Experiment::Type::kGrpc);
  EXPECT_EQ(type_of(mpi(), "--experimentType", "NCCL").fault_text(),
            "--experimentType: 'NCCL' is invalid: expected one of GRPC, MPI\n");
  EXPECT_EQ(type_of(mpi(), "--experimentTypeId", "1").fault_text(),
            "--experimentTypeId: '1' is invalid: expected one of 2 (GRPC), 3 (MPI); 1 is 'gradient "
            "experiments create singlenode'\n");
  EXPECT_EQ(read(mpi({"--experimentTypeId", "2"})).fault_text(),
            "--experimentTypeId: means GRPC, but --experimentType is MPI\n");
}

TEST(Experiment, FormerNamesOfTheWorkspaceAreTheSameFlag) {
  EXPECT_EQ(accepted(single({"--workspaceArchive", "a.zip"})).workspace->source.where, "a.zip");
  EXPECT_EQ(accepted(single({"--workspace", "a", "--workspaceUrl", "a"})).workspace->source.where,
            "a");
  expect_refused({{single({"--workspace", "a", "--workspaceUrl", "b"}),
                   "--workspaceUrl: 'b' differs from --workspace 'a'; both set the same value, so "
                   "give only one"}});
}

TEST(Experiment, ARepositoryHasItsRefAndItsKeysAreNotStored) {
  const Experiment experiment = accepted(
      single({"--workspace", "https://h/r.git", "--workspaceRef", "v1", "--workspaceUsername", "me",
              "--workspacePassword", "hush", "--ignoreFiles", "*.bin, data"}));

  ASSERT_TRUE(experiment.workspace);
  EXPECT_EQ(experiment.workspace->source.ref, "v1");
  EXPECT_EQ(experiment.workspace->source.username, "me");
  EXPECT_EQ(experiment.workspace->source.password, "hush");
  EXPECT_EQ(experiment.workspace->ignore, (Words{"*.bin", "data"}));
  EXPECT_EQ(annotation(experiment, "workspaceRef"), "v1");
  for (const auto& [name, value] : experiment.spec.annotations) {
    EXPECT_NE(value, "hush") << name;
    EXPECT_NE(value, "me") << name;
  }
}

TEST(Experiment, WithoutAWorkspaceTheFolderIsEmpty) {
  EXPECT_FALSE(accepted(single()).workspace);
  EXPECT_FALSE(accepted(single({"--workspace", "none"})).workspace);
  expect_refused({{single({"--workspaceRef", "v1"}), "--workspaceRef: needs --workspace URL"}});
}

TEST(Experiment, TheWorkingFolderIsRelativeToTheWorkspace) {
  EXPECT_EQ(accepted(single()).spec.folder, "/home/paperspace");
  EXPECT_EQ(accepted(single({"--workingDirectory", "src/"})).spec.folder, "/home/paperspace/src");
  EXPECT_EQ(accepted(single({"--workingDirectory", "/opt"})).spec.folder, "/opt");
}

TEST(Experiment, ArtifactsAreCollectedFromTheFolderOfTheFlag) {
  const Experiment experiment = accepted(single({"--artifactDirectory", "/out"}));
  EXPECT_EQ(experiment.spec.volumes.at(2),
            (job::Volume{.kind = job::Volume::Kind::kArtifacts, .source = "", .target = "/out"}));
  EXPECT_EQ(experiment.spec.environment.at("PS_MODEL_PATH"), "/out");
  const Experiment with_slash = accepted(single({"--artifactDirectory", "/artifacts//x/"}));
  EXPECT_EQ(with_slash.spec.volumes.at(2).target, "/artifacts/x");
  EXPECT_EQ(with_slash.spec.environment.at("PS_MODEL_PATH"), "/artifacts/x");
  expect_refused({{single({"--artifactDirectory", "out"}),
                   "--artifactDirectory: 'out' is not an absolute path"}});
}

TEST(Experiment, TheEnvironmentIsAnObjectWhoseValuesBecomeText) {
  const Experiment experiment = accepted(single(
      {"--experimentEnv",
       R"({"A": "x", "B": 5, "C": 0.5, "D": true, "HOME": "/root", "KEY": "secret:token"})"}));

  EXPECT_EQ(experiment.spec.environment,
            (std::map<std::string, std::string>{
                {"A", "x"}, {"B", "5"}, {"C", "0.5"}, {"D", "true"}, {"HOME", "/root"}}));
  EXPECT_EQ(experiment.spec.secrets,
            (std::vector<job::SecretUse>{{.name = "token", .variable = "KEY", .file = ""}}));
  expect_refused({
      {single({"--experimentEnv", R"({"A": null, "B": [1]})"}),
       "--experimentEnv: the value of 'A' is null; give text, a number, true or false\n"
       "--experimentEnv: the value of 'B' is [1]; give text, a number, true or false"},
      {single({"--experimentEnv", R"({"not a name": 1})"}),
       "--experimentEnv: 'not a name' is not a variable name; use letters, digits and '_'"},
      {single({"--experimentEnv", "[1]"}),
       "--experimentEnv: '[1]' is not a JSON object such as '{\"EPOCHS\": 5}'"},
  });
}

TEST(Experiment, TheValueNoneForADataSetIsIgnored) {
  const Experiment experiment = accepted(
      single({"--datasetUri", "a", "--datasetEtag", "none", "--datasetVolumeSize", "none"}));

  EXPECT_TRUE(experiment.notes.empty()) << experiment.notes.front();
  EXPECT_EQ(annotation(experiment, "datasetEtag"), "(none)");
}

TEST(Experiment, DataSetsAreCombinedByPosition) {
  const Experiment experiment =
      accepted(single({"--datasetUri", "./sets/mnist.v1", "--datasetUri", "file:///srv/cats",
                       "--datasetName", "none", "--datasetName", "pets"}));

  ASSERT_EQ(experiment.datasets.size(), 2);
  EXPECT_EQ(experiment.datasets[0].uri, "./sets/mnist.v1");
  EXPECT_EQ(experiment.datasets[0].name, "mnist");
  EXPECT_EQ(experiment.datasets[1].uri, "/srv/cats");
  EXPECT_EQ(experiment.spec.volumes.at(4), (job::Volume{.kind = job::Volume::Kind::kTree,
                                                        .source = "",
                                                        .target = "/data/pets",
                                                        .read_only = true}));
}

TEST(Experiment, InvalidDataSetsAreRefused) {
  expect_refused({
      {single({"--datasetUri", "a", "--datasetName", "x", "--datasetName", "y"}),
       "Too many dataset parameter sets (2) for 1 dataset URIs. Forgot to add one more dataset "
       "URI?"},
      {single({"--datasetUri", "s3://bucket/set"}),
       "--datasetUri: 's3://bucket/set' is not a local folder; download it first (aws s3 sync "
       "s3://bucket/set FOLDER) and give --datasetUri FOLDER, or put it into /storage for all "
       "jobs"},
      {single({"--datasetId", "ds1"}),
       "--datasetId: 'ds1' is unknown; give a folder with --datasetUri"},
      {single({"--datasetUri", "a/x", "--datasetUri", "b/x"}),
       "--datasetName: 'x' is the name of two data sets; give them different names with "
       "--datasetName"},
      {single({"--datasetUri", "a", "--datasetName", "../x"}),
       "--datasetName: '../x' is not a folder name; give a name without '/'"},
  });
}

TEST(Experiment, TagsOfBothFlagsAreOneSet) {
  EXPECT_EQ(accepted(single({"--tag", "b", "--tag", "a", "--tags", "c, b"})).spec.labels,
            (std::map<std::string, std::string>{{"a", ""}, {"b", ""}, {"c", ""}}));
}

TEST(Experiment, AModelPathRequiresItsType) {
  const Experiment experiment =
      accepted(single({"--modelType", "ONNX", "--modelPath", "/storage/m"}));
  EXPECT_EQ(annotation(experiment, "modelPath"), "/storage/m");
  expect_refused({{single({"--modelPath", "/m"}),
                   "You have specified modelPath without modelType. Please specify modelType as "
                   "well."}});
}

TEST(Experiment, IsPreemptibleWithAndWithoutTheFlag) {
  const Experiment plain = accepted(single());
  EXPECT_TRUE(job::is_preemptible(plain.spec.scheduling));
  EXPECT_EQ(plain.notes, Words{});
  const Experiment flagged = accepted(single({"--isPreemptible"}));
  EXPECT_TRUE(job::is_preemptible(flagged.spec.scheduling));
  EXPECT_EQ(flagged.notes,
            Words{"--isPreemptible has no effect: every experiment may run over its project's "
                  "quota, and may be evicted"});
}

TEST(Experiment, BelongsToTheProjectInUseUnlessAnotherIsGiven) {
  const cli::Caller caller{.folder = "/here", .project = "team"};
  EXPECT_EQ(accepted(single()).spec.project, "default");
  EXPECT_EQ(read_by(caller, single()).experiment.spec.project, "team");
  EXPECT_EQ(read_by(caller, single({"--projectId", "p"})).experiment.spec.project, "p");
}

TEST(Experiment, FlagsWithoutEffectAreStoredAndNoted) {
  const Experiment experiment = accepted(mpi(
      {"--ports", "80", "--tensorboard", "--workerContainerUser", "root",
       "--parameterServerRegistryContainerUser", "me", "--masterRegistryUrl", "r",
       "--masterRegistryUsername", "u", "--masterRegistryPassword", "p", "--parameterServerCount",
       "3", "--datasetUri", "a", "--datasetAwsSecretAccessKey", "k"}));

  EXPECT_EQ(annotation(experiment, "ports"), "80");
  EXPECT_EQ(annotation(experiment, "workerContainerUser"), "root");
  EXPECT_EQ(annotation(experiment, "tensorboard"), "true");
  EXPECT_EQ(annotation(experiment, "masterRegistryPassword"), "(none)");
  EXPECT_EQ(annotation(experiment, "masterRegistryUsername"), "(none)");
  EXPECT_EQ(annotation(experiment, "datasetAwsSecretAccessKey"), "(none)");
  EXPECT_EQ(experiment.notes.size(), 5);
  EXPECT_EQ(experiment.notes.front(),
            "--parameterServerCount has no effect: an MPI experiment has no parameter servers");
}

TEST(Experiment, ATensorboardMayBeNamed) {
  EXPECT_EQ(annotation(accepted(single({"--tensorboard=tb1"})), "tensorboard"), "tb1");
  EXPECT_EQ(annotation(accepted(single({"--tensorboard"})), "tensorboard"), "true");
}

TEST(Experiment, EveryStoredFlagIsShownAsTyped) {
  const Experiment experiment = accepted(single({"--clusterId", "cl1"}));
  EXPECT_EQ(annotation(experiment, "clusterId"), "cl1");
  EXPECT_EQ(annotation(experiment, "command"), "ls -l");
  EXPECT_EQ(annotation(experiment, "name"), "one");
  EXPECT_EQ(annotation(experiment, "apiKey"), "(none)");
}

TEST(Experiment, UnknownMachineTypesAreAllNamedWithTheNearest) {
  ReadExperiment result =
      read(with(with(mpi(), "--workerMachineType", "V101"), "--masterMachineType", "p2.xlage"));
  const auto used = use_machines(job::usual_machine_types(), result.experiment);

  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, base::ErrorCode::kInvalid);
  ASSERT_EQ(used.error().faults.size(), 2);
  EXPECT_EQ(used.error().faults[0].field, "--workerMachineType");
  EXPECT_NE(used.error().faults[0].what.find("'V100'"), std::string::npos);
  EXPECT_EQ(used.error().faults[1].field, "--masterMachineType");
  EXPECT_NE(used.error().faults[1].what.find("'p2.xlarge'"), std::string::npos);
}

TEST(Experiment, AnUnknownMachineTypeOfTheChiefIsReportedOnce) {
  ReadExperiment result = read(with(grpc(), "--workerMachineType", "V101"));
  const auto used = use_machines(job::usual_machine_types(), result.experiment);

  ASSERT_FALSE(used);
  EXPECT_TRUE(used.error().what.starts_with("--workerMachineType: ")) << used.error().what;
}

TEST(Experiment, NamesBecomeNamesOfJobs) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"My test!", "my-test"},
      {"dist", "dist"},
      {"", "experiment"},
      {"---", "experiment"},
      {"a__b", "a-b"},
      {"\xC3\xA9t\xC3\xA9", "t"},
      {std::string(100, 'x'), std::string(44, 'x')},
      {std::string(43, 'x') + "-y", std::string(43, 'x')},
  };
  for (const auto& [name, job_name] : cases) {
    EXPECT_EQ(job_name_of(name), job_name);
    EXPECT_TRUE(job::is_job_name(job_name_of(name) + "-999")) << name;
  }
}

}  // namespace

namespace {

using Words = std::vector<std::string>;

TEST(ShellCommand, WordsAreSplitAsByAShell) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"", {}},
      {" mpirun  -np\t2 a ", {"mpirun", "-np", "2", "a"}},
      {"a 'b c' \"d  e\"", {"a", "b c", "d  e"}},
      {"a'b'\"c\"d", {"abcd"}},
      {"a '' b", {"a", "", "b"}},
      {"-mca btl ^openib -x A=b=c", {"-mca", "btl", "^openib", "-x", "A=b=c"}},
      {"a '$HOME; x' \"it's\"", {"a", "$HOME; x", "it's"}},
  };
  for (const auto& [text, words] : cases) EXPECT_EQ(plain_words(text), words) << text;
}

TEST(ShellCommand, CommandsThatNeedAShellAreLeftToIt) {
  for (const char* const text :
       {"a | b", "a && b", "a; b", "a > b", "a $HOME", "a \"$HOME\"", "a `b`", "a *", "a b?",
        "a\nb", "(a)", "a \\b", "a \"b\\c\"", "~/a", "a # b", "a 'b", "a \"b"}) {
    EXPECT_EQ(plain_words(text), std::nullopt) << text;
  }
}

TEST(ShellCommand, OnlyALauncherIsCalledWithoutAShell) {
  EXPECT_EQ(master_command("mpirun -np 2 ./a"), (Words{"mpirun", "-np", "2", "./a"}));
  EXPECT_EQ(master_command("/opt/bin/mpiexec.hydra ./a"), (Words{"/opt/bin/mpiexec.hydra", "./a"}));
  EXPECT_EQ(master_command("mpirunner a"), (Words{"sh", "-c", "mpirunner a"}));
  EXPECT_EQ(master_command("cd x && mpirun a"), (Words{"sh", "-c", "cd x && mpirun a"}));
  EXPECT_EQ(master_command("mpirun -np $N a"), (Words{"sh", "-c", "mpirun -np $N a"}));
  EXPECT_EQ(master_command("exit 3"), (Words{"sh", "-c", "exit 3"}));
}

TEST(ShellCommand, EndlessSleepsAreDetected) {
  EXPECT_TRUE(is_endless_sleep(" sleep  infinity "));
  EXPECT_FALSE(is_endless_sleep("sleep 10"));
  EXPECT_FALSE(is_endless_sleep("sleep infinity && true"));
}

}  // namespace

}  // namespace muster::dialects::gradient
