// `gradient experiments create` and `run` as whole commands, against a fake server.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/cli_fixture.h"
#include "dialects/gradient/gradient.h"

namespace muster::dialects::gradient {

namespace {

using cli::Words;

std::vector<job::LogRecord> lines_of_tasks(const Words& tasks) {
  std::vector<job::LogRecord> records;
  for (const std::string& task : tasks) {
    records.push_back({.time = base::Time(std::chrono::seconds(100)),
                       .task = task,
                       .host = "one-" + task,
                       .text = "line " + std::to_string(records.size())});
  }
  return records;
}

class GradientCreate : public cli::Cli {
 protected:
  void SetUp() override {
    cli::Cli::SetUp();
    forget_servers();
    home_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    ::setenv("HOME", folder_.c_str(), 1);
  }

  void TearDown() override {
    forget_servers();
    ::setenv("HOME", home_.c_str(), 1);
    cli::Cli::TearDown();
  }

  static cli::Outcome gradient(Words words) { return outcome_of(run, words); }

  static cli::Outcome single(const std::string& verb, const Words& more = {}) {
    Words words{"experiments",   verb, "singlenode", "--name", "one", "--container", "python:3",
                "--machineType", "C3", "--command",  "ls"};
    words.insert(words.end(), more.begin(), more.end());
    return gradient(words);
  }

  static cli::Outcome mpi(const std::string& verb) {
    return gradient({"experiments",
                     verb,
                     "multinode",
                     "--name",
                     "one",
                     "--experimentType",
                     "MPI",
                     "--workerContainer",
                     "w",
                     "--workerMachineType",
                     "V100",
                     "--workerCount",
                     "2",
                     "--masterContainer",
                     "m",
                     "--masterMachineType",
                     "V100",
                     "--masterCommand",
                     "mpirun a",
                     "--masterCount",
                     "1"});
  }

