#include "control/journal.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "job/obstacle.h"

namespace muster::control {

namespace {

// The pause before a failed commit is tried again: short, for a disk that has space again, and long
// enough not to flood the server's log.
constexpr std::chrono::seconds kCommitRetryPause{1};

}  // namespace

base::Error stored_later(const std::string& effect, base::Error why) {
  why.what = effect + ", but the server could not store this yet: " + why.what;
  why.advice = "the server keeps this change and stores it as soon as it can" +
               (why.advice.empty() ? "" : "; " + why.advice);
  return why;
}

void Journal::add(const job::Job& job, std::string idempotency_key, Then then,
                  std::vector<access::AuditRecord> audit) {
  new_ones_.push_back({.job = {.job = &job, .idempotency_key = std::move(idempotency_key)},
                       .then = std::move(then),
                       .audit = std::move(audit)});
  flush_soon();
}

void Journal::change(const job::Job& job) {
  if (!known_changed_.insert(&job).second) return;
  changed_.push_back(&job);
  flush_soon();
}

void Journal::put(store::Object object) {
  objects_[{.kind = object.kind, .id = object.id}] = std::move(object);
  flush_soon();
}

void Journal::drop(const store::ObjectKey& key) {
  objects_[key].reset();
  flush_soon();
}

void Journal::put_end(job::ObjectEnd end) {
  ends_.push_back(std::move(end));
  flush_soon();
}

void Journal::note(std::vector<access::AuditRecord> records) {
  if (records.empty()) return;
  std::move(records.begin(), records.end(), std::back_inserter(records_));
  flush_soon();
}

void Journal::then(std::function<void()> action) {
  then_.push_back(std::move(action));
  flush_soon();
}

void Journal::once_committed(std::function<void()> action) {
  once_committed_.push_back(std::move(action));
  flush_soon();
}

void Journal::forget(const job::Job& job) {
  if (known_changed_.erase(&job) > 0) std::erase(changed_, &job);
}

void Journal::later(std::function<void()> action) {
  loop_.post([action = std::move(action), alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) action();
  });
}

void Journal::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    flush_posted_ = false;
    // A failed commit is logged, and tried again.
    [[maybe_unused]] const Result<void> committed = flush();
  });
}

Result<void> Journal::commit(const store::Batch& batch) {
  if (batch.empty()) return {};
  const auto began = std::chrono::steady_clock::now();
  auto committed = store_.commit(batch);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  metrics_.commit_seconds.add(took.count());
  if (committed) return committed;
  ++metrics_.store_errors;
  base::Error error = committed.error();
  // A standby or a read-only disk may become writable again.
  if (error.code == base::ErrorCode::kRefused) {
    error.detail = std::make_shared<const job::RefusedForNow>();
  }
  return error;
}

Result<void> Journal::flush(store::Batch more) {
  auto new_ones = std::exchange(new_ones_, {});
  auto actions = std::exchange(then_, {});
  more.changed_jobs.insert(more.changed_jobs.end(), changed_.begin(), changed_.end());
  more.ended = ended_;

  // The objects in `more` are newer.
  std::set<store::ObjectKey> newer(more.removed_objects.begin(), more.removed_objects.end());
  for (const store::Object& object : more.objects) {
    newer.insert({.kind = object.kind, .id = object.id});
  }
  for (const auto& [key, object] : objects_) {
    if (newer.contains(key)) continue;
    if (object) {
      more.objects.push_back(*object);
    } else {
      more.removed_objects.push_back(key);
    }
  }

  more.ends.insert(more.ends.end(), ends_.begin(), ends_.end());
  more.audit.insert(more.audit.end(), records_.begin(), records_.end());

  const auto [committed, of_new_ones] = commit_with(std::move(more), new_ones);
  std::vector<std::function<void()>> allowed;
  if (committed) {
    changed_.clear();
    known_changed_.clear();
    objects_.clear();
    ends_.clear();
    records_.clear();
    allowed = std::exchange(once_committed_, {});
  } else {
    base::log_error(committed.error().to_string());
    const bool owes =
        !changed_.empty() || !objects_.empty() || !records_.empty() || !once_committed_.empty();
    if (owes) retry_ = loop_.after(kCommitRetryPause, [this] { flush_soon(); });
  }
  for (size_t i = 0; i < new_ones.size(); ++i) new_ones[i].then(of_new_ones[i]);
  for (const auto& action : actions) action();
  for (const auto& action : allowed) action();
  return committed;
}

/// The jobs of several callers are in one transaction: if one of them is refused, the others are
/// committed without it.
Journal::Committed Journal::commit_with(store::Batch batch, const std::vector<NewOne>& new_ones) {
  const size_t other_jobs = batch.new_jobs.size();
  const size_t other_records = batch.audit.size();
  for (const NewOne& one : new_ones) {
    batch.new_jobs.push_back(one.job);
    batch.audit.insert(batch.audit.end(), one.audit.begin(), one.audit.end());
  }
  Result<void> together = commit(batch);
  if (together || new_ones.empty() || together.error().code != base::ErrorCode::kConflict) {
    return {.of_batch = together, .of_new_ones = std::vector(new_ones.size(), together)};
  }
  base::log_error(together.error().to_string());
  batch.new_jobs.resize(other_jobs);
  batch.audit.resize(other_records);
  Committed apart{.of_batch = commit(batch), .of_new_ones = {}};
  for (const NewOne& one : new_ones) {
    apart.of_new_ones.push_back(commit({.new_jobs = {one.job}, .audit = one.audit}));
  }
  return apart;
}

}  // namespace muster::control
