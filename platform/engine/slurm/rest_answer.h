// Answers of slurmrestd, as values.
//
// Each version writes them in its own way: a number may be 5 or {"set": true, "infinite": false,
// "number": 5}, a state a word or a list of words, a fault may have its number as error_number,
// error_code or errno. All forms are read alike, whatever the version. A member that is missing, or
// has an unknown type, counts as absent: a newer version may have changed it, and the rest is still
// useful. An answer that cannot be read at all is kInternal. Of a large answer only the needed
// members are kept while it is read.
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "engine/slurm/rest_request.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm::rest {

/// `raw` on one line, for the sentence of an error, cut to `longest` bytes.
std::string one_line(std::string_view raw, size_t longest);

/// {"down", "DRAIN", "NOT_RESPONDING"} is "DOWN*+DRAIN", as scontrol prints it.
std::string node_state_text(const std::vector<std::string>& words);

}  // namespace muster::engine::slurm::rest

namespace muster::engine::slurm {

/// An error in an answer, in Slurm's words.
struct RestFault {
  int number = 0;    ///< Slurm's error number (2000 and more are refusals); 0 or -1: unknown
  std::string text;  ///< "Invalid partition name specified"

  bool operator==(const RestFault&) const = default;
};

/// The errors in an answer; empty also if the answer cannot be read.
std::vector<RestFault> read_rest_faults(std::string_view body);

/// Reads the answer of /openapi.
base::Result<RestPaths> read_rest_paths(std::string_view body);

/// The id of the submitted job (of a heterogeneous job, its leader). 0: no job was submitted.
base::Result<uint64_t> read_rest_submitted(std::string_view body);

struct RestJobs {
  std::vector<ListedJob> jobs;  ///< in the order of their ids
  /// When anything last changed, in seconds of Unix time; 0: unknown.
  int64_t last_update = 0;
  bool is_empty = false;  ///< no user has a job
  bool warns = false;     ///< "No job changes since ...", in the answer to a request for changes
};

/// Whose jobs are read: by the user's id, or by name if the id is unknown.
struct RestUser {
  std::optional<uint32_t> id;
  std::string name;
};

/// The jobs of one user. A heterogeneous job is one job, with the nodes of all its components.
/// `only_changes`: the request was for changes, so the answer may have no list of jobs.
base::Result<RestJobs> read_rest_jobs(std::string_view body, const RestUser& user,
                                      bool only_changes = false);

/// Jobs of the accounting database (/slurmdb/.../job/ID). A requeued job is listed several times:
/// the last entry counts.
base::Result<std::vector<ListedJob>> read_rest_past_jobs(std::string_view body);

base::Result<std::vector<ListedNode>> read_rest_nodes(std::string_view body);

/// The answer of /ping: Slurm's version ("22.05.8"), and whether a controller answers.
struct RestPing {
  std::string version;
  bool is_up = false;

  bool operator==(const RestPing&) const = default;
};
base::Result<RestPing> read_rest_ping(std::string_view body);

// --- failed requests

/// The outcome of a failed request.
enum class RestFailure {
  kRefused,       ///< Slurm refused it
  kNotReached,    ///< slurmrestd could not reach the controller: nothing was done
  kLost,          ///< slurmrestd reached the controller, and got no answer
  kUnspecified,   ///< an error without a name: no controller, or the controller rejects the token
  kUnauthorized,  ///< slurmrestd requires a token, or another one
  kNotServed,     ///< the path is unknown: slurmrestd was replaced by another version
};

/// REQUIRES: `status` is at least 400, or there are faults.
RestFailure rest_failure_of(int status, const std::vector<RestFault>& faults);

/// Slurm's words: those of the first fault that has any, else a sentence with `status`.
std::string words_of(int status, const std::vector<RestFault>& faults);

/// Whether the job that was to be cancelled is already over.
bool is_over_already(const std::vector<RestFault>& faults);

/// Whether the accounting database has answered that it does not have the job. If the database cannot
/// be reached, that is another fault. Without a database, slurmrestd serves no path for past jobs.
bool is_unknown_in_past(const std::vector<RestFault>& faults);

/// `doing`: the failure ("Slurm's queue cannot be read"); `name`: of the slurmrestd; `submission`:
/// of a job that was not accepted, else null.
base::Error rest_error(RestFailure failure, const std::string& words, const std::string& doing,
                       const std::string& name, const Submission* submission = nullptr);

}  // namespace muster::engine::slurm
