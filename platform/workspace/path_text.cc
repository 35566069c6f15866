#include "workspace/path_text.h"

#include <array>

namespace muster::workspace {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void append_escaped(std::string& text, unsigned char byte) {
  switch (byte) {
    case '\n':
      text += "\\n";
      return;
    case '\t':
      text += "\\t";
      return;
    case '\r':
      text += "\\r";
      return;
    case '\\':
      text += "\\\\";
      return;
    case '\'':
      text += "\\'";
      return;
    default:
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
  }
}

/// The length of the UTF-8 character at the front, if it may be shown unescaped; otherwise 0.
size_t plain_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    const bool escaped = byte(0) < ' ' || byte(0) == 0x7f || text[0] == '\\' || text[0] == '\'';
    return escaped ? 0 : 1;
  }
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  char32_t code = byte(0) & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kFirst{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  // Terminals interpret 0x80 to 0x9f like ESC, and marks of direction reverse a name.
  const bool obeyed = code < 0xa0 || (code >= 0x200b && code <= 0x200f) ||
                      (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < kFirst[length] || code > 0x10ffff || surrogate || obeyed ? 0 : length;
}

}  // namespace

std::string shown(std::string_view name) {
  std::string text = "'";
  while (!name.empty()) {
    const size_t plain = plain_character(name);
    if (plain == 0) {
      append_escaped(text, static_cast<unsigned char>(name.front()));
    } else {
      text += name.substr(0, plain);
    }
    name.remove_prefix(plain == 0 ? 1 : plain);
  }
  return text + "'";
}

std::string size_text(int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >> (10 * (unit + 1)) != 0) ++unit;
  if (unit == 0) return std::to_string(bytes) + " B";
  // Rounded up, so that a size one byte over a limit is not shown as the limit.
  const int64_t kibi = (bytes >> (10 * (unit - 1))) +
                       ((bytes & ((int64_t{1} << (10 * (unit - 1))) - 1)) != 0 ? 1 : 0);
  const int64_t tenths = (kibi * 10 + 1023) / 1024;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " " + kUnits[unit];
}

std::string count_text(size_t count, const std::string& one, const std::string& many) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + " " + (count == 1 ? one : many);
}

}  // namespace muster::workspace
