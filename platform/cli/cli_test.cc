// Whole commands against a fake server.
#include "cli/cli.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "api/wire.h"
#include "base/unique_fd.h"
#include "cli/cli_fixture.h"
#include "cli/common/test_terminal.h"

namespace muster::cli {

namespace {

std::vector<job::LogRecord> numbered_lines(int count) {
  std::vector<job::LogRecord> records;
  for (int i = 0; i < count; ++i) {
    records.push_back({.time = base::Time(std::chrono::seconds(100 + i / 2)),
                       .task = "main",
                       .host = "a-main",
                       .text = "line " + std::to_string(i)});
  }
  return records;
}

TEST_F(Cli, SubmitPrintsOneLineAndThenTheJobIsListed) {
  serve({});

  const Outcome submitted = muster({"submit", "single", "a", "--", "true"});
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(submitted.out, "submitted a\n");
  EXPECT_NE(submitted.err.find("muster logs -f a"), std::string::npos);

  EXPECT_EQ(muster({"list", "-o", "names"}).out, "a\n");
  EXPECT_NE(muster({"list"}).out.find("a     default  single  Running"), std::string::npos);
  EXPECT_NE(muster({"get", "a", "-o", "json"}).out.find("\"phase\":\"Running\""),
            std::string::npos);
  EXPECT_NE(muster({"get", "a", "-o", "yaml"}).out.find("phase: Running\n"), std::string::npos);
}

TEST_F(Cli, SubmitPrintsHowToStartAHeldJob) {
  serve({});

  const Outcome held = muster({"submit", "single", "a", "--hold", "--", "true"});

  EXPECT_EQ(held.out, "submitted a\n");
  EXPECT_EQ(held.err, "  to start it: muster resume a\n");
}

TEST_F(Cli, OnlyJobsWithAllLabelsAreListed) {
  serve({});
  muster({"submit", "single", "a", "--label", "team=vision", "--label", "nightly", "--", "true"});
  muster({"submit", "single", "b", "--label", "team=vision", "--", "true"});

  EXPECT_EQ(muster({"list", "-l", "team=vision", "--sort", "name", "-o", "names"}).out, "a\nb\n");
  EXPECT_EQ(muster({"list", "-l", "team=vision", "--label", "nightly", "-o", "names"}).out, "a\n");
  EXPECT_EQ(muster({"list", "--label", "team=audio", "-o", "names"}).out, "");
}

TEST_F(Cli, ListPrintsOnePageAndHowToSeeTheRest) {
  serve({});
  for (const char* name : {"a", "b", "c"}) muster({"submit", "single", name, "--", "true"});

  const Outcome page =
      muster({"list", "--limit", "2", "--sort", "name", "--columns", "name,phase"});

  EXPECT_EQ(page.out, "NAME  PHASE\na     Running\nb     Running\n");
  EXPECT_EQ(page.err,
            "muster: 2 of 3 rows; all: --limit 0; fewer: --phase, --mine, --since, --search\n");
  EXPECT_EQ(muster({"list", "--limit", "3", "-o", "names"}).err, "");
  EXPECT_NE(muster({"list", "--columns", "help"}).out.find("may_start"), std::string::npos);
  EXPECT_EQ(muster({"list", "--phase", "ended", "-o", "names"}).out, "");
  EXPECT_EQ(muster({"list", "--watch"}).code, 2) << "standard output is no terminal";
}

TEST_F(Cli, RunPrintsTheLogsOnStandardOutputAndTheRowOnStandardError) {
  serve({.records = numbered_lines(2)});

  const Outcome outcome = muster({"run", "--name", "a", "--", "true"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "[main] line 0\n[main] line 1\n");
  EXPECT_EQ(outcome.err, "NAME  PHASE      EXIT  DURATION\na     Succeeded     0         -\n");
}

TEST_F(Cli, RunReturnsTheExitCodeOfAFailedJobAndPrintsTheReason) {
  serve({.end = job::Phase::kFailed, .exit_code = 42});

  const Outcome outcome = muster({"run", "--name", "a", "--", "false"});

  EXPECT_EQ(outcome.code, 42);
  EXPECT_TRUE(outcome.err.starts_with("muster: job 'a' failed: main went wrong\n")) << outcome.err;
}

TEST_F(Cli, AnInterruptedFollowContinuesWithoutLossAndDuplicates) {
  for (int cut = 0; cut <= 5; ++cut) {
    serve({.records = numbered_lines(5), .break_after = cut});
    EXPECT_EQ(muster({"run", "--name", "a", "--no-prefix", "--", "true"}).out,
              "line 0\nline 1\nline 2\nline 3\nline 4\n")
        << "broken after " << cut;
    EXPECT_EQ(count_of("GET /v1/jobs/a/logs of default"), 2);
    server_.reset();
  }
}

TEST_F(Cli, CtrlCStopsAForegroundJob) {
  serve({.records = numbered_lines(1), .signal = SIGINT, .runs_on = true, .exit_code = 143});

  const Outcome outcome = muster({"run", "--name", "a", "--", "sleep", "100"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.out, "[main] line 0\n");
  EXPECT_NE(outcome.err.find("stopping job 'a'; press Ctrl-C again to kill it now"),
            std::string::npos);
  EXPECT_NE(outcome.err.find("muster: job 'a' was stopped"), std::string::npos);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default"), 1);
}

TEST_F(Cli, CtrlCLeavesAFollowedJob) {
  serve({.signal = SIGINT, .runs_on = true});

  const Outcome outcome = muster({"submit", "single", "a", "--follow", "--", "sleep", "100"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("muster logs -f a"), std::string::npos);
  EXPECT_NE(outcome.err.find("muster stop a"), std::string::npos);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default"), 0);
}

TEST_F(Cli, CtrlCEndsASubmissionThatGetsNoAnswer) {
  serve({.signal = SIGINT, .unanswered = "POST /v1/jobs"});

  const Outcome outcome = muster({"submit", "single", "a", "--follow", "--", "ls"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err,
            "muster: interrupted before the server has answered; job 'a' may be submitted\n"
            "  look for it: muster get a; stop it: muster stop a\n");
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
}

TEST_F(Cli, ASecondSignalEndsARunThatGetsNoAnswer) {
  serve({.signal = SIGINT, .unanswered = "POST /v1/jobs", .second_signal = SIGTERM});

  const Outcome outcome = muster({"run", "--name", "a", "--", "ls"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err,
            "muster: waiting for the server's answer to stop the job; press Ctrl-C again to leave\n"
            "muster: interrupted before the server has answered; job 'a' may be submitted\n"
            "  look for it: muster get a; stop it: muster stop a\n");
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
}

TEST_F(Cli, ASubmissionWithoutAnAnswerNamesNoOtherJob) {
  // Job 'a' is another job: the server gives this one another name.
  for (const auto& [words, name] :
       {std::pair(Words{"a", "--name-suffix"}, "a"), std::pair(Words{"a-{n}"}, "a-{n}")}) {
    server_.reset();
    serve({.signal = SIGINT, .unanswered = "POST /v1/jobs"});
    Words all{"submit", "single"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--follow", "--", "ls"});

    const Outcome outcome = muster(all);

    EXPECT_EQ(outcome.code, 130);
    EXPECT_EQ(
        outcome.err,
        std::string("muster: interrupted before the server has answered; a job named like '") +
            name +
            "' may be submitted\n"
            "  look for it among your newest jobs: muster list --mine\n");
  }
}

TEST_F(Cli, ARunWithoutAnAnswerNamesItsRandomName) {
  serve({.signal = SIGINT, .unanswered = "POST /v1/jobs", .second_signal = SIGTERM});
  const Outcome outcome = muster({"run", "--", "ls"});
  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("; stop it: muster stop run-"), std::string::npos) << outcome.err;
}

TEST_F(Cli, CtrlCStopsAForegroundJobThatIsBeingSubmitted) {
  serve({.signal = SIGINT, .runs_on = true, .exit_code = 143, .signals_at = "POST /v1/jobs"});

  const Outcome outcome = muster({"run", "--name", "a", "--", "sleep", "100"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("muster: job 'a' was stopped"), std::string::npos) << outcome.err;
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default"), 1);
}

TEST_F(Cli, ASecondCtrlCKillsAJobThoughTheServerDoesNotAnswerTheFirst) {
  serve({.signal = SIGINT, .runs_on = true, .unanswered = "POST /v1/jobs/a/stop"});

  const Outcome outcome = muster({"run", "--name", "a", "--", "sleep", "100"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("killing job 'a'"), std::string::npos) << outcome.err;
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default"), 1);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default now"), 1);
}

TEST_F(Cli, CtrlCDetachesFromAJobWithoutInput) {
  serve({.signal = SIGINT, .runs_on = true, .settles_when_watched = true});
  muster({"submit", "single", "a", "--", "sleep", "100"});

  const Outcome outcome = muster({"attach", "a"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("detached from job 'a'"), std::string::npos) << outcome.err;
}

TEST_F(Cli, ADeclinedConversionSubmitsNothing) {
  serve({});
  muster({"submit", "single", "lab", "--", "sleep", "100"});
  const TestTerminal terminal;
  const base::UniqueFd before(::dup(STDIN_FILENO));
  ::dup2(terminal.fd(), STDIN_FILENO);
  terminal.type("n\n");

  const Outcome outcome = muster({"convert", "lab", "--command", "ls"});

  ::dup2(before.get(), STDIN_FILENO);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.ends_with("muster: no job was submitted\n")) << outcome.err;
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "lab\n");
}

TEST_F(Cli, SuggestedCommandsNameTheProjectAndTheTask) {
  serve({.signal = SIGINT, .runs_on = true});
  muster({"submit", "single", "a", "--", "true"});

  const Outcome outcome = muster({"logs", "-f", "a/main", "--project", "default"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err,
            "muster: detached; job 'a' continues\n"
            "  follow it again: muster logs -f a/main --project default\n"
            "  stop it: muster stop a --project default\n");
}

TEST_F(Cli, CtrlCInTheLogOfAnEndedJobSuggestsNothing) {
  constexpr int kLines = 5000;  // more than one read, so that the signal is seen before the end
  serve({.records = numbered_lines(kLines),
         .signal = SIGINT,
         .jobs = {{.id = "id-old", .spec = {.name = "old"}, .phase = job::Phase::kSucceeded}}});

  const Outcome outcome = muster({"logs", "old"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Cli, CtrlCEndsTheAttemptsToReconnect) {
  serve({.signal = SIGINT, .runs_on = true, .always_breaks = true});
  muster({"submit", "single", "a", "--", "true"});

  EXPECT_EQ(muster({"logs", "-f", "a"}).code, 130);
  EXPECT_EQ(count_of("GET /v1/jobs/a/logs"), 1);
}

job::Job job_with_input() {
  job::Job job{.id = "id-lab",
               .spec = {.name = "lab", .project = "default", .input = true},
               .phase = job::Phase::kRunning};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.phase = job::TaskPhase::kRunning;
  return job;
}

TEST_F(Cli, CtrlCInTheEarlierOutputLeavesAnAttachedJob) {
  serve({.signal = SIGINT, .runs_on = true, .jobs = {job_with_input()}});

  const Outcome outcome = muster({"attach", "lab", "--from-start"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("detached from job 'lab', which continues"), std::string::npos)
      << outcome.err;
}

/// The exit code of a command whose standard output is a pipe without a reader.
int code_without_reader(const Words& words) {
  const base::UniqueFd before(::dup(STDOUT_FILENO));
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  ::close(ends[0]);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  const int code = run(words, {.serve = {}, .version = "1"});
  ::dup2(before.get(), STDOUT_FILENO);
  return code;
}

TEST_F(Cli, AForegroundJobIsStoppedWhenItsOutputIsClosed) {
  serve({.records = numbered_lines(1), .runs_on = true});

  EXPECT_EQ(code_without_reader({"run", "--name", "a", "--", "yes"}), 141);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of default"), 1);
}

TEST_F(Cli, ASessionReturnsWhenItsOutputIsClosed) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});

  EXPECT_EQ(code_without_reader({"exec", "a", "--", "cat", "big"}), 141);
}

TEST_F(Cli, AnAttachReturnsWhenItsOutputIsClosed) {
  serve({.records = numbered_lines(1), .jobs = {job_with_input()}});

  EXPECT_EQ(code_without_reader({"attach", "lab", "--from-start"}), 141);
}

// --- a lost answer

TEST_F(Cli, ARequestThatIsNotSafeToRepeatIsSentOnce) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"POST /v1/schedules", {"schedule", "create", "nightly", "--cron", "@daily", "--", "ls"}},
      {"POST /v1/schedules/nightly/run", {"schedule", "run", "nightly"}},
      {"DELETE /v1/schedules/nightly", {"schedule", "delete", "nightly"}},
      {"POST /v1/projects/default/notifications", {"notify", "add", "https://hooks.example.com"}},
      {"POST /v1/arrays/a/rerun", {"rerun", "a", "--failed"}},
      {"GET /v1/jobs/a/exec", {"exec", "a", "--", "ls"}},
  };
  for (const auto& [request, words] : cases) {
    server_.reset();
    serve({.answer_lost = request});

    const Outcome outcome = muster(words);

    EXPECT_EQ(outcome.code, 5) << request << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(" may "), std::string::npos) << outcome.err;
    EXPECT_EQ(count_of(request) + count_of(request + " of default"), 1) << request;
  }
}

TEST_F(Cli, ARefusalOfAnUnavailableServerIsNotALostAnswer) {
  serve({.refuses = "POST /v1/schedules/nightly/run",
         .refuses_with = {.code = base::ErrorCode::kUnavailable,
                          .what = "this server is a standby",
                          .advice = "repeat the command in a moment"}});

  const Outcome outcome = muster({"schedule", "run", "nightly"});

  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err, "muster: this server is a standby\n  repeat the command in a moment\n");
}

TEST_F(Cli, LogsPrintOnlyTheLogs) {
  serve({.records = numbered_lines(2)});
  muster({"submit", "single", "a", "--", "true"});

  const Outcome outcome = muster({"logs", "a"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "[main] line 0\n[main] line 1\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Cli, LogsAsJsonAreTheRecordsOfTheApi) {
  job::LogRecord record = numbered_lines(1).front();
  record.text = "caf\xc3\xa9 \"x\"\x1b";
  record.rank = 2;
  serve({.records = {record}});
  muster({"submit", "single", "a", "--", "true"});

  const Outcome outcome = muster({"logs", "a", "--follow", "--output", "json"});

  ASSERT_TRUE(outcome.out.ends_with("\n"));
  const auto read =
      api::log_record_from_json(std::string_view(outcome.out).substr(0, outcome.out.size() - 1));
  ASSERT_TRUE(read) << outcome.out;
  EXPECT_EQ(*read, record);
}

TEST_F(Cli, LogsAreNotFoldedWithoutATerminal) {
  const job::LogRecord again = numbered_lines(1).front();
  serve({.records = {again, again, again}});
  muster({"submit", "single", "a", "--", "true"});

  EXPECT_EQ(muster({"logs", "a"}).out, "[main] line 0\n[main] line 0\n[main] line 0\n");
}

TEST_F(Cli, DeleteRemovesTheNamedJobsAndReportsMissingNames) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});
  muster({"submit", "single", "b", "--", "true"});

