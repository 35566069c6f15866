#include "logs/measurements.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/test_folder.h"
#include "engine/fake_engine.h"

namespace muster::logs {
namespace {

using namespace std::chrono_literals;
using job::MetricPoint;
using Points = std::vector<MetricPoint>;

base::Time at(std::chrono::nanoseconds since) {
  return base::Time(1'700'000'000s) + since;  // a whole number of ten seconds
}

Points every_second(int count) {
  Points points;
  for (int i = 0; i < count; ++i) points.push_back({at(std::chrono::seconds(i)), double(i)});
  return points;
}

TEST(AskedPoints, AreAllWithoutAQuery) {
  EXPECT_EQ(asked_points(every_second(5), {}), every_second(5));
  EXPECT_EQ(asked_points({}, {.interval = 1s, .last = true}), Points{});
}

TEST(AskedPoints, AreThoseOfTheTimeRangeIncludingItsEnds) {
  EXPECT_EQ(asked_points(every_second(9), {.since = at(2s), .until = at(4s)}),
            (Points{{at(2s), 2}, {at(3s), 3}, {at(4s), 4}}));
}

TEST(AskedPoints, AreTheMeansOfIntervalsWithValues) {
  const Points points{{at(1s), 1}, {at(9s), 3}, {at(30s), 5}, {at(31s), 6}};
  EXPECT_EQ(asked_points(points, {.interval = 10s}), (Points{{at(0s), 2}, {at(30s), 5.5}}));
}

TEST(AskedPoints, HaveTheSameIntervalsInEverySeries) {
  const Points one{{at(11s), 1}};
  const Points other{{at(19s), 2}};
  EXPECT_EQ(asked_points(one, {.interval = 10s})[0].time,
            asked_points(other, {.interval = 10s})[0].time);
}

TEST(AskedPoints, AreOnlyTheNewestOnRequest) {
  EXPECT_EQ(asked_points(every_second(9), {.last = true}), (Points{{at(8s), 8}}));
}

TEST(AskedPoints, AreBoundedAndEndWithTheNewest) {
  const Points asked = asked_points(every_second(4500), {});
  EXPECT_LE(asked.size(), job::kMostPoints);
  EXPECT_EQ(asked.front(), (MetricPoint{at(2s), 1}));  // 0, 1 and 2
  EXPECT_EQ(asked.back().time, at(4499s));
}

TEST(AskedPoints, HaveMeansEvenIfTheSumOverflows) {
  const Points points{{at(1s), 1.5e308}, {at(2s), 1.5e308}};
  EXPECT_EQ(asked_points(points, {.interval = 10s})[0].value, 1.5e308);
}

TEST(MakeCoarser, KeepsTheNewestQuarterAndHalvesTheRest) {
  Points points = every_second(16);
  make_coarser(points);
  EXPECT_EQ(points.size(), 10U);
  EXPECT_EQ(points.front(), (MetricPoint{at(1s), 0.5}));
  EXPECT_EQ(points[5], (MetricPoint{at(11s), 10.5}));
  EXPECT_EQ(points[6], (MetricPoint{at(12s), 12}));
  EXPECT_EQ(points.back(), (MetricPoint{at(15s), 15}));
}

}  // namespace
namespace {

using namespace std::chrono_literals;
using engine::MetricSample;
using job::Progress;

const base::Time kFirstReport{1'700'000'000s};

MetricSample report(std::chrono::seconds after, std::vector<std::pair<std::string, double>> values,
                    std::optional<int> rank = {}) {
  return {.time = kFirstReport + after, .rank = rank, .values = std::move(values)};
}

TEST(ProgressMeter, HasNoProgressWithoutATotal) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 1}, {"loss", 0.5}}));
  EXPECT_EQ(meter.progress(), std::nullopt);
}

TEST(ProgressMeter, RemembersATotalReportedOnce) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epochs", 10}}));
  EXPECT_EQ(meter.progress(), std::nullopt);
  meter.take(report(5s, {{"epoch", 3}}));
  EXPECT_EQ(meter.progress(), (Progress{.unit = "epoch", .done = 3, .total = 10, .ends = {}}));
}

TEST(ProgressMeter, EstimatesTheEndByThePaceSinceTheFirstReport) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 1}, {"epochs", 5}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(20s, {{"epoch", 3}, {"epochs", 5}}));
  EXPECT_EQ(meter.progress()->ends, kFirstReport + 40s);
}

