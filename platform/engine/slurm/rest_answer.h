// Slurm's words as slurmrestd has them: lists of states and flags, and sentences.
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

/// `said` on one line, as a sentence of an error needs it, cut to `longest` bytes.
std::string one_line(std::string_view said, size_t longest);

/// Of {"down", "DRAIN", "NOT_RESPONDING"}: "DOWN*+DRAIN", as scontrol writes it.
std::string node_state_text(const std::vector<std::string>& words);

}  // namespace muster::engine::slurm::rest

namespace muster::engine::slurm {

// What slurmrestd answers, as values. Each version writes it in its own way: a number may be 5 or
// {"set": true, "infinite": false, "number": 5}, a state a word or a list of words, a fault may
// have its number as error_number, error_code or errno. All are read alike, whatever the version.
//
// A member that is missing, or is of another type than is known, counts as not there: a newer
// version may have changed it, and the rest is worth having. What is no such answer at all is
// kInternal.
//
// Pure; thread-safe. Of a large answer only what is needed is kept while it is read.

/// What is wrong, in Slurm's words.
struct RestFault {
  int number = 0;    ///< Slurm's error number (2000 and more are refusals); 0 or -1: none is given
  std::string text;  ///< "Invalid partition name specified"

  bool operator==(const RestFault&) const = default;
};

/// The faults that an answer tells of; none, too, where it cannot be read.
std::vector<RestFault> read_rest_faults(std::string_view body);

/// Of /openapi: what is served.
base::Result<RestPaths> read_rest_paths(std::string_view body);

/// The id of a job that was submitted, of a heterogeneous one that of its leader. 0: none was.
base::Result<uint64_t> read_rest_submitted(std::string_view body);

struct RestJobs {
  std::vector<ListedJob> jobs;  ///< in the order of their ids
  /// When anything last changed, in seconds of Unix time; 0: it does not say.
  int64_t last_update = 0;
  bool is_empty = false;  ///< it has no job of anybody
  bool warns = false;     ///< "No job changes since ...", where it was asked for changes alone
};

/// Whose jobs are wanted: by number, or where that is not known by name.
struct RestUser {
  std::optional<uint32_t> id;
  std::string name;
};

/// The jobs of one user; a heterogeneous one is one, with the nodes of all its components.
/// `only_changes`: it was asked for nothing where nothing has changed; an answer to anything else
/// that has no list of jobs is none.
base::Result<RestJobs> read_rest_jobs(std::string_view body, const RestUser& user,
                                      bool only_changes = false);

/// Jobs as the accounting database has them (/slurmdb/.../job/ID). Those that were requeued are
/// there several times: the last counts.
base::Result<std::vector<ListedJob>> read_rest_past_jobs(std::string_view body);

base::Result<std::vector<ListedNode>> read_rest_nodes(std::string_view body);

/// Of /ping: Slurm's version ("22.05.8"), and whether a controller answers.
struct RestPing {
  std::string version;
  bool is_up = false;

  bool operator==(const RestPing&) const = default;
};
base::Result<RestPing> read_rest_ping(std::string_view body);

// What a slurmrestd that does not do what it is asked means, as an Error.
//
// Pure; thread-safe.

/// What has become of a request that was answered, but not done.
enum class RestFailure {
  kRefused,       ///< Slurm will not
  kNotReached,    ///< slurmrestd did not reach the controller: nothing was done
  kLost,          ///< it did, and did not hear what became of it
  kUnspecified,   ///< an error without a name: no controller, or one that does not take the token
  kUnauthorized,  ///< slurmrestd wants a token, or another
  kNotServed,     ///< it does not know the path: it is another slurmrestd than before
};

/// `status` is 400 and more, or there are faults.
RestFailure rest_failure_of(int status, const std::vector<RestFault>& faults);

/// Slurm's words for it: those of the first fault that has any. `status`: where none has.
std::string words_of(int status, const std::vector<RestFault>& faults);

/// Whether it says of a job that is to end that there is nothing more to end.
bool is_over_already(const std::vector<RestFault>& faults);

/// `doing`: what was asked ("Slurm's queue cannot be read"); `name`: of which slurmrestd. Of a job
/// that was not taken: `submission`, else null.
base::Error rest_error(RestFailure failure, const std::string& words, const std::string& doing,
                       const std::string& name, const Submission* submission = nullptr);

}  // namespace muster::engine::slurm
