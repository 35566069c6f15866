#include "control/retention.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"

namespace muster::control {

namespace {

using base::Time;

/// Each once, for the first reason that was found.
class Findings {
 public:
  void add(const EndedJob& job, std::string rule) {
    if (ids_.insert(job.id).second) all_.push_back({.id = job.id, .rule = std::move(rule)});
  }
  bool has(const EndedJob& job) const { return ids_.contains(job.id); }
  std::vector<Removal> all() && { return std::move(all_); }

 private:
  std::set<std::string> ids_;
  std::vector<Removal> all_;
};

std::string time_rule(const EndedJob& job, const RetentionRules& rules) {
  return job.keep_for ? "keep_for=" + base::format_duration(*job.keep_for) + " of the job"
                      : "keep_jobs_for=" + base::format_duration(*rules.keep_for);
}

void find_old(const std::vector<EndedJob>& jobs, const RetentionRules& rules, Time now,
              Findings& found) {
  for (const EndedJob& job : jobs) {
    const auto until = kept_until(job.ended, job.keep_for, rules);
    if (until && *until <= now) found.add(job, time_rule(job, rules));
  }
}

void find_too_many(const std::vector<EndedJob>& jobs, const RetentionRules& rules,
                   Findings& found) {
  if (!rules.keep_jobs) return;
  std::map<std::string, int> counts;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    if (found.has(*job)) continue;
    if (++counts[job->project] <= *rules.keep_jobs) continue;
    found.add(*job, "keep_jobs=" + std::to_string(*rules.keep_jobs));
  }
}

void find_too_large(const std::vector<EndedJob>& jobs, const RetentionRules& rules,
                    Findings& found) {
  if (!rules.keep_bytes) return;
  int64_t left = 0;
  for (const EndedJob& job : jobs) {
    if (!found.has(job)) left += job.bytes.value_or(0);
  }
  for (const EndedJob& job : jobs) {
    if (left <= *rules.keep_bytes) return;
    if (found.has(job) || job.bytes.value_or(0) == 0) continue;
    left -= *job.bytes;
    found.add(job, "keep_bytes=" + base::format_bytes(*rules.keep_bytes));
  }
}

}  // namespace

std::optional<Time> kept_until(Time ended, std::optional<std::chrono::milliseconds> own,
                               const RetentionRules& rules) {
  const auto time = own ? own : rules.keep_for;
  if (!time) return std::nullopt;
  return ended + *time;
}

std::vector<Removal> removals(std::vector<EndedJob> jobs, const RetentionRules& rules, Time now) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const EndedJob& one, const EndedJob& other) {
    return one.ended < other.ended;
  });
  Findings found;
  find_old(jobs, rules, now, found);
  find_too_many(jobs, rules, found);
  find_too_large(jobs, rules, found);
  return std::move(found).all();
}

std::optional<Time> next_removal(const std::vector<EndedJob>& jobs, const RetentionRules& rules) {
  std::optional<Time> next;
  for (const EndedJob& job : jobs) {
    const auto until = kept_until(job.ended, job.keep_for, rules);
    if (until && (!next || *until < *next)) next = until;
  }
  return next;
}

}  // namespace muster::control
