#include "cli/common/terminal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

bool is_control(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return (code < 0x20 && letter != '\t' && letter != '\r') || code == 0x7f;
}

/// The length in bytes of the UTF-8 character that begins with `first`; 0: invalid.
size_t length_of_character(char first) {
  const auto code = static_cast<unsigned char>(first);
  if (code >= 0xc2 && code <= 0xdf) return 2;
  if (code >= 0xe0 && code <= 0xef) return 3;
  return code >= 0xf0 && code <= 0xf4 ? 4 : 0;
}

bool continues_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xc0) == 0x80;
}

/// REQUIRES: `character` is a valid UTF-8 character of at least two bytes.
uint32_t code_point_of(std::string_view character) {
  uint32_t code = static_cast<unsigned char>(character.front()) & (0xff >> (character.size() + 1));
  for (const char letter : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(letter) & 0x3f);
  }
  return code;
}

/// Whether a terminal interprets the code point: C1 control characters, which xterm and others
/// treat like ESC and a letter, and the marks, embeddings, overrides and isolates of Unicode's
/// bidirectional algorithm (UAX #9), which change the visible order of a line.
bool is_obeyed(uint32_t code) {
  return (code >= 0x80 && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/// The length of the printable ASCII text at the beginning.
size_t printable_ascii(std::string_view text) {
  const auto other = std::find_if(text.begin(), text.end(),
                                  [](char letter) { return letter < ' ' || letter > '~'; });
  return static_cast<size_t>(other - text.begin());
}

void append_escaped(char letter, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(letter);
  out += "\\x";
  out += kDigits[code >> 4];
  out += kDigits[code & 15];
}

void append_code_point(uint32_t code, std::string& out) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", code);
  out += text.data();
}

}  // namespace

Terminal terminal_of(int fd) {
  Terminal terminal{.is_terminal = ::isatty(fd) == 1};
  terminal.colour = uses_colour(terminal.is_terminal, std::getenv("NO_COLOR"), std::getenv("TERM"));
  const auto size = terminal.is_terminal ? size_of_terminal(fd) : std::nullopt;
  if (size && size->second > 0) terminal.columns = static_cast<size_t>(size->second);
  return terminal;
}

size_t columns_now(const Terminal& terminal) {
  const auto size = terminal.is_terminal ? size_of_terminal(STDOUT_FILENO) : std::nullopt;
  return size ? static_cast<size_t>(size->second) : terminal.columns;
}

bool uses_colour(bool is_terminal, const char* no_color, const char* term) {
  if (!is_terminal || (no_color != nullptr && *no_color != '\0')) return false;
  return term != nullptr && std::string_view(term) != "dumb";
}

