// Log records as lines of text: a prefix that names the task or rank, coloured on a terminal, and the
// program's bytes, made safe for a terminal.
//
//   [0@dist-worker-0] epoch 1 ...      a rank of an MPI program
//   [launcher] ...                     any other task
//   [worker-1] muster: ...             a message of Muster
//   [0-7] ... (repeated 41 times)      equal lines of several ranks, folded by LogFold
//
// A terminal obeys control characters, and a log must not move its cursor, set its title, ring or
// type into it. LogText removes sequences that move the cursor or erase (as progress bars print),
// passes colours to terminals with colours and resets them at the end of the line, and prints every
// other control character as \x1b and so on. A line that overwrites itself is shown in its last state,
// and in place while no other task prints.
//
// Pure: text in, text out. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/common/terminal.h"
#include "job/log_record.h"

namespace muster::cli::logs {

class LogText {
 public:
  explicit LogText(bool colour) : colour_(colour) {}

  void append(std::string_view text, std::string& out);

  /// Prints what was held back, and resets colours.
  void finish(std::string& out);

 private:
  enum class Look { kPart, kWhole, kBroken };

  Look take(char letter);
  void end_sequence(std::string& out);

  bool colour_;
  bool coloured_ = false;  ///< a colour is active
  std::string sequence_;   ///< an incomplete escape sequence
  TerminalFilter filter_;
};

/// The colour of a record's task or rank, the same in every run. Ranks and workers get the colours
/// after the leader's in order, parameter servers from the other end, so that tasks share a colour
/// only if all are in use.
std::string_view colour_of(const job::LogRecord& record);

/// The format of log lines.
struct LogLook {
  bool prefix = true;
  bool timestamps = false;
  bool fold = false;  ///< on a terminal, repeated lines are printed once with a count
  bool json = false;  ///< one JSON record of the API in each line; ignores the above

  bool operator==(const LogLook&) const = default;
};

class LogPrinter {
 public:
  /// `head`: appends text at the beginning of each line; may be empty.
  LogPrinter(LogLook look, Terminal terminal, std::function<void(std::string&)> head = {})
      : look_(look), terminal_(terminal), head_(std::move(head)), text_(terminal.colour) {}

  /// Appends `record` to `out`. An incomplete line stays open: the next record of the same source
  /// continues it, and a record of another source ends it and begins a new line.
  void print(const job::LogRecord& record, std::string& out);

  /// Appends a line of Muster: "[0-3] words".
  void note(const std::string& name, const std::string& words, std::string& out);

  /// Ends an open line.
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
  bool known_ = false;  ///< there was a record
  bool open_ = false;   ///< the last line is incomplete
  LogText text_;
  std::string line_head_;  ///< the beginning of the open line
  bool shown_ = false;     ///< the open line has text after line_head_
  bool rewound_ = false;   ///< the next text overwrites the line
};

/// Appends a record as one line of the API's JSON. JSON escapes C0; on a terminal, DEL and C1 are
/// escaped too, because terminals interpret them.
void append_json(const job::LogRecord& record, Terminal terminal, std::string& out);

/// "[3@host]" or "[worker-0]".
std::string prefix_of(const job::LogRecord& record);

/// Prints equal consecutive lines once, with a count.
class LogFold {
 public:
  /// `printer` must outlive this object.
  explicit LogFold(LogPrinter& printer) : printer_(printer) {}

  void print(const job::LogRecord& record, std::string& out);

  /// Prints how often the last line was repeated, and resets the count.
  void tell(std::string& out);

  /// Whether repetitions were counted.
  bool holds() const { return count_ > 0; }

 private:
  bool repeats_the_last(const job::LogRecord& record) const;
  std::string names() const;

  LogPrinter& printer_;
  std::optional<job::LogRecord> last_;  ///< a complete line that may be repeated
  job::LogRecord repeated_;             ///< the last repetition
  bool continues_ = false;              ///< the last record is not the end of its line
  uint64_t count_ = 0;                  ///< repetitions since the last print
  std::set<int> ranks_;                 ///< ranks that repeated it; tasks_: tasks without ranks
  std::set<std::string> tasks_;
};

}  // namespace muster::cli::logs
