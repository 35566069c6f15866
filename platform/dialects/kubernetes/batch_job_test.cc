#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

using job::Kind;

const Lines kRuns{"command: [./work]"};

job::JobSpec with(const Lines& spec) {
  return spec_of(simple_job(kRuns, {}, spec));
}

Lines faults_with(const Lines& spec) {
  return faults_of(simple_job(kRuns, {}, spec));
}

TEST(BatchJobFile, IsASingleTask) {
  const job::JobSpec spec = with({});
  EXPECT_EQ(spec.kind, Kind::kSingle);
  EXPECT_EQ(spec.command, Lines{"./work"});
  EXPECT_EQ(spec.workers, 0);
  EXPECT_EQ(spec.scheduling.retries, 6);
  EXPECT_EQ(spec.folder, "/home/ann");
}

TEST(BatchJobFile, IsOneTaskForEachCompletion) {
  struct Case {
    Lines spec;
    Kind kind;
    int workers;
    bool held;
  };
  for (const Case& one :
       std::vector<Case>{{{"completions: 1"}, Kind::kSingle, 0, false},
                         {{"completions: 4", "parallelism: 4"}, Kind::kTorch, 3, false},
                         {{"completions: 4", "parallelism: 9"}, Kind::kTorch, 3, false},
                         {{"completions: 4", "parallelism: 4", "completionMode: Indexed"},
                          Kind::kTorch,
                          3,
                          false},
                         {{"parallelism: 3"}, Kind::kTorch, 2, false},
                         {{"completions: 2", "parallelism: 0"}, Kind::kTorch, 1, true},
                         {{"suspend: true"}, Kind::kSingle, 0, true}}) {
    const job::JobSpec spec = with(one.spec);
    EXPECT_EQ(spec.kind, one.kind) << one.spec[0];
    EXPECT_EQ(spec.workers, one.workers) << one.spec[0];
    EXPECT_EQ(spec.held, one.held) << one.spec[0];
    EXPECT_EQ(spec.success, one.workers > 0 ? job::Success::kAll : job::Success::kLeader);
  }
}

TEST(BatchJobFile, HasTasksThatRunTheirSharesOfTheCompletions) {
  const TranslatedFile file =
      translated(simple_job({"command: [./work]", "args: [-v]"}, {},
                            {"completions: 10", "parallelism: 2", "completionMode: Indexed"}));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings, (Lines{"spec.parallelism: each of the 2 tasks runs its share of the 10 "
                                  "completions, one after the other"}));
  EXPECT_EQ(file.jobs[0].spec.workers, 1);
  EXPECT_EQ(file.jobs[0].spec.command,
            (Lines{"sh", "-c",
                   "i=${JOB_COMPLETION_INDEX:-0}; while [ \"$i\" -lt 10 ]; do "
                   "JOB_COMPLETION_INDEX=$i \"$@\" || exit; i=$((i + 2)); done",
                   "sh", "./work"}));
  EXPECT_EQ(file.jobs[0].spec.arguments, Lines{"-v"});
  EXPECT_EQ(with({"completions: 3"}).kind, Kind::kSingle);
  EXPECT_EQ(faults_of(simple_job({}, {}, {"completions: 3"})),
            (Lines{"spec.template.spec.containers[0]: has no command, which a shell would run once "
                   "for each completion of its task; give it one, or set parallelism to "
                   "completions"}));
}

TEST(BatchJobFile, HasABoundedNumberOfTasks) {
  EXPECT_EQ(faults_with({"completions: 0"}),
            (Lines{"spec.completions: is 0: the job has nothing to "
                   "do"}));
  EXPECT_EQ(faults_with({"completionMode: Indexed"}),
            (Lines{"spec.completionMode: 'Indexed' needs completions, the number of tasks"}));
  EXPECT_EQ(faults_with({"parallelism: 5000"}),
            (Lines{"spec.parallelism: is more than the 1001 tasks that a job may have"}));
}

