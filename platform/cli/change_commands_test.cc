// submit -f with overrides, rerun, diff, wait, stop --wait and delete of many, against a fake server.
#include <csignal>
#include <fstream>

#include "cli/cli_fixture.h"
#include "cli/jobs/jobs.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

job::Job ended_job(const std::string& name, job::Phase phase, int code = 0) {
  job::Job job{.id = "id-" + name,
               .spec = {.name = name, .command = {"ls"}, .folder = "/"},
               .phase = phase,
               .ended = base::FakeClock().now()};
  job.exit_code = code;
  return job;
}

job::Job live_job(const std::string& name, job::Phase phase) {
  return {
      .id = "id-" + name, .spec = {.name = name, .command = {"ls"}, .folder = "/"}, .phase = phase};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

class ChangedJobs : public Cli {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  /// A field of the submitted job, as `get --spec` prints it.
  static std::string spec_of(const std::string& name) {
    return muster({"get", name, "--spec", "--output", "json"}).out;
  }
};

// --- submit -f

TEST_F(ChangedJobs, FlagsOverrideTheFileAndSettingsOverrideFlags) {
  serve({});
  const std::string job = file("job.yaml",
                               "name: train\nkind: mpi\nworkers: 2\ncommand: [ls]\n"
                               "environment: {LR: 1, SEED: 4}\nsecrets: [HF]\n");

  const Outcome ran = muster({"submit", "-f", job, "-n", "4", "-e", "LR=2", "--secret", "OTHER=HF",
                              "--set", "environment.LR=3", "--", "./train", "--fast"});

  EXPECT_EQ(ran.out, "submitted train\n") << ran.err;
  const std::string spec = spec_of("train");
  EXPECT_TRUE(has(spec, R"("workers":4)")) << spec;
  EXPECT_TRUE(has(spec, R"("LR":"3")")) << spec;
  EXPECT_TRUE(has(spec, R"("SEED":"4")")) << spec;
  EXPECT_TRUE(has(spec, R"(["./train","--fast"])")) << spec;
  EXPECT_TRUE(has(spec, R"("OTHER")")) << spec;
  EXPECT_FALSE(has(spec, R"({"name":"HF")")) << spec;
}

TEST_F(ChangedJobs, ADryRunShowsWhichValuesTheCommandLineChanged) {
  serve({});
  const std::string job = file("job.yaml", "name: train\nkind: mpi\nworkers: 2\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", job, "--dry-run", "--workers", "4", "--retries", "3",
                              "--set", "grace=90s", "--name", "other"});

  EXPECT_TRUE(has(ran.out, "name                other  flag; the file has train")) << ran.out;
  EXPECT_TRUE(has(ran.out, "workers             4      flag; the file has 2")) << ran.out;
  EXPECT_TRUE(has(ran.out, "scheduling.retries  3      flag; the default is 0")) << ran.out;
  EXPECT_TRUE(has(ran.out, "--set; the default is")) << ran.out;
}

TEST_F(ChangedJobs, AFlagMaySupplyWhatTheFileLacks) {
  serve({});
  const std::string job = file("job.yaml", "kind: mpi\ncommand: [ls]\n");

  EXPECT_EQ(muster({"submit", "-f", job, "--name", "a", "--workers", "2"}).out, "submitted a\n");
  const Outcome without = muster({"submit", "-f", job});
  EXPECT_EQ(without.code, 2);
  EXPECT_TRUE(has(without.err, "workers: is missing")) << without.err;
  EXPECT_TRUE(has(without.err, "name: is missing")) << without.err;
}

TEST_F(ChangedJobs, InvalidFlagsAreReportedBeforeTheFileIsRead) {
  EXPECT_TRUE(has(refusal({"submit", "-f", "x.yaml", "--gpus", "many"}), "--gpus 'many'"));
  EXPECT_TRUE(has(refusal({"submit", "-f", "x.yaml", "--ignore", "a"}), "needs --workspace"));
}

TEST_F(ChangedJobs, AFlagAtFaultIsNamedAndNotTheFile) {
  serve({});
  const std::string job = file("job.yaml", "name: a\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", job, "--workers", "4"});

  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err,
                  ", as the command line changes it, has 1 fault\n"
                  "  --workers: a single job has no workers"))
      << ran.err;
}

