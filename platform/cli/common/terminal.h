// What a descriptor shows its text on, and how text must look there; and the caller's terminal,
// lent to a program elsewhere.
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

}  // namespace muster::cli
