#include "dialects/gradient/metric_pods.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

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

TEST(PodOf, IsNamedAsGradientNamesPods) {
  using Pods = std::vector<std::string>;
  EXPECT_EQ(pods_of(job_of(job::Kind::kSingle)), (Pods{"mljob-ea2l-0-worker"}));
  EXPECT_EQ(pods_of(job_of(job::Kind::kMpi, 2)),
            (Pods{"mljob-ea2l-0-master", "mljob-ea2l-0-worker", "mljob-ea2l-1-worker"}));
  EXPECT_EQ(
      pods_of(job_of(job::Kind::kGrpc, 1, 2)),
      (Pods{"mljob-ea2l-0-worker", "mljob-ea2l-1-worker", "mljob-ea2l-0-ps", "mljob-ea2l-1-ps"}));
}

TEST(PodOf, AnEvaluatorIsNoWorkerAndOneThatJoinsLaterIsTheNext) {
  job::Job job = job_of(job::Kind::kGrpc, 2, 1);
  job.spec.evaluators = 1;
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].left = true;
  job.tasks.push_back(job::next_worker(job, 1));

  EXPECT_EQ(pods_of(job), (std::vector<std::string>{
                              "mljob-ea2l-0-worker", "mljob-ea2l-1-worker", "mljob-ea2l-2-worker",
                              "mljob-ea2l-0-ps", "mljob-ea2l-0-evaluator", "mljob-ea2l-3-worker"}));
}

TEST(MetricsBehind, AreOursForGradientsNamesAndTheProgramsOwnAsTheyAre) {
  EXPECT_EQ(metrics_behind({"cpuPercentage", "loss", "gpuTemp"}),
            (std::vector<std::string>{"cpu_percent", "gpu_temperature_celsius", "loss"}));
  EXPECT_EQ(metrics_behind({"gpuMemoryUtilization", "gpuMemoryUsed"}),
            (std::vector<std::string>{"gpu_memory_bytes", "gpu_memory_free_bytes"}));
}

TEST(AsGradientHasIt, ReckonsThePartOfTheMemoryFromBothHalves) {
  const std::vector<MetricSeries> ours{
      {"gpu_memory_bytes", "main", {}, {{kBegin, 3}, {kBegin + 1s, 1}, {kBegin + 2s, 0}}},
      {"gpu_memory_free_bytes", "main", {}, {{kBegin, 1}, {kBegin + 2s, 0}}}};
  EXPECT_EQ(as_gradient_has_it({"gpuMemoryUtilization"}, ours),
            (std::vector<MetricSeries>{{"gpuMemoryUtilization", "main", {}, {{kBegin, 75}}}}));
}

TEST(AsGradientHasIt, LetsTheLowestRankSpeakForItsPod) {
  const std::vector<MetricSeries> ours{{"loss", "w", 1, {{kBegin, 1}}},
                                       {"loss", "w", 0, {{kBegin, 0}}},
                                       {"loss", "v", 1, {{kBegin, 5}}}};
  EXPECT_EQ(as_gradient_has_it({"loss"}, ours),
            (std::vector<MetricSeries>{{"loss", "w", 0, {{kBegin, 0}}},
                                       {"loss", "v", 1, {{kBegin, 5}}}}));
}

TEST(MetricsJson, IsWhatGradientPrints) {
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

TEST(MetricsTable, LeavesBlankWhatAPodLacks) {
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
