// Requests to slurmrestd, in the version of its interface that a slurmrestd serves.
//
// A version is a plugin of slurmrestd ("v0.0.38"), and one slurmrestd serves several: Slurm 22.05
// versions 36 to 38, Slurm 25.11 versions 41 to 44. Versions up to 38 were written by hand, each
// with its own names for sbatch's options; from 39 on they are generated from one description of
// Slurm's structures. RestDialect describes how requests are written in a version. Answers differ
// as much, but describe themselves (rest_answer.h).
//
// Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// How requests of one version are written.
struct RestDialect {
  int first = 0;  ///< the first version that it holds for: 38 is v0.0.38
  /// {"set": true, "number": 5} instead of 5.
  bool wraps_numbers = false;
  /// ["NAME=value"] instead of {"NAME": "value"}, and ["n1"] instead of "n1".
  bool lists = false;
  /// The script is a member of the description of the (first) job, not beside it.
  bool script_in_job = false;
  /// minimum_nodes and maximum_nodes, instead of sbatch's --nodes as a text. (Slurm 22.05 accepts
  /// the array that versions 36 to 38 document, ignores it and allocates one node.)
  bool counts_nodes = false;
  std::string_view excluded_nodes;
  std::string_view output;
  std::string_view gpus;         ///< the member
  std::string_view gpus_prefix;  ///< before "a100:4" or "4"
  /// The query that omits the cores of each job; empty: the version has no such query.
  std::string_view without_details;
  /// Can be asked for changes since a time, and answers if there are none. (Version 39 crashes with
  /// a null pointer.)
  bool reports_changes = false;
};

/// The oldest and the newest supported version.
constexpr int kOldestRestVersion = 36;
constexpr int kNewestRestVersion = 46;

/// REQUIRES: kOldestRestVersion <= version.
const RestDialect& dialect_of(int version);

/// "v0.0.38"; and back, 0 if the name is not a version.
std::string rest_version_name(int version);
int rest_version_of(std::string_view name);

/// The paths that a slurmrestd serves, by its own description (/openapi).
struct RestPaths {
  std::vector<int> versions;  ///< ascending
  /// Each path with each method: "/slurm/v0.0.40/jobs/ DELETE".
  std::vector<std::string> served;
};

/// The paths by which Muster uses a slurmrestd, in the chosen version.
struct RestInterface {
  int version = 0;
  RestDialect dialect;
  std::string jobs;  ///< "/slurm/v0.0.40/jobs/"
  std::string nodes;
  std::string ping;
  std::string submit;
  std::string job;       ///< an id is appended
  std::string past_job;  ///< the same for the accounting database; empty: not served
  bool cancels_many = false;

  /// False: there is no common version.
  explicit operator bool() const { return version != 0; }
};

/// The newest version that both sides support, up to `newest`; empty if there is no such version.
RestInterface choose_interface(const RestPaths& paths, int newest = kNewestRestVersion);

// --- bodies

/// The body of a submission. It contains the script, which may contain a key.
std::string rest_submit_body(const Submission& submission, const RestDialect& dialect);

/// The body of DELETE /jobs/, in versions that cancel many jobs at once.
std::string rest_cancel_body(const std::vector<uint64_t>& ids);

}  // namespace muster::engine::slurm