TEST_F(ChangedJobs, ANameIsGivenOnceInAFile) {
  serve({});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: a\ncommand: [ls]\n---\nname: b\n");

  const Outcome ran = muster({"submit", "-f", jobs});

  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err, "line 4: name: 'a' is also the name of the job at line 1")) << ran.err;
  EXPECT_TRUE(has(ran.err, "line 7: command: is missing")) << ran.err;
}

TEST_F(ChangedJobs, OfSeveralJobsOneCanBeChosen) {
  serve({});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  EXPECT_EQ(muster({"submit", "-f", jobs, "--gpus", "1"}).out, "submitted a\nsubmitted b\n");
  EXPECT_TRUE(has(spec_of("b"), R"("gpus":1)"));
  EXPECT_EQ(muster({"submit", "-f", jobs, "--only", "b", "--name", "c"}).out, "submitted c\n");
  const Outcome wrong = muster({"submit", "-f", jobs, "--only", "bb"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "has no job 'bb'\n  its jobs are a, b")) << wrong.err;
}

TEST_F(ChangedJobs, SeveralJobsAreSubmittedAgainWithTheirKey) {
  serve({.unique_names = true});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  for (const char* const out :
       {"submitted a\nsubmitted b\n", "a is already there\nb is already there\n"}) {
    const Outcome ran = muster({"submit", "-f", jobs, "--idempotency-key", "k"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, out);
  }
  const Outcome other = muster({"submit", "-f", jobs, "--idempotency-key", "other"});
  EXPECT_EQ(other.code, 4);
  EXPECT_TRUE(has(other.err, "none of the 2 jobs was submitted, because of job 'a'")) << other.err;
}

TEST_F(ChangedJobs, AJobThatIsThereAlreadyIsNotReportedAsSubmitted) {
  serve({.unique_names = true});
  for (const char* const out : {"submitted a\n", "a is already there\n"}) {
    EXPECT_EQ(muster({"submit", "single", "a", "--idempotency-key", "k", "--", "ls"}).out, out);
  }
}

TEST_F(ChangedJobs, AFaultyNameOfTheCommandLineIsNotThatOfTheFile) {
  serve({});
  const std::string job = file("job.yaml", "name: a\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", job, "--name", "BAD"});

  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err, "as the command line changes it, has 1 fault")) << ran.err;
  EXPECT_TRUE(has(ran.err, "--name: 'BAD' is not a job name")) << ran.err;
}

TEST_F(ChangedJobs, ARetryRuleWithoutRetriesIsWarnedOf) {
  serve({});
  const std::string warning = "a rule with the action retry has no effect, because retries is 0";

  EXPECT_TRUE(
      has(muster({"submit", "single", "a", "--on-log", "X=retry", "--", "ls"}).err, warning));
  for (const auto& flags : {std::vector<std::string>{"--on-exit", "5=avoid-node"},
                            std::vector<std::string>{"--on-exit", "5=retry", "--retries", "1"}}) {
    std::vector<std::string> words{"submit", "single", "b"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "ls"});
    EXPECT_FALSE(has(muster(words).err, warning));
  }
}

TEST_F(ChangedJobs, OnlyTheJobsOfThisCommandAreTakenBackIfOneIsRefused) {
  // The first command: 2 forecasts and 2 jobs. The second command: 4 forecasts and 3 jobs.
  serve({.refuses = "POST /v1/jobs", .refuses_after = 11});
  const std::string two = "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n";
  const std::string jobs = file("jobs.yaml", two);
  ASSERT_EQ(muster({"submit", "-f", jobs, "--idempotency-key", "k"}).code, 0);
  file("jobs.yaml", two + "---\nname: c\ncommand: [ls]\n---\nname: d\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs, "--idempotency-key", "k"});

  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(has(ran.err,
                  "only admins may; an earlier command submitted 2 of the 4 jobs, and no other job "
                  "was submitted, because of job 'd'"))
      << ran.err;
  EXPECT_EQ(muster({"list", "--sort", "name", "-o", "names"}).out, "a\nb\n");
  EXPECT_EQ(count_of("DELETE /v1/jobs/id-c of default"), 1);
}

TEST_F(ChangedJobs, CtrlCTakesTheJobsOfAFileBack) {
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");
  // After 2 forecasts, Ctrl-C comes while the first or the last job is submitted.
  for (const auto& [before, names] : {std::pair(2, "a"), std::pair(3, "a, b")}) {
    server_.reset();
    serve({.signal = SIGINT, .signals_at = "POST /v1/jobs", .signals_after = before});

    const Outcome ran = muster({"submit", "-f", jobs});

    EXPECT_EQ(ran.code, 130);
    EXPECT_EQ(ran.err, std::string("muster: interrupted; deleting the jobs that were submitted: ") +
                           names +
                           "; press Ctrl-C again to leave them\n"
                           "muster: interrupted; none of the 2 jobs was submitted\n");
    EXPECT_EQ(muster({"list", "-o", "names"}).out, "");
  }
}

TEST_F(ChangedJobs, AJobWhoseAnswerWasLostIsTakenBackToo) {
  // 2 forecasts and the first job are answered; the second job is submitted, but its answer is lost
  // twice.
  serve({.answer_lost = "POST /v1/jobs",
         .answer_lost_after = 3,
         .answers_lost = 2,
         .lost_is_done = true});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs});

  EXPECT_EQ(ran.code, 5);
  EXPECT_TRUE(has(ran.err, "; none of the 2 jobs was submitted, because of job 'b'")) << ran.err;
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "");
}