TEST(BatchJobFile, HasTheLimitsOfItsSpec) {
  const job::JobSpec spec = with({"backoffLimit: 0", "activeDeadlineSeconds: 60",
                                  "ttlSecondsAfterFinished: 0", "podReplacementPolicy: Failed"});
  EXPECT_EQ(spec.scheduling.retries, 0);
  EXPECT_EQ(spec.scheduling.time_limit, std::chrono::minutes(1));
  EXPECT_EQ(spec.keep_for, std::chrono::seconds(0));
}

TEST(BatchJobFile, HasAFailurePolicy) {
  using Action = job::RetryRule::Action;
  const job::JobSpec spec = with(
      {"podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42, 43, "
       "7]}}, {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}, {action: Count, "
       "onExitCodes: {operator: NotIn, values: [0, 1, 255]}}]}"});
  EXPECT_EQ(
      spec.scheduling.retry_rules,
      (std::vector<job::RetryRule>{
          {.exit_code = 7, .log_pattern = "", .action = Action::kFail},
          {.exit_code = 42, .last_exit_code = 43, .log_pattern = "", .action = Action::kFail},
          {.exit_code = 2, .last_exit_code = 254, .log_pattern = "", .action = Action::kRetry}}));
}

TEST(BatchJobFile, MaySucceedWithTaskZero) {
  const Lines both{"completionMode: Indexed", "completions: 2", "parallelism: 2"};
  Lines spec = both;
  spec.emplace_back("successPolicy: {rules: [{succeededIndexes: '0', succeededCount: 1}]}");
  EXPECT_EQ(with(spec).success, job::Success::kLeader);
  spec = both;
  spec.emplace_back("successPolicy: {rules: [{succeededIndexes: 0-1, succeededCount: 1}]}");
  EXPECT_EQ(
      faults_with(spec),
      (Lines{"spec.successPolicy.rules: is not supported; a job succeeds when all tasks do, or "
             "when task 0 does"}));
}

TEST(BatchJobFile, RefusesPoliciesOfSingleTasks) {
  EXPECT_EQ(
      faults_with({"backoffLimitPerIndex: 1", "maxFailedIndexes: 2", "managedBy: kueue"}),
      (Lines{"spec.backoffLimitPerIndex: is not supported: a failed task fails the whole job; "
             "use backoffLimit",
             "spec.maxFailedIndexes: is not supported: a failed task fails the whole job",
             "spec.managedBy: 'kueue' would run the job in another cluster; remove it"}));
}

TEST(BatchJobFile, CallsItsTasksByTheirNames) {
  const job::JobSpec spec = spec_of(simple_job(
      {"command: [./work, --peers, 'train-0.net,train-1.net.lab.svc.cluster.local:1,train-2.net']",
       "env: [{name: MASTER_ADDR, value: train-0.net}, {name: OTHER, value: 'train-0 xtrain-0.net "
       "train-0.network train-1.net.svc.x'}]"},
      {"subdomain: net"}, {"completionMode: Indexed", "completions: 2", "parallelism: 2"}));
  EXPECT_EQ(spec.command.back(), "train-master,train-worker-0:1,train-2.net");
  EXPECT_EQ(spec.environment, (Settings{{"MASTER_ADDR", "train-master"},
                                        {"OTHER",
                                         "train-0 xtrain-0.net train-0.network "
                                         "train-worker-0.x"}}));
}

TEST(BatchJobFile, WithOneIndexHasThatIndex) {
  EXPECT_EQ(with({"completionMode: Indexed", "completions: 1"}).environment,
            (Settings{{"JOB_COMPLETION_INDEX", "0"}}));
}

TEST(BatchJobFile, EndsAtSomeTime) {
  std::string text = simple_job(kRuns);
  text.replace(text.find("Never"), 5, "Always");
  EXPECT_EQ(faults_of(text), (Lines{"spec.template.spec.restartPolicy: 'Always' is not for jobs, "
                                    "which end; use OnFailure or Never"}));
}

}  // namespace
}  // namespace muster::dialects::kubernetes
