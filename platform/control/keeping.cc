// Ended jobs, and how they go: when somebody asks for it, and by the rules of retention.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/retention.h"
#include "control/run.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using base::Time;
using job::Job;

namespace {

/// Removed in one commit; between two, the loop does something else.
constexpr size_t kMostAtOnce = 64;
constexpr std::chrono::milliseconds kPause{20};
/// What is due, but cannot go yet, is looked at again after this; and so, after a while, is
/// everything: the clock may have been set.
constexpr std::chrono::seconds kSoonAgain{2};
constexpr std::chrono::minutes kLongest{10};
/// No user has such a name.
constexpr const char* kServer = "(server)";

}  // namespace

Result<void> Controller::remove(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  const Job& job = entry->job;
  if (!job::is_final(job.phase)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "job '" + job.spec.name + "' has not ended",
                 .advice = "stop it first: muster stop " + job.spec.name};
  }
  // Files first: what a crash in between leaves is a job without logs, not logs without a job.
  MUSTER_CHECK(parts_.engine.remove(job.id));
  return forget({entry}, record(by, "job.delete", &job, nullptr));
}

/// Those whose files are gone.
Result<void> Controller::forget(const std::vector<Entry*>& entries, const Records& audit) {
  store::Batch batch{.audit = audit};
  for (Entry* const entry : entries) {
    journal_.forget(entry->job);
    batch.removed_jobs.push_back(entry->job.id);
  }
  if (const auto removed = journal_.flush(std::move(batch)); !removed) {
    // They are still there, and so is what was not yet kept of them.
    for (const Entry* const entry : entries) journal_.change(entry->job);
    return removed.error();
  }
  for (Entry* const entry : entries) {
    const std::string id = entry->job.id;
    feed_.removed(id, entry->job.spec.name, entry->job.spec.project, feed_hint());
    forget(*entry);
    call_watchers(id);
  }
  feed_.tell();
  return {};
}

void Controller::forget(Entry& entry) {
  by_id_.erase(entry.job.id);
  const auto is_it = [&](const auto& named) { return named.second == &entry; };
  by_time_.erase(std::find_if(by_time_.find(entry.job.submitted), by_time_.end(), is_it));
  by_name_.erase(name_of(entry.job.spec));
  entries_.erase(entry.sequence);
}

// --- by the rules

void Controller::set_retention(const RetentionRules& rules) {
  retention_ = rules;
  for (const auto& [sequence, entry] : entries_) {
    Job& job = entry->job;
    if (job.ended) job.kept_until = kept_until(*job.ended, job.spec.keep_for, retention_);
  }
  look_at_retention_at(parts_.clock.now());
  measure_ended();
}

/// The job has just ended.
void Controller::note_end(Entry& entry) {
  Job& job = entry.job;
  job.kept_until = kept_until(*job.ended, job.spec.keep_for, retention_);
  if (job.kept_until) look_at_retention_at(*job.kept_until);
  if (retention_.keep_jobs) look_at_retention_at(parts_.clock.now());
  measure_ended();
}

std::vector<EndedJob> Controller::ended_jobs() const {
  std::vector<EndedJob> jobs;
  for (const auto& [sequence, entry] : entries_) {
    const Job& job = entry->job;
    if (!job::is_final(job.phase) || !job.ended) continue;
    jobs.push_back({.id = job.id,
                    .project = job.spec.project,
                    .ended = *job.ended,
                    .keep_for = job.spec.keep_for,
                    .bytes = entry->bytes});
  }
  return jobs;
}

bool Controller::is_followed(const std::string& id) const {
  const auto [first, behind] = watchers_.equal_range(id);
  return std::any_of(first, behind, [](const auto& watcher) { return !watcher.second.expired(); });
}

void Controller::look_at_retention() {
  retention_due_.reset();
  retention_timer_.reset();
  const Time now = parts_.clock.now();
  const std::vector<EndedJob> jobs = ended_jobs();
  std::vector<Removal> due = removals(jobs, retention_, now);
  const auto cannot_go = [this](const Removal& removal) { return is_followed(removal.id); };
  const bool some_wait = std::erase_if(due, cannot_go) > 0;
  const bool is_more = due.size() > kMostAtOnce;
  if (is_more) due.resize(kMostAtOnce);
  remove_by_rule(due);
  if (is_more) return look_at_retention_at(now + kPause);
  if (some_wait) look_at_retention_at(now + kSoonAgain);
  // What was due now has gone, or could not; the next are those with time left.
  std::vector<EndedJob> later = ended_jobs();
  if (!due.empty()) look_at_retention_at(now + kLongest);
  std::erase_if(later, [&](const EndedJob& job) {
    const auto until = kept_until(job.ended, job.keep_for, retention_);
    return !until || *until <= now;
  });
  if (const auto next = next_removal(later, retention_)) look_at_retention_at(*next);
}

void Controller::look_at_retention_at(Time time) {
  const Time now = parts_.clock.now();
  const Time at = std::clamp(time, now, now + kLongest);
  if (retention_due_ && *retention_due_ <= at) return;
  retention_due_ = at;
  if (at > now) {
    retention_timer_ = parts_.loop.after(at - now, [this] { look_at_retention(); });
  } else {
    retention_timer_.reset();
    soon([this] { look_at_retention(); });
  }
}

void Controller::remove_by_rule(const std::vector<Removal>& due) {
  std::vector<Entry*> gone;
  Records audit;
  for (const Removal& removal : due) {
    Entry* const entry = by_id(removal.id);
    if (const auto removed = parts_.engine.remove(removal.id); !removed) {
      base::log_error("an ended job stays: " + removed.error().to_string());
      continue;
    }
    const Job& job = entry->job;
    auto told = record({.user = kServer, .address = "local"}, "job.delete", &job, nullptr);
    told.front().changes.push_back({.field = "rule", .before = "", .after = removal.rule});
    audit.push_back(std::move(told.front()));
    base::log_info("removes a job by a rule of retention", {{"job", job.spec.name},
                                                            {"project", job.spec.project},
                                                            {"id", job.id},
                                                            {"rule", removal.rule}});
    gone.push_back(entry);
  }
  if (gone.empty()) return;
  if (const auto forgotten = forget(gone, audit); !forgotten) {
    base::log_error("ended jobs stay: " + forgotten.error().to_string());
  }
}

/// One after the other, those that ended first first: so the rule on bytes never takes one while an
/// older one is not known yet.
void Controller::measure_ended() {
  if (!retention_.keep_bytes || std::exchange(measuring_, true)) return;
  const Entry* next = nullptr;
  for (const auto& [sequence, entry] : entries_) {
    const bool is_wanted = job::is_final(entry->job.phase) && entry->job.ended && !entry->bytes;
    if (!is_wanted) continue;
    if (next == nullptr || *entry->job.ended < *next->job.ended) next = entry.get();
  }
  if (next == nullptr) {
    measuring_ = false;
    return;
  }
  const auto keep = [this, alive = std::weak_ptr<bool>(alive_), id = next->job.id](int64_t bytes) {
    if (alive.expired()) return;
    measuring_ = false;
    if (Entry* const entry = by_id(id)) entry->bytes = bytes;
    look_at_retention_at(parts_.clock.now());
    measure_ended();
  };
  parts_.engine.measure(next->job.id, keep);
}

}  // namespace muster::control
