// How commands print results and errors: tables, JSON and YAML, error messages, exit codes.
//
// Pure, except report_error() and run_and_report().
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "job/job.h"

namespace muster::cli {

enum class Output { kTable, kJson, kYaml, kNames, kCsv };

/// The same names, order and values as YAML. Invalid JSON becomes one YAML string.
std::string json_to_yaml(std::string_view json);

// Tables with aligned columns and no borders.

struct Column {
  std::string title;
  bool right = false;  ///< aligned to the right, for numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row may be shorter than the columns; it must not be longer.
  void add(std::vector<std::string> row);

  /// The title line and the rows, each after `indent`, without trailing blanks. Control characters in
  /// cells become blanks, so that each row is one line.
  /// `width`: longer lines are cut to this display width, with an ellipsis; 0: no limit.
  std::string to_string(std::string_view indent = "", size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The width of `text` on a terminal: two columns for wide characters (CJK, emoji), none for
/// combining ones.
size_t display_width(std::string_view text);

/// The text if it fits into `width` columns; else its beginning with "..." at the end.
std::string cut_to_width(std::string_view text, size_t width);

/// "KEY  value" lines with aligned values; entries with an empty value are omitted.
std::string fields(const std::vector<std::pair<std::string, std::string>>& entries);

// Errors and exit codes. `program`: the name in front of messages; a dialect uses its own.

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitRefused = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitTimeout = 124;      ///< of `wait`, as timeout(1) has it
inline constexpr int kExitInterrupted = 130;  ///< 128 + SIGINT
inline constexpr int kExitBrokenPipe = 141;   ///< 128 + SIGPIPE, as if the signal had ended us

int exit_code_of(const base::Error& error);

/// The exit code of a followed job: 0 only if it succeeded; else its own code, or 1 if it has none or
/// the code is 0 (a worker died, and the launcher exited with 0).
int exit_code_of(const job::Job& job);

/// "muster: what", then faults and advice on indented lines.
std::string error_text(const base::Error& error, const std::string& program = "muster");

/// Why a job failed or was stopped: cause, last lines, advice. Empty if it succeeded.
std::string failure_text(const job::Job& job, const std::string& program = "muster");

/// The lines below a failure's cause: the last output and the remedy.
std::string evidence_text(const job::Failure& failure);

/// The faults of a command line as one error. A single fault becomes the error's message.
base::Error usage_error(const std::vector<std::string>& path, std::vector<base::Fault> faults,
                        const std::string& program = "muster");

/// Prints error_text() on standard error, and returns the exit code.
int report_error(const base::Error& error, const std::string& program);

/// Runs `command_line`, prints its error or exception, and returns the exit code.
int run_and_report(const std::string& program,
                   const std::function<base::Result<int>()>& command_line);

}  // namespace muster::cli
