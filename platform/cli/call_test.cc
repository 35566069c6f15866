#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/jobs/jobs.h"
#include "cli/logs/logs.h"
#include "cli/server/server.h"
#include "cli/sessions/sessions.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

TEST(SubmitMpi, TheDocumentsCommandBecomesASpec) {
  const auto command = parsed<jobs::SubmitCommand>(
      {"submit", "mpi", "dist", "--workers", "2", "--follow", "--", "mpirun", "--allow-run-as-root",
       "-np", "2", "--hostfile", "/generated/hostfile", "-x", "NCCL_DEBUG=INFO", "./digits"});

  EXPECT_EQ(command.spec.name, "dist");
  EXPECT_EQ(command.spec.kind, job::Kind::kMpi);
  EXPECT_EQ(command.spec.workers, 2);
  EXPECT_EQ(command.spec.slots_per_worker, 1);
  EXPECT_EQ(command.spec.folder, "/home/ada");
  EXPECT_EQ(command.spec.command.size(), 9U);
  EXPECT_EQ(command.spec.command.front(), "mpirun");
  EXPECT_TRUE(command.follow);
}

TEST(SubmitTorch, SetsTheNumberOfProcessesThatTorchrunStartsInEachTask) {
  const auto command =
      parsed<jobs::SubmitCommand>({"submit", "torch", "ddp", "--workers", "3", "--slots-per-worker",
                                   "2", "--", "torchrun", "t.py"});

  EXPECT_EQ(command.spec.slots_per_worker, 2);
}

