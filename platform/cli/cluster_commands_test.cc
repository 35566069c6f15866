// The commands on projects, nodes, the queue and waiting jobs, against a fake server.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "base/unique_fd.h"
#include "cli/cli_fixture.h"
#include "cli/common/test_terminal.h"

namespace muster::cli {

namespace {

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

TEST_F(Cli, AProjectIsCreatedChangedListedAndDeleted) {
  serve({});

  const Outcome created = muster({"project", "create", "team-a", "--gpus", "2", "--limit", "4"});
  EXPECT_EQ(created.out, "created team-a\n") << created.err;
  EXPECT_EQ(muster({"project", "set", "team-a", "--limit", "unlimited"}).out, "changed team-a\n");
  EXPECT_EQ(muster({"project", "list", "-o", "names"}).out, "default\nteam-a\n");
  const std::string table = muster({"project", "list"}).out;
  EXPECT_NE(table.find("team-a   2 GPU      -       1"), std::string::npos) << table;
  EXPECT_NE(muster({"project", "get", "team-a", "-o", "json"}).out.find("\"name\":\"team-a\""),
            std::string::npos);
  EXPECT_EQ(muster({"project", "delete", "team-a"}).out, "deleted team-a\n");
  EXPECT_EQ(muster({"project", "get", "team-a"}).code, 3);
  EXPECT_EQ(muster({"project", "delete", "team-a"}).code, 3);
  EXPECT_EQ(muster({"project", "delete", "team-a", "--ignore-missing"}).code, 0);
}

TEST_F(Cli, TheProjectInUseIsStoredPerUserAndTheEnvironmentOverridesIt) {
  serve({});
  muster({"project", "create", "team-a"});
  muster({"project", "create", "other"});

  EXPECT_EQ(muster({"project", "use"}).out, "default\n");
  EXPECT_EQ(muster({"project", "use", "team-x"}).code, 3);
  EXPECT_EQ(muster({"project", "use", "team-a"}).code, 0);

  EXPECT_EQ(muster({"project", "use"}).out, "team-a\n");
  EXPECT_NE(muster({"project", "list"}).out.find("\nteam-a *  "), std::string::npos);
  EXPECT_EQ(mode_of(folder_ / "config/muster"), 0700U);
  EXPECT_EQ(mode_of(folder_ / "config/muster/project"), 0600U);
  muster({"submit", "single", "a", "--", "true"});
  ::setenv("MUSTER_PROJECT", "other", 1);
  EXPECT_EQ(muster({"project", "use"}).out, "other\n");
  muster({"submit", "single", "b", "--", "true"});
  ::unsetenv("MUSTER_PROJECT");
  EXPECT_EQ(muster({"list", "--project", "team-a", "-o", "names"}).out, "a\n");
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "a\nb\n");
  EXPECT_EQ(muster({"list", "--project", "team-x"}).code, 3);
}

TEST_F(Cli, AJobFileGoesToTheProjectInUseUnlessItNamesAProject) {
  serve({});
  muster({"project", "create", "team-a"});
  muster({"project", "use", "team-a"});
  std::ofstream(folder_ / "plain.yaml") << "name: plain\ncommand: [ls]\n";
  std::ofstream(folder_ / "own.yaml") << "name: own\ncommand: [ls]\nproject: default\n";

  muster({"submit", "-f", folder_ / "plain.yaml"});
  muster({"submit", "-f", folder_ / "own.yaml"});

  EXPECT_EQ(muster({"list", "--project", "team-a", "-o", "names"}).out, "plain\n");
  EXPECT_EQ(muster({"list", "--project", "default", "-o", "names"}).out, "own\n");
}

TEST_F(Cli, AMissingProjectInUseIsReportedAsSuch) {
  serve({});
  muster({"project", "create", "team-a"});
  muster({"project", "use", "team-a"});
  muster({"project", "delete", "team-a"});

  for (const Words& words : {Words{"submit", "single", "a", "--", "true"},
                             Words{"submit", "single", "a", "--dry-run", "--", "true"}}) {
    const Outcome outcome = muster(words);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(
        outcome.err.starts_with("muster: there is no project 'team-a', the project in use\n"))
        << outcome.err;
  }
}

TEST_F(Cli, AnythingElseThatIsMissingIsNotReportedAsTheProjectInUse) {
  serve({});
  muster({"project", "create", "team-a"});
  muster({"project", "use", "team-a"});

  const Outcome outcome =
      muster({"submit", "single", "a", "--workspace", (folder_ / "nosuch").string(), "--", "true"});

  EXPECT_TRUE(outcome.err.starts_with("muster: there is no folder")) << outcome.err;
  EXPECT_EQ(outcome.err.find("the project in use"), std::string::npos) << outcome.err;
}

TEST_F(Cli, AnUnreadableProjectInUseIsAnError) {
  serve({});
  std::filesystem::create_directories(folder_ / "config/muster/project");

  const Outcome outcome = muster({"submit", "single", "a", "--", "true"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("MUSTER_PROJECT"), std::string::npos) << outcome.err;
}

TEST_F(Cli, NodesAreListedCordonedAndDrained) {
  serve({});

  EXPECT_EQ(muster({"node", "list", "-o", "names"}).out, "gpu-7\ngpu-8\n");
  EXPECT_NE(muster({"node", "list"}).out.find("gpu-7  ready"), std::string::npos);
  EXPECT_EQ(muster({"node", "cordon", "gpu-7"}).out, "cordoned gpu-7; no task runs there\n");
  EXPECT_EQ(muster({"node", "uncordon", "gpu-7"}).out, "uncordoned gpu-7\n");
  const Outcome drained = muster({"node", "drain", "gpu-9", "gpu-8"});
  EXPECT_EQ(drained.code, 3);
  EXPECT_EQ(drained.out, "draining gpu-8: 2 jobs to restart on other nodes\n");
  EXPECT_EQ(drained.err, "muster: there is no node 'gpu-9'\n");
  EXPECT_NE(muster({"node", "get", "gpu-8"}).out.find("STATE   draining\n"), std::string::npos);
}

TEST_F(Cli, AJobThatIsNotPreemptibleAndLargerThanTheQuotaIsSubmittedWithAWarning) {
  serve({.runs_on = true});
  const std::string warning =
      "muster: warning: 'np' is not preemptible and requests 3 GPUs, but project default has a "
      "quota of 2 GPUs";

  const Outcome large =
      muster({"submit", "single", "np", "--gpus", "3", "--priority", "100", "--", "true"});
  EXPECT_EQ(large.code, 0);
  EXPECT_NE(large.err.find(warning), std::string::npos) << large.err;
  EXPECT_NE(large.err.find("cannot start until that is at least 3 GPUs"), std::string::npos);
  const Outcome small =
      muster({"submit", "single", "p", "--gpus", "3", "--priority", "50", "--", "true"});
  EXPECT_EQ(small.err.find("warning"), std::string::npos) << small.err;
}

TEST_F(Cli, SuspendedJobsAppearInTheQueueWithTheirReason) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});

  EXPECT_EQ(muster({"suspend", "a", "-o", "table"}).out, "suspended a\n");
  EXPECT_NE(muster({"queue"}).out.find("-  a    default        50  -"), std::string::npos)
      << muster({"queue"}).out;
  EXPECT_EQ(muster({"explain", "a"}).out, "Queued: is suspended\n");
  EXPECT_EQ(muster({"resume", "a", "missing"}).code, 3);
  EXPECT_EQ(muster({"queue", "-o", "names"}).out, "a\n");
  EXPECT_EQ(muster({"explain", "a"}).out, "Queued: waits for room\n\nPOSITION  1\n");
  EXPECT_NE(muster({"explain", "a", "-o", "json"}).out.find("\"reason\":\"waits for room\""),
            std::string::npos);
}

