#include "cli/raw_terminal.h"

#include <sys/ioctl.h>

namespace muster::cli {

RawTerminal::RawTerminal(int fd) : fd_(fd) {
  termios now{};
  if (::tcgetattr(fd, &now) != 0) return;
  before_ = now;
  ::cfmakeraw(&now);
  ::tcsetattr(fd, TCSADRAIN, &now);
}

RawTerminal::~RawTerminal() {
  if (before_) ::tcsetattr(fd_, TCSADRAIN, &*before_);
}

std::optional<std::pair<int, int>> size_of_terminal(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return std::nullopt;
  }
  return std::pair<int, int>(size.ws_row, size.ws_col);
}

}  // namespace muster::cli
