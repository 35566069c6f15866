// Whole commands of `runai submit` against a fake server.
#include <fstream>

#include "cli/cli_fixture.h"
#include "dialects/runai/runai.h"
#include "dialects/runai/submission_fixture.h"

namespace muster::dialects::runai {

namespace {

class RunaiSubmit : public cli::Cli {
 protected:
  static cli::Outcome runai(Words words) { return outcome_of(run, words); }

  void serve_jobs(const Words& names) {
    cli::Script script{.records = {}};
    script.unique_names = true;
    for (const std::string& name : names) script.jobs.push_back(job_of(name));
    serve(std::move(script));
  }

  static job::Job job_of(const std::string& name) {
    job::Job job{.id = "id-" + name, .spec = {.name = name}};
    job.spec.command = {"true"};
    return job;
  }
};

TEST_F(RunaiSubmit, PrintsThatTheJobWasSubmittedAndHowToShowIt) {
  serve_jobs({});
  const cli::Outcome outcome = runai({"submit-mpi", "dist", "--processes=2", "-g", "1", "-i",
                                      "gcr.io/run-ai-demo/quickstart-distributed"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "The job 'dist' has been submitted successfully\n"
            "You can run `runai describe job dist -p default` to check the job status\n");
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
}

TEST_F(RunaiSubmit, UsesTheSmallestUnusedNumber) {
  serve_jobs({"job-0", "job-2", "job-x", "other"});
  EXPECT_EQ(runai({"submit", "-i", "img"}).out.substr(0, 14), "The job 'job-1");
  EXPECT_EQ(runai({"submit", "-i", "img"}).out.substr(0, 14), "The job 'job-3");
  EXPECT_EQ(runai({"submit", "-i", "img", "--job-name-prefix", "a"}).out.substr(0, 12),
            "The job 'a-0");
}

TEST_F(RunaiSubmit, UsesTheNextNumberIfAnotherClientWasFaster) {
  cli::Script script{.records = {}};
  script.unique_names = true;
  script.rival = "job-0";
  serve(std::move(script));
  const cli::Outcome outcome = runai({"submit", "-i", "img"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 15), "The job 'job-1'");
  EXPECT_EQ(count_of("POST /v1/jobs"), 2);
}

TEST_F(RunaiSubmit, CountsArraysAndSweepsAmongTheUsedNumbers) {
  job::Array array{.id = "array", .spec = {.name = "job-1", .project = "default"}};
  serve({.jobs = {job_of("job-2")},
         .unique_names = true,
         .arrays = {array},
         .vanishing_sweeps = {"job-0"}});
  EXPECT_EQ(runai({"submit", "-i", "img"}).out.substr(0, 15), "The job 'job-3'");
  EXPECT_EQ(count_of("POST /v1/jobs"), 1);
  EXPECT_EQ(count_of("GET /v1/jobs of default"), 0) << "whole documents are not read";
}

TEST_F(RunaiSubmit, UsesTheNextNumberIfAHiddenObjectHasTheName) {
  serve({.refuses = "POST /v1/jobs",
         .refusals = 2,
         .refuses_with = {.code = base::ErrorCode::kConflict, .what = "belongs to a sweep"}});
  const cli::Outcome outcome = runai({"submit", "-i", "img"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 15), "The job 'job-2'");
}

TEST_F(RunaiSubmit, GivesUpIfEveryNumberIsRefused) {
  serve(
      {.refuses = "POST /v1/jobs",
       .refuses_with = {.code = base::ErrorCode::kConflict, .what = "the project takes no jobs"}});
  const cli::Outcome outcome = runai({"submit", "-i", "img"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "runai: the project takes no jobs\n");
  EXPECT_EQ(count_of("POST /v1/jobs"), 11);
}

TEST_F(RunaiSubmit, ANameInUseIsRefusedWithRunAIsMessage) {
  serve_jobs({"dist"});
  const cli::Outcome outcome = runai({"submit-mpi", "dist", "-i", "img"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "runai: the job dist already exists, please delete it first (use 'runai delete "
            "dist')\n");
}

TEST_F(RunaiSubmit, AnUnknownProjectIsReportedWithRunAIsMessage) {
  serve_jobs({});
  const std::string text =
      "runai: project team-x was not found. Please run 'runai list project' to view all avaliable "
      "projects\n  create it: muster project create team-x\n";
  for (const Words& words : {Words{"submit", "dist", "-i", "img", "-p", "team-x"},
                             Words{"submit", "-i", "img", "-p", "team-x"}}) {
    const cli::Outcome outcome = runai(words);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.err, text);
  }
}

TEST_F(RunaiSubmit, AllFaultsAreReportedBeforeAServerIsContacted) {
  const cli::Outcome outcome = runai({"submit", "Dist", "--gpuu=1", "--interactive=maybe"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  for (const std::string piece :
       {"runai: 4 errors in the command line", "unknown flag '--gpuu'; did you mean '--gpu'?",
        "-i, --image: must be set", "--interactive: 'maybe' is neither true nor false",
        "Job names must consist of", "runai submit --help"}) {
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << piece << "\n" << outcome.err;
  }
}

TEST_F(RunaiSubmit, ADryRunPrintsTheJobAndSubmitsNothing) {
  const cli::Outcome outcome =
      runai({"submit", "-i", "img", "--dry-run", "--pvc", ":1G:/data", "--", "--epochs", "3"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("name: job-0\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("image: img\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("job-0-volume-0"), std::string::npos) << outcome.out;
}

TEST_F(RunaiSubmit, MountsClaimsIfTheEngineIsKubernetes) {
  const Words words{
      "submit", "a", "-i", "img", "--dry-run", "--pvc-exists", "claimname=data,path=/mnt"};
  ::setenv("MUSTER_ENGINE", "kubernetes", 1);
  const cli::Outcome there = runai(words);
  ::unsetenv("MUSTER_ENGINE");
  EXPECT_NE(there.out.find("- \"data:/mnt\"\n"), std::string::npos) << there.out;
  EXPECT_EQ(there.err, "");
  const cli::Outcome elsewhere = runai(words);
  EXPECT_EQ(elsewhere.out.find("data:/mnt"), std::string::npos) << elsewhere.out;
  EXPECT_NE(elsewhere.err.find("runai: note: --pvc-exists: 'data' is"), std::string::npos);
}

TEST_F(RunaiSubmit, TheHelpShowsTheDryRunAndTheUser) {
  for (const Words& words : {Words{"submit", "--help"}, Words{"submit-dist", "mpi", "--help"}}) {
    const cli::Outcome outcome = runai(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("--dry-run "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("-u, --user USER"), std::string::npos) << outcome.out;
  }
}

TEST_F(RunaiSubmit, NotesGoToStandardError) {
  serve_jobs({});
  const cli::Outcome outcome = runai({"submit", "train", "-i", "img", "--host-ipc"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "runai: note: --host-ipc: every task has its own IPC namespace\n");
  EXPECT_EQ(outcome.out.substr(0, 15), "The job 'train'");
}

TEST_F(RunaiSubmit, AFrameworkIsRequired) {
  const cli::Outcome none = runai({"submit-dist"});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("runai submit-dist mpi, pytorch or tf"), std::string::npos) << none.err;
  const cli::Outcome unknown = runai({"submit-dist", "xgboost", "dist"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("unknown command 'xgboost'; the commands are: mpi, pytorch, tf"),
            std::string::npos)
      << unknown.err;
}

TEST_F(RunaiSubmit, ABlankAfterTheLastBackslashIsExplained) {
  const cli::Outcome outcome = runai({"submit-mpi", "dist-int", "--processes=2", "-g", "1", " "});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "runai: the command is incomplete: a blank follows a '\\', so the shell read the next "
            "line as another command\n"
            "  remove blanks after each '\\' at the end of a line\n");
}

TEST_F(RunaiSubmit, AValueMayBeABlank) {
  serve_jobs({});
  EXPECT_EQ(runai({"submit", "train", "-i", "img", "--args", " ", "-e", "SEPARATOR= "}).code, 0);
}

TEST_F(RunaiSubmit, HelpUsesTheProgramsOwnName) {
  const cli::Outcome outcome = runai({"submit-mpi", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("usage: runai submit-mpi [NAME] [FLAGS] -- CMD..."), std::string::npos)
      << outcome.out;
  for (const std::string flag : {"--processes N", "-g, --gpu N", "--command[=CMD]"}) {
    EXPECT_NE(outcome.out.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(outcome.out.find("--num-processes"), std::string::npos);
}

TEST_F(RunaiSubmit, WithoutACommandTheHelpIsPrinted) {
  const cli::Outcome outcome = runai({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("submit-mpi, mpi"), std::string::npos) << outcome.err;
}

}  // namespace

}  // namespace muster::dialects::runai
