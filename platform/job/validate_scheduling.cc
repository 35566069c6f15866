#include "job/validate_scheduling.h"

#include "job/elastic.h"
#include "job/log_pattern.h"

namespace muster::job {

namespace {

constexpr int kMaxGpus = 1024;
constexpr int64_t kMaxCpuMilli = 65'536'000;
constexpr int kMaxJobPriority = 1000;
constexpr int kMaxRetries = 1000;
constexpr size_t kMaxRetryRules = 100;
constexpr size_t kMaxNames = 100;

std::string element(const std::string& field, size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

void check_tokens(const std::vector<std::string>& names, const std::string& field,
                  const std::string& noun, Checker& check) {
  check.require(names.size() <= kMaxNames, field,
                "has more than " + std::to_string(kMaxNames) + " entries");
  for (size_t i = 0; i < names.size(); ++i) {
    check.require(is_token(names[i]), element(field, i), "'" + names[i] + "' names no " + noun);
  }
}

void check_topology(const std::string& level, const std::string& field, Checker& check) {
  if (level.empty()) return;
  check.require(is_token(level), field, "'" + level + "' names no level such as rack");
}

void check_min_workers(const JobSpec& spec, Checker& check) {
  const std::optional<int> minimum = spec.scheduling.min_workers;
  if (!minimum) return;
  const std::string field = "scheduling.min_workers";
  if (spec.kind == Kind::kSingle) {
    return check.require(false, field, "a single job has no workers; leave it out");
  }
  const int least = fewest_workers(spec.kind);
  if (spec.workers < least) return;  // which is told of the workers
  check.require(*minimum >= least && *minimum <= spec.workers, field,
                std::to_string(*minimum) + " is out of range; give " + std::to_string(least) +
                    " to " + std::to_string(spec.workers) + ", the number of workers");
}

void check_resize(const JobSpec& spec, Checker& check) {
  const Resize resize = spec.scheduling.resize;
  if (resize == Resize::kAuto) return;
  const std::string field = "scheduling.resize";
  const std::string name(to_string(resize));
  if (!spec.scheduling.min_workers) {
    return check.require(
        false, field,
        "'" + name + "' is how an elastic job takes a change of its workers, and " +
            (spec.kind == Kind::kSingle ? "a single job has none; leave it out"
                                        : "this one has a fixed number; give min_workers "
                                          "(--min-workers), too"));
  }
  check.require(resize != Resize::kLive || spec.kind != Kind::kGrpc || spec.parameter_servers > 0,
                field,
                "without parameter servers each worker of a grpc job waits for all the others, so "
                "that it cannot go on as they change; give parameter_servers, or say 'restart'");
}

void check_rule(const RetryRule& rule, const std::string& field, Checker& check) {
  check.require(rule.exit_code || !rule.log_pattern.empty(), field,
                "describes no failure; give an exit_code, a log_pattern or both");
  if (rule.exit_code) check.require_range(*rule.exit_code, 1, 255, field + ".exit_code");
  if (rule.log_pattern.empty()) return;
  const auto pattern = LogPattern::compile(rule.log_pattern);
  if (!pattern) check.require(false, field + ".log_pattern", pattern.error().what);
}

void check_retries(const Scheduling& scheduling, Checker& check) {
  check.require_range(scheduling.retries, 0, kMaxRetries, "scheduling.retries");
  // Whoever sat before it is not there any more when it starts again.
  check.require(scheduling.purpose != Purpose::kBuild || scheduling.retries <= 0,
                "scheduling.retries",
                "an interactive job is never started again; leave it out, or leave out "
                "--interactive (purpose: build)");
  const std::vector<RetryRule>& rules = scheduling.retry_rules;
  const std::string field = "scheduling.retry_rules";
  if (rules.size() > kMaxRetryRules) {
    return check.require(false, field,
                         "has more than " + std::to_string(kMaxRetryRules) + " rules");
  }
  for (size_t i = 0; i < rules.size(); ++i) check_rule(rules[i], element(field, i), check);
}

}  // namespace

void check_resources(const Resources& resources, const std::string& field, Checker& check) {
  check.require_range(resources.gpus, 0, kMaxGpus, field + ".gpus");
  const bool has_share = resources.gpu_share_milli != 0;
  const bool has_memory = resources.gpu_memory_bytes != 0;
  if (has_share) check.require_milli(resources.gpu_share_milli, 1, 999, field + ".gpu_share");
  check.require(resources.gpu_memory_bytes >= 0, field + ".gpu_memory", "is negative");
  check.require(!has_share || resources.gpus == 0, field + ".gpu_share",
                "is a part of one GPU, and does not go with whole ones");
  check.require(!has_memory || resources.gpus == 0, field + ".gpu_memory",
                "is a part of one GPU, and does not go with whole ones");
  check.require(!has_memory || !has_share, field + ".gpu_memory",
                "does not go with a share of one; give one of them");
  check.require_milli(resources.cpu_milli, 0, kMaxCpuMilli, field + ".cpus");
  check.require(resources.memory_bytes >= 0, field + ".memory", "is negative");
}

void check_scheduling(const JobSpec& spec, Checker& check) {
  const Scheduling& scheduling = spec.scheduling;
  if (scheduling.priority) {
    check.require_range(*scheduling.priority, 0, kMaxJobPriority, "scheduling.priority");
  }
  check_min_workers(spec, check);
  check_resize(spec, check);
  check_tokens(scheduling.node_pools, "scheduling.node_pools", "node pool", check);
  check_tokens(scheduling.gpu_models, "scheduling.gpu_models", "GPU model", check);
  check_topology(scheduling.required_topology, "scheduling.required_topology", check);
  check_topology(scheduling.preferred_topology, "scheduling.preferred_topology", check);
  if (scheduling.time_limit) {
    const int64_t limit = scheduling.time_limit->count();
    check.require(limit > 0 && limit <= kYearMilliseconds, "scheduling.time_limit",
                  "give a time between 1ms and 365d");
  }
  check_retries(scheduling, check);
}

}  // namespace muster::job
