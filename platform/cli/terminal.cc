#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace muster::cli {

namespace {

bool is_control(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return (code < 0x20 && letter != '\t' && letter != '\r') || code == 0x7f;
}

/// Second byte of U+0080 to U+009F. xterm and others obey these as they obey ESC and a letter.
bool completes_c1(char previous, char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return previous == '\xc2' && code >= 0x80 && code <= 0x9f;
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
    std::string name(variable);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    return name.find("UTF-8") != std::string::npos || name.find("UTF8") != std::string::npos;
  }
  return false;
}

// A log is ASCII nearly all of it, and may be a flood.
void TerminalFilter::append(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (const size_t plain = printable_ascii(text); plain > 0) {
      out += text.substr(0, plain);
      previous_ = text[plain - 1];
      text.remove_prefix(plain);
      continue;
    }
    const char letter = text.front();
    if (is_control(letter) || completes_c1(previous_, letter)) {
      append_escaped(letter, out);
    } else {
      out += letter;
    }
    previous_ = letter;
    text.remove_prefix(1);
  }
}

std::string safe_lines(std::string_view text) {
  std::string out;
  TerminalFilter filter;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    filter.append(text.substr(0, end), out);
    if (end == text.size()) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace muster::cli
