// A store in memory, for tests of logic and for simulations. It refuses what SqliteStore refuses.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace muster::store {

class MemoryStore : public Store {
 public:
  Result<Contents> load() override;
  Result<void> commit(const Batch& batch) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override;
  Result<void> ping() override { return {}; }

 private:
  struct Entry {
    job::Job job;
    std::string idempotency_key;
  };
  using JobName = std::pair<std::string, std::string>;  ///< project, name

  Result<void> check(const Batch& batch) const;
  void insert(const NewJob& job);
  void remove(const std::string& id);
  Result<void> check_objects(const Batch& batch) const;
  void apply_objects(const Batch& batch);
  void apply_accounts(const Batch& batch);
  void apply_notifications(const Batch& batch);

  std::map<uint64_t, Entry> jobs_;  ///< oldest first
  std::map<std::string, uint64_t> by_id_;
  std::map<JobName, std::string> id_of_name_;
  std::map<std::string, std::string> id_of_key_;
  std::map<ObjectKey, Object> objects_;
  std::map<std::string, job::Project> projects_;
  std::set<std::string> cordoned_nodes_;
  std::map<std::string, access::User> users_;
  std::map<std::string, access::Token> tokens_;
  std::map<SecretName, access::Secret> secrets_;
  std::map<std::string, job::Subscription> subscriptions_;
  std::map<std::string, job::Delivery> deliveries_;
  std::vector<access::AuditRecord> audit_;  ///< oldest first; number i + 1 is at index i
  uint64_t next_ = 0;
};

}  // namespace muster::store
