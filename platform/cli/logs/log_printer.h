// Log records as lines of text: a prefix that names the task or rank, coloured on a terminal, and the
// program's bytes, made safe for a terminal.
//
//   [0@dist-worker-0] epoch 1 ...      a rank of an MPI program
//   [0] epoch 1 ...                    a rank whose output passed through a launcher
//   [launcher] ...                     any other task
//   [worker-1] muster: ...             a message of Muster
//   [0-7] ... (repeated 41 times)      equal lines of several ranks, folded by LogFold
//
// A terminal obeys control characters, and a log must not move its cursor, set its title, ring or
// type into it. LogText removes sequences that move the cursor or erase (as progress bars print),
// passes colours to terminals with colours and resets them at the end of the line, and prints every
// other control character as \x1b and so on. A line that overwrites itself is shown in its last state.
//
// Lines without a newline yet, such as prompts and progress bars, are not mixed with lines of others:
//
//   - A terminal shows at its bottom the unfinished line that was changed last. It is erased and
//     drawn again below the lines of other sources. When it fills more than a row of the terminal, it
//     stays where it is, and continues in another line.
//   - In a pipe or a file, the pieces of a line are held back until its newline arrives, until
//     release() finds them for the second time, or until they are kMostHeldOfLine bytes.
//
// Pure: text in, text out. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
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

  /// Forgets what was held back, and resets colours: the line is erased.
  void drop(std::string& out);

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
  static constexpr size_t kMostHeldOfLine = 1 << 20;
  /// Of all lines together.
  static constexpr size_t kMostHeld = 64 << 20;

  /// `head`: appends text at the beginning of each line; may be empty.
  LogPrinter(LogLook look, Terminal terminal, std::function<void(std::string&)> head = {})
      : look_(look), terminal_(terminal), head_(std::move(head)), text_(terminal.colour) {}

  /// Appends `record` to `out`. An incomplete line stays open: the next record of the same source
  /// continues it.
  void print(const job::LogRecord& record, std::string& out);

  /// Appends a line of Muster: "[0-3] words".
  void note(const std::string& name, const std::string& words, std::string& out);

  /// Ends the open line of the record's source, if there is one.
  void end_line(const job::LogRecord& of, std::string& out);

  /// Whether pieces of lines are held back, so that release() is to be called from time to time.
  bool holds() const;
  /// Appends the pieces that were held back already at the last call.
  void release(std::string& out);

  /// Other text is to follow: erases the open line at the bottom, or ends it if it cannot be erased.
  void hide(std::string& out);
  /// On a terminal, draws the open line that was changed last.
  void draw_latest(std::string& out);

  /// The terminal has this width now.
  void resize(size_t columns) { terminal_.columns = columns; }

  /// Ends all open lines.
  void finish(std::string& out);

 private:
  /// A stream of a rank of a task, in an attempt.
  using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;

  /// An open line.
  struct Line {
    std::string head;
    std::string text;      ///< on a terminal its state, else what is held back of it
    bool rewound = false;  ///< the next text overwrites the line
    bool is_cut = false;   ///< its beginning was printed, in a line that others have ended
    bool is_old = false;   ///< held back since the last release()
    uint64_t changed = 0;  ///< in the order of changes

    std::optional<std::string_view> add(std::string_view more);
  };
  using Lines = std::map<Source, Line>;

  static Source source_of(const job::LogRecord& record);
  std::string head_of(const job::LogRecord& record);
  Line& line_of(const job::LogRecord& record);
  void append_text(std::string_view text, std::string& out);
  void draw(Line& line, std::string& out);
  void print_whole(const job::LogRecord& record, std::string& out);
  void continue_line(Line& line, std::string_view text, std::string& out);
  void end(Lines::iterator line, std::string_view text, std::string& out);

  LogLook look_;
  Terminal terminal_;
  std::function<void(std::string&)> head_;
  std::string prefix_;  ///< of the last line: most lines come from the same source
  std::optional<job::LogSource> prefixed_;  ///< that source
  Lines lines_;
  Line* shown_ = nullptr;  ///< the open line at the end of the output
  size_t width_ = 0;       ///< of shown_ on the terminal
  LogText text_;           ///< of shown_
  uint64_t changes_ = 0;
  size_t held_ = 0;  ///< bytes held back for a pipe or a file
};

/// Appends a record as one line of the API's JSON. JSON escapes C0; on a terminal, DEL and C1 are
/// escaped too, because terminals interpret them.
void append_json(const job::LogRecord& record, Terminal terminal, std::string& out);

/// "[3@host]", "[3]" where the host of the rank is unknown, or "[worker-0]".
std::string prefix_of(const job::LogRecord& record);

/// Prints equal consecutive lines once, with a count.
class LogFold {
 public:
  /// `printer` must outlive this object.
  explicit LogFold(LogPrinter& printer) : printer_(printer) {}

  void print(const job::LogRecord& record, std::string& out);

  /// Prints how often the last line was repeated, and resets the count.
  void print_count(std::string& out);

  /// Whether repetitions were counted.
  bool holds() const { return count_ > 0; }

 private:
  using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;

  bool repeats_the_last(const job::LogRecord& record) const;
  std::string names() const;

  LogPrinter& printer_;
  std::optional<job::LogRecord> last_;  ///< a complete line that may be repeated
  job::LogRecord repeated_;             ///< the last repetition
  std::set<Source> open_;               ///< sources whose last record is not the end of its line
  uint64_t count_ = 0;                  ///< repetitions since the last print
  std::set<int> ranks_;                 ///< ranks that repeated it; tasks_: tasks without ranks
  std::set<std::string> tasks_;
};

}  // namespace muster::cli::logs
