// Output as values: tables, pages, terminals, times, errors, YAML, help.
#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/row_view.h"
#include "cli/common/terminal.h"
#include "cli/logs/logs.h"
#include "cli/test_call.h"
#include "record/rfc3339.h"

namespace muster::cli {

namespace {

using std::chrono::seconds;

job::Job failed_job() {
  job::Job job;
  job.id = "x1";
  job.spec = {.name = "dist", .kind = job::Kind::kMpi, .command = {"mpirun", "./my train"}};
  job.spec.workers = 1;
  job.phase = job::Phase::kFailed;
  job.submitted = kNow - seconds(90);
  job.started = kNow - seconds(80);
  job.ended = kNow - seconds(20);
  job.exit_code = 137;
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].phase = job::TaskPhase::kEnded;
  job.tasks[1].exit = job::ExitStatus{.signal = 9};
  job.failure = job::Failure{.task = "worker-0",
                             .cause = job::Remark{"worker-0 was killed"},
                             .advice = "look at its memory",
                             .last_lines = {"epoch 1", "epoch 2"}};
  job.events = {{kNow, job::Remark{"submitted"}}};
  return job;
}

TEST(JobViews, ShowAnUnreadableJobAsUnreadable) {
  job::Job job{.id = "j1",
               .spec = {.name = "dist", .project = "vision"},
               .reason = {job::Remark{"cannot be read: its checksum differs"},
                          {job::Remark{"run `muster store set-aside vision/dist`"}}},
               .suspended = true,
               .submitted = kNow - seconds(50),
               .unreadable = true};
  job.tasks = job::tasks_of(job.spec);

  EXPECT_EQ(job_table({job}, kNow),
            "NAME  PROJECT  KIND  PHASE       TASKS  AGE  DURATION  REASON\n"
            "dist  vision   -     Unreadable      -  50s         -  cannot be read: its checksum "
            "differs\n");
  EXPECT_EQ(job_page(job, kNow),
            "NAME     dist\n"
            "PHASE    Unreadable\n"
            "REASON   cannot be read: its checksum differs\n"
            "PROJECT  vision\n"
            "ID       j1\n"
            "\nADVICE\n"
            "  run `muster store set-aside vision/dist`\n");
}

TEST(Table, AlignsTextLeftAndNumbersRightWithoutTrailingBlanks) {
  Table table({{"NAME"}, {"AGE", true}, {"REASON"}});
  table.add({"a-long-name", "5s", ""});
  table.add({"b", "12m", "waits"});

  EXPECT_EQ(table.to_string(),
            "NAME         AGE  REASON\n"
            "a-long-name   5s\n"
            "b            12m  waits\n");
}

TEST(Table, CountsCodePointsAndKeepsARowOnOneLine) {
  Table table({{"A"}, {"B"}});
  table.add({"\xc3\xa9t\xc3\xa9", "x"});
  table.add({"four", "two\nlines\x1b"});

  EXPECT_EQ(table.to_string(), "A     B\n\xc3\xa9t\xc3\xa9   x\nfour  two lines\n");
}

TEST(Table, ContainsNoControlCharacters) {
  Table table({{"A"}});
  table.add({"a\x1b[31mb\xc2\x9b\x33\x31mc \xc2\xb5 \xc3\x9b"});

  EXPECT_EQ(table.to_string(), "A\na [31mb 31mc \xc2\xb5 \xc3\x9b\n");
}

TEST(Terminal, HasColourUnlessItIsTurnedOff) {
  EXPECT_TRUE(uses_colour(true, nullptr, "xterm"));
  EXPECT_TRUE(uses_colour(true, "", "xterm"));
  EXPECT_FALSE(uses_colour(false, nullptr, "xterm"));
  EXPECT_FALSE(uses_colour(true, "1", "xterm"));
  EXPECT_FALSE(uses_colour(true, nullptr, "dumb"));
  EXPECT_FALSE(uses_colour(true, nullptr, nullptr));
}

TEST(SafeLines, KeepsNewlinesAndEscapesOtherControlCharacters) {
  EXPECT_EQ(safe_lines("a\x1b[1m\nb\n"), "a\\x1b[1m\nb\n");
}

TEST(TimeWords, PrintTheTimeSinceAMoment) {
  EXPECT_EQ(age(kNow - seconds(12), kNow), "12s");
  EXPECT_EQ(age(kNow - std::chrono::milliseconds(500), kNow), "0s");
  EXPECT_EQ(age(kNow + seconds(5), kNow), "0s");
  EXPECT_EQ(age(kNow - seconds(3700), kNow), "1h1m");
}

TEST(Moment, IsParsedFromAnAgeOrRfc3339) {
  const auto at = [](const char* text) { return *parse_moment(text, kNow); };
  EXPECT_EQ(at("10m"), kNow - seconds(600));
  EXPECT_EQ(at("2023-11-14T22:13:20Z"), base::Time(seconds(1'700'000'000)));
  EXPECT_EQ(at("2023-11-14T23:13:20.25+01:00"),
            base::Time(std::chrono::milliseconds(1'700'000'000'250)));
  EXPECT_EQ(at("2023-11-14"), at("2023-11-14T00:00:00Z"));
  EXPECT_EQ(at("2023-11-14 22:13:20Z"), base::Time(seconds(1'700'000'000)));
  EXPECT_EQ(at("2261-12-31T23:59:59Z"), *record::parse_rfc3339("2261-12-31T23:59:59Z"));
  EXPECT_EQ(at("100000000d"), base::Time(kNow.time_since_epoch() % std::chrono::milliseconds(1)));
}

TEST(Moment, RefusesOtherTexts) {
  for (const char* text : {"", "soon", "2023-02-30T00:00:00Z", "2023-02-30", "2023-11-14T22:13:20",
                           "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zulu", "-5m",
                           "2023-1-14T22:13:20Z", "9999-01-01T00:00:00Z", "1969-12-31T23:59:59Z"}) {
    EXPECT_FALSE(parse_moment(text, kNow)) << text;
  }
}

TEST(JobTable, HasARowForEachJob) {
  EXPECT_EQ(job_table({failed_job()}, kNow),
            "NAME  PROJECT  KIND  PHASE   TASKS    AGE  DURATION  REASON\n"
            "dist  default  mpi   Failed      2  1m30s        1m  worker-0 was killed\n");
}

TEST(RowTable, ShowsTheMembersOfAnArray) {
  const api::JobRow array{
      .object = api::JobRow::Object::kArray,
      .name = "train",
      .project = "team",
      .phase = job::Phase::kRunning,
      .members =
          api::MemberCounts{.all = 100, .waiting = 52, .running = 8, .succeeded = 38, .failed = 2},
      .submitted = kNow - seconds(90)};

  EXPECT_EQ("\n" + row_table({array}, usual_columns({array}), kNow), R"(
NAME   PROJECT  KIND   PHASE     TASKS    AGE  DURATION  PROGRESS  REASON
train  team     array  Running  40/100  1m30s         -  40%       40% done: 38 succeeded, 2 failed, 8 running, 52 waiting
)");
}

TEST(RowTable, FitsIntoAWidthInColumnsOfTheTerminal) {
  const api::JobRow row{.name = "a", .reason = "\xe7\x81\xab\xe7\x81\xab\xe7\x81\xab needs 8 GPUs"};
  const std::vector<std::string> columns{"name", "reason"};

  EXPECT_EQ(row_table({row}, columns, kNow, 14),
            "NAME  REASON\na     \xe7\x81\xab\xe7\x81\xab...\n");
  EXPECT_EQ(row_table({row}, columns, kNow).find("..."), std::string::npos);
}

TEST(RowCsv, QuotesCellsAndDisarmsFormulas) {
  const api::JobRow row{
      .name = "a", .reason = "=1+1, \"x\"", .labels = {{"team", "b"}}, .submitted = kNow};

  EXPECT_EQ(row_csv({row}, {"name", "labels", "ended", "reason", "submitted"}, kNow),
            "name,labels,ended,reason,submitted\r\n"
            "a,team=b,,\"'=1+1, \"\"x\"\"\",2023-11-14T22:13:20Z\r\n");
}

TEST(JobPage, ShowsLimitsRetriesVariablesSecretsAndTheOrigin) {
  job::Job job = failed_job();
  job.spec.scheduling.time_limit = std::chrono::hours(2);
  job.spec.scheduling.retries = 3;
  job.retries_used = 1;
  job.spec.environment = {{"LR", "0.1"}, {"TOKEN", "hidden"}};
  job.spec.secrets = {{.name = "HF", .variable = "HF_TOKEN"}, {.name = "KEY", .file = "key"}};
  job.origin = {.kind = job::JobOrigin::Kind::kArray, .name = "train", .member = 7};

  const std::string page = job_page(job, kNow);

  for (const char* part :
       {"TIME LIMIT   2h\n", "RETRIES      1 of 3 used\n", "ENVIRONMENT  LR, TOKEN\n",
        "SECRETS      HF (variable HF_TOKEN), KEY (file /generated/secrets/key)\n",
        "ORIGIN       array train, member 7\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
  EXPECT_EQ(page.find("hidden"), std::string::npos);
}

TEST(JobPage, ShowsASandboxOnlyWhereTheEngineMakesOne) {
  EXPECT_NE(job_page(failed_job(), kNow, "process").find("SANDBOX"), std::string::npos);
  for (const char* engine : {"container", "kubernetes"}) {
    EXPECT_EQ(job_page(failed_job(), kNow, engine).find("SANDBOX"), std::string::npos) << engine;
  }
}

TEST(JobPage, CallsTheWorkersOfASucceededJobEnded) {
  job::Job job = failed_job();
  job.tasks[1].exit = job::ExitStatus{.signal = 9, .stopped = true};
  EXPECT_NE(job_page(job, kNow).find("was stopped (SIGKILL)"), std::string::npos);
  job.phase = job::Phase::kSucceeded;
  job.failure.reset();

  const std::string page = job_page(job, kNow);

  EXPECT_EQ(page.find("SIGKILL"), std::string::npos) << page;
  EXPECT_NE(page.find("ended after the job succeeded"), std::string::npos) << page;
}

TEST(JobPage, ShowsTheLaunchMethodAndTheContainerSettings) {
  job::Job job = failed_job();
  EXPECT_EQ(job_page(job, kNow).find("LAUNCH"), std::string::npos);
  job.spec.image = "train:3";
  job.spec.user = "1000:video";
  job.spec.container = {.pull = job::PullPolicy::kNever,
                        .writable_root = true,
                        .new_privileges = true,
                        .capabilities = {"SYS_PTRACE"},
                        .shm_bytes = int64_t{8} << 30};
  job.launch = job::LaunchFacts{
      .by = job::LaunchBy::kSsh, .why = "the images have sshd and ssh", .mpi = "Open MPI 4.1.4"};

  const std::string page = job_page(job, kNow);

  for (const char* part :
       {"RUNS AS    1000:video\n",
        "CONTAINER  image pulled never, writable root, new privileges, SYS_PTRACE, 8Gi of "
        "/dev/shm\n",
        "LAUNCH     by ssh: the images have sshd and ssh; Open MPI 4.1.4\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
}

TEST(JobPage, ShowsAPartlyReportedLaunchMethod) {
  const auto words = [](job::LaunchFacts facts) {
    job::Job job = failed_job();
    job.launch = std::move(facts);
    return launch_words(job);
  };
  EXPECT_EQ(words({.by = job::LaunchBy::kAgent, .why = "--launch agent"}),
            "by agent: --launch agent");
  EXPECT_EQ(words({.by = job::LaunchBy::kSsh, .mpi = "MPICH 4.0.2"}), "by ssh; MPICH 4.0.2");
  EXPECT_EQ(words({.mpi = "MPICH 4.0.2"}), "MPICH 4.0.2");
  EXPECT_EQ(words({}), "");
}

TEST(JobPage, ShowsTasksWithTheirEndsTheFailureAndTheEvents) {
  const std::string page = job_page(failed_job(), kNow);

  for (const char* part :
       {"NAME       dist\n", "SHAPE      1 worker of 1 slot\n", "COMMAND    mpirun './my train'\n",
        "ENDED      2023-11-14T22:13:00Z (20s ago)\n", "\nTASKS\n  NAME      ROLE",
        "  worker-0  worker    dist-worker-0  -     Ended    was killed by signal 9 (SIGKILL)\n",
        "\nFAILURE\n  worker-0 was killed\n  last lines of worker-0:\n    epoch 1\n    epoch 2\n",
        "\nEVENTS\n  2023-11-14T22:13:20.000Z  submitted\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
}

/// 2 to 4 workers, of which three have resources: one worker left, another replaced it, and there
/// is no room for a fourth.
job::Job elastic_job() {
  job::Job job;
  job.spec = {.name = "ddp", .kind = job::Kind::kTorch, .command = {"torchrun"}, .workers = 4};
  job.spec.scheduling.min_workers = 2;
  job.phase = job::Phase::kRunning;
  job.submitted = kNow - seconds(90);
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) {
    if (task.name == "worker-3") continue;
    task.node = "n1";
    task.phase = job::TaskPhase::kRunning;
  }
  job.tasks[2].left = true;
  job.tasks[2].phase = job::TaskPhase::kEnded;
  job.tasks[2].exit = job::ExitStatus{.signal = 15, .stopped = true};
  job.tasks.push_back(job::next_worker(job, 2));
  job.tasks.back().node = "n2";
  job.tasks.back().phase = job::TaskPhase::kRunning;
  return job;
}

TEST(JobPage, OfAnElasticJobShowsTheNumberOfWorkersAndThoseThatLeft) {
  job::Job job = elastic_job();
  const std::string page = job_page(job, kNow);
  job.tasks[1].left = true;
  const std::string leaving = job_page(job, kNow);
  job.phase = job::Phase::kSucceeded;
  const std::string ended = job_page(job, kNow);

  for (const char* part : {"SHAPE      master, 2-4 workers\n", "WORKERS    3 of 2-4\n",
                           "  worker-0  worker  ddp-worker-0  n1    Running  -\n",
                           "  worker-1  worker  ddp-worker-1  n1    Left     was ",
                           "  worker-4  worker  ddp-worker-4  n2    Running  -\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
  EXPECT_NE(leaving.find("WORKERS    2 of 2-4\n"), std::string::npos) << leaving;
  EXPECT_NE(leaving.find("  worker-0  worker  ddp-worker-0  n1    Leaving  -\n"), std::string::npos)
      << leaving;
  EXPECT_EQ(ended.find("WORKERS"), std::string::npos) << ended;
}

TEST(JobTable, CountsAWorkerAndItsReplacementOnce) {
  EXPECT_NE(job_table({elastic_job()}, kNow).find("Running    4/5"), std::string::npos)
      << job_table({elastic_job()}, kNow);
}

TEST(JobPage, OfATensorFlowClusterShowsItsEvaluator) {
  job::Job job = failed_job();
  job.spec.kind = job::Kind::kGrpc;
  job.spec.parameter_servers = 1;
  job.spec.evaluators = 1;
  job.spec.evaluator.resources.gpus = 1;
  job.tasks = job::tasks_of(job.spec);

  const std::string page = job_page(job, kNow);

  for (const char* part : {"SHAPE      chief, 1 worker, 1 parameter server, evaluator\n",
                           "NEEDS      1 GPU (evaluator)\n", "  evaluator-0  evaluator  "}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
}

TEST(JobPage, ShowsTheImageTheCommandTheLabelsAndTheLaunchersSlots) {
  job::Job job = failed_job();
  job.spec.image = "python:3.11";
  job.spec.arguments = {"--epochs", "2"};
  job.spec.labels = {{"nightly", ""}, {"team", "vision"}};
  job.spec.leader_slots = 2;

  const std::string page = job_page(job, kNow);

  for (const char* part :
       {"IMAGE      python:3.11\n", "COMMAND    mpirun './my train' --epochs 2\n",
        "LABELS     nightly, team=vision\n",
        "SHAPE      1 worker of 1 slot, a launcher of 2 slots\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << page << "\nlacks: " << part;
  }
}

TEST(JobPage, ShowsTheReasonOfAWaitingJobAndTheGpusOfARunningJob) {
  job::Job job = failed_job();
  job.failure.reset();
  job.phase = job::Phase::kQueued;
  job.spec.resources.gpus = 2;
  job.reason.details = {job::Remark{"other holds 2 GPUs of gpu-1"}};
  job.may_start = kNow + seconds(60);
  job.restarts = 3;

  const std::string waits = job_page(job, kNow);
  job.phase = job::Phase::kRunning;
  job.tasks[1].devices = {0, 3};
  job.tasks[1].gpu_share_milli = 1000;
  const std::string runs = job_page(job, kNow);

  for (const char* part :
       {"NEEDS      1 x 2 GPU\n", "PRIORITY   50, preemptible\n", "RESTARTS   3\n",
        "\nWAITS\n  other holds 2 GPUs of gpu-1\n  may start in 1m\n"}) {
    EXPECT_NE(waits.find(part), std::string::npos) << waits << "\nlacks: " << part;
  }
  EXPECT_NE(runs.find("  worker-0  worker    dist-worker-0  -     0,3   Ended"), std::string::npos)
      << runs;
  EXPECT_EQ(runs.find("WAITS"), std::string::npos);
}

TEST(JobRow, EndsAFollow) {
  EXPECT_EQ(job_row(failed_job(), kNow),
            "NAME  PHASE   EXIT  DURATION\ndist  Failed   137        1m\n");
}

TEST(WaitingWord, ExplainsWhyAFollowedJobPrintsNothing) {
  job::Job job = failed_job();
  EXPECT_EQ(logs::waiting_word(job), "");
  job.phase = job::Phase::kQueued;
  job.reason = job::Remark{"needs 1 GPU; none is free"};
  EXPECT_EQ(logs::waiting_word(job), "job 'dist': needs 1 GPU; none is free");
}

TEST(Failure, IsPrintedAsCauseEvidenceAdvice) {
  EXPECT_EQ(failure_text(failed_job()),
            "muster: job 'dist' failed: worker-0 was killed\n"
            "  last lines of worker-0:\n"
            "    epoch 1\n"
            "    epoch 2\n"
            "  look at its memory\n");
}

TEST(Failure, OfARankNamesTheRankOnce) {
  job::Job job = failed_job();
  job.failure->rank = 3;
  job.failure->cause =
      job::TaskFailed{.task = "worker-0", .is_rank = true, .rank = 3, .exit = {.code = 1}};

  EXPECT_TRUE(failure_text(job).starts_with(
      "muster: job 'dist' failed: rank 3 on worker-0 exited with code 1\n  last lines:\n"));
  EXPECT_NE(job_page(job, kNow).find("\nFAILURE\n  rank 3 on worker-0 exited with code 1\n"),
            std::string::npos);
}

TEST(Failure, OfACauseWithoutATaskBeginsWithTheTask) {
  job::Job job = failed_job();
  job.failure->cause = job::TimeLimitReached{std::chrono::hours(1)};

  EXPECT_NE(job_page(job, kNow).find("\nFAILURE\n  worker-0: ran longer than"), std::string::npos);
}

TEST(ExitCode, OfAJobIsZeroOnlyIfItSucceeded) {
  job::Job job = failed_job();
  EXPECT_EQ(exit_code_of(job), 137);
  job.exit_code = 0;
  EXPECT_EQ(exit_code_of(job), 1);
  job.exit_code.reset();
  EXPECT_EQ(exit_code_of(job), 1);
  job.phase = job::Phase::kSucceeded;
  EXPECT_EQ(exit_code_of(job), 0);
}

TEST(ExitCode, OfAnErrorDependsOnItsCode) {
  using base::ErrorCode;
  const std::pair<ErrorCode, int> codes[] = {
      {ErrorCode::kInvalid, 2}, {ErrorCode::kNotFound, 3},  {ErrorCode::kConflict, 4},
      {ErrorCode::kRefused, 4}, {ErrorCode::kExhausted, 4}, {ErrorCode::kUnavailable, 5},
      {ErrorCode::kTimeout, 5}, {ErrorCode::kInternal, 1},
  };
  for (const auto& [code, exit] : codes) {
    EXPECT_EQ(exit_code_of(base::Error{.code = code}), exit) << base::to_string(code);
  }
}

TEST(YamlOutput, KeepsOrderAndTypes) {
  EXPECT_EQ(
      json_to_yaml(
          R"({"name":"dist","workers":2,"none":null,"done":false,"on":true,"empty":[],"no":{},)"
          R"("list":["a","true","12","","a b"]})"),
      "name: dist\nworkers: 2\nnone: ~\ndone: false\n\"on\": true\nempty: []\n\"no\": {}\nlist:\n  "
      "- a\n"
      "  - \"true\"\n  - \"12\"\n  - \"\"\n  - \"a b\"\n");
}

TEST(Help, ShowsUsageFlagsAndAnExample) {
  const std::string text = help_text(command_tree(), {"submit", "mpi"});

  for (const char* part : {"usage: muster submit mpi NAME [FLAGS] -- CMD...\n", "  -n, --workers N",
                           "  -h, --help", "example:\n  muster submit mpi dist"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(help_text(command_tree(), {"server"}).find("--ready-fd"), std::string::npos);
}

TEST(Help, GroupsTheFlagsOfCommandsWithMany) {
  const std::string text = help_text(command_tree(), {"submit", "mpi"});

  size_t last = 0;
  for (const char* heading : {"\nflags:\n", "\nresources:\n", "\nimage:\n", "\nscheduling:\n",
                              "\nfiles:\n", "\nSlurm:\n", "\noutput:\n", "\nexample:\n"}) {
    const size_t at = text.find(heading, last);
    ASSERT_NE(at, std::string::npos) << heading << text;
    last = at;
  }
  EXPECT_LT(text.find("\nresources:\n"), text.find("  --gpus N"));
  EXPECT_LT(text.find("  --gpus N"), text.find("\nimage:\n"));
}

void expect_examples(const Command& command, const std::string& path) {
  if (command.read != nullptr && !path.empty()) {
    EXPECT_NE(command.example, "") << path;
  }
  for (const Command& child : command.commands) {
    expect_examples(child, path + (path.empty() ? "" : " ") + child.name);
  }
}

TEST(Help, HasAnExampleForEveryCommand) {
  expect_examples(command_tree(), "");
}

TEST(Help, OfTheRootNamesEveryCommand) {
  const Command root = command_tree();
  const std::string text = help_text(root, {});
  for (const std::string& name : command_names(root)) {
    EXPECT_NE(text.find("  " + name), std::string::npos) << name;
  }
}

}  // namespace

}  // namespace muster::cli
