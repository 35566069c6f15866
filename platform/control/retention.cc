#include "control/retention.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

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
    if (!ids_.insert(job.id).second) return;
    all_.push_back({.id = job.id, .rule = std::move(rule), .waits = job.in_use});
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
  std::vector<const EndedJob*> surplus;  // the job that ended last comes first
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    if (found.has(*job)) continue;
    if (++counts[job->project] <= *rules.keep_jobs) continue;
    surplus.push_back(&*job);
  }
  for (auto job = surplus.rbegin(); job != surplus.rend(); ++job) {
    found.add(**job, "keep_jobs=" + std::to_string(*rules.keep_jobs));
  }
}

void find_too_large(const std::vector<EndedJob>& jobs, const RetentionRules& rules, int64_t left,
                    Findings& found) {
  if (!rules.keep_bytes) return;
  int64_t in_use = 0;
  for (const EndedJob& job : jobs) {
    if (job.in_use) in_use += job.bytes.value_or(0);
  }
  // If the jobs in use alone are too large, the removal of all other jobs would not help.
  const bool is_replaced = in_use <= *rules.keep_bytes;
  for (const EndedJob& job : jobs) {
    if (!found.has(job) || (job.in_use && is_replaced)) left += job.bytes.value_or(0);
  }
  for (const EndedJob& job : jobs) {
    if (left <= *rules.keep_bytes) return;
    if (found.has(job) || job.bytes.value_or(0) == 0) continue;
    if (!job.in_use || !is_replaced) left -= *job.bytes;
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

std::vector<Removal> removals(std::vector<EndedJob> jobs, const RetentionRules& rules, Time now,
                              int64_t other_bytes) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const EndedJob& one, const EndedJob& other) {
    return one.ended < other.ended;
  });
  Findings found;
  find_old(jobs, rules, now, found);
  find_too_many(jobs, rules, found);
  find_too_large(jobs, rules, other_bytes, found);
  return std::move(found).all();
}

std::optional<Time> next_removal(const std::vector<EndedJob>& jobs, const RetentionRules& rules,
                                 Time now) {
  std::optional<Time> next;
  for (const EndedJob& job : jobs) {
    const auto until = kept_until(job.ended, job.keep_for, rules);
    if (until && *until > now && (!next || *until < *next)) next = until;
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
/// After a commit that failed: the journal logs each failure.
constexpr std::chrono::seconds kStorePause{10};

}  // namespace

void RetentionKeeper::set_rules(const RetentionRules& rules) {
  rules_ = rules;
  for (const auto& [sequence, entry] : jobs_.entries()) complete(entry->job);
  read_jobs();
  look_at(clock_.now());
  measure_next();
}

void RetentionKeeper::each_ended(const std::function<void(const job::JobFacts&)>& visit) {
  jobs_.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
    ++visits_;
    if (job::is_final(job.phase) && job.ended) visit(job);
    return true;
  });
}

/// What the rules need to know of the jobs that have ended until now.
void RetentionKeeper::read_jobs() {
  counts_.clear();
  unmeasured_.clear();
  if (!rules_.keep_jobs && !rules_.keep_bytes) return;
  each_ended([this](const job::JobFacts& job) {
    if (rules_.keep_jobs) ++count_of(job.project).most;
    if (!rules_.keep_bytes || disk_use_.contains(std::string(job.id))) return;
    unmeasured_.emplace(*job.ended, job.id);
  });
}

RetentionKeeper::ProjectCount& RetentionKeeper::count_of(std::string_view project) {
  const auto found = counts_.find(project);
  return found != counts_.end() ? found->second : counts_[std::string(project)];
}

void RetentionKeeper::complete(job::Job& job) const {
  if (job.ended) job.kept_until = kept_until(*job.ended, job.spec.keep_for, rules_);
}

void RetentionKeeper::job_ended(job::Job& job) {
  complete(job);
  if (job.kept_until) look_at(*job.kept_until);
  if (rules_.keep_jobs && ++count_of(job.spec.project).most > *rules_.keep_jobs) {
    look_at(clock_.now());
  }
  if (rules_.keep_bytes) unmeasured_.emplace(*job.ended, job.id);
  measure_next();
}

