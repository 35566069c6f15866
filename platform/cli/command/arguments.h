// The words of a command line, sorted by what they are: command, flags, names, and the program
// behind
// "--"; CLI11 does the sorting and stays inside arguments.cc. FlagReader then reads values as
// numbers, times, sizes and choices: a value that cannot be read becomes a fault named after its
// flag, and a fallback stands in, so that every fault is reported at once.
//
// Pure. CLI11's exceptions end here.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command/command.h"

namespace muster::cli {

struct Arguments {
  std::vector<std::string> path;  ///< the command: {"submit", "mpi"}; aliases by their full name
  std::map<std::string, std::vector<std::string>> flags;  ///< --env -> values; without: {"true"}
  std::vector<std::string> names;                         ///< what is neither command nor flag
  bool has_program = false;                               ///< whether "--" was there
  std::vector<std::string> program;                       ///< what came after it
  std::vector<base::Fault> faults;                        ///< unknown words, flags without a value

  bool has(const std::string& flag) const { return flags.contains(flag); }
};

/// Never fails as a whole: what it could not understand stands in `faults`, so that the faults of
/// the values can be told along with them.
Arguments sort_arguments(const Command& root, const std::vector<std::string>& words);

/// "unknown flag '--folow'; did you mean '--follow'?"
std::string unknown_flag(const std::string& word, const Command& command);
std::string unknown_command(const std::string& word, const Command& command);

class FlagReader {
 public:
  /// `arguments` must outlive the reader. Starts with the faults found there.
  explicit FlagReader(const Arguments& arguments)
      : arguments_(arguments), faults_(arguments.faults) {}

  bool has(const std::string& flag) const { return arguments_.has(flag); }
  std::string text(const std::string& flag, const std::string& fallback = {}) const;
  std::vector<std::string> texts(const std::string& flag) const;

  int number(const std::string& flag, int fallback);
  std::chrono::milliseconds duration(const std::string& flag, std::chrono::milliseconds fallback);
  int64_t bytes(const std::string& flag, int64_t fallback);
  /// "4", "0.5" or "500m" CPUs, in thousandths.
  int64_t cpus(const std::string& flag, int64_t fallback);
  /// A part of one, "0.5", in thousandths; 0 where the flag is not given.
  int share(const std::string& flag);
  /// One of the flag's choices; kInvalid elsewhere names them.
  std::string choice(const std::string& flag, const std::vector<std::string>& choices);
  /// "10m" (so long before `now`) or RFC 3339.
  std::optional<base::Time> moment(const std::string& flag, base::Time now);

  void fault(std::string field, std::string what);
  bool is_at_fault(const std::string& field) const;
  bool ok() const { return faults_.empty(); }
  const std::vector<base::Fault>& faults() const { return faults_; }

 private:
  const Arguments& arguments_;
  std::vector<base::Fault> faults_;
};

}  // namespace muster::cli
