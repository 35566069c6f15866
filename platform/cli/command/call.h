// From the words of a command line to a Call: a command's checked options and the function that
// executes them. Each command of the tree (command.h) has a function that reads its words into its
// options. Reading is pure, so that tests check options without running a command.
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

/// The idempotency key of a submission.
struct SubmissionKey {
  std::string text;
  bool is_given = false;  ///< by the user; otherwise random
};

/// The input of the function that reads a command's words.
struct Reading {
  const Command& root;
  const Arguments& arguments;
  const Caller& caller;
  base::RandomSource& random;
  FlagReader reader;

  Output output(const std::vector<std::string>& formats = {"table", "json", "yaml"});
  Output list_output() { return output({"table", "json", "yaml", "names"}); }
  std::string idempotency_key();
  SubmissionKey submission_key();
  /// Reports a fault if the flag is given with an empty value, which is most likely that of a
  /// variable that is not set. A flag that is at fault already gets no second fault.
  void refuse_empty(const std::string& flag);

  /// The name that the command requires; reports a fault if it is missing. `of`: "job", "project" ...
  std::string name(const std::string& of);
  std::vector<std::string> names(const std::string& of);
  /// The JOB or JOB/TASK that the command requires, with the task of --task.
  struct JobTask {
    std::string job;
    std::string task;  ///< empty: not given
  };
  JobTask job_and_task();
  std::optional<std::string> optional_name() const;
  /// The absolute path of a flag's value; empty if the flag is not given.
  std::string absolute_path(const std::string& flag) const;
  /// The value of --project, or empty.
  std::string project_of_job();
  /// The project of --project, the project in use, or `default`.
  std::string project_meant() const;
};

/// A command's options with the function execute(const Options&, const Hooks&) of their type.
class Call {
 public:
  template <class Options>
  Call(Options options)
      : options_(std::move(options)), execute_([](const std::any& kept, const Hooks& hooks) {
          return execute(*std::any_cast<Options>(&kept), hooks);
        }) {}

  /// Runs the command and returns the exit code.
  Result<int> operator()(const Hooks& hooks) const { return execute_(options_, hooks); }

  /// nullptr if the options have another type.
  template <class Options>
  const Options* options() const {
    return std::any_cast<Options>(&options_);
  }

 private:
  std::any options_;
  Result<int> (*execute_)(const std::any&, const Hooks&);
};

/// The value of --context, or empty. It is read first, because the project in use depends on it.
std::string context_flag(const Command& root, const std::vector<std::string>& words);

/// Reads a command line, without the program's name. `random` is used for names and idempotency keys.
/// The root's read function handles --help, --version and commands that only group others.
///
/// Errors: kInvalid, with all faults of flags and of the job's spec, each named after its flag.
Result<Call> read_call(const Command& root, const std::vector<std::string>& words,
                       const Caller& caller, base::RandomSource& random);

}  // namespace muster::cli
