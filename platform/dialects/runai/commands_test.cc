// Whole commands against a fake server.
#include "dialects/runai/commands.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "cli/cli_fixture.h"
#include "cli/connection/connection.h"
#include "dialects/runai/runai.h"
#include "dialects/runai/test_jobs.h"
#include "job/obstacle.h"

namespace muster::dialects::runai {

namespace {

using cli::Words;

using job::Phase;

class RunAi : public cli::Cli {
 protected:
  static cli::Outcome runai(const cli::Words& words) { return outcome_of(run, words); }

  /// Creates the project team-a and uses it.
  void work_in_team_a() {
    ASSERT_EQ(muster({"project", "create", "team-a"}).code, 0);
    ASSERT_EQ(runai({"project", "set", "team-a"}).code, 0);
  }

  void serve_jobs(std::vector<job::Job> jobs) {
    serve({.jobs = std::move(jobs)});
    work_in_team_a();
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(RunAi, ListPrintsTheProjectAndItsJobs) {
  job::Job other = mpi_job("elsewhere", 1);
  other.spec.project = "default";
  serve_jobs({mpi_job("dist", 2), other, mpi_job("alpha", 1)});

  for (const Words& words : {Words{"list"}, Words{"list", "jobs"}, Words{"list", "job"}}) {
    const std::string text = runai(words).out;
    EXPECT_TRUE(text.starts_with("Showing jobs for project team-a\nNAME   STATUS   AGE  NODE"));
    EXPECT_LT(text.find("\nalpha  Running"), text.find("\ndist   Running")) << text;
    EXPECT_FALSE(contains(text, "elsewhere"));
  }
  EXPECT_TRUE(contains(runai({"list", "-p", "default"}).out, "elsewhere"));
  const std::string all = runai({"list", "-A"}).out;
  EXPECT_TRUE(contains(all, "elsewhere") && contains(all, "dist")) << all;
  EXPECT_EQ(runai({"list", "-o", "names"}).out, "alpha\ndist\n");
}

TEST_F(RunAi, ListReportsAnUnknownProject) {
  serve({});

  const cli::Outcome outcome = runai({"list", "-p", "team-x"});

  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            "runai: project team-x was not found. Please run 'runai list project' to view all "
            "avaliable projects\n  create it: muster project create team-x\n");
}

TEST_F(RunAi, GetIsDescribeJob) {
  serve_jobs({mpi_job("dist", 2)});

  const std::string text = runai({"describe", "job", "dist"}).out;

  EXPECT_TRUE(text.starts_with("NAME:                     dist\nNAMESPACE: ")) << text;
  EXPECT_TRUE(contains(text, "\nPods:\nPOD            STATUS   TYPE"));
  EXPECT_TRUE(contains(text, "\ndist-launcher  RUNNING  TRAIN"));
  EXPECT_TRUE(contains(runai({"get", "dist"}).out, "\ndist-worker-1  RUNNING  TRAIN"));
  EXPECT_TRUE(contains(runai({"get", "dist", "-e", "-o", "wide"}).out, "GPUS  EXIT\n"));
  EXPECT_TRUE(
      contains(runai({"get", "dist", "-o", "json"}).out, "\"chiefName\":\"dist-launcher\""));
  EXPECT_TRUE(contains(runai({"get", "dist", "-o", "yaml"}).out, "chiefName: dist-launcher\n"));
  EXPECT_EQ(runai({"get", "dist", "-o", "xml"}).code, 2);
}

TEST_F(RunAi, AMissingJobIsReportedWithItsProject) {
  serve_jobs({});

  const cli::Outcome outcome = runai({"get", "dist"});

  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            "runai: The job dist does not exist in project team-a. If the job exists in a "
            "different project, use -p <project name>.\n");
  EXPECT_EQ(runai({"logs", "dist"}).code, 3);
  EXPECT_EQ(runai({"bash", "dist"}).code, 3);
  EXPECT_EQ(runai({"attach", "dist"}).code, 3);
}

TEST_F(RunAi, AMissingNameIsAUsageError) {
  for (const char* command : {"get", "logs", "bash", "exec", "attach", "delete", "suspend"}) {
    const cli::Outcome outcome = runai({command});
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_TRUE(contains(outcome.err, "the name of a job is missing")) << outcome.err;
  }
  EXPECT_TRUE(contains(runai({"config"}).err,
                       "the commands are: runai config project, runai config cluster"));
  EXPECT_TRUE(contains(runai({"list", "--loglevel", "loud"}).err, "'loud' is invalid"));
  EXPECT_TRUE(contains(runai({"lsit"}).err, "did you mean 'list'?"));
}

TEST_F(RunAi, FollowedLogsDoNotReportTheEndOfTheJob) {
  serve({.records = {{.task = "launcher", .host = "dist-launcher", .text = "begin"}},
         .jobs = {ended_job("dist", 1, job::Phase::kFailed, 3)}});
  work_in_team_a();

  const cli::Outcome outcome = runai({"logs", "dist", "-f", "--pod", "dist-launcher"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "begin\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(RunAi, ErrorsNameRunAisCommands) {
  using Kind = job::Obstacle::Kind;
  const auto translated = [](Kind kind) {
    return for_runai({.what = "what", .advice = "muster does it", .detail = job::obstacle(kind)});
  };
  EXPECT_EQ(translated(Kind::kEnded).advice, "'runai list jobs' shows what runs and waits");
  EXPECT_EQ(translated(Kind::kSeveralProjects).advice, "choose one: -p PROJECT");
  EXPECT_EQ(translated(Kind::kNoSecret).advice, "muster does it");  // Run:AI has no such command
}

TEST_F(RunAi, LogsMergeAllPodsAndPodSelectsOne) {
  serve({.records = {{.task = "launcher", .host = "dist-launcher", .text = "begin"},
                     {.task = "launcher", .host = "dist-worker-1", .rank = 1, .text = "step 1"}},
         .jobs = {mpi_job("dist", 2), waiting_job("later", 1)}});
  work_in_team_a();

  EXPECT_EQ(runai({"logs", "dist"}).out, "[launcher] begin\n[1@dist-worker-1] step 1\n");
  EXPECT_EQ(runai({"logs", "dist", "--pod", "dist-launcher", "-t", "-1", "--since", "5s"}).out,
            "begin\nstep 1\n");
  const cli::Outcome no_pod = runai({"logs", "dist", "--pod", "dist-worker-7"});
  EXPECT_EQ(no_pod.code, 3);
  EXPECT_TRUE(contains(no_pod.err, "its pods: dist-launcher, dist-worker-0, dist-worker-1"));
  const cli::Outcome both =
      runai({"logs", "dist", "--since", "5s", "--since-time", "2026-01-31T12:00:00Z"});
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(contains(both.err, "--since-time cannot be used with --since"));
  const cli::Outcome early = runai({"logs", "later"});
  EXPECT_EQ(early.code, 4);
  EXPECT_TRUE(contains(early.err, "please use \"runai describe job\" to get more information."));
}

TEST_F(RunAi, DeleteEndsAndRemovesJobsAndContinuesAfterAFailure) {
  serve_jobs({mpi_job("dist", 2), ended_job("done", 1, Phase::kSucceeded)});

  const cli::Outcome outcome = runai({"delete", "dist", "missing", "done", "dist"});

  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "Job dist deleted successfully.\nJob done deleted successfully.\n");
  EXPECT_EQ(outcome.err,
            "runai: Job missing does not exist in project team-a. If the job exists in a "
            "different project, use -p <project-name>.\n");
  EXPECT_EQ(runai({"list", "-o", "names"}).out, "");
}

TEST_F(RunAi, DeleteWaitsUntilAJobHasEnded) {
  serve({.jobs = {mpi_job("a", 2), mpi_job("b", 1)}, .settles_when_watched = true});
  work_in_team_a();

  EXPECT_EQ(runai({"delete", "-A"}).out,
            "Job a deleted successfully.\nJob b deleted successfully.\n");
  EXPECT_EQ(runai({"delete", "-A"}).out, "");
  EXPECT_EQ(runai({"delete", "-A", "b"}).code, 2);
}

TEST_F(RunAi, DeleteTakesTheWordJobBeforeNames) {
  serve_jobs({mpi_job("a", 1), mpi_job("b", 1), mpi_job("c", 1), mpi_job("job", 1)});

  const cli::Outcome named = runai({"delete", "job", "a", "b"});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(named.out, "Job a deleted successfully.\nJob b deleted successfully.\n");
  EXPECT_EQ(runai({"delete", "job"}).out, "Job job deleted successfully.\n");
  EXPECT_EQ(runai({"list", "-o", "names"}).out, "c\n");
  EXPECT_EQ(runai({"delete", "job", "-A"}).out, "Job c deleted successfully.\n");
  EXPECT_EQ(runai({"delete", "job"}).code, 3);
  EXPECT_EQ(runai({"delete", "jobs", "c", "-A"}).code, 2);
}

TEST_F(RunAi, SuspendAndResumeTakeTheWordJobBeforeNames) {
  serve_jobs({mpi_job("a", 1), mpi_job("job", 1)});

  EXPECT_EQ(runai({"suspend", "job", "a"}).out, "Job a suspended successfully.\n");
  EXPECT_EQ(runai({"resume", "job", "-A"}).out, "Job a resumed successfully.\n");
  EXPECT_EQ(runai({"suspend", "job"}).out, "Job job suspended successfully.\n");
}

job::Array array_of(const std::string& name) {
  return {.id = "array-" + name, .spec = {.name = name, .project = "team-a"}, .submitted = kNow};
}

TEST_F(RunAi, DeleteStopsAndRemovesArrays) {
  serve({.jobs = {mpi_job("a", 1)}, .arrays = {array_of("train"), array_of("zoo")}});
  work_in_team_a();

  EXPECT_EQ(runai({"delete", "zoo"}).out, "Job zoo deleted successfully.\n");
  EXPECT_EQ(runai({"delete", "-A"}).out,
            "Job a deleted successfully.\nJob train deleted successfully.\n");

  EXPECT_EQ(count_of("POST /v1/arrays/zoo/stop of team-a"), 1);
  EXPECT_EQ(count_of("POST /v1/arrays/array-train/stop of team-a"), 1);
  EXPECT_EQ(runai({"delete", "zoo", "train"}).code, 3);
}

TEST_F(RunAi, SuspendsAndResumesArrays) {
  serve({.jobs = {mpi_job("a", 1)}, .arrays = {array_of("train")}});
  work_in_team_a();

  EXPECT_EQ(runai({"suspend", "-A"}).out,
            "Job train suspended successfully.\nJob a suspended successfully.\n");
  EXPECT_EQ(runai({"suspend", "-A"}).out, "");
  EXPECT_EQ(runai({"resume", "train"}).out, "Job train resumed successfully.\n");
  EXPECT_EQ(runai({"resume", "-A"}).out, "Job a resumed successfully.\n");
}

TEST_F(RunAi, SuspendsTheOthersIfASweepIsRemovedMeanwhile) {
  serve({.jobs = {mpi_job("a", 1)}, .vanishing_sweeps = {"grid"}});
  work_in_team_a();

  const cli::Outcome outcome = runai({"suspend", "-A"});

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Job a suspended successfully.\n");
}

TEST_F(RunAi, DeleteSucceedsIfAnotherClientRemovesTheJob) {
  serve({.jobs = {ended_job("dist", 1, Phase::kFailed)}, .vanishes_at = "DELETE /v1/jobs/dist"});
  work_in_team_a();

  const cli::Outcome outcome = runai({"delete", "dist"});

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Job dist deleted successfully.\n");
}

TEST_F(RunAi, SuspendsAndResumes) {
  serve_jobs({mpi_job("a", 1), mpi_job("b", 1), ended_job("done", 1, Phase::kSucceeded)});

  EXPECT_EQ(runai({"suspend", "a"}).out, "Job a suspended successfully.\n");
  EXPECT_TRUE(contains(runai({"list"}).out, "a     Suspended"));
  EXPECT_EQ(runai({"suspend", "-A"}).out, "Job b suspended successfully.\n");
  EXPECT_EQ(runai({"resume", "--all"}).out,
            "Job a resumed successfully.\nJob b resumed successfully.\n");
  const cli::Outcome outcome = runai({"suspend", "missing", "a"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "runai: Job missing not found \n");
  EXPECT_EQ(outcome.out, "Job a suspended successfully.\n");
  EXPECT_EQ(runai({"suspend", "done"}).code, 4);
}

TEST_F(RunAi, ExecRunsTheWordsAfterTheNameInTheLauncherAndReturnsTheExitCode) {
  serve_jobs({mpi_job("dist", 1), waiting_job("later", 1)});

  const cli::Outcome outcome = runai({"exec", "dist", "ls", "-l", "--pod", "/"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_EQ(outcome.out, "launcher: [ls] [-l] [--pod] [/]\n");
  EXPECT_EQ(runai({"exec", "dist", "-it", "--pod", "dist-worker-0", "--", "sh"}).out,
            "worker-0 with a terminal: [sh]\n");
  const cli::Outcome waits = runai({"exec", "later", "ls"});
  EXPECT_EQ(waits.code, 4);
  EXPECT_TRUE(contains(waits.err, "runai: Unable to run command in a pod that is not running\n"));
  EXPECT_TRUE(contains(runai({"exec", "dist"}).err, "the command to run is missing"));
}

TEST_F(RunAi, ExecWithoutStdinLeavesTheInputOfAScriptAlone) {
  serve_jobs({mpi_job("dist", 1)});
  std::ofstream(folder_ / "input") << "next line of the script\n";
  const base::UniqueFd before(::dup(STDIN_FILENO));
  const base::UniqueFd input(::open((folder_ / "input").c_str(), O_RDONLY));
  ::dup2(input.get(), STDIN_FILENO);

  runai({"exec", "dist", "cat"});

  EXPECT_EQ(::lseek(STDIN_FILENO, 0, SEEK_CUR), 0);
  ::dup2(before.get(), STDIN_FILENO);
}

TEST_F(RunAi, BashOpensAShellInTheLauncher) {
  serve_jobs({mpi_job("dist", 1)});
  const base::UniqueFd before(::dup(STDIN_FILENO));
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY));
  ::dup2(nothing.get(), STDIN_FILENO);

  const std::string out = runai({"bash", "dist"}).out;
  EXPECT_TRUE(out.starts_with("launcher: [/bin/sh] [-c] [")) << out;
  EXPECT_TRUE(contains(out, "exec \"$MUSTER_GENERATED/bash/start\"")) << out;

  ::dup2(before.get(), STDIN_FILENO);
}

TEST_F(RunAi, AttachShowsTheOutputOfAPodUntilTheJobEnds) {
  serve({.records = {{.task = "launcher", .host = "dist-launcher", .text = "step 9"}},
         .end = Phase::kFailed,
         .exit_code = 3,
         .jobs = {mpi_job("dist", 1), ended_job("done", 1, Phase::kSucceeded)}});
  work_in_team_a();

  const cli::Outcome outcome = runai({"attach", "dist", "--no-tty"});

  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "step 9\n");
  EXPECT_EQ(outcome.err,
            "Connecting to pod dist-launcher\nrunai: job 'dist' failed: main went wrong\n");
  const cli::Outcome ended = runai({"attach", "done"});
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(contains(ended.err, "job done has ended"));
}

TEST_F(RunAi, AttachWaitsUntilThePodRuns) {
  serve({.records = {{.task = "launcher", .host = "later-launcher", .text = "first words"}},
         .jobs = {waiting_job("later", 1)},
         .settles_when_watched = true});
  work_in_team_a();

  const cli::Outcome outcome = runai({"attach", "later", "--pod", "launcher", "--no-tty"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "first words\n");
  EXPECT_EQ(outcome.err, "Connecting to pod later-launcher\nWaiting for pod to start running...\n");
}

TEST_F(RunAi, AttachAfterASubmissionShowsAllOutputOfAnEndedJob) {
  serve({.records = {{.task = "launcher", .host = "done-launcher", .text = "all of it"}},
         .jobs = {ended_job("done", 1, Phase::kSucceeded)}});
  work_in_team_a();
  auto connection = cli::connect({.serve = {}, .version = "1"}, "team-a");
  ASSERT_TRUE(connection);
  testing::internal::CaptureStdout();

  const auto outcome = attach(*connection, {.job = "done", .from_its_start = true});

  EXPECT_EQ(testing::internal::GetCapturedStdout(), "all of it\n");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, 0);
}

TEST_F(RunAi, CtrlCDetachesAndTheJobContinues) {
  serve({.signal = SIGINT, .runs_on = true, .jobs = {mpi_job("dist", 1)}});
  work_in_team_a();

  const cli::Outcome outcome = runai({"attach", "dist", "--no-tty"});

  EXPECT_EQ(outcome.code, 130);
  EXPECT_TRUE(contains(outcome.err,
                       "Detached; the job continues. Attach again: runai attach dist -p team-a\n"));
  EXPECT_EQ(count_of("POST /v1/jobs/dist/stop of team-a"), 0);
  EXPECT_TRUE(contains(runai({"attach", "dist", "--no-tty", "--pod", "dist-worker-0"}).err,
                       "runai attach dist -p team-a --pod dist-worker-0\n"));
}

TEST_F(RunAi, CtrlCInTheEarlierOutputDetaches) {
  job::Job lab = mpi_job("lab", 1);
  lab.spec.input = true;
  serve({.signal = SIGINT, .runs_on = true, .jobs = {lab}});
  work_in_team_a();
  auto connection = cli::connect({.serve = {}, .version = "1"}, "team-a");
  ASSERT_TRUE(connection);
  testing::internal::CaptureStderr();

  const auto code = attach(*connection, {.job = "lab", .input = true, .from_its_start = true});

  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "Detached; the job continues."));
  ASSERT_TRUE(code) << code.error().to_string();
  EXPECT_EQ(*code, 130);
}

TEST_F(RunAi, AttachHasATimeout) {
  serve_jobs({waiting_job("later", 1)});
  testing::internal::CaptureStderr();
  auto connection = cli::connect({.serve = {}, .version = "1"}, "team-a");
  ASSERT_TRUE(connection);

  const auto outcome =
      attach(*connection, {.job = "later", .patience = std::chrono::milliseconds(0)});

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "Connecting to pod later-launcher\nWaiting for pod to start running...\n");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, base::ErrorCode::kTimeout);
  EXPECT_EQ(outcome.error().what, "Timeout waiting for job to start running");
}