TEST_F(ChangedJobs, AJobWhoseAnswerStaysLostIsNamed) {
  serve({.answer_lost = "POST /v1/jobs", .answer_lost_after = 3});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs});

  EXPECT_EQ(ran.code, 5);
  EXPECT_TRUE(has(ran.err, "; job 'b' may be submitted")) << ran.err;
  EXPECT_TRUE(has(ran.err, "look for it: muster get b")) << ran.err;
  EXPECT_FALSE(has(ran.err, "none of the 2 jobs")) << ran.err;
}

TEST_F(ChangedJobs, AJobThatTheServerNamesIsToBeFoundInTheListIfItsAnswerStaysLost) {
  serve({.answer_lost = "POST /v1/jobs", .answer_lost_after = 3});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs, "--name-suffix"});

  EXPECT_EQ(ran.code, 5);
  EXPECT_TRUE(has(ran.err, "; a job named like 'b' may be submitted")) << ran.err;
  EXPECT_TRUE(has(ran.err, "look for it among your newest jobs: muster list --mine")) << ran.err;
  EXPECT_FALSE(has(ran.err, "muster get")) << ran.err;
}

TEST_F(ChangedJobs, AJobThatTheServerMayHaveStoredBeforeItsErrorIsNamed) {
  serve({.refuses = "POST /v1/jobs",
         .refuses_after = 3,
         .refuses_with = {.code = base::ErrorCode::kInternal, .what = "out of memory"}});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs});

  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(has(ran.err, "out of memory; job 'b' may be submitted")) << ran.err;
  EXPECT_FALSE(has(ran.err, "none of the 2 jobs")) << ran.err;
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "");
}

TEST_F(ChangedJobs, AJobThatCannotBeTakenBackIsNamed) {
  serve({.unique_names = true, .rival = "b", .refuses = "DELETE /v1/jobs/id-a"});
  const std::string jobs =
      file("jobs.yaml", "name: a\ncommand: [ls]\n---\nname: b\ncommand: [ls]\n");

  const Outcome ran = muster({"submit", "-f", jobs});

  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(has(ran.err,
                  "cannot submit job 'b': job 'b' exists already; still submitted: 'a'\n"
                  "  delete it: muster delete a --force --project default\n"))
      << ran.err;
  EXPECT_TRUE(muster({"get", "a"}).code == 0);
}

TEST_F(ChangedJobs, AWorkspaceWithAFolderIsRefused) {
  serve({});
  const std::string job =
      file("job.yaml", "name: a\ncommand: [ls]\nworkspace: {form: .}\nfolder: /x\n");

  const Outcome ran = muster({"submit", "-f", job});

  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err, "workspace.form: unknown key; did you mean 'from'?")) << ran.err;
  EXPECT_TRUE(has(ran.err, "folder: cannot be used with workspace")) << ran.err;
}

// --- names

