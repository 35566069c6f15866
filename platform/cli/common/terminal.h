// What a descriptor shows its text on, and how text must look there; and the caller's terminal,
// lent to a program elsewhere.
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::cli {

/// Takes all colours back.
inline constexpr const char* kNoColour = "\x1b[0m";

struct Terminal {
  bool is_terminal = false;
  bool colour = false;
};

/// I/O: asks the descriptor and the environment. Colour: on a terminal whose TERM is not "dumb",
/// unless NO_COLOR is set to anything (no-color.org).
Terminal terminal_of(int fd);

/// The rule behind terminal_of(). Pure; null: not set.
bool wants_colour(bool is_terminal, const char* no_color, const char* term);

/// Whether a terminal with these variables shows more than ASCII: whether the first of LC_ALL,
/// LC_CTYPE and LANG that says something says UTF-8. Pure; null: not set.
bool shows_unicode(const char* lc_all, const char* lc_ctype, const char* lang);

/// Makes text safe to show: a terminal obeys control characters, and a log, a job's name or a
/// server's answer must not move its cursor, set its title or type into it. C0 (but for tab and
/// carriage return, which progress bars use), DEL and bytes that are not UTF-8 come out as \x1b and
/// the like, C1 and what turns the direction of text around (Unicode's bidirectional controls) as
/// \u202e; all other characters as they are. Text may come in pieces cut anywhere. Pure.
class TerminalFilter {
 public:
  void append(std::string_view text, std::string& out);
  /// Shows what has come of a character whose rest did not.
  void finish(std::string& out);

 private:
  std::string
      character_;  ///< the bytes of one that is longer than a byte, as far as they have come
};

/// One whole text, whose newlines stay.
std::string safe_lines(std::string_view text);

class RawTerminal {
 public:
  /// Does nothing where `fd` is no terminal.
  explicit RawTerminal(int fd);
  /// As it was before.
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  std::optional<termios> before_;
};

/// Rows and columns; nothing where `fd` is no terminal, or does not know.
std::optional<std::pair<int, int>> size_of_terminal(int fd);

// Ctrl-C as a value instead of a death: while an Interrupts lives, SIGINT and SIGTERM wait on a
// descriptor, and a closed pipe is an error of write() instead of SIGPIPE.
//
// Construct before other threads start (the signal mask is a thread's own). Not copied.

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable while a signal waits.
  int fd() const { return signals_.get(); }

  /// Takes one waiting signal; false when there is none.
  bool take();

 private:
  base::UniqueFd signals_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
};

// How far something has come, on one line of a terminal that is written over and over, and gone in
// the end. Where standard error is no terminal, nothing is written.
//
// I/O; not thread-safe.

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// "reading", bytes.
  void show(std::string_view what, int64_t done, int64_t all);
  /// A line of somebody else's.
  void show(std::string_view what, std::string_view line);
  /// Takes the line away, for what is there to stay.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due();
  void draw(const std::string& line);
  size_t columns() const;

  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_{};
};

/// "sending [=======>            ]  42%  430 MiB of 1 GiB", in so many columns at most. Pure.
std::string progress_line(std::string_view what, int64_t done, int64_t all, size_t columns);

/// "fetching  Receiving objects: 42%", as one line that a terminal only shows. Pure.
std::string progress_line(std::string_view what, std::string_view line, size_t columns);

// A terminal that shows pictures in place, one after another: the alternate screen, keys without
// their echo, and everything as it was when this ends.
//
// Construct before other threads start (it holds an Interrupts). Not copied; one at a time.

/// 0: as long as it takes.
struct ScreenSize {
  size_t columns = 0;
  size_t rows = 0;
};

/// Of the terminal that standard output is; a usual one's where it is none.
ScreenSize screen_size();

class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  ScreenSize size() const;

  /// Shows `picture`, lines without control characters, in the place of what was there.
  base::Result<void> show(std::string_view picture);

  /// Waits so long, or until somebody wants to leave: q, Ctrl-C, SIGTERM, or the keyboard is gone.
  /// Returns whether to go on.
  bool wait(std::chrono::milliseconds interval);

 private:
  bool key_says_leave() const;

  Interrupts interrupts_;
  termios before_{};
  bool has_keys_ = false;  ///< standard input is a terminal
};

/// The bytes that put `picture` in the place of what a terminal of so many rows shows; what does
/// not fit is left out. Pure.
std::string redraw(std::string_view picture, size_t rows);

/// The first `columns` code points of a line of valid UTF-8.
std::string_view cut_to(std::string_view line, size_t columns);

}  // namespace muster::cli