TEST(ProgressMeter, EndsWithTheLastReportWhenAllIsDone) {
  ProgressMeter meter;
  meter.take(report(0s, {{"progress", 0.5}}));
  meter.take(report(9s, {{"progress", 1}}));
  EXPECT_EQ(meter.progress(),
            (Progress{.unit = "", .done = 1, .total = 1, .ends = kFirstReport + 9s}));
}

TEST(ProgressMeter, RestartsTheEstimateWhenAValueGoesBack) {
  ProgressMeter meter;
  meter.take(report(0s, {{"step", 10}, {"steps", 100}}));
  meter.take(report(1s, {{"step", 90}}));
  meter.take(report(100s, {{"step", 0}}));  // from a checkpoint
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(110s, {{"step", 50}}));
  EXPECT_EQ(meter.progress()->ends, kFirstReport + 120s);
}

TEST(ProgressMeter, EstimatesNothingWithoutProgress) {
  ProgressMeter meter;
  meter.take(report(0s, {{"epoch", 2}, {"epochs", 5}}));
  meter.take(report(60s, {{"epoch", 2}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt);
  meter.take(report(61s, {{"epoch", 2.0000000001}, {"epochs", 1e12}}));
  EXPECT_EQ(meter.progress()->ends, std::nullopt) << "no time that could be told";
}

TEST(ProgressMeter, PrefersEpochsToStepsAndStepsToAFraction) {
  ProgressMeter meter;
  meter.take(report(0s, {{"progress", 0.25}}));
  EXPECT_EQ(meter.progress()->unit, "");
  meter.take(report(1s, {{"step", 5}, {"steps", 20}}));
  EXPECT_EQ(meter.progress()->unit, "step");
  meter.take(report(2s, {{"epoch", 1}, {"epochs", 4}}));
  meter.take(report(3s, {{"step", 6}, {"steps", 20}}));
  EXPECT_EQ(meter.progress()->unit, "epoch");
}

TEST(ProgressMeter, IgnoresValuesThatAreNotAFraction) {
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

TEST(JobProgress, UsesTheLowestRank) {
  JobProgress job;
  job.take(1, report(0s, {{"epoch", 1}, {"epochs", 4}}, 0));
  job.take(0, report(5s, {{"epoch", 3}, {"epochs", 4}}, 1));
  EXPECT_EQ(job.progress()->done, 1);
}

TEST(JobProgress, UsesTheNextRankIfTheLowestReportsNothing) {
  JobProgress job;
  job.take(0, report(0s, {{"loss", 1}}, 0));
  job.take(0, report(5s, {{"epoch", 3}, {"epochs", 4}}, 1));
  EXPECT_EQ(job.progress()->done, 3);
}

TEST(JobProgress, UsesTheTaskThatReportedLastWithoutRanks) {
  JobProgress job;
  job.take(0, report(9s, {{"epoch", 1}, {"epochs", 4}}));
  job.take(1, report(5s, {{"epoch", 2}, {"epochs", 4}}));
  EXPECT_EQ(job.progress()->done, 1);
  job.take(1, report(10s, {{"epoch", 2}}));
  EXPECT_EQ(job.progress()->done, 2);
}

TEST(JobProgress, ForgetsTheReportsOfATask) {
  JobProgress job;
  job.take(0, report(9s, {{"epoch", 1}, {"epochs", 4}}));
  job.forget(0);
  EXPECT_EQ(job.progress(), std::nullopt);
}

TEST(JobProgress, UsesRankZeroHoweverManyOthersThereAre) {
  JobProgress job;
  for (int rank = 5000; rank >= 0; --rank) {
    job.take(0, report(0s, {{"progress", rank == 0 ? 0.5 : 0.1}}, rank));
  }
  EXPECT_EQ(job.progress()->done, 0.5);
}

}  // namespace

// Both books with real files, as the shims of tasks write them.
namespace {

using namespace std::chrono_literals;
using engine::encode_sample;
using job::MetricSeries;

const base::Time kAttemptBegin{1'700'000'000s};

class MetricBooks : public testing::Test {
 protected:
  MetricBooks() {
    for (const char* task : {"launcher", "worker-0"}) {
      job_.tasks.push_back({.name = task});
      engine_.metric_files[task] = folder_.path() / task;
    }
    job_.id = "j1";
    job_.attempt = 1;
    job_.phase = job::Phase::kRunning;
  }

  void write(const std::string& task, const MetricSample& sample) {
    std::ofstream(folder_.path() / task, std::ios::app) << encode_sample(sample);
  }

  /// Writes the file anew, as a shim does when the file is full.
  void write_anew(const std::string& task, const std::vector<MetricSample>& samples) {
    const auto next = folder_.path() / "next";
    std::ofstream file(next);
    for (const MetricSample& sample : samples) file << encode_sample(sample);
    file.close();
    std::filesystem::rename(next, folder_.path() / task);
  }

  void settle() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  std::vector<MetricSeries> ask(const job::MetricQuery& query) {
    std::optional<base::Result<std::vector<MetricSeries>>> answer;
    book_.ask(job_, query, [&](auto result) {
      answer.emplace(std::move(result));
      loop_.stop();
    });
    loop_.run();
    EXPECT_TRUE(*answer);
    return **answer;
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  engine::FakeEngine engine_{loop_};
  job::Job job_;
  MetricBook book_{loop_, engine_};
  ProgressBook progress_{loop_, engine_};
};

TEST_F(MetricBooks, AnswerByNameThenTaskThenRank) {
  write("worker-0", {kAttemptBegin, {}, {{"cpu_percent", 50}}});
  write("worker-0", {kAttemptBegin, 1, {{"loss", 2}}});
  write("worker-0", {kAttemptBegin, 0, {{"loss", 1}}});
  write("launcher", {kAttemptBegin, {}, {{"cpu_percent", 7}}});

  EXPECT_EQ(ask({}),
            (std::vector<MetricSeries>{{"cpu_percent", "launcher", {}, {{kAttemptBegin, 7}}},
                                       {"cpu_percent", "worker-0", {}, {{kAttemptBegin, 50}}},
                                       {"loss", "worker-0", 0, {{kAttemptBegin, 1}}},
                                       {"loss", "worker-0", 1, {{kAttemptBegin, 2}}}}));
}

TEST_F(MetricBooks, AnswerTheQuery) {
  for (int i = 0; i < 3; ++i) {
    const base::Time time = kAttemptBegin + std::chrono::seconds(i);
    write("worker-0", {time, 0, {{"loss", i}, {"accuracy", i}}});
    write("launcher", {time, {}, {{"loss", 10 + i}}});
  }
  EXPECT_EQ(ask({.metrics = {"loss"}, .task = "worker-0", .last = true}),
            (std::vector<MetricSeries>{{"loss", "worker-0", 0, {{kAttemptBegin + 2s, 2}}}}));
  EXPECT_EQ(ask({.metrics = {"accuracy", "loss"}, .rank = 0, .until = kAttemptBegin}),
            (std::vector<MetricSeries>{{"accuracy", "worker-0", 0, {{kAttemptBegin, 0}}},
                                       {"loss", "worker-0", 0, {{kAttemptBegin, 0}}}}));
  EXPECT_EQ(ask({.since = kAttemptBegin + 1h}), std::vector<MetricSeries>{});
}

TEST_F(MetricBooks, ReadNewSamples) {
  write("launcher", {kAttemptBegin, {}, {{"loss", 1}}});
  EXPECT_EQ(ask({})[0].points.size(), 1U);
  write("launcher", {kAttemptBegin + 1s, {}, {{"loss", 2}}});
  EXPECT_EQ(ask({})[0].points.size(), 2U);
}

TEST_F(MetricBooks, ReadARewrittenFileFromItsStart) {
  write("launcher", {kAttemptBegin, {}, {{"loss", 1}, {"epoch", 1}, {"epochs", 4}}});
  write("launcher", {kAttemptBegin + 1s, {}, {{"loss", 2}}});
  EXPECT_EQ(ask({.metrics = {"loss"}})[0].points.size(), 2U);
  EXPECT_EQ(progress_.of(job_)->done, 1);

  write_anew("launcher", {{kAttemptBegin + 2s, {}, {{"loss", 3}, {"epoch", 2}, {"epochs", 4}}}});
  EXPECT_EQ(ask({.metrics = {"loss"}}),
            (std::vector<MetricSeries>{{"loss", "launcher", {}, {{kAttemptBegin + 2s, 3}}}}));
  EXPECT_EQ(progress_.of(job_)->done, 2);
}

TEST_F(MetricBooks, RestartWithEachAttempt) {
  write("launcher", {kAttemptBegin, {}, {{"loss", 1}, {"epoch", 1}, {"epochs", 4}}});
  EXPECT_EQ(ask({.metrics = {"loss"}}).size(), 1U);
  EXPECT_TRUE(progress_.of(job_));
  job_.attempt = 2;
  engine_.metric_files["launcher"] = folder_.path() / "of attempt 2";
  EXPECT_EQ(ask({}), std::vector<MetricSeries>{});
  EXPECT_EQ(progress_.of(job_), std::nullopt);
}

TEST_F(MetricBooks, ReadLargeFilesInManyTurns) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += encode_sample(
        {kAttemptBegin + std::chrono::seconds(i), {}, {{"step", double(i)}, {"steps", 40'000}}});
  }
  ASSERT_GT(text.size(), 1U << 19);
  std::ofstream(folder_.path() / "worker-0") << text;

  EXPECT_EQ(progress_.of(job_), std::nullopt) << "what is half read would be of the past";
  for (int turns = 0; turns < 100 && !progress_.of(job_); ++turns) settle();
  const auto progress = progress_.of(job_);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->done, 19'999);
  EXPECT_EQ(progress->ends, kAttemptBegin + 40'000s);

  const auto steps = ask({.metrics = {"step"}});
  EXPECT_LE(steps[0].points.size(), job::kMostPoints);
  EXPECT_EQ(steps[0].points.back().time, kAttemptBegin + 19'999s);
}

TEST_F(MetricBooks, UseBoundedMemory) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    text += encode_sample({kAttemptBegin + std::chrono::seconds(i), {}, {{"loss", double(i)}}});
  }
  for (int i = 0; i < 3000; ++i) {
    text += encode_sample({kAttemptBegin, {}, {{"made_up_" + std::to_string(i), 1}}});
  }
  std::ofstream(folder_.path() / "worker-0") << text;
  const auto all = ask({});
  EXPECT_EQ(all.size(), MetricBook::kMostSeries);
  EXPECT_LE(book_.points_held(), MetricBook::kMostKept + MetricBook::kMostSeries);
  book_.forget(job_.id);
  EXPECT_EQ(book_.points_held(), 0U);
}

TEST_F(MetricBooks, ReportTheDeletionOfTheJobToEveryCaller) {
  std::optional<base::Result<std::vector<MetricSeries>>> answer;
  book_.ask(job_, {}, [&](auto result) { answer.emplace(std::move(result)); });
  book_.forget(job_.id);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().code, base::ErrorCode::kNotFound);
  settle();
}

TEST_F(MetricBooks, ShowTheProgressWhileAJobRunsAndAfterItsEnd) {
  write("launcher", {kAttemptBegin, {}, {{"epoch", 1}, {"epochs", 4}}});
  write("launcher", {kAttemptBegin + 10s, {}, {{"epoch", 2}}});
  job_.phase = job::Phase::kQueued;
  EXPECT_EQ(progress_.of(job_), std::nullopt);
  job_.phase = job::Phase::kRunning;
  EXPECT_EQ(progress_.of(job_)->ends, kAttemptBegin + 30s);

  job_.phase = job::Phase::kFailed;
  const job::Progress reached{.unit = "epoch", .done = 2, .total = 4, .ends = {}};
  EXPECT_EQ(progress_.of(job_), reached);
  std::filesystem::remove(folder_.path() / "launcher");
  EXPECT_EQ(progress_.of(job_), reached) << "it is not read again";
}

TEST_F(MetricBooks, ReadWorkersThatJoinAndIgnoreTheProgressOfWorkersThatLeft) {
  write("worker-0", {kAttemptBegin, 0, {{"epoch", 2}, {"epochs", 10}}});
  EXPECT_EQ(progress_.of(job_)->done, 2);
  EXPECT_EQ(ask({.metrics = {"epoch"}}).size(), 1U);

  job_.tasks.back().left = true;
  job_.tasks.push_back({.name = "worker-1"});
  engine_.metric_files["worker-1"] = folder_.path() / "worker-1";
  write("worker-1", {kAttemptBegin - 1s, 0, {{"epoch", 4}, {"epochs", 10}}});

  EXPECT_EQ(progress_.of(job_)->done, 4) << "rank 0 is there now";
  const auto series = ask({.metrics = {"epoch"}});
  ASSERT_EQ(series.size(), 2U) << "what was measured of it stays";
  EXPECT_EQ(series.back().task, "worker-1");
}

}  // namespace
}  // namespace muster::logs
