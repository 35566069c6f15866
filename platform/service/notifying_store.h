// A store that sees what happens to jobs as it is committed, and commits beside it what is to be
// told of it: so nothing that has happened goes untold, and nothing is told that has not.
//
// Threads: the loop's. What it is given must outlive it.
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
  base::Result<void> commit(const store::Batch& batch) override;
  base::Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  base::Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override {
    return store_.audit(query);
  }
  base::Result<void> ping() override { return store_.ping(); }

 private:
  struct Told {
    const job::Job* job = nullptr;
    job::Happening happening = job::Happening::kStarted;
  };
  std::vector<Told> what_happened(const store::Batch& batch) const;
  base::Result<void> commit_with(const store::Batch& batch,
                                 const std::vector<job::Delivery>& deliveries);
  void remember(const store::Batch& batch);
  void remember(const job::Job& job);
  void tell_hook(const Told& told);

  store::Store& store_;
  notify::Notifications& notifications_;
  notify::CommandHook& hook_;
  /// As they were committed last, by id; of jobs that have not ended.
  std::unordered_map<std::string, notify::Standing> standings_;
};

/// `changes` as a batch of their own.
store::Batch batch_of(const notify::Changes& changes);

// A store that tells when another server has taken the lead: from then on this one's picture of the
// jobs is out of date, and nothing that it does would be kept.
//
// Threads: the loop's. `store` and `leadership` must outlive it.

class WatchedStore : public store::Store {
 public:
  /// `lost` is called at most once, from within a commit or look(). `leadership` may be nullptr: a
  /// store of one server, whose lead cannot be lost. `address`: this server's, as it leads.
  WatchedStore(store::Store& store, store::Leadership* leadership, std::string address,
               std::function<void()> lost);

  base::Result<store::Contents> load() override { return store_.load(); }
  base::Result<void> commit(const store::Batch& batch) override;
  base::Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  base::Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override {
    return store_.audit(query);
  }
  base::Result<void> ping() override { return store_.ping(); }

  /// Asks who leads, to be called now and then: a leader that commits nothing would not notice.
  void look();

 private:
  void tell_lost();

  store::Store& store_;
  store::Leadership* leadership_;
  std::string address_;
  std::function<void()> lost_;
};

}  // namespace muster::service
