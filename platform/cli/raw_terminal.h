// The caller's terminal, lent to a program elsewhere: while a RawTerminal lives, each key goes on
// as it is pressed, Ctrl-C included, and nothing is echoed here.
#pragma once

#include <termios.h>

#include <optional>
#include <utility>

namespace muster::cli {

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