  EXPECT_EQ(muster({"delete", "a"}).code, 4);
  EXPECT_EQ(muster({"stop", "a"}).out, "a has ended: Stopped\n");
  const Outcome outcome = muster({"delete", "missing", "a"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "deleted a\n");
  EXPECT_EQ(outcome.err, "muster: there is no job 'missing'\n");
  EXPECT_EQ(muster({"delete", "missing", "--ignore-missing"}).code, 0);
  EXPECT_EQ(muster({"delete", "b", "--force"}).out, "deleted b\n");
}

TEST_F(Cli, ReadsTheJobFromAFile) {
  serve({});
  std::ofstream(folder_ / "job.yaml") << "name: filed\ncommand: [ls]\n";
  std::ofstream(folder_ / "bad.yaml") << "nam: filed\ncommand: [ls]\n";

  EXPECT_EQ(muster({"submit", "-f", folder_ / "job.yaml"}).out, "submitted filed\n");
  const Outcome bad = muster({"submit", "-f", folder_ / "bad.yaml"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("line 1: nam: unknown key; did you mean 'name'?"), std::string::npos);
  EXPECT_EQ(muster({"submit", "-f", folder_ / "none.yaml"}).code, 2);
}

TEST_F(Cli, WarnsAboutAServerOfAnotherVersion) {
  serve({.version = "0.9"});

  const Outcome outcome = muster({"list"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("the server is version 0.9, this is 1"), std::string::npos);
  EXPECT_NE(muster({"version"}).out.find("server 0.9, process "), std::string::npos);
}

TEST_F(Cli, JobsForAnEngineAreNotSubmittedToAnotherEngine) {
  serve({.engine = "slurm"});
  EXPECT_EQ(muster({"run", "--engine", "slurm", "--", "true"}).code, 0);
  EXPECT_EQ(muster({"run", "--", "true"}).code, 0);
  const int runs = count_of("POST /v1/jobs");

  for (const Words& words :
       {Words{"run", "--engine", "process", "--", "true"},
        Words{"submit", "single", "a", "--engine", "process", "--", "true"},
        Words{"submit", "single", "a", "--engine", "process", "--dry-run", "--", "true"}}) {
    const Outcome refused = muster(words);
    EXPECT_EQ(refused.code, 4);
    EXPECT_NE(refused.err.find("the running server uses the engine 'slurm', not 'process'"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("muster server --stop"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(count_of("POST /v1/jobs"), runs);
}

TEST_F(Cli, AServerThatDoesNotReportItsEngineIsRefusedForARequestedEngine) {
  serve({.engine = ""});
  const Outcome refused = muster({"run", "--engine", "process", "--", "true"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_NE(refused.err.find("does not report its engine"), std::string::npos);
  EXPECT_EQ(muster({"run", "--engine", "slrm", "--", "true"}).code, 2);
}

TEST_F(Cli, AStateFolderThatCannotBeUsedIsAServerThatCannotBeStarted) {
  std::ofstream(folder_ / "file") << "text";
  std::filesystem::create_symlink(folder_ / "nowhere" / "else", folder_ / "link");
  for (const char* name : {"file", "link"}) {
    ::setenv("MUSTER_STATE_DIR", (folder_ / name).c_str(), 1);

    const Outcome outcome = muster({"list"});

    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_NE(outcome.err.find("MUSTER_STATE_DIR"), std::string::npos) << outcome.err;
  }
}

/// Sends itself `signal` while it copies, and never ends by itself.
base::Result<StoreReport> copy_for_ever(const std::filesystem::path& file, int signal) {
  std::ofstream(file, std::ios::app) << "all jobs";
  std::ofstream(file.parent_path() / "muster.db-journal") << "more";
  ::alarm(60);  // ends the process if `signal` does not
  ::kill(::getpid(), signal);
  while (true) ::pause();
}

TEST_F(Cli, ArtifactsOfWhichAFolderCannotBeListedAreNotFetchedInPart) {
  serve({.artifacts = {.artifacts = {{.path = "a", .bytes = 1}}, .truncated = true}});
  muster({"submit", "single", "a", "--", "true"});
  const std::string fault = "a folder of job 'a' has more than 1,000,000 entries";

  const Outcome fetched = muster({"artifacts", "get", "a"});
  EXPECT_EQ(fetched.code, 4);
  EXPECT_NE(fetched.err.find(fault), std::string::npos) << fetched.err;
  EXPECT_EQ(count_of("GET /v1/jobs/a/artifact of default"), 0);

  const Outcome listed = muster({"artifacts", "list", "a"});
  EXPECT_EQ(listed.code, 1);
  EXPECT_NE(listed.out.find("\na "), std::string::npos) << listed.out;
  EXPECT_NE(listed.err.find(fault), std::string::npos) << listed.err;
}

TEST_F(Cli, CtrlCDuringACopyThroughAPipeEndsItAndLeavesNoFile) {
  // The end of the file is at once.
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int signal : {SIGINT, SIGTERM}) {
    Hooks hooks{.serve = {}, .version = "1"};
    hooks.backup_store = [&](const config::ServeOptions&, const std::string& file) {
      const auto folder = std::filesystem::path(file).parent_path().parent_path();
      if (folder != folder_) ::_exit(3);
      return copy_for_ever(file, signal);
    };
    hooks.restore_store = hooks.backup_store;
    const auto ends = [&](const Words& words) {
      ::signal(signal, SIG_DFL);  // a shell may have made background commands ignore it
      ::dup2(nothing.get(), STDIN_FILENO);
      ::_exit(run(words, hooks));
    };

    EXPECT_EXIT(ends({"store", "backup", "-"}), testing::ExitedWithCode(130), "");
    EXPECT_EXIT(ends({"store", "restore", "-"}), testing::ExitedWithCode(130), "");
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("backup-")) << entry.path();
  }
}

TEST_F(Cli, VersionStartsNoServer) {
  EXPECT_EQ(muster({"version", "-o", "json"}).out,
            "{\"version\":\"1\",\"context\":\"local\",\"server\":null}\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "server.log"));
}

TEST_F(Cli, ServerReceivesItsOptions) {
  config::ServeOptions got;
  const int code = run({"server", "--idle-exit", "1m"},
                       {.serve =
                            [&](const config::ServeOptions& options, const config::ReadAgain&) {
                              got = options;
                              return 7;
                            },
                        .version = "1"});
  EXPECT_EQ(code, 7);
  EXPECT_EQ(got.idle_exit, std::chrono::minutes(1));
}

}  // namespace

}  // namespace muster::cli
