// A store that tells when another server has taken the lead: from then on this one's picture of the
// jobs is out of date, and nothing that it does would be kept.
//
// Threads: the loop's. `store` and `leadership` must outlive it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/leadership.h"
#include "store/store.h"

namespace muster::service {

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
