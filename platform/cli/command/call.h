// From the words of a command line to what they ask for. A command of the tree (command.h)
// names the function that reads its words; what that returns is a Call: the command's options,
// checked, and what to do with them. Reading is pure, so tests look at options without running
// anything.
#pragma once

#include <any>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"

namespace muster::cli {

using base::Result;

/// All that a reader needs.
struct Reading {
  const Command& root;
  const Arguments& arguments;
  const Caller& caller;
  base::RandomSource& random;
  FlagReader reader;

  Output output(const std::vector<std::string>& formats = {"table", "json", "yaml"});
  Output list_output() { return output({"table", "json", "yaml", "names"}); }
  std::string idempotency_key();

  /// The one name that the command takes, of a "job", "project" or "node"; a fault where it is
  /// missing.
  std::string name(const std::string& of);
  std::vector<std::string> names(const std::string& of);
  std::optional<std::string> optional_name() const;
  /// What a flag names, from the root; empty: it is not given.
  std::string absolute_path(const std::string& flag) const;
  /// Whose job is meant, or empty.
  std::string whose_job() const { return reader.text("--project"); }
  /// The project that is meant: said, in use, or the server's default.
  std::string project_meant() const;
};

/// A command that was understood: its options, and execute(const Options&, const Hooks&), which is
/// declared beside them.
class Call {
 public:
  template <class Options>
  Call(Options options)
      : options_(std::move(options)), execute_([](const std::any& kept, const Hooks& hooks) {
          return execute(*std::any_cast<Options>(&kept), hooks);
        }) {}

  /// Runs the command; the exit code.
  Result<int> operator()(const Hooks& hooks) const { return execute_(options_, hooks); }

  /// Null, unless the options are of this type.
  template <class Options>
  const Options* options() const {
    return std::any_cast<Options>(&options_);
  }

 private:
  std::any options_;
  Result<int> (*execute_)(const std::any&, const Hooks&);
};

/// What --context names, or empty. Which project is in use depends on it, so it is read first.
std::string context_flag(const Command& root, const std::vector<std::string>& words);

/// Reads a command line (without the program's name). `random` gives names and idempotency keys.
/// The root reads what no command does: --help, --version, and the name of a group alone.
///
/// Errors: kInvalid, with every fault of flags and of the job's spec at once, each named after the
/// flag it came from.
Result<Call> read_call(const Command& root, const std::vector<std::string>& words,
                       const Caller& caller, base::RandomSource& random);

}  // namespace muster::cli
