// Log records as lines of text: a prefix that names who printed, in a colour of its own on a
// terminal, and the program's bytes as they are, or made safe where they go to a terminal.
//
//   [0@dist-worker-0] epoch 1 ...      a rank of an MPI program
//   [launcher] ...                     any other task
//   [worker-1] muster: ...             Muster's own words
//   [0-7] ... (repeated 41 times)      what LogFold leaves of the same line of several ranks
//
// A terminal obeys control characters, and a log must not move its cursor, set its title, ring or
// type into it. LogText leaves out sequences that only lay out a screen (cursor movements,
// erasing), as a progress bar is full of them; colours pass where the terminal shows any, and end
// with the line; every other control character is shown, as \x1b and the like. Of a line that
// overwrites itself a terminal shows the last state, in its place while nobody else prints.
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

  /// Shows what was held back and takes colours back.
  void finish(std::string& out);

 private:
  enum class Look { kPart, kWhole, kBroken };

  Look take(char letter);
  void end_sequence(std::string& out);

  bool colour_;
  bool coloured_ = false;  ///< a colour was passed on and not taken back
  std::string sequence_;   ///< that has begun with ESC
  TerminalFilter filter_;
};

/// The escape sequence of its colour: the same in every run, whoever prints first. Ranks and
/// workers take the colours in order behind that of the leader, parameter servers from the other
/// end: no two tasks of a job share one before all are taken.
std::string_view colour_of(const job::LogRecord& record);

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

class LogFold {
 public:
  /// `printer` outlives it.
  explicit LogFold(LogPrinter& printer) : printer_(printer) {}

  void print(const job::LogRecord& record, std::string& out);

  /// Prints how often the last line was repeated, if it was; later repetitions count anew.
  void tell(std::string& out);

  /// Whether there is something to tell.
  bool holds() const { return count_ > 0; }

 private:
  bool repeats_the_last(const job::LogRecord& record) const;
  std::string names() const;

  LogPrinter& printer_;
  std::optional<job::LogRecord> last_;  ///< a whole line that may be repeated
  job::LogRecord repeated_;             ///< the last repetition
  bool continues_ = false;              ///< the last record is not the end of its line
  uint64_t count_ = 0;                  ///< repetitions since it was shown or told
  std::set<int> ranks_;                 ///< that printed it, and the tasks of those without a rank
  std::set<std::string> tasks_;
};

}  // namespace muster::cli::logs