  std::string file(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Makes a shared server on TLS the one in use, without a token. Commands can pass a key of Gradient.
  void use_shared_server() {
    ::setenv("MUSTER_SERVER", server_->url().c_str(), 1);
    ::setenv("MUSTER_FINGERPRINT", server_->fingerprint().c_str(), 1);
  }

 private:
  static void forget_servers() {
    for (const char* const name : {"MUSTER_SERVER", "MUSTER_TOKEN", "MUSTER_FINGERPRINT",
                                   "MUSTER_CONTEXT", "PAPERSPACE_API_KEY"}) {
      ::unsetenv(name);
    }
  }

  std::string home_;
};

TEST_F(GradientCreate, CreatePrintsHowToStart) {
  serve({});

  const cli::Outcome outcome = single("create");

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "New experiment created with ID: id-one\n");
  EXPECT_EQ(outcome.err, "  to start it: gradient experiments start --id id-one\n");
  const std::string job = muster({"get", "one", "-o", "json"}).out;
  EXPECT_NE(job.find("\"held\":true"), std::string::npos) << job;
}

TEST_F(GradientCreate, RunFollowsTheLogsWithTheirLineNumbers) {
  serve({.records = lines_of_tasks({"main", "main"})});

  const cli::Outcome outcome = single("run");

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "New experiment created and started with ID: id-one\n"
            "Awaiting logs...\n"
            "id-one\t1\tline 0\n"
            "id-one\t2\tline 1\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(GradientCreate, LogsOfSeveralTasksNameTheTask) {
  serve({.records = lines_of_tasks({"launcher", "worker-1"})});

  const cli::Outcome outcome = mpi("run");

  EXPECT_NE(outcome.out.find("id-one\t1\t[launcher] line 0\nid-one\t2\t[worker-1] line 1\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(GradientCreate, InterruptedLogsContinueWithTheNextNumber) {
  serve({.records = lines_of_tasks({"main", "main", "main"}), .break_after = 2});

  EXPECT_NE(single("run").out.find("\t1\tline 0\nid-one\t2\tline 1\nid-one\t3\tline 2\n"),
            std::string::npos);
}

TEST_F(GradientCreate, RunWithoutLogsOnlyStarts) {
  serve({.records = lines_of_tasks({"main"})});

  EXPECT_EQ(single("run", {"--no-logs"}).out,
            "New experiment created and started with ID: id-one\n");
  EXPECT_EQ(count_of("GET /v1/jobs/id-one/logs of default"), 0);
}

TEST_F(GradientCreate, RunReturnsTheExitCodeOfAFailedExperimentAndPrintsTheReason) {
  serve({.end = job::Phase::kFailed, .exit_code = 42});

  const cli::Outcome outcome = single("run");

  EXPECT_EQ(outcome.code, 42);
  EXPECT_NE(outcome.err.find("gradient: job 'one' failed: main went wrong"), std::string::npos)
      << outcome.err;
}

TEST_F(GradientCreate, CtrlCLeavesAFollowedExperiment) {
  serve({.signal = SIGINT, .runs_on = true});

  const cli::Outcome outcome = single("run");

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err,
            "gradient: detached; experiment 'id-one' continues\n"
            "  follow it again: gradient experiments logs --id id-one --follow true\n"
            "  stop it: gradient experiments stop --id id-one\n");
}

job::Job old_experiment(job::Phase phase) {
  job::Job job{.id = "eold", .spec = {.name = "old"}, .phase = phase};
  job.tasks = job::tasks_of(job.spec);
  return job;
}

TEST_F(GradientCreate, CtrlCInTheLogOfAnEndedExperimentSuggestsNothing) {
  constexpr int kLines = 5000;  // more than one read, so that the signal is seen before the end
  serve({.records = lines_of_tasks(std::vector<std::string>(kLines, "main")),
         .signal = SIGINT,
         .jobs = {old_experiment(job::Phase::kSucceeded)}});

  const cli::Outcome outcome =
      gradient({"experiments", "logs", "--id", "eold", "--follow", "true"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(GradientCreate, SuggestedCommandsNameTheTask) {
  serve({.signal = SIGINT, .runs_on = true, .jobs = {old_experiment(job::Phase::kRunning)}});

  const cli::Outcome outcome = gradient({"jobs", "logs", "--id", "eold/main", "--follow", "true"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(
      outcome.err.find("  follow it again: gradient jobs logs --id eold/main --follow true\n"),
      std::string::npos)
      << outcome.err;
}

TEST_F(GradientCreate, ExperimentsMayHaveEqualNames) {
  serve({.unique_names = true});

  EXPECT_EQ(single("create").out, "New experiment created with ID: id-one\n");
  EXPECT_EQ(single("create").out, "New experiment created with ID: id-one-2\n");
  EXPECT_EQ(single("create").out, "New experiment created with ID: id-one-3\n");
}

TEST_F(GradientCreate, AConflictThatIsNotAboutTheNameIsReportedAtOnce) {
  serve({.refuses = "POST /v1/jobs",
         .refuses_with = {.code = base::ErrorCode::kConflict,
                          .what = "project 'default' has projects below it, so it takes no jobs"}});

  const cli::Outcome outcome = single("run");

  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("project 'default' has projects below it"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
}

const Words kAccount{"--registryUsername", "ada", "--registryPassword", "hush-hush"};
constexpr const char* kSetPassword = "PUT /v1/projects/default/secrets/REGISTRY_docker_io_ada";

TEST_F(GradientCreate, TheRegistryPasswordBecomesASecretAndIsNotPartOfTheJob) {
  serve({});

  const cli::Outcome outcome = single("create", kAccount);

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(kSetPassword), 1);
  EXPECT_NE(gradient({"secrets", "list", "project"}).out.find("REGISTRY_docker_io_ada"),
            std::string::npos);
  const std::string job = muster({"get", "one", "-o", "json"}).out;
  EXPECT_NE(job.find(R"("registry":{"username":"ada","secret":"REGISTRY_docker_io_ada"})"),
            std::string::npos)
      << job;
  EXPECT_EQ((job + outcome.out + outcome.err).find("hush-hush"), std::string::npos);
}

TEST_F(GradientCreate, AUserWhoMayNotSetASecretUsesTheExistingOne) {
  serve({.refuses = kSetPassword, .refuses_after = 1});
  EXPECT_EQ(single("create", kAccount).code, 0);

  const cli::Outcome outcome = single("create", kAccount);

  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(
      outcome.err.find(
          "gradient: --registryPassword is not stored: only an admin of project default can set "
          "its secrets; the stored password of secret 'REGISTRY_docker_io_ada' is used\n"),
      std::string::npos)
      << outcome.err;
}

TEST_F(GradientCreate, AUserWithoutTheRightToSetAMissingSecretSeesWhoHasIt) {
  serve({.refuses = kSetPassword});

  const cli::Outcome refused = single("create", kAccount);

  EXPECT_EQ(refused.code, 4);
  EXPECT_NE(refused.err.find("an admin of project default can store the password for all members: "
                             "muster secret set REGISTRY_docker_io_ada --project default"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(count_of("POST /v1/jobs"), 0);
}

TEST_F(GradientCreate, AnUnknownProjectIsReportedAndNothingIsSubmitted) {
  serve({});

  const cli::Outcome outcome = single("create", {"--projectId", "missing"});

  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("create it: gradient projects create --name missing;"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("gradient: there is no project 'missing'"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(count_of("POST /v1/jobs"), 0);
}

TEST_F(GradientCreate, AnUnknownMachineTypeIsReportedWithTheNearestAndNothingIsSubmitted) {
  serve({});

  const cli::Outcome outcome = gradient({"experiments", "create", "singlenode", "--container", "c",
                                         "--command", "ls", "--machineType", "V10"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(
      outcome.err.find("gradient: --machineType: there is no machine type 'V10'; did you mean"),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(count_of("POST /v1/jobs"), 0);
}

TEST_F(GradientCreate, AMissingBackslashIsSuggested) {
  const cli::Outcome outcome = gradient(
      {"experiments", "create", "multinode", "--name", "mpi-test", "--experimentType", "MPI"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "gradient: 7 errors in the command line\n"
            "  --workerContainer: is missing\n"
            "  --workerMachineType: is missing\n"
            "  --workerCount: is missing\n"
            "  --masterContainer: is missing\n"
            "  --masterMachineType: is missing\n"
            "  --masterCommand: is missing\n"
            "  --masterCount: is missing\n"
            "  'MPI' is the last word of the command: is a '\\' missing at the end of its line?\n"
            "  see: gradient experiments create multinode --help\n");
}

TEST_F(GradientCreate, ABlankAfterABackslashIsReported) {
  const cli::Outcome outcome = single("create", {" "});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "gradient: unexpected ' '\n"
            "  the command ends with a blank: a '\\' must be the last character of its line\n"
            "  see: gradient experiments create singlenode --help\n");
}

TEST_F(GradientCreate, OtherFaultsCauseNoSuggestionOfABackslash) {
  const cli::Outcome outcome =
      gradient({"experiments", "create", "multinode", "--experimentType", "MPI", "--experimentType",
                "GRPC", "--masterCommand", "true"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("is the last word of the command"), std::string::npos) << outcome.err;
}

TEST_F(GradientCreate, AForgottenFlagCausesNoSuggestionOfABackslash) {
  const cli::Outcome outcome =
      gradient({"experiments", "create", "singlenode", "--container", "c", "--machineType", "C3"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "gradient: --command is missing\n  see: gradient experiments create singlenode "
            "--help\n");
}

TEST_F(GradientCreate, AFlagIsNotTakenAsTheValueOfAnother) {
  const cli::Outcome outcome = single("create", {"--workspaceUrl", "--isPreemptible"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(
                "--workspaceUrl requires a value, but is followed by the flag '--isPreemptible'"),
            std::string::npos)
      << outcome.err;
}

TEST_F(GradientCreate, TheCommandLineOverridesTheOptionsFile) {
  serve({});
  std::ofstream(folder_ / "o.yaml") << "container: python:3\nmachineType: C3\ncommand: ls\n"
                                       "name: filed\n";

  EXPECT_EQ(
      gradient({"experiments", "create", "singlenode", "--optionsFile", folder_ / "o.yaml"}).out,
      "New experiment created with ID: id-filed\n");
  EXPECT_EQ(gradient({"experiments", "create", "singlenode", "--name", "line", "--optionsFile",
                      folder_ / "o.yaml"})
                .out,
            "New experiment created with ID: id-line\n");
}

TEST_F(GradientCreate, AMissingOptionsFileIsBadUsage) {
  const cli::Outcome outcome = single("create", {"--optionsFile", folder_ / "none.yaml"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("none.yaml"), std::string::npos);
}

TEST_F(GradientCreate, CreateOptionsFileWritesTheGivenFlagsAndDoesNothingElse) {
  const cli::Outcome written = single("create", {"--createOptionsFile", folder_ / "o.yaml"});

  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_NE(file("o.yaml").find("container: \"python:3\"\n"), std::string::npos) << file("o.yaml");
  serve({});
  EXPECT_EQ(
      gradient({"experiments", "create", "singlenode", "--optionsFile", folder_ / "o.yaml"}).out,
      "New experiment created with ID: id-one\n");
}

TEST_F(GradientCreate, HelpIsThatOfTheCommand) {
  const cli::Outcome help = gradient({"experiments", "create", "multinode", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("usage: gradient experiments create multinode [FLAGS]"),
            std::string::npos)
      << help.out;
  EXPECT_NE(help.out.find("--tensorboard[=ID]"), std::string::npos);
  EXPECT_EQ(help.out.find("--vpc"), std::string::npos);

  const cli::Outcome alone = gradient({});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("usage: gradient COMMAND"), std::string::npos);
}

TEST_F(GradientCreate, AKeyIsSentToASharedServerAndTheExperimentHasAnAddress) {
  serve({.tls = true});
  use_shared_server();

  const cli::Outcome outcome = single("create", {"--apiKey", server_->first_token()});

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "New experiment created with ID: id-one\n" + server_->url() +
                             "/projects/default/experiments/id-one\n");
}

TEST_F(GradientCreate, AKeyIsReadFromTheVariableOrFromTheFile) {
  serve({.tls = true});
  use_shared_server();
  ::setenv("PAPERSPACE_API_KEY", server_->first_token().c_str(), 1);
  EXPECT_EQ(single("create").code, 0);
  ::unsetenv("PAPERSPACE_API_KEY");
  EXPECT_EQ(single("create").code, 2);

  EXPECT_EQ(gradient({"apiKey", server_->first_token()}).code, 0);

  EXPECT_EQ(single("create").code, 0);
}

TEST_F(GradientCreate, AKeyInTheFileReplacesNeitherALoginNorATokenOfTheEnvironment) {
  serve({.tls = true});
  const std::string of_another_server =
      "muster_" + std::string(12, 'a') + "_" + std::string(52, 'b');
  EXPECT_EQ(gradient({"apiKey", of_another_server}).code, 0);
  std::ofstream(folder_ / "token") << server_->first_token() << "\n";
  EXPECT_EQ(muster({"login", server_->url(), "--name", "lab", "--fingerprint",
                    server_->fingerprint(), "--token-file", folder_ / "token"})
                .code,
            0);

  EXPECT_EQ(single("create").code, 0);
  EXPECT_EQ(single("create", {"--apiKey", of_another_server}).code, 4);

  use_shared_server();
  ::setenv("MUSTER_TOKEN", server_->first_token().c_str(), 1);
  EXPECT_EQ(single("create").code, 0);
  ::setenv("PAPERSPACE_API_KEY", of_another_server.c_str(), 1);
  EXPECT_EQ(single("create").code, 4);
}

TEST_F(GradientCreate, APaperspaceKeyInTheFileDoesNotPreventALogin) {
  serve({.tls = true});
  use_shared_server();
  ::setenv("MUSTER_TOKEN", server_->first_token().c_str(), 1);
  EXPECT_EQ(gradient({"apiKey", "c6cd2d5cd6f4ab2eb5b4b6bd2ab5a9"}).code, 0);

  EXPECT_EQ(single("create").code, 0);
}

TEST_F(GradientCreate, AWrongKeyIsRefusedInGradientsWordsAndNotPrinted) {
  serve({.tls = true});
  use_shared_server();

  const cli::Outcome outcome = single("create", {"--apiKey", "XXXXXXXXXXXXXXXX"});

  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "Failed to fetch data: Incorrect API Key provided\nForbidden\n");
}

TEST_F(GradientCreate, ALocalServerNeedsNoKey) {
  serve({});

  EXPECT_EQ(single("create", {"--apiKey", "XXXXXXXXXXXXXXXX"}).code, 0);
}

}  // namespace

}  // namespace muster::dialects::gradient
