// Resources, the rules of scheduling and of retries, and the jobs that a job waits for.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using std::chrono::milliseconds;

TEST(ValidateScheduling, AcceptsEachFieldAtBothEndsOfItsRange) {
  JobSpec spec = valid_mpi_spec(4);
  spec.resources = {.gpu_share_milli = 1, .cpu_milli = 1};
  spec.scheduling = {.purpose = Purpose::kInference,
                     .priority = 0,
                     .preemptible = true,
                     .min_workers = 1,
                     .resize = Resize::kLive,
                     .node_pools = {"a100", "default"},
                     .gpu_models = {"NVIDIA A100-SXM4-80GB"},
                     .packing = Packing::kSpread,
                     .required_topology = "topology.kubernetes.io/zone",
                     .preferred_topology = "rack",
                     .time_limit = milliseconds(1),
                     .retries = 1000,
                     .retry_rules = {{.exit_code = 1, .action = RetryRule::Action::kFail},
                                     {.log_pattern = "Xid \\d+"}}};
  EXPECT_EQ(validate(spec), std::vector<Fault>{});

  spec.resources.gpu_share_milli = 999;
  spec.scheduling.priority = 1000;
  spec.scheduling.min_workers = 4;
  spec.scheduling.resize = Resize::kRestart;
  EXPECT_EQ(validate(spec), std::vector<Fault>{});
}

TEST(ValidateScheduling, AcceptsAMasterOrChiefWithoutWorkersAsTheMinimum) {
  for (const Kind kind : {Kind::kTorch, Kind::kGrpc}) {
    JobSpec spec = valid_mpi_spec(4);
    spec.kind = kind;
    spec.scheduling.min_workers = 0;
    EXPECT_EQ(validate(spec), std::vector<Fault>{}) << to_string(kind);
  }
}

TEST(ValidateScheduling, AcceptsALiveResizeOfAGrpcJobWithParameterServers) {
  JobSpec spec = valid_mpi_spec(4);
  spec.kind = Kind::kGrpc;
  spec.parameter_servers = 1;
  spec.scheduling = {.min_workers = 1, .resize = Resize::kLive};
  EXPECT_EQ(validate(spec), std::vector<Fault>{});
}

struct WrongScheduling {
  SpecChange change;
  std::string field;
  std::string what;
};

