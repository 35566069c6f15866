// What slurmrestd is asked, as text.
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

// How the versions of slurmrestd's interface differ in what they are asked for. What they answer
// differs as much, but an answer says of itself how it is written (rest_json.h): here stands only
// what whoever asks has to know beforehand.
//
// A version is a plugin of slurmrestd ("v0.0.38"), and one slurmrestd serves several: 22.05 those
// of 36 to 38, 25.11 those of 41 to 44. Up to 38 they were written by hand, each with its own words
// for sbatch's options; from 39 on they are made from one description of Slurm's structures.
//
// Pure; thread-safe.

/// How one version is asked.
struct RestDialect {
  int first = 0;  ///< version from which on it is spoken: 38 is v0.0.38
  /// {"set": true, "number": 5} in the place of 5.
  bool wraps_numbers = false;
  /// ["NAME=value"] in the place of {"NAME": "value"}, and ["n1"] in that of "n1".
  bool lists = false;
  /// The script stands in the description of the (first) job, not beside it.
  bool script_in_job = false;
  /// minimum_nodes and maximum_nodes, in the place of sbatch's --nodes as a text. (An array, as the
  /// description of 36 to 38 has it, is taken and ignored by Slurm 22.05: one node is given.)
  bool counts_nodes = false;
  std::string_view excluded_nodes;
  std::string_view output;
  std::string_view gpus;         ///< the member
  std::string_view gpus_prefix;  ///< before "a100:4" or "4"
  /// The query that leaves out what each job has on which core; empty: there is none.
  std::string_view without_details;
  /// Asked for what has changed since a time, it answers that nothing has. (That of 39 ends by a
  /// null pointer then.)
  bool tells_changes = false;
};

/// The newest and the oldest version that can be asked.
constexpr int kOldestRestVersion = 36;
constexpr int kNewestRestVersion = 46;

/// REQUIRES: kOldestRestVersion <= version.
const RestDialect& dialect_of(int version);

/// "v0.0.38"; and back, 0 for what is no such name.
std::string rest_version_name(int version);
int rest_version_of(std::string_view name);

/// What a slurmrestd serves, by its own description (/openapi).
struct RestPaths {
  std::vector<int> versions;  ///< ascending
  /// "/slurm/v0.0.40/jobs/ DELETE" and its like: each path with each method.
  std::vector<std::string> served;
};

/// What is asked of a slurmrestd.
struct RestSpeech {
  int version = 0;
  RestDialect dialect;
  std::string jobs;  ///< "/slurm/v0.0.40/jobs/"
  std::string nodes;
  std::string ping;
  std::string submit;
  std::string job;       ///< to which an id is appended
  std::string past_job;  ///< the same of the accounting database; empty: it is not served
  bool cancels_many = false;

  /// Empty: there is nothing to be spoken.
  explicit operator bool() const { return version != 0; }
};

/// The newest version that both know, up to `newest`; empty where there is none.
RestSpeech choose_speech(const RestPaths& paths, int newest = kNewestRestVersion);

// --- bodies

/// The body of a submission. It holds the script, and with it perhaps a key.
std::string rest_submit_body(const Submission& submission, const RestDialect& dialect);

/// The body of DELETE /jobs/, of versions that end many at once.
std::string rest_cancel_body(const std::vector<uint64_t>& ids);

}  // namespace muster::engine::slurm