TEST_F(RunAi, TopAndTheNodeListShowTheCluster) {
  serve_jobs({mpi_job("dist", 1)});

  EXPECT_TRUE(contains(runai({"list", "nodes"}).out, "\ngpu-7  Ready   -           <none>"));
  EXPECT_TRUE(contains(runai({"describe", "node", "gpu-7"}).out, "STATUS:  Ready\n"));
  EXPECT_TRUE(contains(runai({"top", "node", "gpu-8"}).out, "\ngpu-8  Ready"));
  EXPECT_FALSE(contains(runai({"top", "node", "gpu-8"}).out, "gpu-7"));
  EXPECT_TRUE(contains(runai({"top", "node", "-d"}).out, "IDLE TIME"));
  EXPECT_TRUE(contains(runai({"top", "job"}).out, "\ndist  team-a   ada   Train"));
  EXPECT_TRUE(contains(runai({"top", "job", "-A"}).out, "\ndist  team-a"));
  EXPECT_EQ(runai({"top", "node", "missing"}).code, 3);
}

TEST_F(RunAi, TheProjectInUseIsStored) {
  serve({});
  muster({"project", "create", "team-a"});

  EXPECT_EQ(runai({"config", "project", "team-a"}).out,
            "Project team-a has been set as default project\n");
  EXPECT_TRUE(contains(runai({"list", "projects"}).out, "\nteam-a (default)  -"));
  EXPECT_EQ(runai({"project", "list", "-o", "names"}).out, "default\nteam-a\n");
  EXPECT_EQ(muster({"project", "use"}).out, "team-a\n") << "it is one choice under both names";
  EXPECT_EQ(runai({"project", "set", "default"}).out,
            "Project default has been set as default project\n");
  const cli::Outcome missing = runai({"project", "set", "team-x"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(contains(missing.err, "project team-x was not found."));
}

TEST_F(RunAi, ClustersAreTheContexts) {
  serve({});

  EXPECT_EQ(runai({"list", "clusters"}).out,
            "CLUSTER          CURRENT PROJECT\nlocal (default)  default\n");
  EXPECT_EQ(runai({"config", "cluster", "local"}).out,
            "Cluster local has been set as default cluster\n");
  EXPECT_EQ(runai({"cluster", "set", "lab"}).code, 3);
}

TEST_F(RunAi, PrintsTheUserAndReportsMissingFeatures) {
  serve({});

  const std::string who = runai({"whoami"}).out;
  EXPECT_TRUE(who.starts_with("User: ")) << who;
  EXPECT_TRUE(contains(who, "\nLogged in Id: ")) << who;
  EXPECT_EQ(runai({"version"}).out, "Version: 1\n");
  EXPECT_EQ(runai({"version", "--short"}).out, "1\n");
  for (const Words& words : {Words{"login"}, Words{"update"}, Words{"template", "list"},
                             Words{"list", "templates"}, Words{"describe", "template", "x"}}) {
    EXPECT_EQ(runai(words).code, 4) << words.front();
  }
  EXPECT_TRUE(contains(runai({"login"}).err, "muster login https://HOST:PORT"));
}

TEST_F(RunAi, CompletionUsesTheProgramsName) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = runai({"completion", shell}).out;
    EXPECT_TRUE(contains(script, "runai")) << shell;
    EXPECT_FALSE(contains(script, "muster")) << shell;
    EXPECT_TRUE(contains(script, "submit-mpi")) << shell;
  }
  EXPECT_EQ(runai({"completion", "tcsh"}).code, 2);
}

}  // namespace

}  // namespace muster::dialects::runai
