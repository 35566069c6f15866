// Resources, the rules of scheduling and of retries, and the jobs that a job waits for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/checker.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/spec.h"
#include "job/validate.h"

namespace muster::job {

namespace {

constexpr int kMaxGpus = 1024;
constexpr int kMaxJobPriority = 1000;
constexpr int kMaxRetries = 1000;
constexpr size_t kMaxRetryRules = 100;
/// Of the patterns of all rules together. When a job fails, the server's loop searches 64 KiB of
/// output for each of them: see kMaxPatternStates.
constexpr size_t kMaxRuleStates = 1000;
constexpr size_t kMaxNames = 100;

std::string element(const std::string& field, size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

void check_tokens(const std::vector<std::string>& names, const std::string& field,
                  const std::string& noun, Checker& check) {
  check.require(names.size() <= kMaxNames, field,
                "has more than " + std::to_string(kMaxNames) + " entries");
  for (size_t i = 0; i < names.size(); ++i) {
    check.require(is_token(names[i]), element(field, i),
                  "'" + names[i] + "' is not a " + noun + " name");
  }
}

void check_topology(const std::string& level, const std::string& field, Checker& check) {
  if (level.empty()) return;
  check.require(is_token(level), field, "'" + level + "' is not a topology level such as rack");
}

void check_min_workers(const JobSpec& spec, Checker& check) {
  const std::optional<int> minimum = spec.scheduling.min_workers;
  if (!minimum) return;
  const std::string field = "scheduling.min_workers";
  if (spec.kind == Kind::kSingle) {
    return check.require(false, field, "a single job has no workers; leave it out");
  }
  const int least = fewest_workers(spec.kind);
  if (spec.workers < least) return;  // the fault about the workers suffices
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
        "'" + name + "' is for elastic jobs, and " +
            (spec.kind == Kind::kSingle ? "a single job has no workers; leave it out"
                                        : "this job has a fixed number of workers; also give "
                                          "min_workers (--min-workers)"));
  }
  check.require(resize != Resize::kLive || spec.kind != Kind::kGrpc || spec.parameter_servers > 0,
                field,
                "without parameter servers each worker of a grpc job waits for all others, so the "
                "job cannot continue when workers change; give parameter_servers, or 'restart'");
}

void check_success(const JobSpec& spec, Checker& check) {
  if (spec.success == Success::kLeader) return;
  const bool has_peers = spec.kind == Kind::kGrpc || spec.kind == Kind::kTorch;
  check.require(has_peers, "success", "only grpc and torch jobs have tasks of their own program");
  check.require(!has_peers || !spec.scheduling.min_workers, "success",
                "an elastic job, whose workers come and go, succeeds with its leader");
}

/// Returns the states of the rule's pattern.
size_t check_rule(const RetryRule& rule, const std::string& field, Checker& check) {
  check.require(rule.exit_code || !rule.log_pattern.empty(), field,
                "matches no failure; give an exit_code, a log_pattern or both");
  if (rule.exit_code) check.require_range(*rule.exit_code, 1, 255, field + ".exit_code");
  if (rule.last_exit_code) {
    check.require(rule.exit_code.has_value(), field + ".last_exit_code",
                  "has no first code; give an exit_code, too");
    check.require_range(*rule.last_exit_code, rule.exit_code.value_or(1), 255,
                        field + ".last_exit_code");
  }
  if (rule.log_pattern.empty()) return 0;
  const auto pattern = LogPattern::compile(rule.log_pattern);
  if (pattern) return pattern->states();
  check.require(false, field + ".log_pattern", pattern.error().what);
  return 0;
}

bool is_singleton(std::string_view text) {
  constexpr ptrdiff_t kLongest = 100;
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; };
  return is_shown(text) && text.front() != ' ' && text.back() != ' ' &&
         std::count_if(text.begin(), text.end(), begins_character) <= kLongest;
}

void check_retries(const Scheduling& scheduling, Checker& check) {
  check.require_range(scheduling.retries, 0, kMaxRetries, "scheduling.retries");
  // After a restart, no user would be attached to an interactive job.
  check.require(scheduling.purpose != Purpose::kBuild || scheduling.retries <= 0,
                "scheduling.retries",
                "an interactive job is never retried; leave it out, or leave out --interactive "
                "(purpose: build)");
  const std::vector<RetryRule>& rules = scheduling.retry_rules;
  const std::string field = "scheduling.retry_rules";
  if (rules.size() > kMaxRetryRules) {
    return check.require(false, field,
                         "has more than " + std::to_string(kMaxRetryRules) + " rules");
  }
  size_t states = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    states += check_rule(rules[i], element(field, i), check);
  }
  check.require(states <= kMaxRuleStates, field,
                "have patterns of " + std::to_string(states) +
                    " parts when their counts are written out, more than " +
                    std::to_string(kMaxRuleStates) +
                    "; use plain words, or * or + instead of counts");
}

}  // namespace

void check_resources(const Resources& resources, const std::string& field, Checker& check) {
  check.require_range(resources.gpus, 0, kMaxGpus, field + ".gpus");
  const bool has_share = resources.gpu_share_milli != 0;
  const bool has_memory = resources.gpu_memory_bytes != 0;
  if (has_share) check.require_milli(resources.gpu_share_milli, 1, 999, field + ".gpu_share");
  check.require_memory(resources.gpu_memory_bytes, field + ".gpu_memory");
  check.require(!has_share || resources.gpus == 0, field + ".gpu_share",
                "is a part of one GPU, and cannot be used with whole GPUs");
  check.require(!has_memory || resources.gpus == 0, field + ".gpu_memory",
                "is a part of one GPU, and cannot be used with whole GPUs");
  check.require(!has_memory || !has_share, field + ".gpu_memory",
                "cannot be used with gpu_share; give only one");
  check.require_milli(resources.cpu_milli, 0, kMaxCpuMilli, field + ".cpus");
  check.require_memory(resources.memory_bytes, field + ".memory");
}

void check_scheduling(const JobSpec& spec, Checker& check) {
  const Scheduling& scheduling = spec.scheduling;
  if (scheduling.priority) {
    check.require_range(*scheduling.priority, 0, kMaxJobPriority, "scheduling.priority");
  }
  check_min_workers(spec, check);
  check_resize(spec, check);
  check_success(spec, check);
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

void check_dependencies(const JobSpec& spec, Checker& check) {
  constexpr size_t kMostDependencies = 100;
  check.require(spec.after.size() <= kMostDependencies, "after",
                "has more than " + std::to_string(kMostDependencies) + " entries");
  for (size_t i = 0; i < spec.after.size(); ++i) {
    const std::string& other = spec.after[i].job;
    const std::string field = element("after", i) + ".job";
    check.require(is_token(other), field, in_quotes(other) + " is not the name or id of a job");
    check.require(other != spec.name, field, "a job cannot wait for itself");
  }
  const std::string& singleton = spec.scheduling.singleton;
  check.require(singleton.empty() || is_singleton(singleton), "scheduling.singleton",
                in_quotes(singleton) +
                    " has a control character, begins or ends with a space, or has more than 100 "
                    "characters");
}

}  // namespace muster::job
