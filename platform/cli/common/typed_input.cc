#include "cli/common/typed_input.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iostream>
#include <utility>

#include "base/files.h"
#include "base/yaml.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;

/// Turns off the terminal's echo, except of newlines, while this object exists.
class Hidden {
 public:
  explicit Hidden(int descriptor) : descriptor_(descriptor) {
    is_terminal_ = ::tcgetattr(descriptor_, &before_) == 0;
    if (!is_terminal_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden.c_lflag |= ECHONL;
    // Discards text that was typed before the question: the terminal has already displayed it.
    ::tcsetattr(descriptor_, TCSAFLUSH, &hidden);
  }
  ~Hidden() {
    if (is_terminal_) ::tcsetattr(descriptor_, TCSADRAIN, &before_);
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

 private:
  int descriptor_;
  bool is_terminal_ = false;
  termios before_{};
};

/// Waits until the descriptor can be read; false: Ctrl-C came first.
Result<bool> wait_for_line(int descriptor, Interrupts& interrupts) {
  std::array<pollfd, 2> entries{{{.fd = descriptor, .events = POLLIN, .revents = 0},
                                 {.fd = interrupts.fd(), .events = POLLIN, .revents = 0}}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
    if (errno != EINTR) return base::system_error("cannot wait for the terminal", errno);
  }
  return !interrupts.take();
}

Result<std::optional<std::string>> read_line(int descriptor, Interrupts& interrupts) {
  // A terminal in line mode silently drops the rest of a longer line (N_TTY).
  constexpr size_t kLongest = 4095;
  std::array<char, kLongest + 1> bytes{};
  MUSTER_TRY(const bool there, wait_for_line(descriptor, interrupts));
  if (!there) return std::optional<std::string>();
  const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
  if (count < 0) return base::system_error("cannot read from the terminal", errno);
  if (count == 0) return std::optional<std::string>();
  if (static_cast<size_t>(count) >= kLongest) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the line is longer than the terminal allows",
                 .advice = "give the text on standard input or in a file"};
  }
  return std::optional(without_last_newline({bytes.data(), static_cast<size_t>(count)}));
}

}  // namespace

Result<std::optional<std::string>> ask(int descriptor, const std::string& question, Echo echo,
                                       Interrupts& interrupts) {
  std::optional<Hidden> hidden;
  if (echo == Echo::kOff) hidden.emplace(descriptor);
  std::cerr << question << std::flush;
  auto line = read_line(descriptor, interrupts);
  if (line && !*line) std::cerr << std::endl;
  return line;
}

Result<std::string> read_to_end(int descriptor, size_t limit) {
  std::string text;
  constexpr size_t kStep = 64 << 10;
  while (text.size() <= limit) {
    const size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t count = ::read(descriptor, text.data() + before, kStep);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return base::system_error("cannot read standard input", errno);
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = "standard input is larger than " + std::to_string(limit) + " bytes"};
}

Result<std::string> read_flag_file(const std::string& file) {
  auto text = file == "-" ? read_to_end(STDIN_FILENO, base::kMaxYamlBytes)
                          : base::read_file(file, base::kMaxYamlBytes);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kInvalid;
  return error;
}

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace muster::cli