TEST_F(ChangedJobs, ATakenNameGetsTheNextNumber) {
  serve({.unique_names = true});
  const std::string job = file("job.yaml", "name: run-{n}\ncommand: [ls]\n");

  EXPECT_EQ(muster({"submit", "single", "a", "--", "ls"}).out, "submitted a\n");
  EXPECT_EQ(muster({"submit", "single", "a", "--", "ls"}).code, 4);
  EXPECT_EQ(muster({"submit", "single", "a", "--name-suffix", "--", "ls"}).out, "submitted a-2\n");
  EXPECT_EQ(muster({"submit", "single", "a-{n}", "--", "ls"}).out, "submitted a-3\n");
  EXPECT_EQ(muster({"submit", "-f", job}).out, "submitted run-1\n");
  EXPECT_EQ(muster({"submit", "-f", job}).out, "submitted run-2\n");
  EXPECT_EQ(muster({"submit", "-f", job, "--name", "b", "--name-suffix"}).out, "submitted b\n");
}

// --- rerun and diff

TEST_F(ChangedJobs, ARerunHasTheSameSpecExceptForOverrides) {
  serve({.unique_names = true});
  muster({"submit", "single", "train", "-e", "LR=1", "--gpus", "1", "--", "./train"});

  EXPECT_EQ(muster({"rerun", "train"}).out, "submitted train-2, a rerun of train\n");
  EXPECT_EQ(muster({"diff", "train", "train-2"}).code, 0);
  EXPECT_EQ(muster({"rerun", "train-2", "-e", "LR=2", "--set", "resources.gpus=0"}).out,
            "submitted train-3, a rerun of train-2\n");
  const Outcome differs = muster({"diff", "train-3"});
  EXPECT_EQ(differs.code, 1);
  EXPECT_EQ(differs.out,
            "--- train-2\n+++ train-3\n- resources.gpus: 1\n+ resources.gpus: 0\n"
            "- environment.LR: 1\n+ environment.LR: 2\n");
  EXPECT_EQ(muster({"rerun", "train", "--name", "other", "--", "./other"}).out,
            "submitted other, a rerun of train\n");
  EXPECT_EQ(muster({"diff", "train", "other"}).out,
            "--- train\n+++ other\n- command: [\"./train\"]\n+ command: [\"./other\"]\n");
}

TEST_F(ChangedJobs, ADryRunOfARerunNamesTheOldJob) {
  serve({});
  muster({"submit", "single", "train", "--", "./train"});

  const Outcome ran = muster({"rerun", "train", "--retries", "2", "--dry-run"});

  EXPECT_TRUE(has(ran.out, "scheduling.retries  2      flag; train has 0")) << ran.out;
  EXPECT_EQ(count_of("POST /v1/jobs"), 2);
}

TEST_F(ChangedJobs, TheFaultsOfARerunAreReportedAtOnce) {
  serve({});
  muster({"submit", "single", "train", "--", "./train"});

  const Outcome ran = muster({"rerun", "train", "--set", "wrokers=2", "--set", "grace=soon"});

  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err, "did you mean 'workers'?")) << ran.err;
  EXPECT_TRUE(has(ran.err, "'soon' is not a time")) << ran.err;
  const Outcome mixed = muster({"rerun", "train", "--set", "foo=1", "--workers", "3"});
  EXPECT_TRUE(mixed.err.starts_with("muster: the rerun of 'train' would have 2 faults\n"))
      << mixed.err;
  EXPECT_TRUE(has(mixed.err, "--workers: a single job has no workers")) << mixed.err;
}

TEST_F(ChangedJobs, AJobIsComparedWithAFile) {
  serve({});
  const std::string job = file("job.yaml", "name: train\ncommand: [./train]\nlabels: {team: a}\n");
  muster({"submit", "-f", job});

  EXPECT_EQ(muster({"diff", "train", job}).code, 0);
  file("job.yaml", "name: train\ncommand: [./train]\nlabels: {team: b}\n");
  EXPECT_EQ(
      muster({"diff", job, "train", "--output", "json"}).out,
      R"({"left":")" + job +
          R"(","right":"train","differences":[{"field":"labels.team","left":"b","right":"a"}]})"
          "\n");
  const Outcome single = muster({"diff", "train"});
  EXPECT_EQ(single.code, 2);
  EXPECT_TRUE(has(single.err, "job 'train' is not a rerun")) << single.err;
}

// --- wait

