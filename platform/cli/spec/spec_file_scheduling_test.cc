// The keys of a job file that say what a job needs, and when and where it runs.
#include <gtest/gtest.h>

#include "cli/spec/spec_file.h"

namespace muster::cli::spec {

namespace {

Result<job::JobSpec> parse_scheduling(const std::string& text) {
  job::JobSpec defaults;
  defaults.folder = "/home/ada";
  return parse_spec_file("name: one\ncommand: [ls]\n" + text, "job.yaml", defaults);
}

std::string scheduling_refusal(const std::string& text) {
  const auto spec = parse_scheduling(text);
  return spec ? "accepted" : spec.error().to_string();
}

TEST(SpecFileScheduling, ReadsEveryKey) {
  const auto spec = parse_scheduling(R"(kind: mpi
workers: 8
scheduling:
  purpose: inference
  priority: 60
  preemptible: false
  min_workers: 2
  resize: live
  node_pools: [a100, default]
  gpu_models: NVIDIA A100
  packing: spread
  required_topology: rack
  preferred_topology: block
  time_limit: 12h
  retries: 3
  retry_rules:
    - {exit_code: 42, action: fail}
    - log_pattern: "CUDA error: \\w+"
      action: avoid-node
)");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(
      spec->scheduling,
      (job::Scheduling{.purpose = job::Purpose::kInference,
                       .priority = 60,
                       .preemptible = false,
                       .min_workers = 2,
                       .resize = job::Resize::kLive,
                       .node_pools = {"a100", "default"},
                       .gpu_models = {"NVIDIA A100"},
                       .packing = job::Packing::kSpread,
                       .required_topology = "rack",
                       .preferred_topology = "block",
                       .time_limit = std::chrono::hours(12),
                       .retries = 3,
                       .retry_rules = {{.exit_code = 42, .action = job::RetryRule::Action::kFail},
                                       {.log_pattern = "CUDA error: \\w+",
                                        .action = job::RetryRule::Action::kAvoidNode}}}));
}

TEST(SpecFileScheduling, ReadsPartsOfGpusAndOfCpus) {
  EXPECT_EQ(parse_scheduling("resources: {gpu_share: 0.5, cpus: 0.5}\n")->resources,
            (job::Resources{.gpu_share_milli = 500, .cpu_milli = 500}));
  EXPECT_EQ(parse_scheduling("resources: {gpu_memory: 8G, cpus: 500m}\n")->resources,
            (job::Resources{.gpu_memory_bytes = 8LL << 30, .cpu_milli = 500}));
}

struct BadScheduling {
  std::string text;
  std::string says;
};

TEST(SpecFileScheduling, SaysWhatIsWrongAndWhere) {
  const BadScheduling files[] = {
      {"resources: {gpu_share: 1}\n", "line 3: resources.gpu_share: 1 is out of range"},
      {"resources: {gpu_share: 0}\n", "line 3: resources.gpu_share: 0 is out of range"},
      {"resources:\n  gpus: 1\n  gpu_share: 0.5\n", "line 5: resources.gpu_share: is a part of"},
      {"resources: {cpus: 0.0001}\n", "line 3: resources.cpus: '0.0001' is not a number of CPUs"},
      {"resources: {gpus: 0.5}\n",
       "line 3: resources.gpus: '0.5' is not a whole number; a part of one GPU is gpu_share: 0.5"},
      {"scheduling: high\n", "line 3: scheduling: must be a map, not a single value"},
      {"retries: -1\n", "line 3: retries: unknown key here; write it under 'scheduling'"},
      {"gpus: 2\n", "line 3: gpus: unknown key here; write it under 'resources'"},
      {"scheduling:\n  priorty: 1\n", "line 4: scheduling.priorty: unknown key; did you mean"},
      {"scheduling:\n  priority: -1\n", "line 4: scheduling.priority: -1 is out of range"},
      {"scheduling:\n  priority: 1001\n", "line 4: scheduling.priority: 1001 is out of range"},
      {"scheduling:\n  purpose: trian\n",
       "line 4: scheduling.purpose: 'trian' is none of train, build, inference; did you mean"},
      {"scheduling:\n  preemptible: maybe\n",
       "line 4: scheduling.preemptible: 'maybe' is neither true nor false"},
      {"scheduling:\n  min_workers: 1\n", "line 4: scheduling.min_workers: a single job has no"},
      {"scheduling:\n  resize: lively\n",
       "line 4: scheduling.resize: 'lively' is none of auto, live, restart; did you mean"},
      {"scheduling:\n  resize: live\n",
       "line 4: scheduling.resize: 'live' is how an elastic job takes a change of its workers"},
      {"scheduling:\n  node_pools:\n    - a\n    - \"\"\n",
       "line 6: scheduling.node_pools[1]: '' names no node pool"},
      {"scheduling:\n  gpu_models: {a: b}\n",
       "line 4: scheduling.gpu_models: must be a list, not a map"},
      {"scheduling:\n  packing: tight\n",
       "line 4: scheduling.packing: 'tight' is none of auto, pack, spread"},
      {"scheduling:\n  time_limit: 0s\n", "line 4: scheduling.time_limit: give a time between"},
      {"scheduling:\n  retry_rules: fail\n",
       "line 4: scheduling.retry_rules: must be a list, not a single value"},
      {"scheduling:\n  retry_rules:\n    - exit_code: 1\n",
       "line 5: scheduling.retry_rules[0].action: is missing"},
      {"scheduling:\n  retry_rules:\n    - action: fail\n",
       "line 5: scheduling.retry_rules[0]: describes no failure"},
      {"scheduling:\n  retry_rules:\n    - action: fail\n      log_pattern: (\n",
       "line 6: scheduling.retry_rules[0].log_pattern: '(' is not a pattern"},
      {"scheduling:\n  retry_rules:\n    - action: stop\n      exit_code: 1\n",
       "line 5: scheduling.retry_rules[0].action: 'stop' is none of retry, fail, avoid-node"},
  };
  for (const BadScheduling& file : files) {
    EXPECT_NE(scheduling_refusal(file.text).find(file.says), std::string::npos)
        << file.text << "\n"
        << scheduling_refusal(file.text) << "\n  should say: " << file.says;
  }
}

TEST(SpecFileScheduling, AFaultyValueInventsNoOtherFault) {
  EXPECT_EQ(scheduling_refusal("scheduling:\n  retry_rules:\n    - {exit_code: x, action: fail}\n"),
            "'job.yaml' has 1 fault\n"
            "  line 5: scheduling.retry_rules[0].exit_code: 'x' is not a whole number");
  EXPECT_EQ(scheduling_refusal("kind: mpi\nworkers: x\nscheduling: {min_workers: 4}\n"),
            "'job.yaml' has 1 fault\n  line 4: workers: 'x' is not a whole number");
  EXPECT_EQ(
      scheduling_refusal("kind: mpi\nworkers: 4\nscheduling: {min_workers: x, resize: live}\n"),
      "'job.yaml' has 1 fault\n  line 5: scheduling.min_workers: 'x' is not a whole number");
  EXPECT_EQ(scheduling_refusal("kind: grcp\nevaluators: 1\n"),
            "'job.yaml' has 1 fault\n  line 3: kind: 'grcp' is none of single, mpi, grpc, torch; "
            "did you mean 'grpc'?");
}

}  // namespace

}  // namespace muster::cli::spec
