#include "control/retry.h"

#include <gtest/gtest.h>

#include "words/sentence.h"

namespace muster::control {
namespace {

using job::Job;
using job::RetryRule;
using job::Task;
using Action = job::RetryRule::Action;

Job job_with_retries(int retries, std::vector<RetryRule> rules = {}) {
  Job job;
  job.spec.scheduling.retries = retries;
  job.spec.scheduling.retry_rules = std::move(rules);
  return job;
}

Task ended_with(job::ExitStatus exit) {
  return {.name = "worker-0", .node = "n1", .exit = std::move(exit)};
}

TEST(Retry, WithoutRetriesEveryFailureIsTheLast) {
  EXPECT_FALSE(retry_of(job_with_retries(0), ended_with({.code = 1}), {}));
  EXPECT_FALSE(retry_of(job_with_retries(0), ended_with({.lost = true}), {}));
}

TEST(Retry, CountsWhatIsTheJobsOwnFault) {
  Job job = job_with_retries(2);
  const auto first = retry_of(job, ended_with({.code = 1}), {});
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, (job::Retry{.number = 1, .of = 2}));
  EXPECT_EQ(words::sentence(*first), "retry 1 of 2");

  job.retries_used = 2;
  EXPECT_FALSE(retry_of(job, ended_with({.code = 1}), {}));
}

TEST(Retry, DoesNotCountWhatIsTheMachinesFault) {
  Job job = job_with_retries(1);
  job.retries_used = 1;
  const auto retry = retry_of(job, ended_with({.lost = true}), {});
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->cost, job::Retry::Cost::kNone);
}

TEST(Retry, TheFirstRuleThatMatchesDecides) {
  const Job job =
      job_with_retries(3, {{.exit_code = 42, .action = Action::kFail},
                           {.log_pattern = "CUDA error.*ECC", .action = Action::kAvoidNode},
                           {.exit_code = 137, .action = Action::kRetry}});
  EXPECT_FALSE(retry_of(job, ended_with({.code = 42}), {"CUDA error: ECC"}));

  const auto elsewhere = retry_of(job, ended_with({.code = 1}), {"x", "a CUDA error: ECC came"});
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->cost, job::Retry::Cost::kAvoidsNode);
  EXPECT_EQ(elsewhere->node, "n1");

  const auto killed = retry_of(job, ended_with({.signal = 9}), {});
  ASSERT_TRUE(killed);
  EXPECT_EQ(words::sentence(*killed), "the rule for exit code 137: retry 1 of 3");
}

TEST(Retry, ARuleNeedsBothItsCodeAndItsPattern) {
  const Job job =
      job_with_retries(0, {{.exit_code = 7, .log_pattern = "x", .action = Action::kAvoidNode}});
  EXPECT_FALSE(retry_of(job, ended_with({.code = 7}), {"y"}));
  EXPECT_FALSE(retry_of(job, ended_with({.code = 8}), {"x"}));
  EXPECT_TRUE(retry_of(job, ended_with({.code = 7}), {"x"}));
}

TEST(Retry, WaitsLongerEachTimeUpToAMinute) {
  using std::chrono::milliseconds;
  EXPECT_EQ(backoff(1), milliseconds(0));
  EXPECT_EQ(backoff(2), milliseconds(1000));
  EXPECT_EQ(backoff(4), milliseconds(4000));
  EXPECT_EQ(backoff(1000), milliseconds(60'000));
}

}  // namespace
}  // namespace muster::control
