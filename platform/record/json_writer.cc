#include "record/json_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"
#include "record/rfc3339.h"

namespace muster::record {

namespace {

// RFC 8949, section 3: major types of data items, and whole items of one byte.
constexpr unsigned kUnsigned = 0;
constexpr unsigned kNegative = 1;
constexpr unsigned kText = 3;
constexpr unsigned char kOpenArray = 0x9F;
constexpr unsigned char kOpenMap = 0xBF;
constexpr unsigned char kFalse = 0xF4;
constexpr unsigned char kTrue = 0xF5;
constexpr unsigned char kNull = 0xF6;
constexpr unsigned char kDouble = 0xFB;
constexpr unsigned char kBreak = 0xFF;

constexpr size_t kTimeLength = 30;  ///< of what append_rfc3339() appends

bool needs_escape(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == '"' || letter == '\\';
}

/// Whether the text is ASCII without escapes, as nearly all names and values are. Checks eight
/// bytes at a time: if no byte has its highest bit set, a subtraction borrows into that bit of the
/// bytes that are smaller.
bool is_plain(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighest = kOnes * 0x80;
  const auto has_zero = [](uint64_t bytes) { return (bytes - kOnes) & ~bytes & kHighest; };
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof bytes);
    const uint64_t controls = (bytes - kOnes * 0x20) & ~bytes;
    if ((((bytes | controls) & kHighest) | has_zero(bytes ^ (kOnes * '"')) |
         has_zero(bytes ^ (kOnes * '\\'))) != 0) {
      return false;
    }
    text.remove_prefix(sizeof bytes);
  }
  return std::none_of(text.begin(), text.end(), [](char letter) {
    return needs_escape(letter) || static_cast<unsigned char>(letter) >= 0x80;
  });
}

/// The same for CBOR, which has no escapes.
bool is_ascii(std::string_view text) {
  constexpr uint64_t kHighest = 0x8080808080808080;
  uint64_t seen = 0;
  for (uint64_t bytes = 0; text.size() >= sizeof bytes; text.remove_prefix(sizeof bytes)) {
    std::memcpy(&bytes, text.data(), sizeof bytes);
    seen |= bytes;
  }
  uint64_t rest = 0;
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  return ((seen | rest) & kHighest) == 0;
}

void append_escaped(std::string& out, char letter) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (letter) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      const auto byte = static_cast<unsigned char>(letter);
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
  }
}

}  // namespace

JsonWriter& JsonWriter::open(char bracket) {
  if (is_cbor_) return byte(bracket == '{' ? kOpenMap : kOpenArray);
  separate();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  if (is_cbor_) return byte(kBreak);
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  prose(name);
  if (is_cbor_) return *this;
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view bytes) {
  if (is_cbor_ ? is_ascii(bytes) : is_plain(bytes)) return plain(bytes);
  if (!base::is_utf8(bytes)) return open('{').key("base64").base64(bytes).close('}');
  separate();
  append_quoted(bytes);
  return *this;
}

JsonWriter& JsonWriter::prose(std::string_view text) {
  if (is_cbor_ ? is_ascii(text) : is_plain(text)) return plain(text);
  separate();
  if (base::is_utf8(text)) {
    append_quoted(text);
  } else {
    append_quoted(base::as_utf8(text));
  }
  return *this;
}

/// A single append for a short text, because each append costs a call.
JsonWriter& JsonWriter::plain(std::string_view text) {
  std::array<char, 128> quoted;
  constexpr size_t kAround = 3;  // a comma and two quotes
  if (is_cbor_ || text.size() + kAround > quoted.size()) {
    separate();
    append_quoted(text);
    return *this;
  }
  size_t size = 0;
  if (!first_) quoted[size++] = ',';
  first_ = false;
  quoted[size++] = '"';
  std::copy(text.begin(), text.end(), quoted.begin() + size);
  size += text.size();
  quoted[size++] = '"';
  out_.append(quoted.data(), size);
  return *this;
}

JsonWriter& JsonWriter::base64(std::string_view bytes) {
  separate();
  if (is_cbor_) {
    append_quoted(base::to_base64(bytes));
    return *this;
  }
  out_ += '"';
  base::append_base64(out_, bytes);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::time(base::Time time) {
  separate();
  if (is_cbor_) {
    append_head(kText, kTimeLength);
    append_rfc3339(out_, time);
    return *this;
  }
  out_ += '"';
  append_rfc3339(out_, time);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  if (is_cbor_) {
    const bool is_negative = value < 0;
    append_head(is_negative ? kNegative : kUnsigned,
                static_cast<uint64_t>(is_negative ? -(value + 1) : value));
    return *this;
  }
  return word(std::to_string(value));
}

JsonWriter& JsonWriter::milli(int64_t thousandths) {
  if (is_cbor_) {
    if (thousandths % 1000 == 0) return number(thousandths / 1000);
    return real(static_cast<double>(thousandths) / 1000);
  }
  return word(base::format_milli(thousandths));
}

JsonWriter& JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  if (is_cbor_) {
    byte(kDouble);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
    return *this;
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return word({digits.data(), end});
}

JsonWriter& JsonWriter::texts(const std::vector<std::string>& texts) {
  open('[');
  for (const std::string& each : texts) text(each);
  return close(']');
}

JsonWriter& JsonWriter::numbers(const std::vector<int>& numbers) {
  open('[');
  for (const int each : numbers) number(each);
  return close(']');
}

JsonWriter& JsonWriter::null() {
  return is_cbor_ ? byte(kNull) : word("null");
}

JsonWriter& JsonWriter::truth(bool value) {
  if (is_cbor_) return byte(value ? kTrue : kFalse);
  return word(value ? "true" : "false");
}

JsonWriter& JsonWriter::byte(unsigned char byte) {
  out_ += static_cast<char>(byte);
  return *this;
}

/// The head of a data item, with the argument in as few bytes as possible.
void JsonWriter::append_head(unsigned major, uint64_t argument) {
  constexpr uint64_t kMostWithin = 23;
  const unsigned type = major << 5U;
  if (argument <= kMostWithin) {
    byte(static_cast<unsigned char>(type | argument));
    return;
  }
  const int log_of_width = argument <= 0xFF ? 0 : argument <= 0xFFFF ? 1 : argument <= ~0U ? 2 : 3;
  byte(static_cast<unsigned char>(type | (kMostWithin + 1 + static_cast<unsigned>(log_of_width))));
  for (int shift = 8 * (1 << log_of_width) - 8; shift >= 0; shift -= 8) {
    out_ += static_cast<char>(argument >> static_cast<unsigned>(shift));
  }
}

JsonWriter& JsonWriter::word(std::string_view word) {
  separate();
  out_ += word;
  return *this;
}

void JsonWriter::separate() {
  if (!first_ && !is_cbor_) out_ += ',';
  first_ = false;
}

/// Appends each run of characters without escapes at once.
void JsonWriter::append_quoted(std::string_view text) {
  if (is_cbor_) {
    append_head(kText, text.size());
    out_ += text;
    return;
  }
  out_ += '"';
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!needs_escape(text[i])) continue;
    out_ += text.substr(begin, i - begin);
    append_escaped(out_, text[i]);
    begin = i + 1;
  }
  out_ += text.substr(begin);
  out_ += '"';
}

}  // namespace muster::record
