// What survives: every job, with all that is known of it. A call that has returned ok is on disk
// and survives a killed server and a power cut.
//
// Threads: one, the loop's. Errors name the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"

namespace muster::store {

using base::Result;

class Store {
 public:
  virtual ~Store() = default;

  /// All jobs, oldest first.
  virtual Result<std::vector<job::Job>> load() = 0;

  /// Commits a new job. `idempotency_key` (may be empty) is kept beside it until it is removed.
  /// kConflict where the id, the name or the key is there already.
  virtual Result<void> insert(const job::Job& job, const std::string& idempotency_key) = 0;

  /// The id of the job that was submitted with this key.
  virtual Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) = 0;

  /// Commits the present state of a known job. kNotFound where there is none of this id.
  virtual Result<void> update(const job::Job& job) = 0;

  /// Forgets a job; none of this id is no error.
  virtual Result<void> remove(const std::string& id) = 0;
};

}  // namespace muster::store
