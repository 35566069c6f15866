// The caller's terminal: its properties, text that is safe to show, raw mode, Ctrl-C as a value,
// progress bars and full-screen views.
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

/// Resets all colours.
inline constexpr const char* kNoColour = "\x1b[0m";

struct Terminal {
  bool is_terminal = false;
  bool colour = false;
  size_t columns = 80;  ///< its width when it was examined
};

/// I/O: reads the descriptor and the environment. Colour: on a terminal whose TERM is not "dumb",
/// unless NO_COLOR is set to anything (no-color.org).
Terminal terminal_of(int fd);

/// The width of standard output now, if `terminal` is that of a terminal; else terminal.columns.
size_t columns_now(const Terminal& terminal);

/// The rule behind terminal_of(). Pure; null: not set.
bool uses_colour(bool is_terminal, const char* no_color, const char* term);

/// Whether a terminal with these variables shows Unicode: the first non-empty one of LC_ALL, LC_CTYPE
/// and LANG names UTF-8. Pure; null: not set.
bool shows_unicode(const char* lc_all, const char* lc_ctype, const char* lang);

/// Makes text safe to show: a terminal obeys control characters, and a log, a job's name or a
/// server's answer must not move its cursor, set its title or type into it. C0 (except tab and
/// carriage return, which progress bars use), DEL and bytes that are not UTF-8 become \x1b and
/// so on; C1 and Unicode's bidirectional controls become \u202e and so on; other characters are not
/// changed. Text may be split anywhere. Pure.
class TerminalFilter {
 public:
  void append(std::string_view text, std::string& out);
  /// Appends the bytes of an incomplete character.
  void finish(std::string& out);

 private:
  std::string character_;  ///< the bytes so far of a multi-byte character
};

/// The safe form of a text; newlines are kept.
std::string safe_lines(std::string_view text);

/// Raw mode of a terminal while this object exists.
class RawTerminal {
 public:
  /// Does nothing if `fd` is not a terminal.
  explicit RawTerminal(int fd);
  /// Restores the previous mode.
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  std::optional<termios> before_;
};

/// Rows and columns; nothing if `fd` is not a terminal or does not report them.
std::optional<std::pair<int, int>> size_of_terminal(int fd);

/// Ctrl-C as a value: while this object exists, SIGINT and SIGTERM are read from a descriptor instead
/// of ending the process, and a closed pipe is an error of write() instead of SIGPIPE.
///
/// Construct before other threads start (the signal mask belongs to a thread).
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable while a signal is pending.
  int fd() const { return signals_.get(); }

  /// Takes one pending signal; false if there is none.
  bool take();

 private:
  base::UniqueFd signals_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
};

/// A progress line on standard error that is overwritten, and removed at the end. Writes nothing if
/// standard error is not a terminal.
///
/// I/O; not thread-safe.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `what`: "reading"; `done` and `all` in bytes.
  void show(std::string_view what, int64_t done, int64_t all);
  /// A progress line of another program, such as git.
  void show(std::string_view what, std::string_view line);
  /// Removes the line, so that permanent output can follow.
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

/// "sending [=======>            ]  42%  430 MiB of 1 GiB", at most `columns` wide. Pure.
std::string progress_line(std::string_view what, int64_t done, int64_t all, size_t columns);

/// "fetching  Receiving objects: 42%", as one safe line. Pure.
std::string progress_line(std::string_view what, std::string_view line, size_t columns);

/// 0: unlimited.
struct ScreenSize {
  size_t columns = 0;
  size_t rows = 0;
};

/// The size of the terminal behind standard output, or 80 by 24.
ScreenSize screen_size();

/// Shows pages on the alternate screen, one replacing the other. The destructor restores the terminal.
///
/// Construct before other threads start (it contains an Interrupts). At most one exists.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  ScreenSize size() const;

  /// Replaces the screen's content. `picture`: lines without control characters.
  base::Result<void> show(std::string_view picture);

  // For a caller that waits for other events, too.
  int signals_fd() const { return interrupts_.fd(); }
  int keys_fd() const;  ///< -1: standard input is no terminal
  /// Whether the user has quit: takes a pending signal or key, and does not wait.
  bool user_quits();

  /// Waits for `interval`. False if the user quits: q, Ctrl-C, SIGTERM, or a closed terminal.
  bool wait(std::chrono::milliseconds interval);

 private:
  bool is_quit_key_pressed() const;

  Interrupts interrupts_;
  termios before_{};
  bool has_keys_ = false;  ///< standard input is a terminal
};

/// The bytes that replace a terminal's content by `picture`, cut to `rows`. Pure.
std::string redraw(std::string_view picture, size_t rows);

/// The first `columns` code points of a line of valid UTF-8.
std::string_view cut_to(std::string_view line, size_t columns);

}  // namespace muster::cli