void RetentionKeeper::forget(const std::string& id) {
  const auto found = disk_use_.find(id);
  if (found == disk_use_.end()) return;
  by_end_.erase({found->second.ended, found->first});
  bytes_ -= found->second.bytes;
  disk_use_.erase(found);
}

bool RetentionKeeper::is_in_use(const job::JobFacts& job) const {
  if (jobs_.watchers().is_watched(std::string(job.id))) return true;
  return std::any_of(objects_.begin(), objects_.end(),
                     [&](const RetainedObjects& kind) { return kind.needs && kind.needs(job); });
}

/// The end of the last job that the rule on bytes may concern; nothing: it concerns no job.
std::optional<Time> RetentionKeeper::too_large_until() const {
  std::optional<Time> until;
  if (!rules_.keep_bytes) return until;
  int64_t left = bytes_;
  for (auto job = by_end_.begin(); job != by_end_.end() && left > *rules_.keep_bytes; ++job) {
    until = job->first;
    const std::string id(job->second);
    const auto facts = jobs_.facts_with_id(id);
    if (facts && !is_in_use(*facts)) left -= disk_use_.at(id).bytes;
  }
  return until;
}

/// The jobs that a rule may concern. By their time: those that are due, and the next one. By their
/// number: all jobs of a project that may have too many. By their bytes: the oldest ones.
RetentionKeeper::Candidates RetentionKeeper::candidates(Time now) {
  Candidates found{.jobs = {}, .other_bytes = bytes_};
  const std::optional<Time> too_large = too_large_until();
  std::optional<Time> next;
  each_ended([&](const job::JobFacts& job) {
    bool is_concerned = too_large && *job.ended <= *too_large;
    if (rules_.keep_jobs) {
      ProjectCount& count = count_of(job.project);
      ++count.visited;
      is_concerned = is_concerned || count.most > *rules_.keep_jobs;
    }
    if (!is_concerned) {
      const auto until = kept_until(*job.ended, job.keep_for(), rules_);
      const bool is_later = until && *until > now && next && *next <= *until;
      if (!until || is_later) return;
      if (*until > now) next = until;
    }
    EndedJob ended{.id = std::string(job.id),
                   .project = std::string(job.project),
                   .ended = *job.ended,
                   .keep_for = job.keep_for(),
                   .in_use = is_in_use(job)};
    if (const auto use = disk_use_.find(ended.id); use != disk_use_.end()) {
      ended.bytes = use->second.bytes;
      found.other_bytes -= use->second.bytes;
    }
    found.jobs.push_back(std::move(ended));
  });
  for (auto& [project, count] : counts_) count.most = std::exchange(count.visited, 0);
  return found;
}

void RetentionKeeper::look() {
  due_.reset();
  timer_.reset();
  const Time now = clock_.now();
  Candidates found = candidates(now);
  // A job that another rule removes now may be the next one: then the next look is too early, and
  // finds the job behind it.
  const std::optional<Time> next = next_removal(found.jobs, rules_, now);
  std::vector<Removal> due = removals(std::move(found.jobs), rules_, now, found.other_bytes);
  const bool some_wait =
      std::erase_if(due, [](const Removal& removal) { return removal.waits; }) > 0;
  leave_out_refused(due, now);
  const bool is_more = due.size() > kMostAtOnce;
  if (is_more) due.resize(kMostAtOnce);
  if (!remove(due, now)) return look_at(now + kStorePause);
  if (is_more) return look_at(now + kPause);
  if (some_wait) look_at(now + kSoonAgain);
  // Due jobs were removed, or could not be removed; the next jobs are due later.
  if (!due.empty() || !refused_.empty()) look_at(now + kLongest);
  if (next) look_at(*next);
  look_at_objects(now);
}

/// Jobs that the engine refused to remove do not keep the others from being removed.
void RetentionKeeper::leave_out_refused(std::vector<Removal>& due, Time now) {
  // The clock may have been set back.
  if (now >= refused_until_ || refused_until_ > now + kLongest) refused_.clear();
  std::erase_if(due, [this](const Removal& removal) { return refused_.contains(removal.id); });
}

