// How a command prints what it found; YAML is the API's JSON with the same names, order and values.
//
// Pure.
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

enum class Output { kTable, kJson, kYaml, kNames };

/// `json` must be valid JSON; text that is not comes back as one YAML string.
std::string json_to_yaml(std::string_view json);

// Aligned columns without borders, text to the left and numbers to the right; and the "KEY value"
// lines at the head of a page.
//
// Pure.

struct Column {
  std::string title;
  bool right = false;  ///< numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row may be shorter than the columns; it must not be longer.
  void add(std::vector<std::string> row);

  /// The title line and the rows, each line behind `indent`; no blanks at the ends of lines.
  /// Control characters in cells are shown as blanks: a row stays a line.
  std::string to_string(std::string_view indent = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns that a terminal needs for `text`: one a code point. Wide and combining characters are
/// not told apart; names and hosts have none.
size_t display_width(std::string_view text);

/// Keys are padded to one width; entries with an empty value are left out.
std::string fields(const std::vector<std::pair<std::string, std::string>>& entries);

// What is printed when something went wrong, and the exit code that goes with it. All is pure but
// tell() and run_and_tell(), the outermost part of a program, which print on standard error.

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitRefused = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitInterrupted = 130;  ///< 128 + SIGINT
inline constexpr int kExitBrokenPipe = 141;   ///< 128 + SIGPIPE, as if the signal had ended us

int exit_code_of(const base::Error& error);

/// The exit code of a followed job: 0 only where it succeeded; else its own, or 1 where it has
/// none (or a misleading 0: a worker died, and the launcher did not mind).
int exit_code_of(const job::Job& job);

// `program`: who says so. A dialect speaks under its own name.

/// "muster: what", then faults and advice, indented; ends with a newline.
std::string error_text(const base::Error& error, const std::string& program = "muster");

/// Why a job failed or was stopped: cause, last lines, advice. Empty where it succeeded.
std::string failure_text(const job::Job& job, const std::string& program = "muster");

/// Below a failure's cause: what was printed last, and what to try.
std::string evidence_text(const job::Failure& failure);

/// The faults of a command line as one error. A single fault becomes the error's sentence.
base::Error usage_error(const std::vector<std::string>& path, std::vector<base::Fault> faults,
                        const std::string& program = "muster");

/// "PROGRAM: what", then faults and advice; the exit code that goes with it.
int tell(const base::Error& error, const std::string& program);

/// The exit code of what `command_line` does, whatever becomes of it.
int run_and_tell(const std::string& program,
                 const std::function<base::Result<int>()>& command_line);

}  // namespace muster::cli
