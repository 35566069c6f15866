// Stores that wrap another store: NotifyingStore adds the notifications of each commit to that
// commit, so an event and its notifications are stored together or not at all. WatchedStore notices
// the loss of the lead.
//
// Threads: the loop's. The wrapped stores and other arguments must outlive these objects.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "notify/command_hook.h"
#include "notify/notifications.h"
#include "notify/payload.h"
#include "store/store.h"

namespace muster::service {

class NotifyingStore : public store::Store {
 public:
  NotifyingStore(store::Store& store, notify::Notifications& notifications,
                 notify::CommandHook& hook)
      : store_(store), notifications_(notifications), hook_(hook) {}

  base::Result<store::Contents> load() override;
  base::Result<store::Contents> load_packed() override;
  base::Result<void> commit(const store::Batch& batch) override;
  base::Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  base::Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override {
    return store_.audit(query);
  }
  base::Result<void> ping() override { return store_.ping(); }

 private:
  struct NotifiableEvent {
    const job::Job* job = nullptr;
    job::Happening happening = job::Happening::kStarted;
  };
  std::vector<NotifiableEvent> notifiable_events(const store::Batch& batch) const;
  base::Result<void> commit_with(const store::Batch& batch,
                                 const std::vector<job::Delivery>& deliveries);
  void remember(const store::Batch& batch);
  void remember(const job::Job& job);
  void run_hook(const NotifiableEvent& event);
  void run_hook(const job::ObjectEnd& end);

  store::Store& store_;
  notify::Notifications& notifications_;
  notify::CommandHook& hook_;
  /// The last committed states of jobs that have not ended, by id.
  std::unordered_map<std::string, notify::ObservedState> standings_;
};

/// A batch of only these changes.
store::Batch batch_of(const notify::NotificationChanges& changes);

/// Reports that this server has lost the lead: from then on its jobs are out of date, and its commits
/// fail.
class WatchedStore : public store::Store {
 public:
  /// `lost` is called at most once, within commit() or look(). `leadership`: nullptr: a store of a
  /// single server, which always leads.
  WatchedStore(store::Store& store, store::Leadership* leadership, std::function<void()> lost);

  base::Result<store::Contents> load() override { return store_.load(); }
  base::Result<store::Contents> load_packed() override { return store_.load_packed(); }
  base::Result<void> commit(const store::Batch& batch) override;
  base::Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  base::Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override {
    return store_.audit(query);
  }
  base::Result<void> ping() override { return store_.ping(); }

  /// Checks who leads. To be called now and then, because a leader may have nothing to commit.
  void look();

 private:
  void report_lost();

  store::Store& store_;
  store::Leadership* leadership_;
  std::function<void()> lost_;
};

}  // namespace muster::service
