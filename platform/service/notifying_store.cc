#include "service/notifying_store.h"

#include <utility>

#include "notify/payload.h"

namespace muster::service {

using base::Result;
using job::Happening;
using job::Job;

Result<store::Contents> NotifyingStore::load() {
  MUSTER_TRY(store::Contents contents, store_.load());
  for (const Job& job : contents.jobs) remember(job);
  notifications_.load(std::move(contents.subscriptions), std::move(contents.deliveries));
  return contents;
}

Result<store::Contents> NotifyingStore::load_packed() {
  MUSTER_TRY(store::Contents contents, store_.load_packed());
  for (const store::StoredJob& job : contents.stored) {
    if (job.open) remember(*job.open);
  }
  notifications_.load(std::move(contents.subscriptions), std::move(contents.deliveries));
  return contents;
}

Result<void> NotifyingStore::commit(const store::Batch& batch) {
  const std::vector<NotifiableEvent> events = notifiable_events(batch);
  std::vector<job::Delivery> deliveries;
  notify::DraftCounts drafted;
  for (const NotifiableEvent& each : events) {
    for (job::Delivery& draft : notifications_.draft(*each.job, each.happening, drafted)) {
      deliveries.push_back(std::move(draft));
    }
  }
  for (const job::ObjectEnd& end : batch.ends) {
    for (job::Delivery& draft : notifications_.draft(end, drafted)) {
      deliveries.push_back(std::move(draft));
    }
  }
  MUSTER_CHECK(commit_with(batch, deliveries));
  remember(batch);
  for (const std::string& project : batch.removed_projects) {
    notifications_.project_is_gone(project);
  }
  notifications_.take(std::move(deliveries));
  for (const NotifiableEvent& each : events) run_hook(each);
  for (const job::ObjectEnd& end : batch.ends) run_hook(end);
  return {};
}

Result<void> NotifyingStore::commit_with(const store::Batch& batch,
                                         const std::vector<job::Delivery>& deliveries) {
  if (deliveries.empty() && batch.removed_projects.empty()) return store_.commit(batch);
  notify::NotificationChanges gone;
  for (const std::string& project : batch.removed_projects) {
    notifications_.add_removals_of_project(project, gone);
  }
  store::Batch whole = batch;
  whole.deliveries = deliveries;
  whole.removed_subscriptions = std::move(gone.removed_subscriptions);
  whole.removed_deliveries = std::move(gone.removed_deliveries);
  return store_.commit(whole);
}

std::vector<NotifyingStore::NotifiableEvent> NotifyingStore::notifiable_events(
    const store::Batch& batch) const {
  std::vector<NotifiableEvent> events;
  const auto note = [&](const Job& job, const notify::ObservedState& before) {
    for (const Happening happening : notify::happenings_between(before, job)) {
      events.push_back({.job = &job, .happening = happening});
    }
  };
  for (const store::NewJob& job : batch.new_jobs) note(*job.job, {});
  for (const Job* job : batch.changed_jobs) {
    // An ended job has no further events; a new job was handled above.
    const auto before = standings_.find(job->id);
    if (before != standings_.end()) note(*job, before->second);
  }
  return events;
}

void NotifyingStore::remember(const store::Batch& batch) {
  for (const store::NewJob& job : batch.new_jobs) remember(*job.job);
  for (const Job* job : batch.changed_jobs) remember(*job);
  for (const std::string& id : batch.removed_jobs) standings_.erase(id);
}

void NotifyingStore::remember(const Job& job) {
  if (job::is_final(job.phase)) {
    standings_.erase(job.id);
  } else {
    standings_[job.id] = notify::standing_of(job);
  }
}

void NotifyingStore::run_hook(const NotifiableEvent& event) {
  if (!hook_.is_set()) return;
  hook_.add({.happening = event.happening,
             .project = event.job->spec.project,
             .job = event.job->spec.name,
             .payload = notifications_.payload_for_hook(*event.job, event.happening)});
}

void NotifyingStore::run_hook(const job::ObjectEnd& end) {
  if (!hook_.is_set()) return;
  hook_.add({.happening = notify::happening_of(end),
             .object = end.kind,
             .project = end.project,
             .job = end.name,
             .payload = notifications_.payload_for_hook(end)});
}

store::Batch batch_of(const notify::NotificationChanges& changes) {
  return {.subscriptions = changes.subscriptions,
          .removed_subscriptions = changes.removed_subscriptions,
          .deliveries = changes.deliveries,
          .removed_deliveries = changes.removed_deliveries,
          .audit = changes.audit};
}

WatchedStore::WatchedStore(store::Store& store, store::Leadership* leadership,
                           std::function<void()> lost)
    : store_(store), leadership_(leadership), lost_(std::move(lost)) {}

Result<void> WatchedStore::commit(const store::Batch& batch) {
  Result<void> committed = store_.commit(batch);
  const bool refused = !committed && committed.error().code == base::ErrorCode::kRefused;
  if (!refused || leadership_ == nullptr) return committed;
  // Refused although this server leads: the database is read-only, perhaps only for a while.
  // Refused while no server leads: another server has led in between.
  const auto leader = leadership_->leader();
  if (leader && !(*leader && (*leader)->is_self)) report_lost();
  return committed;
}

void WatchedStore::look() {
  if (leadership_ == nullptr) return;
  const auto leader = leadership_->leader();
  // No leader: this server's connection was lost, and the next commit tries to take the lead again.
  if (leader && *leader && !(*leader)->is_self) report_lost();
}

void WatchedStore::report_lost() {
  if (const auto lost = std::exchange(lost_, nullptr)) lost();
}

}  // namespace muster::service
