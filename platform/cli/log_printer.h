// Log records as lines of text: a prefix that says who printed, in a colour of its own on a
// terminal, and the program's bytes as they are, or made safe where they go to a terminal.
//
//   [0@dist-worker-0] epoch 1 ...      a rank of an MPI program
//   [launcher] ...                     any other task
//   [worker-1] muster: ...             Muster's own words
//
// Of a line that overwrites itself (a progress bar and its carriage returns) a terminal shows the
// last state, in its place while nobody else prints.
//
// Pure: text in, text out. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/log_text.h"
#include "cli/terminal.h"
#include "job/log_record.h"

namespace muster::cli {

/// How log lines are dressed.
struct LogLook {
  bool prefix = true;
  bool timestamps = false;
  bool fold = false;  ///< on a terminal, a line that is repeated is shown once and counted
  bool json = false;  ///< one record of the API a line, and none of the above

  bool operator==(const LogLook&) const = default;
};

class LogPrinter {
 public:
  /// `head`: appends what stands in front of each line, before all else; empty: nothing.
  LogPrinter(LogLook look, Terminal terminal, std::function<void(std::string&)> head = {})
      : look_(look), terminal_(terminal), head_(std::move(head)), text_(terminal.colour) {}

  /// Appends `record` to `out`. A record that continues leaves its line open: the next of the same
  /// source goes on there; one of another source ends it first and begins a line of its own.
  void print(const job::LogRecord& record, std::string& out);

  /// A line of nobody's: "[0-3] words".
  void note(const std::string& name, const std::string& words, std::string& out);

  /// Ends a line that is still open.
  void finish(std::string& out);

 private:
  struct Source {
    std::string task;
    std::string host;
    std::optional<int> rank;
    job::LogStream stream = job::LogStream::kOutput;

    bool is_of(const job::LogRecord& record) const;
  };

  void begin_line(const job::LogRecord& record, std::string& out);
  void show(std::string_view text, std::string& out);
  void remember(const job::LogRecord& record);

  LogLook look_;
  Terminal terminal_;
  std::function<void(std::string&)> head_;
  Source source_;       ///< of the last record
  std::string prefix_;  ///< of source_, with its colour
  bool known_ = false;  ///< whether there was a last record
  bool open_ = false;   ///< whether the last line lacks its end
  LogText text_;
  std::string line_head_;  ///< what stands in front of the open line
  bool shown_ = false;     ///< whether anything stands behind it
  bool rewound_ = false;   ///< what comes next overwrites it
};

/// "[3@host]" or "[worker-0]".
std::string prefix_of(const job::LogRecord& record);

}  // namespace muster::cli