TEST_F(ChangedJobs, FailedMembersRunAgainWithTheSpecOfTheirArray) {
  serve({});
  for (const std::string setting : {"resources.gpus=2", "environment.LR=1", "array.indexes=0-3"}) {
    EXPECT_TRUE(has(refusal({"rerun", "train", "--failed", "--set", setting}),
                    "the members of an array may not change this: all have the same spec"))
        << setting;
  }
  EXPECT_TRUE(has(refusal({"rerun", "train", "--failed", "--gpus", "2"}),
                  "cannot be used with flags that change the job"));
  EXPECT_TRUE(has(refusal({"rerun", "train", "--failed", "--set", "array.max_running=-1"}),
                  "needs a number of at least 0"));
  EXPECT_EQ(muster({"rerun", "train", "--failed", "--dry-run"}).err,
            "muster: --dry-run cannot be used with --failed; leave one of them out\n"
            "  see: muster rerun --help\n");
  EXPECT_TRUE(has(muster({"rerun", "train", "--failed", "--idempotency-key", "k"}).err,
                  "--idempotency-key cannot be used with --failed"));
  EXPECT_EQ(server_->requests(), std::vector<std::string>());
}

TEST_F(ChangedJobs, WaitExitsWithTheFirstCodeThatIsNotZero) {
  serve({.jobs = {ended_job("a", job::Phase::kSucceeded), ended_job("b", job::Phase::kFailed, 7),
                  ended_job("c", job::Phase::kFailed, 9)}});

  EXPECT_EQ(muster({"wait", "a"}).code, 0);
  const Outcome ran = muster({"wait", "a", "c", "b"});
  EXPECT_EQ(ran.code, 9);
  EXPECT_EQ(ran.out, "a: Succeeded\nc: Failed, exit code 9\nb: Failed, exit code 7\n");
  EXPECT_EQ(muster({"wait", "a", "nobody"}).code, 3);
}

TEST_F(ChangedJobs, WaitFollowsTheFeedUntilTheGoalIsReached) {
  serve({.jobs = {live_job("a", job::Phase::kQueued)}, .settles_when_watched = true});

  const Outcome ran = muster({"wait", "a", "--for", "started", "--timeout", "60s"});

  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a: Running\n");
  EXPECT_EQ(count_of("GET /v1/watch/jobs of default"), 1);
}

/// A member of array `train` that is not a job yet.
job::Job waiting_member(int index) {
  job::Job job = live_job("train-" + std::to_string(index), job::Phase::kQueued);
  job.id = "array-1-" + std::to_string(index);
  job.origin = job::JobOrigin{
      .kind = job::JobOrigin::Kind::kArray, .name = "train", .id = "array-1", .member = index};
  return job;
}

job::Array waiting_array() {
  job::Array train{.id = "array-1", .spec = {.name = "train", .command = {"ls"}, .folder = "/"}};
  train.spec.array.indexes = "0-9";
  return train;
}

TEST_F(ChangedJobs, WaitTakesAMemberOfAnArrayThatIsNotAJobYet) {
  // Asked for by `wait`, by each of two watches when they have begun, and when the array changes.
  for (const auto& [asked_before_start, hidden_at] :
       {std::pair(1, 0), std::pair(2, 0), std::pair(3, 0), std::pair(3, 2), std::pair(3, 3)}) {
    serve({.arrays = {waiting_array()},
           .waiting_members = {waiting_member(8)},
           .asked_before_start = asked_before_start,
           .hidden_at = hidden_at});

    const Outcome ran = muster({"wait", "train-8"});

    EXPECT_EQ(ran.code, 0) << asked_before_start << ", " << hidden_at;
    EXPECT_EQ(ran.out, "train-8: Succeeded\n");
    EXPECT_EQ(ran.err, "");
    server_.reset();
  }
}

TEST_F(ChangedJobs, WaitEndsWhenAMemberIsDeletedWithItsArray) {
  serve({.refuses = "GET /v1/jobs/train-8",
         .refuses_after = 1,
         .refuses_with = {.code = base::ErrorCode::kNotFound, .what = "there is no job 'train-8'"},
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 1});

  const Outcome ran = muster({"wait", "train-8"});

  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "muster: job 'train-8' was deleted\n");
}

TEST_F(ChangedJobs, WaitTakesAMemberThatIsNamedTwice) {
  serve({.jobs = {live_job("b", job::Phase::kQueued)},
         .settles_when_watched = true,
         .arrays = {waiting_array()},
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 2});

  const Outcome ran =
      muster({"wait", "train-8", "train-8", "b", "--for", "started", "--timeout", "20s"});

  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "train-8: Succeeded\nb: Running\n");
}

