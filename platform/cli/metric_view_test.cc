#include <gtest/gtest.h>

#include "cli/common/format.h"
#include "cli/common/job_view.h"
#include "cli/metrics/metrics.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

using namespace std::chrono_literals;
using job::MetricSeries;
using job::Progress;

job::Job job_with(std::optional<Progress> progress) {
  job::Job job;
  job.spec.name = "dist";
  job.spec.project = "default";
  job.phase = job::Phase::kRunning;
  job.submitted = kNow - 1h;
  job.started = kNow - 10min;
  job.progress = progress;
  job.tasks = job::tasks_of(job.spec);
  return job;
}

TEST(ValueWords, AreShortAndHaveTheirUnit) {
  const std::vector<std::tuple<double, MetricUnit, std::string>> cases{
      {0.18342, MetricUnit::kNumber, "0.1834"},
      {0, MetricUnit::kNumber, "0"},
      {-2.5, MetricUnit::kNumber, "-2.5"},
      {1234.5, MetricUnit::kNumber, "1234"},
      {12'500, MetricUnit::kNumber, "12.5k"},
      {3.2e-6, MetricUnit::kNumber, "3.2e-06"},
      {2e6, MetricUnit::kNumber, "2M"},
      {1e20, MetricUnit::kNumber, "1e+20"},
      {100, MetricUnit::kBytes, "100"},
      {1536, MetricUnit::kBytes, "1.5Ki"},
      {3e6, MetricUnit::kBytesPerSecond, "2.9Mi/s"},
      {93.4, MetricUnit::kPercent, "93%"},
      {0.51, MetricUnit::kPercent, "0.5%"},
      {250.5, MetricUnit::kWatts, "250.5W"},
      {61, MetricUnit::kCelsius, "61C"}};
  for (const auto& [value, unit, words] : cases) EXPECT_EQ(value_words(value, unit), words);
}

TEST(UnitOf, FollowsTheEndOfTheName) {
  EXPECT_EQ(unit_of(job::kMemoryBytes), MetricUnit::kBytes);
  EXPECT_EQ(unit_of(job::kNetworkSent), MetricUnit::kBytesPerSecond);
  EXPECT_EQ(unit_of(job::kGpuPercent), MetricUnit::kPercent);
  EXPECT_EQ(unit_of(job::kGpuMemoryFree), MetricUnit::kBytes);
  EXPECT_EQ(unit_of(job::kGpuCelsius), MetricUnit::kCelsius);
  EXPECT_EQ(unit_of("checkpoint_bytes"), MetricUnit::kBytes);
  EXPECT_EQ(unit_of("loss"), MetricUnit::kNumber);
}

TEST(ProgressWords, ContainUnitPercentageAndRemainingTime) {
  const std::vector<std::pair<Progress, std::string>> cases{
      {{.unit = "epoch", .done = 3, .total = 10, .ends = kNow + 12min}, "epoch 3/10 30%, 12m left"},
      {{.unit = "epoch", .done = 3.1, .total = 10, .ends = {}}, "epoch 3/10 31%"},
      {{.unit = "step", .done = 999, .total = 1000, .ends = {}}, "step 999/1000 99%"},
      {{.unit = "", .done = 0.999, .total = 1, .ends = kNow - 1s}, "99%"},
      {{.unit = "", .done = 1, .total = 1, .ends = kNow + 1s}, "100%"},
      {{.unit = "epoch", .done = 12, .total = 10, .ends = {}}, "epoch 12/10 100%"}};
  for (const auto& [progress, words] : cases) EXPECT_EQ(progress_line(progress, kNow), words);
}

TEST(UseTable, HasARowForEachTaskAndOnlyColumnsWithValues) {
  const std::vector<MetricSeries> newest{
      {"cpu_percent", "launcher", {}, {{kNow, 3.04}}},
      {"cpu_percent", "worker-0", {}, {{kNow, 391}}},
      {"gpu_percent", "worker-0", {}, {{kNow, 97}}},
      {"loss", "worker-0", 0, {{kNow, 1}}},
      {"memory_bytes", "launcher", {}, {{kNow, 12.0 * (1 << 20)}}},
      {"memory_bytes", "worker-0", {}, {{kNow, 1.5 * (1 << 30)}}}};
  EXPECT_EQ("\n" + metrics::use_table(newest), R"(
TASK       CPU  MEMORY  GPU
launcher    3%    12Mi    -
worker-0  391%   1.5Gi  97%
)");
  EXPECT_EQ(metrics::use_table({}), "");
}

TEST(ReportedTable, ShowsRanksIfThereAreAny) {
  const std::vector<MetricSeries> newest{{"cpu_percent", "w", {}, {{kNow, 3}}},
                                         {"accuracy", "w", {}, {{kNow - 5s, 0.91}}},
                                         {"loss", "w", 1, {{kNow - 2min, 0.183}}}};
  EXPECT_EQ("\n" + metrics::reported_table(newest, kNow), R"(
METRIC    TASK  RANK  VALUE  AGO
accuracy  w        -   0.91   5s
loss      w        1  0.183   2m
)");
  EXPECT_EQ(metrics::reported_table({newest[0]}, kNow), "");
}

TEST(MetricsPage, OmitsEndedTasksOfARunningJob) {
  job::Job job = job_with({});
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 2;
  job.tasks = job::tasks_of(job.spec);
  job.tasks.back().phase = job::TaskPhase::kEnded;
  const std::vector<MetricSeries> newest{{"cpu_percent", "worker-0", {}, {{kNow, 3}}},
                                         {"cpu_percent", "worker-1", {}, {{kNow, 3}}}};
  const std::string page = metrics::metrics_page(job, newest, kNow);
  EXPECT_NE(page.find("worker-0"), std::string::npos) << page;
  EXPECT_EQ(page.find("worker-1"), std::string::npos) << page;
  job.phase = job::Phase::kSucceeded;
  EXPECT_NE(metrics::metrics_page(job, newest, kNow).find("worker-1"), std::string::npos);
}

TEST(MetricsPage, ReportsThatThereAreNoMetrics) {
  EXPECT_EQ(metrics::metrics_page(job_with({}), {}, kNow),
            "dist  Running\n\nit has no metrics yet\n");
}

TEST(MetricsCsv, HasALineForEachValueWithFullPrecision) {
  const std::vector<MetricSeries> series{{"loss", "w", 1, {{kNow, 0.1}, {kNow + 1ms, 1e-7}}},
                                         {"cpu_percent", "w", {}, {{kNow, 100}}}};
  EXPECT_EQ(metrics::metrics_csv(series),
            "2023-11-14T22:13:20.000000000Z,loss,w,1,0.1\n"
            "2023-11-14T22:13:20.001000000Z,loss,w,1,1e-07\n"
            "2023-11-14T22:13:20.000000000Z,cpu_percent,w,,100\n");
}

TEST(JobTable, HasAProgressColumnOnlyIfAJobReportsProgress) {
  const job::Job silent = job_with({});
  job::Job telling = job_with(Progress{.unit = "epoch", .done = 1, .total = 4, .ends = {}});
  EXPECT_EQ(job_table({silent}, kNow).find("PROGRESS"), std::string::npos);
  EXPECT_EQ("\n" + job_table({silent, telling}, kNow), R"(
NAME  PROJECT  KIND    PHASE    TASKS  AGE  DURATION  PROGRESS       REASON
dist  default  single  Running    0/1   1h       10m  -
dist  default  single  Running    0/1   1h       10m  epoch 1/4 25%
)");
}

TEST(JobPage, HasAProgressLineIfTheJobReportsProgress) {
  EXPECT_EQ(job_page(job_with({}), kNow).find("PROGRESS"), std::string::npos);
  const std::string page =
      job_page(job_with(Progress{.unit = "", .done = 0.5, .total = 1, .ends = kNow + 90s}), kNow);
  EXPECT_NE(page.find("PROGRESS   50%, 1m30s left\n"), std::string::npos) << page;
}

}  // namespace

}  // namespace muster::cli
