#include "api/json_scanner.h"

#include <charconv>

#include "api/fields.h"

namespace muster::api {

namespace {

/// The length of what stands before the first character that a JSON string cannot hold as it is.
size_t plain_prefix(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const char letter = text[length];
    if (letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < 0x20) break;
    ++length;
  }
  return length;
}

void append_code_point(std::string& out, uint32_t point) {
  const auto byte = [&](uint32_t bits) { out += static_cast<char>(bits); };
  const auto following = [&](unsigned shift) { byte(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0U | point >> 6U);
    following(0);
  } else if (point < 0x10000) {
    byte(0xE0U | point >> 12U);
    following(6);
    following(0);
  } else {
    byte(0xF0U | point >> 18U);
    following(12);
    following(6);
    following(0);
  }
}

}  // namespace

bool JsonScanner::take_plain(std::string_view& into) {
  if (!take("\"")) return false;
  into = rest_.substr(0, plain_prefix(rest_));
  rest_.remove_prefix(into.size());
  return take("\"") && is_utf8(into);
}

bool JsonScanner::take_text(std::string& into) {
  if (!take("\"")) return false;
  into.clear();
  while (true) {
    const std::string_view plain = rest_.substr(0, plain_prefix(rest_));
    into += plain;
    rest_.remove_prefix(plain.size());
    if (take("\"")) return is_utf8(into);
    if (!take("\\") || !take_escape(into)) return false;
  }
}

bool JsonScanner::take_escape(std::string& into) {
  if (rest_.empty()) return false;
  const char letter = rest_.front();
  rest_.remove_prefix(1);
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
    into += kMeanings[at];
    return true;
  }
  if (letter != 'u') return false;
  const auto unit = take_hex4();
  // Pairs of surrogates are left to the slow way: our own writer never makes them.
  if (!unit || (*unit >= 0xD800 && *unit < 0xE000)) return false;
  append_code_point(into, *unit);
  return true;
}

std::optional<uint32_t> JsonScanner::take_hex4() {
  uint32_t value = 0;
  const std::string_view digits = rest_.substr(0, 4);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  const bool whole = digits.size() == 4 && end == digits.data() + digits.size();
  if (error != std::errc() || !whole) return std::nullopt;
  rest_.remove_prefix(digits.size());
  return value;
}

bool JsonScanner::take_int(int& into) {
  // from_chars takes leading zeros, which JSON does not.
  if (rest_.starts_with("0") || rest_.starts_with("-")) {
    into = 0;
    return take("0") && (rest_.starts_with(",") || rest_.starts_with("}"));
  }
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), into);
  if (error != std::errc()) return false;
  rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  return true;
}

}  // namespace muster::api