TEST_F(ChangedJobs, WaitDoesNotTakeARefusalForTheEndOfAMember) {
  serve({.refuses = "GET /v1/jobs/train-8",
         .refuses_after = 1,
         .arrays = {waiting_array()},
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 100});

  const Outcome ran = muster({"wait", "train-8"});

  EXPECT_NE(ran.code, 3);
  EXPECT_TRUE(has(ran.err, "only admins may")) << ran.err;
  EXPECT_FALSE(has(ran.err, "deleted")) << ran.err;
}

TEST_F(ChangedJobs, WaitAsksAgainForAMemberWhenTheServerHasTooManyRequests) {
  serve({.refuses = "GET /v1/jobs/train-8",
         .refuses_after = 1,
         .refusals = 1,
         .refuses_with = {.code = base::ErrorCode::kExhausted, .what = "too many requests"},
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 1});

  const Outcome ran = muster({"wait", "train-8"});

  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "train-8: Succeeded\n");
  EXPECT_EQ(count_of("GET /v1/jobs/train-8 of default"), 2);
}

TEST_F(ChangedJobs, WaitDoesNotAskForAMemberAtEachChangeOfItsArray) {
  serve({.arrays = {waiting_array()},
         .array_changes = 300,
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 1000});

  const Outcome ran = muster({"wait", "train-8", "--timeout", "900ms"});

  EXPECT_EQ(ran.code, 124);
  EXPECT_LT(count_of("GET /v1/jobs/train-8 of default"), 100);
}

TEST_F(ChangedJobs, WaitAsksForAMemberAfterTheLastChangeOfItsArray) {
  serve({.arrays = {waiting_array()},
         .array_changes = 2,
         .waiting_members = {waiting_member(8)},
         .asked_before_start = 4});

  const Outcome ran = muster({"wait", "train-8"});

  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "train-8: Succeeded\n");
}

TEST_F(ChangedJobs, WaitForAStartEndsWithTheCodeOfAFailedJob) {
  serve({.jobs = {ended_job("a", job::Phase::kFailed, 5), ended_job("b", job::Phase::kStopped)}});

  EXPECT_EQ(muster({"wait", "a", "--for", "started"}).code, 5);
  EXPECT_EQ(muster({"wait", "b", "--for", "phase=Running"}).code, 1);
  EXPECT_EQ(muster({"wait", "b", "--for", "phase=Stopped"}).code, 0);
  EXPECT_TRUE(has(refusal({"wait", "a", "--for", "phase=Done"}), "'Done'"));
}

TEST_F(ChangedJobs, JobsOfSeveralProjectsAreWatchedTogether) {
  job::Job other = live_job("b", job::Phase::kQueued);
  other.spec.project = "team-a";
  job::Job namesake = live_job("a", job::Phase::kQueued);
  serve({.jobs = {namesake, other}, .settles_when_watched = true});

  const Outcome ran = muster({"wait", "a", "b", "--for", "started"});

  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a: Running\nb: Running\n");
  EXPECT_EQ(count_of("GET /v1/watch/jobs"), 1);
}

TEST_F(ChangedJobs, ResultsAsJsonAlwaysHaveTheSameShape) {
  serve({.runs_on = true,
         .jobs = {live_job("a", job::Phase::kRunning)},
         .arrays = {waiting_array()}});

  for (const char* command : {"suspend", "resume", "stop", "wait"}) {
    const Outcome array = muster({command, "train", "--output", "json"});
    EXPECT_TRUE(array.out.starts_with(R"({"jobs":[],"arrays":[{"id":"array-1")")) << array.out;
  }
  const Outcome both = muster({"stop", "nobody", "a", "train", "--output", "json"});
  EXPECT_EQ(both.code, 3);
  EXPECT_TRUE(both.out.starts_with(R"({"jobs":[{"id":"id-a")")) << both.out;
  EXPECT_TRUE(has(both.out, R"(],"arrays":[{"id":"array-1")")) << both.out;
}

TEST_F(ChangedJobs, DeleteWithJsonDeletesTheOthersIfAJobIsMissing) {
  serve({.jobs = {ended_job("a", job::Phase::kFailed)}});

  const Outcome ran = muster({"delete", "nobody", "a", "--output", "json"});

  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(has(ran.err, "no job 'nobody'")) << ran.err;
  EXPECT_TRUE(has(ran.out, R"("name":"a")")) << ran.out;
  EXPECT_EQ(count_of("DELETE /v1/jobs/id-a"), 1);
}

