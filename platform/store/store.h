// What survives: every job with all that is known of it, every project, which nodes are cordoned. A
// call that has returned ok is on disk and survives a killed server and a power cut.
//
// Threads: one, the loop's. Errors name the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::store {

using base::Result;

/// A new job and the key it was submitted with (may be empty), kept beside it until it is removed.
struct NewJob {
  const job::Job* job = nullptr;
  std::string idempotency_key;
};

/// Changes that are committed together: all of them, or none. What is pointed to must live until
/// commit() has returned.
struct Batch {
  std::vector<NewJob> new_jobs;
  std::vector<const job::Job*> changed_jobs;  ///< the present state of known jobs
  std::vector<std::string> removed_jobs;      ///< ids
  std::vector<job::Project> projects;         ///< new ones and changed ones, by name
  std::vector<std::string> removed_projects;  ///< names
  std::vector<std::string> cordoned_nodes;    ///< names
  std::vector<std::string> uncordoned_nodes;

  bool empty() const {
    return new_jobs.empty() && changed_jobs.empty() && removed_jobs.empty() && projects.empty() &&
           removed_projects.empty() && cordoned_nodes.empty() && uncordoned_nodes.empty();
  }
};

/// All that was ever committed and not removed.
struct Contents {
  std::vector<job::Job> jobs;          ///< oldest first
  std::vector<job::Project> projects;  ///< in the order of their sequence
  std::vector<std::string> cordoned_nodes;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<Contents> load() = 0;

  /// One transaction, on disk when it returns. Costs one sync however much is in it: whoever has
  /// many changes gathers them. kConflict, and nothing changed, where a new job's id, name or key
  /// is there already; kNotFound where a changed job is not there. Removing what is not there is no
  /// error.
  virtual Result<void> commit(const Batch& batch) = 0;

  /// The id of the job that was submitted with this key.
  virtual Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) = 0;
};

}  // namespace muster::store
