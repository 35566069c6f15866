#include "control/past_use.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using job::Job;
using schedule::Amounts;
using std::chrono::hours;

const base::Time kCountedAt{hours(24 * 365 * 50)};
const Amounts kFourGpus{4000, 0, 0};

Job one_gpu(const std::string& project, base::Time started, std::optional<base::Time> ended = {}) {
  Job job;
  job.spec.project = project;
  job.started = started;
  job.ended = ended;
  job.tasks = {{.name = "main", .node = "n1", .devices = {0}, .gpu_share_milli = 1000}};
  return job;
}

TEST(PastUse, AProjectThatAlwaysHeldAQuarterComesToAQuarter) {
  const Job always = one_gpu("a", base::Time{});
  EXPECT_EQ(past_use({&always}, kFourGpus, kCountedAt, hours(1)).at("a"), (Amounts{250, 0, 0}));
}

TEST(PastUse, WhatIsAHalfLifeAgoCountsHalf) {
  const Job until_then = one_gpu("a", base::Time{}, kCountedAt - hours(1));
  EXPECT_EQ(past_use({&until_then}, kFourGpus, kCountedAt, hours(1)).at("a").gpu_milli, 125);
}

TEST(PastUse, AJobThatHasJustStartedHasUsedNothing) {
  const Job fresh = one_gpu("a", kCountedAt);
  EXPECT_TRUE(past_use({&fresh}, kFourGpus, kCountedAt, hours(1)).empty());
}

TEST(PastUse, AddsUpTheJobsOfAProject) {
  const Job one = one_gpu("a", base::Time{});
  const Job two = one_gpu("a", base::Time{}, kCountedAt - hours(1));
  const Job other = one_gpu("b", base::Time{});
  const auto use = past_use({&one, &two, &other}, kFourGpus, kCountedAt, hours(1));
  EXPECT_EQ(use.at("a").gpu_milli, 375);
  EXPECT_EQ(use.at("b").gpu_milli, 250);
}

TEST(PastUse, AClockThatWasSetBackGivesNoNegativeUse) {
  const Job ahead = one_gpu("a", kCountedAt + hours(5), kCountedAt + hours(6));
  EXPECT_TRUE(past_use({&ahead}, kFourGpus, kCountedAt, hours(1)).empty());
}

}  // namespace
}  // namespace muster::control