TEST(SubmitMpi, EveryFlagSetsItsField) {
  const auto command = parsed<jobs::SubmitCommand>({"submit", "mpi",
                                                    "big",    "-n",
                                                    "4",      "--slots-per-worker",
                                                    "8",      "--gpus",
                                                    "2",      "--cpus",
                                                    "16",     "--memory",
                                                    "16G",    "--folder",
                                                    "data",   "-e",
                                                    "A=1",    "--env",
                                                    "COLOUR", "--sandbox",
                                                    "none",   "--grace",
                                                    "1m",     "--start-timeout",
                                                    "45s",    "--idempotency-key",
                                                    "k",      "-o",
                                                    "json",   "--",
                                                    "./train"});

  const job::JobSpec& spec = command.spec;
  EXPECT_EQ(spec.workers, 4);
  EXPECT_EQ(spec.slots_per_worker, 8);
  EXPECT_EQ(spec.resources,
            (job::Resources{.gpus = 2, .cpu_milli = 16'000, .memory_bytes = 16LL << 30}));
  EXPECT_EQ(spec.folder, "/home/ada/data");
  EXPECT_EQ(spec.environment, (Environment{{"A", "1"}, {"COLOUR", "red"}, {"PATH", "/usr/bin"}}));
  EXPECT_EQ(spec.sandbox, job::Sandbox::kNone);
  EXPECT_EQ(spec.grace, std::chrono::minutes(1));
  EXPECT_EQ(spec.start_timeout, std::chrono::seconds(45));
  EXPECT_EQ(command.key.text, "k");
  EXPECT_TRUE(command.key.is_given);
  EXPECT_EQ(command.output, Output::kJson);
}

TEST(Submit, GivesEachInvocationItsOwnIdempotencyKey) {
  base::SystemRandom random;
  const Words words{"submit", "single", "a", "--", "true"};
  const auto first = read_call(command_tree(), words, ada(), random);
  const auto second = read_call(command_tree(), words, ada(), random);

  EXPECT_NE(first->options<jobs::SubmitCommand>()->key.text,
            second->options<jobs::SubmitCommand>()->key.text);
}

TEST(Submit, ASecondDoubleDashBelongsToTheProgram) {
  const auto command =
      parsed<jobs::SubmitCommand>({"submit", "single", "a", "--", "env", "--", "-x", "--follow"});

  EXPECT_EQ(command.spec.command, (Words{"env", "--", "-x", "--follow"}));
  EXPECT_FALSE(command.follow);
}

TEST(Submit, AFileIsReadLater) {
  const auto command = parsed<jobs::SubmitCommand>({"submit", "-f", "job.yaml", "--follow"});

  EXPECT_EQ(command.file, "job.yaml");
  EXPECT_TRUE(command.follow);
}

TEST(Run, OneProcessIsASingleJobWithItsOwnName) {
  const auto command = parsed<jobs::RunCommand>({"run", "--", "python3", "train.py"});

  EXPECT_EQ(command.spec.kind, job::Kind::kSingle);
  EXPECT_EQ(command.spec.command, (Words{"python3", "train.py"}));
  EXPECT_EQ(command.spec.name.size(), std::string("run-123456").size());
  EXPECT_TRUE(command.spec.name.starts_with("run-"));
}

TEST(Run, SeveralProcessesRunUnderMpirun) {
  const auto command =
      parsed<jobs::RunCommand>({"run", "-n", "4", "--name", "four", "--", "./train"});

  EXPECT_EQ(command.spec.kind, job::Kind::kMpi);
  EXPECT_EQ(command.spec.workers, 4);
  EXPECT_EQ(command.spec.name, "four");
  EXPECT_EQ(command.spec.command, (Words{"mpirun", "-np", "4", "./train"}));
  EXPECT_FALSE(command.spec.environment.contains("OMPI_ALLOW_RUN_AS_ROOT"));
}

TEST(Run, ACommandWithALauncherIsNotChanged) {
  for (const char* launcher : {"mpirun", "/opt/mpi/bin/mpiexec", "mpiexec.hydra", "horovodrun"}) {
    const auto command = parsed<jobs::RunCommand>({"run", "-n", "2", "--", launcher, "./train"});
    EXPECT_EQ(command.spec.command, (Words{launcher, "./train"}));
  }
}

TEST(Run, ACommandThatSrunStartsGetsNoMpirun) {
  const auto command =
      parsed<jobs::RunCommand>({"run", "-n", "2", "--launch", "srun", "--", "./train"});
  EXPECT_EQ(command.spec.kind, job::Kind::kMpi);
  EXPECT_EQ(command.spec.command, (Words{"./train"}));
}

TEST(Run, OpenMpisVariablesAllowRoot) {
  Caller root = ada();
  root.is_root = true;
  const auto command = parsed<jobs::RunCommand>({"run", "-n", "2", "--", "./train"}, root);

  EXPECT_EQ(command.spec.environment.at("OMPI_ALLOW_RUN_AS_ROOT"), "1");
  EXPECT_EQ(command.spec.environment.at("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
}

TEST(Environment, OfAJobContainsNoSecretsOfTheShell) {
  EXPECT_FALSE(parsed<jobs::RunCommand>({"run", "--", "true"}).spec.environment.contains("TOKEN"));
}

TEST(Logs, ReadsItsQuery) {
  const auto command =
      parsed<logs::LogsCommand>({"logs", "dist", "-f", "--task", "worker-1", "--since", "10m",
                                 "--tail", "5", "--timestamps", "--no-prefix"});

  EXPECT_EQ(command.name, "dist");
  EXPECT_TRUE(command.query.follow);
  EXPECT_EQ(command.query.task, "worker-1");
  EXPECT_EQ(command.query.since, ada().now - std::chrono::minutes(10));
  EXPECT_EQ(command.query.tail, 5);
  EXPECT_EQ(command.look, (logs::LogLook{.prefix = false, .timestamps = true, .fold = true}));
}

TEST(Logs, ReadsARankAPatternAndTheRecordFormat) {
  const auto command = parsed<logs::LogsCommand>(
      {"logs", "dist", "--rank", "3", "--grep", "loss: [0-9]+", "--output", "json"});

  EXPECT_EQ(command.query.rank, 3);
  EXPECT_EQ(command.query.grep, "loss: [0-9]+");
  EXPECT_TRUE(command.look.json);
  EXPECT_FALSE(parsed<logs::LogsCommand>({"logs", "dist", "--no-fold"}).look.fold);
}

TEST(Logs, TakesTheTaskWithTheJob) {
  const auto command =
      parsed<logs::LogsCommand>({"logs", "dist/worker-1", "-n", "5", "--attempt", "2"});

  EXPECT_EQ(command.name, "dist");
  EXPECT_EQ(command.query.task, "worker-1");
  EXPECT_EQ(command.query.tail, 5);
  EXPECT_EQ(command.query.attempt, 2);
  EXPECT_EQ(parsed<sessions::ExecCommand>({"exec", "-it", "dist/ps-0", "--", "sh"}).request.task,
            "ps-0");
  EXPECT_EQ(parsed<sessions::BashCommand>({"bash", "dist/ps-0"}).task, "ps-0");
  EXPECT_EQ(parsed<sessions::AttachCommand>({"attach", "dist/ps-0"}).task, "ps-0");
}

TEST(Logs, RefusesTwoDifferentTasks) {
  EXPECT_NE(refusal({"logs", "dist/worker-1", "--task", "worker-2"})
                .find("'worker-2' and 'dist/worker-1' name different tasks"),
            std::string::npos);
  EXPECT_NE(refusal({"logs", "dist/"}).find("'dist/' is not JOB or JOB/TASK"), std::string::npos);
  EXPECT_NE(refusal({"logs", "dist", "--attempt", "0"}).find("--attempt"), std::string::npos);
}

TEST(List, ReadsItsQuery) {
  const auto command = parsed<jobs::ListCommand>(
      {"list",   "--phase", "active", "--phase",   "failed",     "--kind",        "mpi", "--search",
       "lr 0.1", "--since", "10m",    "--until",   "5m",         "--ended-since", "1h",  "--user",
       "ben",    "--sort",  "-gpus",  "--columns", "name, GPUS", "--limit",       "7",   "--wide"});

  using job::Phase;
  EXPECT_EQ(command.query.phases, (std::vector<Phase>{Phase::kQueued, Phase::kStarting,
                                                      Phase::kRunning, Phase::kFailed}));
  EXPECT_EQ(command.query.kinds, std::vector{job::Kind::kMpi});
  EXPECT_EQ(command.query.text, "lr 0.1");
  EXPECT_EQ(command.query.submitted.after, ada().now - std::chrono::minutes(10));
  EXPECT_EQ(command.query.submitted.before, ada().now - std::chrono::minutes(5));
  EXPECT_EQ(command.query.ended.after, ada().now - std::chrono::hours(1));
  EXPECT_EQ(command.query.owner, "ben");
  EXPECT_EQ(command.query.order, (api::JobOrder{.by = api::JobColumn::kGpus, .descending = true}));
  EXPECT_EQ(command.columns, (Words{"name", "gpus"}));
  EXPECT_EQ(command.limit, 7);
  EXPECT_TRUE(command.wide);
}

TEST(List, ShowsTheNewestFiftyInATableAndAllInOtherFormats) {
  const auto table = parsed<jobs::ListCommand>({"list"});
  EXPECT_EQ(table.query.order, api::JobOrder::kNewestFirst);
  EXPECT_EQ(table.limit, 50);
  EXPECT_EQ(parsed<jobs::ListCommand>({"list", "-o", "json"}).limit, 0);
  EXPECT_EQ(parsed<jobs::ListCommand>({"list", "-o", "csv"}).output, Output::kCsv);
}

TEST(List, ReportsInvalidFlags) {
  EXPECT_NE(refusal({"list", "--phase", "done"}).find("--phase 'done' is invalid"),
            std::string::npos);
  EXPECT_NE(refusal({"list", "--sort", "size"}).find("--sort 'size' is invalid"),
            std::string::npos);
  EXPECT_NE(refusal({"list", "--columns", "name,sze"}).find("--columns 'sze' is invalid"),
            std::string::npos);
  EXPECT_NE(refusal({"list", "--mine", "--user", "x"}).find("cannot be used with --mine"),
            std::string::npos);
  EXPECT_NE(refusal({"list", "-w", "-o", "json"}).find("cannot be used with --watch"),
            std::string::npos);
  for (const char* output : {"json", "yaml", "names"}) {
    EXPECT_NE(refusal({"list", "-o", output, "--columns", "name"}).find("is for tables and csv"),
              std::string::npos)
        << output;
    EXPECT_NE(refusal({"list", "-o", output, "--wide"}).find("--wide is for tables"),
              std::string::npos)
        << output;
  }
  EXPECT_EQ(parsed<jobs::ListCommand>({"list", "-o", "csv", "--columns", "name"}).columns,
            Words{"name"});
  EXPECT_NE(refusal({"schedule", "delete", "nightly", "-o", "json"}), "accepted");
}

TEST(Aliases, OfOtherProductsAreAccepted) {
  EXPECT_EQ(parsed<jobs::ListCommand>({"ps"}).limit, 50);
  EXPECT_EQ(parsed<jobs::GetCommand>({"describe", "a"}).name, "a");
  EXPECT_EQ(parsed<jobs::StopCommand>({"cancel", "a"}).names, Words{"a"});
  EXPECT_TRUE(parsed<jobs::StopCommand>({"kill", "--now", "a"}).now);
  EXPECT_EQ(parsed<jobs::SubmitCommand>({"apply", "-f", "job.yaml"}).file, "job.yaml");
}

TEST(Flags, AreAcceptedInEverySpelling) {
  for (const Words& spelling : {Words{"-n3"}, {"-n", "3"}, {"--workers=3"}, {"--workers", "3"}}) {
    Words words{"submit", "mpi", "dist"};
    words.insert(words.end(), spelling.begin(), spelling.end());
    words.insert(words.end(), {"--", "true"});
    EXPECT_EQ(parsed<jobs::SubmitCommand>(words).spec.workers, 3) << spelling.front();
  }
  const auto list = parsed<jobs::ListCommand>({"list", "-lteam=nlp", "-oyaml"});
  EXPECT_EQ(list.query.labels, (Words{"team=nlp"}));
  EXPECT_EQ(list.output, Output::kYaml);
  EXPECT_EQ(parsed<logs::LogsCommand>({"logs", "dist", "--grep", "--rank"}).query.grep, "--rank");
}

TEST(Switches, AcceptTheTruthValuesOfGoAndClick) {
  const auto forces = [](const Words& flags) {
    Words words{"delete", "a"};
    words.insert(words.end(), flags.begin(), flags.end());
    return parsed<jobs::DeleteCommand>(words).force;
  };
  for (const char* value : {"true", "True", "T", "1", "yes", "y", "on"}) {
    EXPECT_TRUE(forces({std::string("--force=") + value})) << value;
  }
  for (const char* value : {"false", "FALSE", "f", "0", "no", "n", "off"}) {
    EXPECT_FALSE(forces({std::string("--force=") + value})) << value;
  }
  EXPECT_FALSE(forces({"--force", "--force=false"})) << "the last value counts";
  EXPECT_TRUE(forces({"--force=false", "--force"})) << "the last value counts";
}

TEST(Switches, AreUndoneByASubcommand) {
  const auto follows = [](const Words& words) {
    return parsed<jobs::SubmitCommand>(with_program(words)).follow;
  };
  EXPECT_TRUE(follows({"submit", "--follow", "single", "a"}));
  EXPECT_FALSE(follows({"submit", "--follow", "single", "a", "--follow=false"}));
}

TEST(Names, OfJobsMayEqualNamesOfCommands) {
  EXPECT_EQ(parsed<jobs::GetCommand>({"get", "list"}).name, "list");
  EXPECT_EQ(parsed<jobs::StopCommand>({"stop", "run", "stop"}).names, (Words{"run", "stop"}));
  EXPECT_EQ(parsed<jobs::SubmitCommand>({"submit", "single", "single", "--", "true"}).spec.name,
            "single");
}

TEST(Aliases, LeadToTheirCommands) {
  EXPECT_EQ(parsed<jobs::ListCommand>({"ls", "--output", "names"}).output, Output::kNames);
  EXPECT_TRUE(parsed<jobs::DeleteCommand>({"rm", "a", "--force"}).force);
}

TEST(Server, ReadsItsOptions) {
  const auto command = parsed<server::ServerCommand>(
      {"server", "--state-dir", "state", "--idle-exit", "10m", "--ready-fd", "3"});

  EXPECT_EQ(command.options.state_folder, "/home/ada/state");
  EXPECT_EQ(command.options.idle_exit, std::chrono::minutes(10));
  EXPECT_EQ(command.options.ready_fd, 3);
}

TEST(Help, IsPrintedForTheCommandBeforeTheFlag) {
  EXPECT_EQ(parsed<HelpCommand>({"submit", "mpi", "--help"}).path, (Words{"submit", "mpi"}));
  EXPECT_EQ(parsed<HelpCommand>({"help", "run"}).path, (Words{"run"}));
  EXPECT_FALSE(parsed<HelpCommand>({}).asked);
}

struct BadCommandLine {
  Words words;
  std::string fault;
};

TEST(BadUsage, IsReportedInASentence) {
  const BadCommandLine lines[] = {
      {{"logs", "a", "--folow"}, "unknown flag '--folow'; did you mean '--follow'?"},
      {{"submit", "mpi", "a", "--wrokers=2", "--", "x"}, "did you mean '--workers'?"},
      {{"lst"}, "unknown command 'lst'; did you mean 'list'?"},
      {{"submit", "mpj", "a"}, "unknown command 'mpj'; did you mean 'mpi'?"},
      {{"help", "lisst"}, "unknown command 'lisst'; did you mean 'list'?"},
      {{"frobnicate"}, "unknown command 'frobnicate'; the commands are: run, submit, list"},
      {{"run", "echo", "-n", "hi"},
       "unexpected 'echo'; write '--' before a program to run: -- echo"},
      {{"run"}, "CMD is empty; give a command"},
      {{"get"}, "NAME is missing"},
      {{"get", "a", "b"}, "unexpected 'b'"},
      {{"list", "--", "x"}, "'list' runs no program"},
      {{"list", "--output", "jsn"}, "did you mean 'json'?"},
      {{"logs", "a", "--tail"}, "--tail needs a value"},
      {{"logs", "a", "--tail", "many"}, "--tail 'many' is not a whole number"},
      {{"logs", "a", "--since", "soon"}, "--since 'soon' is not a time"},
      {{"wait", "a", "--timeout", "876001h"}, "--timeout '876001h' is longer than 100 years"},
      {{"logs", "a", "--rank", "-1"}, "--rank -1 is out of range; give 0 or more"},
      {{"logs", "a", "--grep", "("}, "--grep '(' is not a pattern"},
      {{"logs", "a", "--grep", ""}, "--grep is empty"},
      {{"logs", "a", "-o", "yaml"}, "--output 'yaml' is invalid"},
      {{"logs", "a", "-o", "json", "--timestamps"},
       "--timestamps cannot be used with --output json"},
      {{"submit"}, "nothing to submit"},
      {{"submit", "x", "--", "true"},
       "the kind of the job is missing (mpi, grpc, torch or single), as in: muster submit single x "
       "-- true"},
      {{"frobnicate", "--", "true"},
       "unknown command 'frobnicate'; the commands are: run, submit, list"},
      {{"submit", "--", "echo", "a b"}, "as in: muster submit single NAME -- echo 'a b'"},
      {{"submit", "mpj", "a", "--", "true"}, "unknown command 'mpj'; did you mean 'mpi'?"},
      {{"submit", "mpi", "a", "--", "x"}, "--workers is missing; give a number"},
      {{"submit", "single", "a", "--env", "NOWHERE", "--", "x"},
       "'NOWHERE' is not set in this shell"},
      {{"submit", "-f", "a", "-f", "b"}, "--file is given more than once"},
      {{"submit", "-f", "a", "--follow", "-o", "json"}, "--output cannot be used with --follow"},
      {{"submit", "-f", "a", "single", "b", "--", "x"},
       "--file contains the kind and the name; omit them"},
      {{"submit", "--name", "b", "single", "a", "--", "x"},
       "--name is for a job file; write the name after the kind: muster submit single NAME"},
      {{"submit", "--only", "b", "single", "a", "--", "x"},
       "--only chooses one of the jobs of a file"},
      {{"submit", "single", "a", "--singleton", "", "--", "x"}, "--singleton is empty"},
      {{"submit", "single", "a", "--image", "", "--", "x"}, "--image is empty"},
      {{"submit", "single", "a", "--workspace", "", "--", "x"}, "--workspace is empty"},
      {{"submit", "single", "a", "--idempotency-key", "", "--", "x"}, "--idempotency-key is empty"},
      {{"delete", "--all-ended", "--context", ""}, "--context is empty"},
      {{"delete", "--all-ended", "--project", ""}, "--project is empty"},
      {{"delete", "--phase", "", "--yes"}, "--phase is empty"},
      {{"delete", "--phase=", "--yes"}, "--phase is empty"},
      {{"delete", "--phase", "", "--phase", "Failed"}, "--phase is empty"},
      {{"delete", "a", "--force=maybe"}, "--force 'maybe' is neither true nor false"},
      {{"delete", "a", "--force=maybe", "--force"}, "--force 'maybe' is neither true nor false"},
      {{"delete", "--all-ended", "--yes="}, "--yes '' is neither true nor false"},
      {{"list", "--user", ""}, "--user is empty"},
      {{"submit", "-f", "jobs.yaml", "--only", ""}, "--only is empty"},
      {{"submit", "-f", "jobs.yaml", "--name", ""}, "--name is empty"},
      {{"rerun", "a", "--name", ""}, "--name is empty"},
      {{"convert", "a", "--name", ""}, "--name is empty"},
      {{"sweep", "-f", "lr.yaml", "--name", ""}, "--name is empty"},
      {{"exec", "a", "--task", "", "--", "ls"}, "--task is empty"},
      {{"logs", "a", "--task", ""}, "--task is empty"},
      {{"convert", "a", "--task", ""}, "--task is empty"},
      {{"cp", "a:x", "y", "--task", ""}, "--task is empty"},
      {{"port-forward", "a", "80", "--task", ""}, "--task is empty"},
      {{"run", "--set", "array=0-9", "--", "x"}, "--set array cannot be used with 'run'"},
      {{"run", "--set", "array.indexes=0-9", "--", "x"}, "--set array cannot be used with 'run'"},
      {{"list", "--phase", ""}, "--phase is empty"},
      {{"list", "--kind", ""}, "--kind is empty"},
      {{"list", "--columns", ""}, "--columns is empty"},
      {{"port-forward", "a", "8080:80", "8080:81"},
       "'8080:81' uses the local port 8080 a second time"},
      {{"submit", "single", "a", "--set", "retries=1", "--", "x"},
       "--set 'retries' is an unknown key; did you mean 'scheduling.retries'?"},
      {{"submit", "single", "a", "--set", "environment=1", "--", "x"},
       "--set 'environment' must be a map, not a single value"},
      {{"submit", "single", "a", "--after", "a", "--", "x"},
       "--after: a job cannot wait for itself"},
      {{"run", "-n", "4294967297", "--", "x"}, "--workers 4294967297 is out of range"},
      {{"run", "-n", "0", "--", "x"}, "--workers 0 is out of range"},
      {{"completion", "tcsh"}, "SHELL 'tcsh' is invalid: expected one of bash, zsh, fish"},
  };
  for (const BadCommandLine& line : lines) {
    EXPECT_NE(refusal(line.words).find(line.fault), std::string::npos)
        << refusal(line.words) << "\n  should say: " << line.fault;
  }
}

TEST(Durations, HaveAtMostAHundredYears) {
  EXPECT_EQ(refusal({"wait", "a", "--timeout", "876000h"}), "accepted");
  EXPECT_NE(refusal({"wait", "a", "--timeout", "876001h"}), "accepted");
}

TEST(Submit, PrintsTheSpecOfAKind) {
  EXPECT_TRUE(
      parsed<jobs::SubmitCommand>({"submit", "--spec", "single", "a", "--", "x"}).shows_spec);
}

TEST(BadUsage, NamesAFolderThatIsGone) {
  Caller nowhere = ada();
  nowhere.folder = "";
  EXPECT_TRUE(refusal({"run", "--", "pwd"}, nowhere)
                  .starts_with("--folder is the current folder, which no longer exists"))
      << refusal({"run", "--", "pwd"}, nowhere);
}

TEST(BadUsage, ReportsTheFaultsOfAScheduleTogether) {
  const auto call = parse_by(ada(), {"schedule", "create", "BAD", "--cron", "61 25 0 13 8",
                                     "--timezone", "Mars/X", "--gpus", "many", "--", "x"});

  ASSERT_FALSE(call);
  std::vector<std::string> fields;
  for (const base::Fault& fault : call.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(std::count(fields.begin(), fields.end(), "--cron"), 5) << call.error().to_string();
  for (const char* field : {"NAME", "--gpus", "--timezone"}) {
    EXPECT_EQ(std::count(fields.begin(), fields.end(), field), 1) << call.error().to_string();
  }
}

TEST(BadUsage, ReportsTheFaultsOfFlagsAndOfTheSpecTogether) {
  const auto call =
      parse_by(ada(), {"submit", "mpi", "Bad_Name", "--workers", "two", "--memory", "lots",
                       "--grace", "2d", "--folow", "--env", "1X=1", "--env", "2Y=1"});

  ASSERT_FALSE(call);
  std::vector<std::string> fields;
  for (const base::Fault& fault : call.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields,
            (Words{"", "--memory", "--workers", "NAME", "CMD", "--env", "--env", "--grace"}))
      << call.error().to_string();
  EXPECT_EQ(call.error().code, base::ErrorCode::kInvalid);
}

}  // namespace

}  // namespace muster::cli
