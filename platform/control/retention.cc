#include "control/retention.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/log.h"
#include "base/units.h"
#include "control/audit_changes.h"

namespace muster::control {

namespace {

using base::Time;

/// Each job once, with the first rule that removes it.
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

// --- the keeper

namespace {

/// How many jobs are removed in one commit; between two commits, the loop serves others.
constexpr size_t kMostAtOnce = 64;
constexpr std::chrono::milliseconds kPause{20};
/// Due jobs that cannot be removed yet are looked at again after this; and all jobs after kLongest:
/// the clock may have been set.
constexpr std::chrono::seconds kSoonAgain{2};
constexpr std::chrono::minutes kLongest{10};

}  // namespace

void RetentionKeeper::set_rules(const RetentionRules& rules) {
  rules_ = rules;
  for (const auto& [sequence, entry] : jobs_.entries()) complete(entry->job);
  look_at(clock_.now());
  measure_next();
}

void RetentionKeeper::complete(job::Job& job) const {
  if (job.ended) job.kept_until = kept_until(*job.ended, job.spec.keep_for, rules_);
}

void RetentionKeeper::job_ended(job::Job& job) {
  complete(job);
  if (job.kept_until) look_at(*job.kept_until);
  if (rules_.keep_jobs) look_at(clock_.now());
  measure_next();
}

/// Those that a rule may concern: a look does not copy a million jobs. Where only their time can end
/// them, those that are due and the next one; of a project with more jobs than it may keep, all.
std::vector<EndedJob> RetentionKeeper::ended_jobs() const {
  std::vector<EndedJob> jobs;
  const Time now = clock_.now();
  std::optional<Time> next;
  std::unordered_map<std::string_view, int> counts;  // by project
  const auto each_ended = [this](const std::function<void(const job::JobFacts&)>& visit) {
    jobs_.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
      if (job::is_final(job.phase) && job.ended) visit(job);
      return true;
    });
  };
  if (rules_.keep_jobs) each_ended([&](const job::JobFacts& job) { ++counts[job.project]; });
  each_ended([&](const job::JobFacts& job) {
    const bool is_too_many = rules_.keep_jobs && counts[job.project] > *rules_.keep_jobs;
    if (!rules_.keep_bytes && !is_too_many) {
      const auto until = kept_until(*job.ended, job.keep_for(), rules_);
      const bool is_later = until && *until > now && next && *next <= *until;
      if (!until || is_later) return;
      if (*until > now) next = until;
    }
    EndedJob ended{.id = std::string(job.id),
                   .project = std::string(job.project),
                   .ended = *job.ended,
                   .keep_for = job.keep_for()};
    if (const auto bytes = bytes_.find(ended.id); bytes != bytes_.end()) {
      ended.bytes = bytes->second;
    }
    jobs.push_back(std::move(ended));
  });
  return jobs;
}

void RetentionKeeper::look() {
  due_.reset();
  timer_.reset();
  const Time now = clock_.now();
  std::vector<EndedJob> ended = ended_jobs();
  std::vector<Removal> due = removals(ended, rules_, now);
  const auto is_followed = [this](const Removal& removal) {
    return jobs_.watchers().is_watched(removal.id);
  };
  const bool some_wait = std::erase_if(due, is_followed) > 0;
  const bool is_more = due.size() > kMostAtOnce;
  if (is_more) due.resize(kMostAtOnce);
  remove(due);
  if (is_more) return look_at(now + kPause);
  if (some_wait) look_at(now + kSoonAgain);
  // Due jobs were removed, or could not be removed; the next jobs are due later.
  if (!due.empty()) {
    ended = ended_jobs();
    look_at(now + kLongest);
  }
  std::erase_if(ended, [&](const EndedJob& job) {
    const auto until = kept_until(job.ended, job.keep_for, rules_);
    return !until || *until <= now;
  });
  if (const auto next = next_removal(ended, rules_)) look_at(*next);
  look_at_objects(now);
}

void RetentionKeeper::look_at_objects(Time now) {
  constexpr size_t kMostObjectsAtOnce = 4;  // each may have many jobs
  for (const RetainedObjects& kind : objects_) {
    const std::vector<EndedJob> ended = kind.ended();
    std::vector<Removal> due = removals(ended, rules_, now);
    std::erase_if(
        due, [this](const Removal& removal) { return jobs_.watchers().is_watched(removal.id); });
    const bool is_more = due.size() > kMostObjectsAtOnce;
    if (is_more) due.resize(kMostObjectsAtOnce);
    bool has_failed = false;
    for (const Removal& removal : due) {
      if (kind.remove(removal.id, removal.rule)) continue;  // the journal logs the error
      has_failed = true;
    }
    if (is_more) look_at(now + kPause);
    for (const EndedJob& object : ended) {
      const auto until = kept_until(object.ended, object.keep_for, rules_);
      if (!until) continue;
      // A followed object, and one that could not be removed, is looked at again.
      look_at(*until > now ? *until : now + (has_failed ? kLongest : kSoonAgain));
    }
  }
}

void RetentionKeeper::look_at(Time time) {
  const Time now = clock_.now();
  const Time at = std::clamp(time, now, now + kLongest);
  if (due_ && *due_ <= at) return;
  due_ = at;
  timer_.reset();
  if (at > now) {
    timer_ = loop_.after(at - now, [this] { look(); });
    return;
  }
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) look();
  });
}

void RetentionKeeper::remove(const std::vector<Removal>& due) {
  std::vector<JobEntry*> gone;
  std::vector<access::AuditRecord> audit;
  std::vector<std::string> ids;
  for (const Removal& removal : due) {
    JobEntry* const entry = jobs_.entry_with_id(removal.id);
    if (const auto removed = engine_.remove(removal.id); !removed) {
      base::log_error("cannot delete an ended job: " + removed.error().to_string());
      continue;
    }
    const job::Job& job = entry->job;
    auto records = audit_records(clock_.now(), {.user = kServer, .address = "local"}, "job.delete",
                                 &job, nullptr);
    records.front().changes.push_back({.field = "rule", .before = "", .after = removal.rule});
    audit.push_back(std::move(records.front()));
    base::log_info("removes a job by a rule of retention", {{"job", job.spec.name},
                                                            {"project", job.spec.project},
                                                            {"id", job.id},
                                                            {"rule", removal.rule}});
    ids.push_back(job.id);
    gone.push_back(entry);
  }
  if (gone.empty()) return;
  if (const auto removed = jobs_.remove(gone, std::move(audit)); !removed) {
    base::log_error("cannot delete ended jobs: " + removed.error().to_string());
    return;
  }
  for (const std::string& id : ids) bytes_.erase(id);
}

/// One job at a time, in the order in which they ended: so the rule on bytes never removes a job
/// while the size of an older job is unknown.
void RetentionKeeper::measure_next() {
  if (!rules_.keep_bytes || std::exchange(measuring_, true)) return;
  std::optional<job::JobFacts> next;
  jobs_.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
    const bool is_unmeasured =
        job::is_final(job.phase) && job.ended && !bytes_.contains(std::string(job.id));
    if (is_unmeasured && (!next || *job.ended < *next->ended)) next = job;
    return true;
  });
  if (!next) {
    measuring_ = false;
    return;
  }
  const std::string id(next->id);
  const auto keep = [this, alive = std::weak_ptr<bool>(alive_), id](int64_t bytes) {
    if (alive.expired()) return;
    measuring_ = false;
    if (jobs_.facts_with_id(id)) bytes_[id] = bytes;
    look_at(clock_.now());
    measure_next();
  };
  engine_.measure(id, keep);
}

}  // namespace muster::control
