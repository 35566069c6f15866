// A store that forgets: for tests of logic. Keeps what SqliteStore keeps, refuses what it refuses.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace muster::store {

class MemoryStore : public Store {
 public:
  Result<std::vector<job::Job>> load() override { return jobs_; }

  Result<void> insert(const job::Job& job, const std::string& idempotency_key) override {
    for (const job::Job& known : jobs_) {
      if (known.id == job.id || known.spec.name == job.spec.name) {
        return base::Error{.code = base::ErrorCode::kConflict, .what = "taken"};
      }
    }
    jobs_.push_back(job);
    if (!idempotency_key.empty()) keys_[idempotency_key] = job.id;
    return {};
  }

  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override {
    const auto found = keys_.find(idempotency_key);
    return found == keys_.end() ? std::optional<std::string>() : std::optional(found->second);
  }

  Result<void> update(const job::Job& job) override {
    for (job::Job& known : jobs_) {
      if (known.id != job.id) continue;
      known = job;
      return {};
    }
    return base::Error{.code = base::ErrorCode::kNotFound, .what = "no job " + job.id};
  }

  Result<void> remove(const std::string& id) override {
    std::erase_if(jobs_, [&](const job::Job& job) { return job.id == id; });
    std::erase_if(keys_, [&](const auto& entry) { return entry.second == id; });
    return {};
  }

 private:
  std::vector<job::Job> jobs_;
  std::map<std::string, std::string> keys_;
};

}  // namespace muster::store