TEST_F(ChangedJobs, WaitEndsWhenItsTimeIsUp) {
  serve({.jobs = {live_job("a", job::Phase::kRunning)}});

  const Outcome ran = muster({"wait", "a", "--timeout", "1ms"});

  EXPECT_EQ(ran.code, 124);
  EXPECT_EQ(ran.err, "muster: job 'a' has not ended after 1ms; it continues\n");
}

TEST_F(ChangedJobs, StopCanWaitForTheEnd) {
  serve({.runs_on = true, .settles_when_watched = true});
  muster({"submit", "single", "a", "--", "ls"});

  EXPECT_EQ(muster({"stop", "a", "--wait"}).out, "a has ended: Stopped\n");
}

TEST_F(ChangedJobs, ASweepIsWaitedForWithoutPolling) {
  sweep::Sweep lr{.summary = {.id = "sweep-1", .name = "lr", .project = "default"}};
  serve({.sweeps = {lr}, .settles_when_watched = true});

  EXPECT_EQ(muster({"sweep", "wait", "lr"}).code, 0);
  EXPECT_EQ(count_of("GET /v1/sweeps/lr"), 1);
  EXPECT_EQ(count_of("GET /v1/watch/jobs of default"), 1);
}

TEST_F(ChangedJobs, ASweepIsNotWaitedForLongerThanItsTimeout) {
  sweep::Sweep lr{.summary = {.id = "sweep-1", .name = "lr", .project = "default"}};
  serve({.sweeps = {lr}});

  const Outcome ran = muster({"sweep", "wait", "lr", "--timeout", "1ms"});

  EXPECT_EQ(ran.code, 124);
  EXPECT_EQ(ran.err, "muster: sweep 'lr' has not ended\n");
}

TEST_F(ChangedJobs, TheEndOfTheTrialsOfAStoppedSweepIsWatched) {
  job::Job trial = live_job("lr-1", job::Phase::kRunning);
  trial.stop_requested = true;
  trial.origin = job::JobOrigin{
      .kind = job::JobOrigin::Kind::kSweep, .name = "lr", .id = "sweep-1", .member = 1};
  sweep::Sweep lr{.summary = {.id = "sweep-1", .name = "lr", .project = "default"}};
  serve({.jobs = {trial}, .sweeps = {lr}, .settles_when_watched = true});

  const Outcome ran = muster({"stop", "lr", "--wait"});

  EXPECT_TRUE(ran.out.starts_with("lr has ended: ")) << ran.out << ran.err;
  EXPECT_TRUE(has(muster({"get", "lr-1", "--output", "json"}).out, R"("phase":"Stopped")"));
  // A stream of logs also ends when the server shuts down.
  EXPECT_EQ(count_of("GET /v1/jobs/id-lr-1/logs"), 0);
}

// --- delete

TEST_F(ChangedJobs, DeleteSelectsByLabelAndPhase) {
  job::Job labelled = ended_job("a", job::Phase::kFailed);
  labelled.spec.labels["team"] = "vision";
  serve({.jobs = {labelled, ended_job("b", job::Phase::kFailed),
                  ended_job("c", job::Phase::kSucceeded), live_job("d", job::Phase::kRunning)}});

  EXPECT_EQ(muster({"delete", "--label", "team=vision", "--yes"}).out, "deleted a\n");
  const Outcome dry = muster({"delete", "--all-ended", "--dry-run", "--output", "json"});
  EXPECT_TRUE(has(dry.out, R"("name":"b")") && has(dry.out, R"("name":"c")")) << dry.out;
  EXPECT_FALSE(has(dry.out, R"("name":"d")")) << dry.out;
  EXPECT_EQ(muster({"delete", "--phase", "Failed", "--yes"}).out, "deleted b\n");
  EXPECT_TRUE(
      has(muster({"delete", "--all-ended", "--yes", "--output", "json"}).out, R"("name":"c")"));
  EXPECT_TRUE(has(refusal({"delete", "--phase", "Running"}), "'Running'"));
  EXPECT_TRUE(has(refusal({"delete", "a", "--label", "x"}), "cannot be used with"));
}

}  // namespace muster::cli
