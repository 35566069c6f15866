#include "cli/common/live_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/files.h"

namespace muster::cli {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

}  // namespace

LiveScreen::LiveScreen() {
  has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    // Ctrl-Z would hand the shell a terminal in this state.
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  static_cast<void>(base::write_all(STDOUT_FILENO, kEnter));
}

LiveScreen::~LiveScreen() {
  static_cast<void>(base::write_all(STDOUT_FILENO, kLeave));
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

ScreenSize screen_size() {
  winsize window{};
  constexpr ScreenSize kUsual{.columns = 80, .rows = 24};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return kUsual;
  if (window.ws_col == 0 || window.ws_row == 0) return kUsual;
  return {.columns = window.ws_col, .rows = window.ws_row};
}

ScreenSize LiveScreen::size() const {
  return screen_size();
}

base::Result<void> LiveScreen::show(std::string_view picture) {
  return base::write_all(STDOUT_FILENO, redraw(picture, size().rows));
}

bool LiveScreen::wait(milliseconds interval) {
  const auto deadline = Clock::now() + interval;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return true;
    std::array<pollfd, 2> entries{
        pollfd{.fd = interrupts_.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    constexpr milliseconds kMost{60'000};  // poll() takes an int
    if (::poll(entries.data(), entries.size(), static_cast<int>(std::min(left, kMost).count())) <=
        0) {
      continue;
    }
    if (entries[0].revents != 0) return false;
    if (entries[1].revents != 0 && key_says_leave()) return false;
  }
}

bool LiveScreen::key_says_leave() const {
  char key = '\0';
  const ssize_t count = ::read(STDIN_FILENO, &key, 1);
  return count <= 0 || key == 'q' || key == 'Q';
}

std::string redraw(std::string_view picture, size_t rows) {
  constexpr std::string_view kHome = "\x1b[H";
  constexpr std::string_view kEraseLine = "\x1b[K";
  constexpr std::string_view kEraseBelow = "\x1b[J";
  std::string text(kHome);
  size_t row = 0;
  while (!picture.empty() && row < rows) {
    if (row++ > 0) text += "\r\n";
    const size_t end = std::min(picture.find('\n'), picture.size());
    // Erased first: behind a line that fills the screen the cursor still stands on its last letter.
    text.append(kEraseLine).append(picture.substr(0, end));
    picture.remove_prefix(std::min(end + 1, picture.size()));
  }
  // Behind the last row a newline would scroll the first away.
  if (row < rows) text.append("\r\n").append(kEraseBelow);
  return text;
}

std::string_view cut_to(std::string_view line, size_t columns) {
  size_t end = 0;
  while (end < line.size()) {
    const bool starts_letter = (static_cast<unsigned char>(line[end]) & 0xc0) != 0x80;
    if (starts_letter && columns-- == 0) break;
    ++end;
  }
  return line.substr(0, end);
}

}  // namespace muster::cli