void RetentionKeeper::look_at_objects(Time now) {
  constexpr size_t kMostObjectsAtOnce = 4;  // each may have many jobs
  for (const RetainedObjects& kind : objects_) {
    const std::vector<EndedJob> ended = kind.ended();
    std::vector<Removal> due = removals(ended, rules_, now);
    const auto waits = [this](const Removal& removal) {
      return removal.waits || jobs_.watchers().is_watched(removal.id);
    };
    if (std::erase_if(due, waits) > 0) look_at(now + kSoonAgain);
    const bool is_more = due.size() > kMostObjectsAtOnce;
    if (is_more) due.resize(kMostObjectsAtOnce);
    bool has_failed = false;
    for (const Removal& removal : due) {
      if (kind.remove(removal.id, removal.rule)) continue;  // the journal logs the error
      has_failed = true;
    }
    if (has_failed) {
      look_at(now + (is_more ? std::chrono::nanoseconds(kStorePause) : kLongest));
    } else if (is_more) {
      look_at(now + kPause);
    }
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

/// False: the commit failed, and the jobs stay.
bool RetentionKeeper::remove(const std::vector<Removal>& due, Time now) {
  std::vector<JobEntry*> gone;
  std::vector<access::AuditRecord> audit;
  struct Removed {
    std::string id;
    std::string name;
    std::string project;
    std::string rule;
  };
  std::vector<Removed> removed;
  for (const Removal& removal : due) {
    if (const auto files = engine_.remove(removal.id); !files) {
      base::log_error("cannot delete an ended job: " + files.error().to_string());
      if (refused_.empty()) refused_until_ = now + kLongest;
      refused_.insert(removal.id);
      continue;
    }
    JobEntry* const entry = jobs_.entry_with_id(removal.id);
    const job::Job& job = entry->job;
    auto records = audit_records(clock_.now(), {.user = kServer, .address = "local"}, "job.delete",
                                 &job, nullptr);
    records.front().changes.push_back({.field = "rule", .before = "", .after = removal.rule});
    audit.push_back(std::move(records.front()));
    removed.push_back({job.id, job.spec.name, job.spec.project, removal.rule});
    gone.push_back(entry);
  }
  if (gone.empty()) return true;
  if (const auto committed = jobs_.remove(gone, std::move(audit)); !committed) {
    base::log_error("cannot delete ended jobs: " + committed.error().to_string());
    return false;
  }
  for (const Removed& job : removed) {
    base::log_info(
        "removes a job by a rule of retention",
        {{"job", job.name}, {"project", job.project}, {"id", job.id}, {"rule", job.rule}});
    forget(job.id);
  }
  return true;
}

/// One job at a time, in the order in which they ended: so the rule on bytes never removes a job
/// while the size of an older job is unknown.
void RetentionKeeper::measure_next() {
  if (!rules_.keep_bytes || measuring_) return;
  while (!unmeasured_.empty()) {
    const auto [ended, id] = std::move(unmeasured_.extract(unmeasured_.begin()).value());
    if (disk_use_.contains(id) || !jobs_.facts_with_id(id)) continue;
    measuring_ = true;
    engine_.measure(
        id, [this, alive = std::weak_ptr<bool>(alive_), id = id, ended = ended](int64_t bytes) {
          if (!alive.expired()) measured(id, {.ended = ended, .bytes = bytes});
        });
    return;
  }
}

void RetentionKeeper::measured(const std::string& id, const DiskUse& use) {
  measuring_ = false;
  if (jobs_.facts_with_id(id)) {
    forget(id);
    const auto known = disk_use_.emplace(id, use).first;
    by_end_.emplace(use.ended, known->first);
    bytes_ += use.bytes;
  }
  measure_next();
  if (!rules_.keep_bytes || bytes_ <= *rules_.keep_bytes) return;
  // While more jobs are to be measured, a look serves many of them.
  look_at(measuring_ ? clock_.now() + kSoonAgain : clock_.now());
}

}  // namespace muster::control
