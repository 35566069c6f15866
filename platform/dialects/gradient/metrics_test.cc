#include "dialects/gradient/metrics.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

constexpr sys_days kDay = std::chrono::year(2026) / 1 / 31;

/// The faults of the flags, one in each line.
std::string faults_in(const cli::Arguments& arguments, const std::vector<std::string>& known = {}) {
  cli::FlagReader reader(arguments);
  read_metric_query(reader, known);
  std::string text;
  for (const base::Fault& fault : reader.faults()) text += fault.field + " " + fault.what + "\n";
  return text;
}

cli::Arguments arguments_with(std::map<std::string, std::vector<std::string>> flags) {
  cli::Arguments arguments;
  arguments.flags = std::move(flags);
  return arguments;
}

TEST(MetricQuery, AcceptsTheThreeFormatsOfATime) {
  const base::Time day = kDay;
  EXPECT_EQ(*parse_metric_time("2026-01-31"), day);
  EXPECT_EQ(*parse_metric_time("2026-01-31T12:34:56"), day + 12h + 34min + 56s);
  EXPECT_EQ(*parse_metric_time("2026-01-31 00:00:00"), day);
}

TEST(MetricQuery, RefusesOtherFormats) {
  for (const char* text :
       {"", "2026", "2026-1-31", "2026-02-30", "2026-01-31T12:34", "2026-01-31T24:00:00",
        "2026-01-31T12:60:00", "2026-01-31 12:34:56Z", "31.01.2026", "now", "2026-13-01"}) {
    EXPECT_FALSE(parse_metric_time(text).ok()) << text;
  }
}

TEST(MetricQuery, RefusesYearsThatDoNotFitIntoNanoseconds) {
  for (const char* text : {"9999-12-31", "2262-01-01", "1677-12-31T23:59:59", "0000-01-01"}) {
    EXPECT_FALSE(parse_metric_time(text).ok()) << text;
  }
  EXPECT_LT(*parse_metric_time("1678-01-01"), kDay);
  EXPECT_GT(*parse_metric_time("2261-12-31T23:59:59"), kDay);
}

TEST(MetricQuery, SelectsProcessorsAndMemoryByDefault) {
  const cli::Arguments none;
  cli::FlagReader reader(none);
  EXPECT_EQ(read_metric_query(reader, {}),
            (MetricQuery{.metrics = {"cpuPercentage", "memoryUsage"}, .interval = 30s}));
  EXPECT_TRUE(reader.ok());
}

TEST(MetricQuery, ReadsTheGivenFlags) {
  const cli::Arguments arguments = arguments_with({{"--metric", {"loss", "accuracy"}},
                                                   {"--interval", {"5m"}},
                                                   {"--start", {"2026-01-31"}},
                                                   {"--end", {"2026-01-31 01:00:00"}}});
  cli::FlagReader reader(arguments);
  const base::Time day = kDay;
  EXPECT_EQ(read_metric_query(reader, {}),
            (MetricQuery{
                .metrics = {"loss", "accuracy"}, .interval = 5min, .start = day, .end = day + 1h}));
  EXPECT_TRUE(reader.ok());
}

TEST(MetricQuery, ReportsAllFaultsAtOnce) {
  const std::string faults = faults_in(arguments_with({{"--metric", {"gpuTmp"}},
                                                       {"--interval", {"soon"}},
                                                       {"--start", {"yesterday"}},
                                                       {"--end", {"2026-01-31T25:00:00"}}}),
                                       {"gpuTemp", "cpuPercentage"});
  EXPECT_NE(faults.find("--metric 'gpuTmp' is invalid: expected one of gpuTemp, cpuPercentage; did "
                        "you mean 'gpuTemp'?\n"),
            std::string::npos)
      << faults;
  EXPECT_NE(faults.find("--interval "), std::string::npos) << faults;
  EXPECT_NE(faults.find("--start 'yesterday' is not a time; give 2026-01-31, "), std::string::npos);
  EXPECT_NE(faults.find("--end '2026-01-31T25:00:00' is not a time"), std::string::npos);
}

TEST(MetricQuery, RefusesTimesInTheWrongOrderAndAnEmptyInterval) {
  EXPECT_EQ(faults_in(arguments_with({{"--start", {"2026-01-31"}}, {"--end", {"2026-01-30"}}})),
            "--end is before --start\n");
  EXPECT_EQ(faults_in(arguments_with({{"--interval", {"0"}}})), "--interval is not a time\n");
}

}  // namespace

