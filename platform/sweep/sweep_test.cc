#include "sweep/sweep.h"

#include <gtest/gtest.h>

#include "sweep/test_sweeps.h"

namespace muster::sweep {
namespace {

base::Time at_second(int second) {
  return base::Time(std::chrono::seconds(second));
}

/// The program reported `value` at each of these seconds.
job::MetricSeries series_of(const std::string& metric,
                            const std::vector<std::pair<int, double>>& points) {
  job::MetricSeries series{.metric = metric, .task = "main"};
  for (const auto& [second, value] : points) series.points.push_back({at_second(second), value});
  return series;
}

std::vector<RungValue> rungs_seen(const std::vector<std::pair<int, double>>& steps,
                                  const std::vector<std::pair<int, double>>& values,
                                  bool over = false) {
  const SweepSpec spec = valid_sweep();  // rungs at 4, 16 and 64 steps
  return observe(spec, {series_of("accuracy", values), series_of("step", steps)},
                 {.started = at_second(0), .now = at_second(1000), .over = over})
      .rungs;
}

using Rungs = std::vector<RungValue>;

TEST(Observe, TakesTheValueOfTheReportThatReachesARung) {
  EXPECT_EQ(rungs_seen({{1, 2}}, {{1, 0.1}}), Rungs{});
  EXPECT_EQ(rungs_seen({{1, 2}, {2, 4}}, {{1, 0.1}, {2, 0.2}}), Rungs{{0.2}});
  EXPECT_EQ(rungs_seen({{1, 2}, {2, 5}, {3, 20}}, {{1, 0.1}, {2, 0.2}, {3, 0.3}}),
            (Rungs{{0.2}, {0.3}}));
}

TEST(Observe, TakesTheNewestValueBeforeARungOfAProgramThatEvaluatesSeldom) {
  EXPECT_EQ(rungs_seen({{1, 3}, {2, 4}, {5, 9}}, {{1, 0.1}, {5, 0.9}}), Rungs{{0.1}});
}

TEST(Observe, WaitsForALateValueUntilTheNextRung) {
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 10}}, {}), Rungs{});
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 10}}, {{2, 0.5}}), Rungs{{0.5}});
  // The program reports NaN, which is no value: it has none at the first rung.
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 16}}, {}), Rungs{{std::nullopt}});
}

TEST(Observe, GivesAProgramThatStopsReportingNoValueOfAnEarlierRung) {
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 16}, {3, 65}}, {{1, 0.5}}),
            (Rungs{{0.5}, {std::nullopt}, {std::nullopt}}));
}

TEST(Observe, LetsAProgramCompleteTheLastStepByItself) {
  const std::vector<std::pair<int, double>> values = {{1, 0.1}, {2, 0.2}, {3, 0.3}};
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 16}, {3, 64}}, values).size(), 2U);
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 16}, {3, 65}}, values).size(), 3U);
  EXPECT_EQ(rungs_seen({{1, 4}, {2, 16}, {3, 64}}, values, true).size(), 3U);
}

TEST(Observe, CountsEpochsOfAProgramWithoutSteps) {
  const SweepSpec spec = valid_sweep();
  const Observation seen =
      observe(spec, {series_of("accuracy", {{1, 0.5}, {2, 0.4}}), series_of("epoch", {{2, 4}})},
              {.started = at_second(0), .now = at_second(9)});
  EXPECT_EQ(seen,
            (Observation{
                .rungs = {{0.4}}, .best = 0.5, .last = 0.4, .steps = 4, .newest = at_second(2)}));
}

TEST(Observe, CountsRunningTimeOfAllAttempts) {
  SweepSpec spec = valid_sweep();
  spec.max_steps = 0;
  spec.max_time = std::chrono::seconds(64);  // rungs at 4, 16 and 64 s
  const std::vector<job::MetricSeries> series = {series_of("accuracy", {{102, 0.2}, {110, 0.3}})};
  const auto rungs = [&](int now, int64_t ran_ms) {
    return observe(spec, series,
                   {.started = at_second(100), .now = at_second(now), .ran_ms = ran_ms})
        .rungs;
  };
  EXPECT_EQ(rungs(103, 0), Rungs{});
  EXPECT_EQ(rungs(105, 0), Rungs{{0.2}});
  EXPECT_EQ(rungs(116, 0), (Rungs{{0.2}, {0.3}}));
  // The first 4 s were run before: the second rung is reached after 12 more.
  EXPECT_EQ(rungs(112, 4000).size(), 2U);
}

TEST(Plan, BoundsStepsAndGpuHours) {
  SweepSpec spec = valid_sweep();
  spec.job.resources.gpus = 2;
  SweepPlan plan = plan_of(spec);
  EXPECT_EQ(plan.trials, 16);
  EXPECT_EQ(plan.most_steps, 16 * 64);
  EXPECT_EQ(plan.expected_steps, 16 * 4 + 4 * 12 + 1 * 48);
  EXPECT_EQ(plan.most_gpu_hours, std::nullopt);
  EXPECT_EQ(plan.first.size(), 16U);
  spec.job.scheduling.time_limit = std::chrono::hours(3);
  EXPECT_EQ(plan_of(spec).most_gpu_hours, 2 * 16 * 3);
  spec.max_steps = 0;
  spec.max_time = std::chrono::hours(1);
  plan = plan_of(spec);
  EXPECT_EQ(plan.most_gpu_hours, 2 * 16);
  EXPECT_NEAR(*plan.expected_gpu_hours, 2.0 * (16 + 12 + 12) / 16, 1e-9);
}

TEST(Sweep, ListsTrialsBestFirstAndCountsThem) {
  const SweepRecord record{.id = "s1", .owner = "ada", .spec = valid_sweep()};
  SearchState search;
  search.trials = {
      {.number = 1, .phase = TrialPhase::kPaused, .best = 0.3},
      {.number = 2, .phase = TrialPhase::kFailed},
      {.number = 3, .phase = TrialPhase::kActive, .best = 0.7},
  };
  const Sweep sweep = sweep_of(record, search, std::nullopt);
  ASSERT_EQ(sweep.trials.size(), 3U);
  EXPECT_EQ(sweep.trials[0].number, 3);
  EXPECT_EQ(sweep.trials[2].number, 2);
  EXPECT_EQ(sweep.summary.best_trial, 3);
  EXPECT_EQ(sweep.summary.active + sweep.summary.paused + sweep.summary.failed, 3);
  EXPECT_EQ(sweep.summary.phase, SweepPhase::kRunning);
  const auto read = record::from_json<Sweep>(record::to_json(sweep), "sweep");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, sweep);
}

}  // namespace
}  // namespace muster::sweep
