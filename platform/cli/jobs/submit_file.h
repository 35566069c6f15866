// Jobs from a file: a job file of Muster, or one of Kubernetes, with one or several documents.
//
// Several jobs are submitted all or none: every job is checked by the server before the first is
// submitted, and what was submitted is taken back if another is refused after all.
//
// Blocking; I/O. Warnings go to standard error.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::cli::jobs {

struct FileWish {
  std::string file;                   ///< "-": standard input
  std::string name;                   ///< of --name; overrides the file
  std::vector<std::string> settings;  ///< of --set; override the file
};

/// The jobs of the file, in its order; at least one.
///
/// Errors: kInvalid, with all faults of all documents.
Result<std::vector<ForeignJob>> read_job_file(const FileWish& wish, const Hooks& hooks);

/// Sends the files that the volumes of a job contain.
Result<void> send_volumes(Connection& connection, ForeignJob& job);

/// Submits all of them or none. `key`: for requests that may be sent twice.
Result<std::vector<job::Job>> submit_all(Connection& connection, std::vector<ForeignJob> jobs,
                                         const std::string& key);

}  // namespace muster::cli::jobs
