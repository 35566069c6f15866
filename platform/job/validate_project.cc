#include <cmath>

#include "job/checker.h"
#include "job/project.h"

namespace muster::job {

namespace {

constexpr size_t kMaxProjectName = 63;
constexpr int kMaxProjectPriority = 1000;
constexpr double kMaxWeight = 1'000'000;
// More than any cluster has, and small enough that thousands of projects can be added up.
constexpr int64_t kMaxMilli = 1'000'000'000;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

using Amount = std::optional<int64_t> Share::*;

struct Bound {
  const char* field;
  Amount amount;
  int64_t most;
  std::string (*text)(int64_t);
};

constexpr Bound kBounds[] = {{"gpus", &Share::gpu_milli, kMaxMilli, base::format_milli},
                             {"cpus", &Share::cpu_milli, kMaxMilli, base::format_milli},
                             {"memory_bytes", &Share::memory_bytes, kMaxBytes, base::format_bytes}};

void check_share(const Share& share, const std::string& field, Checker& check) {
  for (const Bound& bound : kBounds) {
    const std::optional<int64_t>& amount = share.*bound.amount;
    if (!amount) continue;
    check.require(*amount >= 0 && *amount <= bound.most, field + "." + bound.field,
                  bound.text(*amount) + " is out of range; give 0 to " + bound.text(bound.most));
  }
}

void check_quota(const Quota& quota, const std::string& field, Checker& check) {
  check_share(quota.deserved, field + ".deserved", check);
  check_share(quota.limit, field + ".limit", check);
  for (const Bound& bound : kBounds) {
    const std::optional<int64_t>& deserved = quota.deserved.*bound.amount;
    const std::optional<int64_t>& limit = quota.limit.*bound.amount;
    // A quota without a number claims all there is, and with a limit just that.
    if (!deserved || !limit) continue;
    check.require(*deserved <= *limit, field + ".deserved." + bound.field,
                  bound.text(*deserved) + " is more than the limit, " + bound.text(*limit));
  }
  check.require(std::isfinite(quota.weight) && quota.weight >= 0 && quota.weight <= kMaxWeight,
                field + ".weight", "is out of range; give 0 to 1000000");
}

void check_project_names(const Project& project, Checker& check) {
  check.require(is_dns_label(project.name, kMaxProjectName), "name",
                "'" + project.name + "' is not a project name; use 1 to " +
                    std::to_string(kMaxProjectName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  if (project.parent.empty()) return;
  check.require(is_dns_label(project.parent, kMaxProjectName), "parent",
                "'" + project.parent + "' is not a project name");
  check.require(project.parent != project.name, "parent", "is the project itself");
}

void check_time(std::chrono::milliseconds time, const std::string& field, Checker& check) {
  check.require(time.count() >= 0 && time.count() <= kYearMilliseconds, field,
                "give a time between 0s and 365d");
}

}  // namespace

std::vector<base::Fault> validate_project(const Project& project) {
  Checker check;
  check_project_names(project, check);
  check_quota(project.quota, "quota", check);
  for (const auto& [pool, quota] : project.pools) {
    check.require(is_token(pool), "pools", "'" + pool + "' names no node pool");
    check_quota(quota, "pools." + pool, check);
  }
  check.require_range(project.priority, 0, kMaxProjectPriority, "priority");
  check_time(project.reclaim_min_runtime, "reclaim_min_runtime_ms", check);
  check_time(project.preempt_min_runtime, "preempt_min_runtime_ms", check);
  return check.take();
}

}  // namespace muster::job
