#include "control/progress_meter.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using namespace std::chrono_literals;
using engine::MetricSample;
using job::Progress;

const base::Time kFirstReport{1'700'000'000s};

MetricSample report(std::chrono::seconds after, std::vector<std::pair<std::string, double>> values,
                    std::optional<int> rank = {}) {
  return {.time = kFirstReport + after, .rank = rank, .values = std::move(values)};
}

TEST(ProgressMeter, KnowsNothingOfAProgramThatTellsNoTotal) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 1}, {"loss", 0.5}}));
  EXPECT_EQ(meter.progress(), std::nullopt);
}

TEST(ProgressMeter, RemembersATotalThatIsToldOnce) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epochs", 10}}));
  EXPECT_EQ(meter.progress(), std::nullopt);
  meter.take(report(5s, {{"epoch", 3}}));
  EXPECT_EQ(meter.progress(), (Progress{.unit = "epoch", .done = 3, .total = 10, .ends = {}}));
}

TEST(ProgressMeter, ReckonsTheEndByThePaceSinceTheFirstReport) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 1}, {"epochs", 5}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(20s, {{"epoch", 3}, {"epochs", 5}}));
  EXPECT_EQ(meter.progress()->ends, kFirstReport + 40s);
}

TEST(ProgressMeter, EndsWithTheLastReportWhereAllIsDone) {
  ProgressMeter meter;
  meter.take(report(0s, {{"progress", 0.5}}));
  meter.take(report(9s, {{"progress", 1}}));
  EXPECT_EQ(meter.progress(),
            (Progress{.unit = "", .done = 1, .total = 1, .ends = kFirstReport + 9s}));
}

TEST(ProgressMeter, TakesThePaceAnewWhereAValueGoesBack) {
  ProgressMeter meter;
  meter.take(report(0s, {{"step", 10}, {"steps", 100}}));
  meter.take(report(1s, {{"step", 90}}));
  meter.take(report(100s, {{"step", 0}}));  // from a checkpoint
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(110s, {{"step", 50}}));
  EXPECT_EQ(meter.progress()->ends, kFirstReport + 120s);
}

TEST(ProgressMeter, DoesNotGuessWhereNothingMoves) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 2}, {"epochs", 5}}));
  meter.take(report(60s, {{"epoch", 2}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(61s, {{"epoch", 2.0000000001}, {"epochs", 1e12}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt) << "no time that could be told";
}

TEST(ProgressMeter, TellsEpochsBeforeStepsAndThoseBeforeAPartOfOne) {
  ProgressMeter meter;
  meter.take(report(0s, {{"progress", 0.25}}));
  EXPECT_EQ(meter.progress()->unit, "");
  meter.take(report(1s, {{"step", 5}, {"steps", 20}}));
  EXPECT_EQ(meter.progress()->unit, "step");
  meter.take(report(2s, {{"epoch", 1}, {"epochs", 4}}));
  meter.take(report(3s, {{"step", 6}, {"steps", 20}}));
  EXPECT_EQ(meter.progress()->unit, "epoch");
}

TEST(ProgressMeter, PassesOverWhatIsNoPart) {
  for (const auto& values :
       std::vector<std::vector<std::pair<std::string, double>>>{{{"progress", 31}},
                                                                {{"progress", -0.1}},
                                                                {{"epoch", 1}, {"epochs", 0}},
                                                                {{"epoch", -1}, {"epochs", 3}},
                                                                {{"step", 1}, {"steps", -5}}}) {
    ProgressMeter meter;
    meter.take(report(0s, values));
    EXPECT_EQ(meter.progress(), std::nullopt) << values.front().first << values.front().second;
  }
}

TEST(JobProgress, ListensToTheLowestRank) {
  JobProgress job;
  job.take(1, report(0s, {{"epoch", 1}, {"epochs", 4}}, 0));
  job.take(0, report(5s, {{"epoch", 3}, {"epochs", 4}}, 1));
  EXPECT_EQ(job.progress()->done, 1);
}

TEST(JobProgress, ListensToTheNextRankWhereTheLowestTellsNothing) {
  JobProgress job;
  job.take(0, report(0s, {{"loss", 1}}, 0));
  job.take(0, report(5s, {{"epoch", 3}, {"epochs", 4}}, 1));
  EXPECT_EQ(job.progress()->done, 3);
}

TEST(JobProgress, ListensToTheTaskThatReportedLastWhereNoneSaysItsRank) {
  JobProgress job;
  job.take(0, report(9s, {{"epoch", 1}, {"epochs", 4}}));
  job.take(1, report(5s, {{"epoch", 2}, {"epochs", 4}}));
  EXPECT_EQ(job.progress()->done, 1);
  job.take(1, report(10s, {{"epoch", 2}}));
  EXPECT_EQ(job.progress()->done, 2);
}

TEST(JobProgress, ForgetsWhatATaskSaid) {
  JobProgress job;
  job.take(0, report(9s, {{"epoch", 1}, {"epochs", 4}}));
  job.forget(0);
  EXPECT_EQ(job.progress(), std::nullopt);
}

TEST(JobProgress, ListensToRankZeroHoweverManyOthersThereAre) {
  JobProgress job;
  for (int rank = 5000; rank >= 0; --rank) {
    job.take(0, report(0s, {{"progress", rank == 0 ? 0.5 : 0.1}}, rank));
  }
  EXPECT_EQ(job.progress()->done, 0.5);
}

}  // namespace
}  // namespace muster::control