TEST(ValidateScheduling, NamesTheFieldAndItsFault) {
  const WrongScheduling wrongs[] = {
      {[](JobSpec& spec) { spec.resources.gpus = -1; }, "resources.gpus",
       "-1 is out of range; give 0 to 1024"},
      {[](JobSpec& spec) { spec.resources.gpu_share_milli = 1000; }, "resources.gpu_share",
       "1 is out of range; give 0.001 to 0.999"},
      {[](JobSpec& spec) { spec.resources.gpu_share_milli = -500; }, "resources.gpu_share",
       "-0.5 is out of range; give 0.001 to 0.999"},
      {[](JobSpec& spec) { spec.resources.gpu_memory_bytes = -1; }, "resources.gpu_memory",
       "is negative"},
      {[](JobSpec& spec) { spec.resources = {.gpus = 1, .gpu_share_milli = 500}; },
       "resources.gpu_share", "is a part of one GPU, and cannot be used with whole GPUs"},
      {[](JobSpec& spec) { spec.resources = {.gpus = 1, .gpu_memory_bytes = 1}; },
       "resources.gpu_memory", "is a part of one GPU, and cannot be used with whole GPUs"},
      {[](JobSpec& spec) { spec.resources = {.gpu_share_milli = 1, .gpu_memory_bytes = 1}; },
       "resources.gpu_memory", "cannot be used with gpu_share; give only one"},
      {[](JobSpec& spec) { spec.resources.cpu_milli = -1500; }, "resources.cpus",
       "-1.5 is out of range; give 0 to 65536"},
      {[](JobSpec& spec) { spec.resources.memory_bytes = -1; }, "resources.memory", "is negative"},
      {[](JobSpec& spec) { spec.resources.memory_bytes = INT64_MAX; }, "resources.memory",
       "8388607.9Ti is out of range; give 0 to 1024Ti"},
      {[](JobSpec& spec) { spec.resources.gpu_memory_bytes = int64_t{1} << 51; },
       "resources.gpu_memory", "2048Ti is out of range; give 0 to 1024Ti"},
      {[](JobSpec& spec) { spec.scheduling.priority = -1; }, "scheduling.priority",
       "-1 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.priority = 1001; }, "scheduling.priority",
       "1001 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) {
         spec.scheduling.purpose = Purpose::kBuild;
         spec.scheduling.retries = 1;
       },
       "scheduling.retries",
       "an interactive job is never retried; leave it out, or leave out --interactive "
       "(purpose: build)"},
      {[](JobSpec& spec) { spec.scheduling.min_workers = 0; }, "scheduling.min_workers",
       "0 is out of range; give 1 to 4, the number of workers"},
      {[](JobSpec& spec) { spec.scheduling.min_workers = 5; }, "scheduling.min_workers",
       "5 is out of range; give 1 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kSingle;
         spec.workers = 0;
         spec.scheduling.min_workers = 1;
       },
       "scheduling.min_workers", "a single job has no workers; leave it out"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kTorch;
         spec.scheduling.min_workers = -1;
       },
       "scheduling.min_workers", "-1 is out of range; give 0 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kGrpc;
         spec.scheduling.min_workers = 5;
       },
       "scheduling.min_workers", "5 is out of range; give 0 to 4, the number of workers"},
      {[](JobSpec& spec) {
         spec.workers = 0;
         spec.scheduling.min_workers = 1;
       },
       "workers", "0 is out of range; give 1 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.resize = Resize::kLive; }, "scheduling.resize",
       "'live' is for elastic jobs, and this job has a fixed number of workers; also give "
       "min_workers (--min-workers)"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kSingle;
         spec.workers = 0;
         spec.scheduling.resize = Resize::kRestart;
       },
       "scheduling.resize",
       "'restart' is for elastic jobs, and a single job has no workers; leave it out"},
      {[](JobSpec& spec) {
         spec.kind = Kind::kGrpc;
         spec.scheduling = {.min_workers = 1, .resize = Resize::kLive};
       },
       "scheduling.resize",
       "without parameter servers each worker of a grpc job waits for all others, so the job "
       "cannot continue when workers change; give parameter_servers, or 'restart'"},
      {[](JobSpec& spec) { spec.scheduling.node_pools = {"a", ""}; }, "scheduling.node_pools[1]",
       "'' is not a node pool name"},
      {[](JobSpec& spec) { spec.scheduling.gpu_models = {"A\n"}; }, "scheduling.gpu_models[0]",
       "'A\n' is not a GPU model name"},
      {[](JobSpec& spec) { spec.scheduling.gpu_models.assign(101, "A"); }, "scheduling.gpu_models",
       "has more than 100 entries"},
      {[](JobSpec& spec) { spec.scheduling.required_topology = " "; },
       "scheduling.required_topology", "' ' is not a topology level such as rack"},
      {[](JobSpec& spec) { spec.scheduling.preferred_topology = "\xFF"; },
       "scheduling.preferred_topology", "'\xFF' is not a topology level such as rack"},
      {[](JobSpec& spec) { spec.scheduling.time_limit = milliseconds(0); }, "scheduling.time_limit",
       "give a time between 1ms and 365d"},
      {[](JobSpec& spec) { spec.scheduling.retries = 1001; }, "scheduling.retries",
       "1001 is out of range; give 0 to 1000"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{}}; }, "scheduling.retry_rules[0]",
       "matches no failure; give an exit_code, a log_pattern or both"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{.exit_code = 256}}; },
       "scheduling.retry_rules[0].exit_code", "256 is out of range; give 1 to 255"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules = {{.exit_code = 7, .last_exit_code = 6}}; },
       "scheduling.retry_rules[0].last_exit_code", "6 is out of range; give 7 to 255"},
      {[](JobSpec& spec) { spec.success = Success::kAll; }, "success",
       "only grpc and torch jobs have tasks of their own program"},
      {[](JobSpec& spec) { spec.chief_is_worker = true; }, "chief_is_worker",
       "only a grpc job has a chief; leave it out"},
      {[](JobSpec& spec) {
         spec.scheduling.retry_rules = {{.exit_code = 1}, {.log_pattern = std::string(201, 'a')}};
       },
       "scheduling.retry_rules[1].log_pattern", "is longer than 200 bytes"},
      {[](JobSpec& spec) { spec.scheduling.retry_rules.assign(101, {.exit_code = 1}); },
       "scheduling.retry_rules", "has more than 100 rules"},
  };
  for (const WrongScheduling& wrong : wrongs) {
    JobSpec spec = valid_mpi_spec(4);
    wrong.change(spec);
    EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = wrong.field, .what = wrong.what}}))
        << wrong.field;
  }
}

TEST(ValidateScheduling, ASingletonIsTextOfAHundredCharacters) {
  JobSpec spec = valid_mpi_spec(4);
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  for (const std::string& valid : {std::string("\u00fc"), umlauts}) {
    spec.scheduling.singleton = valid;
    EXPECT_TRUE(validate(spec).empty()) << valid;
  }
  for (const std::string& wrong :
       {std::string(" a"), std::string("a\nb"), std::string("\xff"), umlauts + "a"}) {
    spec.scheduling.singleton = wrong;
    EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"scheduling.singleton"}) << wrong;
  }
}

TEST(ValidateScheduling, RefusesAnInvalidPattern) {
  JobSpec spec = valid_mpi_spec(4);
  spec.scheduling.retry_rules = {{.log_pattern = "(CUDA"}};

  const auto faults = validate(spec);

  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "scheduling.retry_rules[0].log_pattern");
  EXPECT_EQ(faults[0].what.find("'(CUDA' is not a pattern: "), 0U) << faults[0].what;
}

TEST(ValidateScheduling, BoundsThePatternsOfAllRulesTogether) {
  JobSpec spec = valid_mpi_spec(4);
  spec.scheduling.retry_rules.assign(10, {.log_pattern = "x.{99}"});
  spec.scheduling.retry_rules.resize(100, {.log_pattern = "out of memory"});
  EXPECT_EQ(validate(spec), std::vector<Fault>{});

  spec.scheduling.retry_rules[99].log_pattern = "x*";

  EXPECT_EQ(validate(spec), (std::vector<Fault>{{.field = "scheduling.retry_rules",
                                                 .what = "have patterns of 1002 parts when their "
                                                         "counts are written out, more than 1000; "
                                                         "use plain words, or * or + instead of "
                                                         "counts"}}));
}

}  // namespace
}  // namespace muster::job