namespace {

using namespace std::chrono_literals;
using job::MetricSeries;

const base::Time kBegin{1'588'155'670s};

job::Job job_of(job::Kind kind, int workers = 0, int servers = 0) {
  job::Job job;
  job.id = "ea2l";
  job.spec.kind = kind;
  job.spec.workers = workers;
  job.spec.parameter_servers = servers;
  job.tasks = job::tasks_of(job.spec);
  return job;
}

std::vector<std::string> pods_of(const job::Job& job) {
  std::vector<std::string> pods;
  for (const job::Task& task : job.tasks) pods.push_back(pod_of(job, task.name));
  return pods;
}

TEST(PodOf, FollowsGradientsNames) {
  using Pods = std::vector<std::string>;
  EXPECT_EQ(pods_of(job_of(job::Kind::kSingle)), (Pods{"mljob-ea2l-0-worker"}));
  EXPECT_EQ(pods_of(job_of(job::Kind::kMpi, 2)),
            (Pods{"mljob-ea2l-0-master", "mljob-ea2l-0-worker", "mljob-ea2l-1-worker"}));
  EXPECT_EQ(
      pods_of(job_of(job::Kind::kGrpc, 1, 2)),
      (Pods{"mljob-ea2l-0-worker", "mljob-ea2l-1-worker", "mljob-ea2l-0-ps", "mljob-ea2l-1-ps"}));
}

TEST(PodOf, AnEvaluatorIsNotAWorkerAndALaterWorkerIsTheNext) {
  job::Job job = job_of(job::Kind::kGrpc, 2, 1);
  job.spec.evaluators = 1;
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].left = true;
  job.tasks.push_back(job::next_worker(job, 1));

  EXPECT_EQ(pods_of(job), (std::vector<std::string>{
                              "mljob-ea2l-0-worker", "mljob-ea2l-1-worker", "mljob-ea2l-2-worker",
                              "mljob-ea2l-0-ps", "mljob-ea2l-0-evaluator", "mljob-ea2l-3-worker"}));
}

TEST(MetricsBehind, AreOursForGradientsNamesAndTheProgramsOwnOtherwise) {
  EXPECT_EQ(metrics_behind({"cpuPercentage", "loss", "gpuTemp"}),
            (std::vector<std::string>{"cpu_percent", "gpu_temperature_celsius", "loss"}));
  EXPECT_EQ(metrics_behind({"gpuMemoryUtilization", "gpuMemoryUsed"}),
            (std::vector<std::string>{"gpu_memory_bytes", "gpu_memory_free_bytes"}));
}

TEST(AsGradientHasIt, ComputesThePercentageOfMemoryFromUsedAndTotal) {
  const std::vector<MetricSeries> ours{
      {"gpu_memory_bytes", "main", {}, {{kBegin, 3}, {kBegin + 1s, 1}, {kBegin + 2s, 0}}},
      {"gpu_memory_free_bytes", "main", {}, {{kBegin, 1}, {kBegin + 2s, 0}}}};
  EXPECT_EQ(as_gradient_has_it({"gpuMemoryUtilization"}, ours),
            (std::vector<MetricSeries>{{"gpuMemoryUtilization", "main", {}, {{kBegin, 75}}}}));
}

TEST(AsGradientHasIt, UsesTheLowestRankOfAPod) {
  const std::vector<MetricSeries> ours{{"loss", "w", 1, {{kBegin, 1}}},
                                       {"loss", "w", 0, {{kBegin, 0}}},
                                       {"loss", "v", 1, {{kBegin, 5}}}};
  EXPECT_EQ(as_gradient_has_it({"loss"}, ours),
            (std::vector<MetricSeries>{{"loss", "w", 0, {{kBegin, 0}}},
                                       {"loss", "v", 1, {{kBegin, 5}}}}));
}

TEST(MetricsJson, HasGradientsFormat) {
  const job::Job job = job_of(job::Kind::kSingle);
  EXPECT_EQ(metrics_json(job, {}), "{}");
  EXPECT_EQ(
      metrics_json(job, {{"memoryUsage", "main", {}, {{kBegin + 1ms, 5881856}}},
                         {"cpuPercentage", "main", {}, {{kBegin, 0}, {kBegin + 30s, 93.25}}}}),
      R"({
  "cpuPercentage": {
    "mljob-ea2l-0-worker": [
      {
        "time_stamp": 1588155670,
        "value": "0"
      },
      {
        "time_stamp": 1588155700,
        "value": "93.25"
      }
    ]
  },
  "memoryUsage": {
    "mljob-ea2l-0-worker": [
      {
        "time_stamp": 1588155670,
        "value": "5881856"
      }
    ]
  }
})");
}

TEST(MetricsTable, LeavesMissingValuesBlank) {
  const job::Job job = job_of(job::Kind::kMpi, 1);
  EXPECT_EQ("\n" + metrics_table(job, {"cpuPercentage", "memoryUsage"},
                                 {{"cpuPercentage", "worker-0", {}, {{kBegin, 1}, {kBegin, 7}}},
                                  {"memoryUsage", "launcher", {}, {{kBegin, 4096}}}})
                       .to_string(),
            R"(
+---------------------+---------------+-------------+
| Pod                 | cpuPercentage | memoryUsage |
+---------------------+---------------+-------------+
| mljob-ea2l-0-master |               | 4096        |
| mljob-ea2l-0-worker | 7             |             |
+---------------------+---------------+-------------+
)");
}

}  // namespace

}  // namespace muster::dialects::gradient
