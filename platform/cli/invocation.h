// What was asked for, typed: one struct a command, and the function that reads them from the words
// of a command line.
//
// Pure: what depends on the caller comes in as a value.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "cli/caller.h"
#include "cli/cli.h"
#include "job/log_record.h"
#include "job/spec.h"

namespace muster::cli {

using base::Result;

enum class Output { kTable, kJson, kYaml, kNames };

/// How log lines are dressed.
struct LogLook {
  bool prefix = true;
  bool timestamps = false;

  bool operator==(const LogLook&) const = default;
};

struct SubmitCommand {
  std::optional<std::string> file;  ///< the spec is in this YAML file ("-": standard input)
  job::JobSpec spec;                ///< valid, unless `file` is set
  std::string idempotency_key;
  bool follow = false;
  LogLook look;
  Output output = Output::kTable;
};

struct RunCommand {
  job::JobSpec spec;  ///< valid
  std::string idempotency_key;
  LogLook look;
};

struct ListCommand {
  Output output = Output::kTable;
};

struct GetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct LogsCommand {
  std::string name;
  job::LogQuery query;
  LogLook look;
};

struct StopCommand {
  std::vector<std::string> names;
  bool now = false;
  Output output = Output::kTable;
};

struct DeleteCommand {
  std::vector<std::string> names;
  bool ignore_missing = false;
  bool force = false;
};

struct ServerCommand {
  ServeOptions options;
  bool stop = false;  ///< tell the server that runs to leave
};

struct VersionCommand {
  Output output = Output::kTable;
};

struct CompletionCommand {
  std::string shell;
};

struct HelpCommand {
  std::vector<std::string> path;  ///< of the command; empty: muster itself
  bool asked = true;              ///< false: nothing was asked at all
};

using Invocation =
    std::variant<SubmitCommand, RunCommand, ListCommand, GetCommand, LogsCommand, StopCommand,
                 DeleteCommand, ServerCommand, VersionCommand, CompletionCommand, HelpCommand>;

/// Reads a command line (without the program's name). `random` gives names and idempotency keys.
///
/// Errors: kInvalid, with every fault of flags and of the job's spec at once, each named after the
/// flag it came from.
Result<Invocation> parse_invocation(const std::vector<std::string>& words, const Caller& caller,
                                    base::RandomSource& random);

}  // namespace muster::cli