bool shows_unicode(const char* lc_all, const char* lc_ctype, const char* lang) {
  for (const char* variable : {lc_all, lc_ctype, lang}) {
    if (variable == nullptr || *variable == '\0') continue;
    const std::string name = base::lower_case(variable);
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

// Fast path: a log is almost entirely ASCII, and may be large.
void TerminalFilter::append(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const char letter = text.front();
    if (!character_.empty() && !continues_character(letter)) finish(out);
    if (!character_.empty()) {
      character_ += letter;
      text.remove_prefix(1);
      if (character_.size() < length_of_character(character_.front())) continue;
      if (!base::is_utf8(character_)) {
        finish(out);
        continue;
      }
      const uint32_t code = code_point_of(character_);
      if (is_obeyed(code)) {
        append_code_point(code, out);
      } else {
        out += character_;
      }
      character_.clear();
      continue;
    }
    if (const size_t plain = printable_ascii(text); plain > 0) {
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      continue;
    }
    if (length_of_character(letter) > 0) {
      character_ = letter;
    } else if (is_control(letter) || static_cast<unsigned char>(letter) >= 0x80) {
      append_escaped(letter, out);
    } else {
      out += letter;
    }
    text.remove_prefix(1);
  }
}

void TerminalFilter::finish(std::string& out) {
  for (const char letter : std::exchange(character_, {})) append_escaped(letter, out);
}

std::string safe_lines(std::string_view text) {
  std::string out;
  TerminalFilter filter;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    filter.append(text.substr(0, end), out);
    filter.finish(out);
    if (end == text.size()) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

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

Interrupts::Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    // A shell without job control makes its background commands ignore Ctrl-C, which is meant for
    // the foreground.
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
  signals_.reset(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));

  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Interrupts::~Interrupts() {
  while (take()) {
  }
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool Interrupts::take() {
  signalfd_siginfo info{};
  return ::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

namespace {

constexpr std::string_view kStartOfLine = "\r\x1b[K";

std::string cut_to_bytes(std::string line, size_t columns) {
  // Do not cut within a character.
  const auto is_inside = [&](size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80;
  };
  size_t end = std::min(line.size(), columns);
  while (end > 0 && is_inside(end)) --end;
  line.resize(end);
  return line;
}

std::string bar(int percent, size_t width) {
  const size_t full = width * static_cast<size_t>(percent) / 100;
  std::string text(full, '=');
  if (full < width) text += '>';
  text.resize(width, ' ');
  return "[" + text + "]";
}

}  // namespace

ProgressBar::ProgressBar() : on_terminal_(terminal_of(STDERR_FILENO).is_terminal) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::show(std::string_view what, int64_t done, int64_t all) {
  if (is_due()) draw(progress_line(what, done, all, columns()));
}

void ProgressBar::show(std::string_view what, std::string_view line) {
  if (is_due()) draw(progress_line(what, line, columns()));
}

void ProgressBar::clear() {
  if (std::exchange(drawn_, false)) static_cast<void>(base::write_all(STDERR_FILENO, kStartOfLine));
}

/// More frequent updates would only make the terminal flicker.
bool ProgressBar::is_due() {
  constexpr std::chrono::milliseconds kBetween{50};
  if (!on_terminal_ || (drawn_ && Clock::now() - last_ < kBetween)) return false;
  last_ = Clock::now();
  return true;
}

void ProgressBar::draw(const std::string& line) {
  drawn_ = true;
  static_cast<void>(base::write_all(STDERR_FILENO, std::string(kStartOfLine) + line));
}

size_t ProgressBar::columns() const {
  constexpr size_t kUsual = 80;
  winsize window{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return kUsual;
  return window.ws_col;
}

std::string progress_line(std::string_view what, int64_t done, int64_t all, size_t columns) {
  constexpr size_t kMostBar = 40;
  constexpr size_t kLeastBar = 5;
  const int percent =
      all > 0 ? static_cast<int>(std::clamp<int64_t>(done, 0, all) * 100 / all) : 100;
  const std::string before = std::string(what) + " ";
  const std::string number = std::to_string(percent);
  const std::string after = std::string(5 - number.size(), ' ') + number + "%  " +
                            workspace::size_text(done) + " of " + workspace::size_text(all);
  const size_t used = before.size() + after.size() + 2;
  // The last column stays free: some terminals start a new line as soon as it is written.
  if (columns < used + kLeastBar + 1) return cut_to_bytes(before + after.substr(2), columns - 1);
  return before + bar(percent, std::min(kMostBar, columns - used - 1)) + after;
}

std::string progress_line(std::string_view what, std::string_view line, size_t columns) {
  std::string text = std::string(what) + "  ";
  TerminalFilter filter;
  filter.append(line, text);
  filter.finish(text);
  std::erase(text, '\r');
  return cut_to_bytes(std::move(text), columns - 1);
}

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
    // With Ctrl-Z, the shell would get a terminal in raw mode.
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
    if (entries[1].revents != 0 && is_quit_key_pressed()) return false;
  }
}

int LiveScreen::keys_fd() const {
  return has_keys_ ? STDIN_FILENO : -1;
}

bool LiveScreen::user_quits() {
  if (interrupts_.take()) return true;
  pollfd key{.fd = keys_fd(), .events = POLLIN, .revents = 0};
  return ::poll(&key, 1, 0) > 0 && is_quit_key_pressed();
}

bool LiveScreen::is_quit_key_pressed() const {
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
    // Erase first: after a line that fills the screen, the cursor still stands on its last
    // character.
    text.append(kEraseLine).append(picture.substr(0, end));
    picture.remove_prefix(std::min(end + 1, picture.size()));
  }
  // After the last row, a newline would scroll the first row away.
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
