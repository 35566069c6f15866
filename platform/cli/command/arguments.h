// The words of a command line, sorted: the command, its flags, names, and the program behind "--".
// FlagReader then reads the values of flags as numbers, times, sizes and choices. An invalid value
// becomes a fault named after its flag, and a fallback replaces the value, so that all faults are
// reported at once.
//
// The parser is our own, so that every fault is reported, not only the first, and values are taken as
// typed: "[a,b]" is one value, and "--flag=" is an empty one.
//
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command/command.h"

namespace muster::cli {

/// The value of a switch, in the spellings of Go and of Python's click: true, t, 1, yes, y, on, and
/// their opposites, in any case. Nothing: `text` is neither true nor false.
std::optional<bool> truth_of(std::string_view text);

struct Arguments {
  std::vector<std::string> path;  ///< the command: {"submit", "mpi"}; aliases by their full name
  std::map<std::string, std::vector<std::string>>
      flags;  ///< "--env" -> its values; a switch that is on: {"true"}, and else none
  std::vector<std::string> names;    ///< other words, such as the name of a job
  bool has_program = false;          ///< "--" was typed
  std::vector<std::string> program;  ///< the words after "--"
  std::vector<base::Fault> faults;   ///< unknown words, flags without a value, --force=maybe

  bool has(const std::string& flag) const { return flags.contains(flag); }
};

/// Sorts `words`. Unknown words are reported in `faults`, so that they can be printed together with
/// the invalid values that FlagReader finds.
Arguments sort_arguments(const Command& root, const std::vector<std::string>& words);

/// The fields of a spec with the flags of a dialect that set them.
using FieldFlags = std::vector<std::pair<std::string_view, std::string_view>>;

/// The flag of the first entry whose field contains `field`; without an entry, `field` itself.
std::string flag_of_field(const std::string& field, const FieldFlags& flags);

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

  /// `most`: only for the fault of a number that is too large for an int.
  int number(const std::string& flag, int fallback, int most = std::numeric_limits<int>::max());
  /// A number from `least` to `most`.
  int number_between(const std::string& flag, int fallback, int least,
                     int most = std::numeric_limits<int>::max());
  /// At most 100 years, so that the sum with the present time fits into nanoseconds.
  std::chrono::milliseconds duration(const std::string& flag, std::chrono::milliseconds fallback);
  int64_t bytes(const std::string& flag, int64_t fallback);
  /// "4", "0.5" or "500m" CPUs, in thousandths.
  int64_t cpus(const std::string& flag, int64_t fallback);
  /// A fraction such as "0.5", in thousandths; 0 if the flag is not given.
  int share(const std::string& flag);
  /// A value from `choices`; the first choice if the flag is not given or its value is invalid.
  std::string choice(const std::string& flag, const std::vector<std::string>& choices);
  /// A time: "10m" (before `now`) or RFC 3339.
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
