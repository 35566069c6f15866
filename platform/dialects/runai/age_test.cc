#include "dialects/runai/age.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::dialects::runai {

namespace {

using namespace std::chrono_literals;

TEST(Age, IsOneNumberAndItsLargestUnitCutOff) {
  const std::vector<std::pair<std::chrono::nanoseconds, std::string>> cases{
      {-2s, "<invalid>"},   {-1s, "0s"},       {-500ms, "0s"},       {0s, "0s"},
      {59s, "59s"},         {59999ms, "59s"},  {60s, "1m"},          {119s, "1m"},
      {59min + 59s, "59m"}, {1h, "1h"},        {23h + 59min, "23h"}, {24h, "1d"},
      {24h * 364, "364d"},  {24h * 365, "1y"}, {24h * 729, "1y"},    {24h * 730, "2y"},
  };
  for (const auto& [age, words] : cases) {
    EXPECT_EQ(age_words(age), words) << std::chrono::duration<double>(age).count();
  }
}

TEST(Age, OfAPodIsSinceItStartedAndOfOneThatWaitsSinceTheJobWasSubmitted) {
  const base::Time now = base::FakeClock().now();
  job::Job job;
  job.submitted = now - 3h;

  EXPECT_EQ(age_of(job, now), "3h");
  EXPECT_EQ(age_of(job, job::Task{.started = now - 2min}, now), "2m");
  EXPECT_EQ(age_of(job, job::Task{}, now), "3h");
}

TEST(Age, TheDurationStandsStillOnceAJobHasEnded) {
  const base::Time now = base::FakeClock().now();
  job::Job job;
  EXPECT_EQ(duration_of(job, now), "0s");
  job.started = now - 10min;
  EXPECT_EQ(duration_of(job, now), "10m");
  job.ended = now - 8min;
  EXPECT_EQ(duration_of(job, now), "2m");
}

}  // namespace

}  // namespace muster::dialects::runai
