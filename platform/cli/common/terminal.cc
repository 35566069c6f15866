#include "cli/common/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace muster::cli {

namespace {

bool is_control(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return (code < 0x20 && letter != '\t' && letter != '\r') || code == 0x7f;
}

/// The length of the character in UTF-8 that begins so; 0: none does.
size_t length_of_character(char first) {
  const auto code = static_cast<unsigned char>(first);
  if (code >= 0xc2 && code <= 0xdf) return 2;
  if (code >= 0xe0 && code <= 0xef) return 3;
  return code >= 0xf0 && code <= 0xf4 ? 4 : 0;
}

bool continues_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xc0) == 0x80;
}

/// Of one character of two bytes or more.
uint32_t code_point_of(std::string_view character) {
  uint32_t code = static_cast<unsigned char>(character.front()) & (0xff >> (character.size() + 1));
  for (const char letter : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(letter) & 0x3f);
  }
  return code;
}

/// C1, which xterm and others obey as they obey ESC and a letter, and the marks, embeddings,
/// overrides and isolates of Unicode's bidirectional algorithm (UAX #9), by which a line is read as
/// another than it is.
bool is_obeyed(uint32_t code) {
  return (code >= 0x80 && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/// How much of the beginning is nothing but that.
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
  const bool is_terminal = ::isatty(fd) == 1;
  return {.is_terminal = is_terminal,
          .colour = wants_colour(is_terminal, std::getenv("NO_COLOR"), std::getenv("TERM"))};
}

bool wants_colour(bool is_terminal, const char* no_color, const char* term) {
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

// A log is ASCII nearly all of it, and may be a flood.
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

}  // namespace muster::cli