TEST_F(Cli, EventsAreShownForOneJobOrForAll) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});
  muster({"submit", "single", "b", "--", "true"});
  muster({"suspend", "a", "b"});

  EXPECT_EQ(muster({"events", "b"}).out,
            "TIME                      JOB  EVENT\n2023-11-14T22:13:20.000Z  b    is suspended\n");
  EXPECT_NE(muster({"events"}).out.find("  a    is suspended\n"), std::string::npos);
  EXPECT_EQ(muster({"events", "missing"}).code, 3);
}

TEST_F(Cli, EventsOfAJobAreFollowedToItsEnd) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});
  muster({"suspend", "a"});
  muster({"stop", "a"});

  EXPECT_EQ(muster({"events", "a", "--follow"}).out, "2023-11-14T22:13:20.000Z  a  is suspended\n");
}

TEST_F(Cli, ADryRunStoresNothingAndIsRefusedIfTheJobCanNeverRun) {
  serve({});

  const Outcome waits = muster({"submit", "single", "a", "--gpus", "1", "--dry-run", "--", "x"});
  EXPECT_EQ(waits.code, 0) << waits.err;
  EXPECT_TRUE(waits.out.starts_with("would wait: all GPUs are taken\n")) << waits.out;
  const Outcome never = muster({"submit", "single", "a", "--gpus", "2", "--dry-run", "--", "x"});
  EXPECT_EQ(never.code, 4);
  EXPECT_EQ(never.err, "muster: no node has 2 GPUs\n");
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "");
}

TEST_F(Cli, TopPrintsOnceWithoutATerminal) {
  serve({.runs_on = true});
  muster({"submit", "single", "a", "--", "true"});

  const Outcome outcome = muster({"top"});

  EXPECT_EQ(outcome.code, 0);
  for (const char* part :
       {"running 1   waiting 0\n", "\ngpu-7  ready", "\ndefault  ", "\na    default  Running"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out << "lacks " << part;
  }
  EXPECT_EQ(count_of("GET /v1/jobs in Starting,Running"), 1) << "other jobs are not read";
}

/// The exit code of `top` on a terminal, as the user sees it.
int code_of_top_on_a_terminal() {
  TestTerminal terminal;
  const base::UniqueFd before(::dup(STDOUT_FILENO));
  ::dup2(terminal.fd(), STDOUT_FILENO);
  const Hooks hooks{
      .serve = [](const config::ServeOptions&, const config::ReadAgain&) { return 0; },
      .version = "1"};
  const int code = run({"top"}, hooks);
  ::dup2(before.get(), STDOUT_FILENO);
  return code;
}

TEST_F(Cli, CtrlCEndsTopWhileTheServerDoesNotAnswer) {
  serve({.signal = SIGINT, .unanswered = "GET /v1/nodes"});

  EXPECT_EQ(code_of_top_on_a_terminal(), 0);
}

TEST_F(Cli, TopGoesOnAfterTheServerHasRestarted) {
  // The first answer and its repetition are lost. Ctrl-C comes with the answer after that.
  serve({.signal = SIGTERM,
         .answer_lost = "GET /v1/nodes",
         .answers_lost = 2,
         .signals_at = "GET /v1/nodes",
         .signals_after = 2});

  EXPECT_EQ(code_of_top_on_a_terminal(), 0);
  EXPECT_EQ(count_of("GET /v1/nodes"), 3);
}

}  // namespace

}  // namespace muster::cli
