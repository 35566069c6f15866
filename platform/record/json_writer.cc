#include "record/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/base64.h"
#include "base/units.h"
#include "base/utf8.h"
#include "record/rfc3339.h"

namespace muster::record {

namespace {

bool needs_escape(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == '"' || letter == '\\';
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
  separate();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  prose(name);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view bytes) {
  if (!base::is_utf8(bytes)) return open('{').key("base64").base64(bytes).close('}');
  separate();
  append_quoted(bytes);
  return *this;
}

JsonWriter& JsonWriter::prose(std::string_view text) {
  separate();
  if (base::is_utf8(text)) {
    append_quoted(text);
  } else {
    append_quoted(base::as_utf8(text));
  }
  return *this;
}

JsonWriter& JsonWriter::base64(std::string_view bytes) {
  separate();
  out_ += '"';
  base::append_base64(out_, bytes);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::time(base::Time time) {
  separate();
  out_ += '"';
  append_rfc3339(out_, time);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  return word(std::to_string(value));
}

JsonWriter& JsonWriter::milli(int64_t thousandths) {
  return word(base::format_milli(thousandths));
}

JsonWriter& JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
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

JsonWriter& JsonWriter::word(std::string_view word) {
  separate();
  out_ += word;
  return *this;
}

void JsonWriter::separate() {
  if (!first_) out_ += ',';
  first_ = false;
}

/// Copies the stretches between the characters that JSON wants escaped in one go each.
void JsonWriter::append_quoted(std::string_view text) {
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
