// Log records as JSON. A log of gigabytes passes through here, so the JSON that append_log_record()
// writes is read by JsonScanner, which relies on the order of the fields. Any other JSON of a
// record is read like all documents of the API (fields.h), which also reports its faults.
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/fields.h"
#include "api/wire.h"
#include "base/bytes.h"

namespace muster::api {

using job::LogRecord;
using job::LogStream;

namespace {

/// Walks over JSON of a known, flat shape from left to right. It may fail on valid JSON of another
/// shape, and it never accepts invalid JSON.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : rest_(text) {}

  /// Skips `token` if it comes next.
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  /// Reads a string and resolves its escapes.
  bool take_text(std::string& into);
  /// Reads a string without escapes, unchanged.
  bool take_plain(std::string_view& into);
  bool take_int(int& into);
  bool at_end() const { return rest_.empty(); }

 private:
  bool take_escape(std::string& into);
  std::optional<uint32_t> take_hex4();

  std::string_view rest_;
};

/// The length of the text before the first character that a JSON string must escape.
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
  // Surrogate pairs are left to the slow path: our own writer never produces them.
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
  // from_chars accepts leading zeros, which JSON does not.
  if (rest_.starts_with("0") || rest_.starts_with("-")) {
    into = 0;
    return take("0") && (rest_.starts_with(",") || rest_.starts_with("}"));
  }
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), into);
  if (error != std::errc()) return false;
  rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  return true;
}

std::string_view stream_name(LogStream stream) {
  switch (stream) {
    case LogStream::kOutput:
      return "output";
    case LogStream::kError:
      return "error";
    default:
      return "notice";
  }
}

std::optional<LogStream> stream_of(std::string_view name) {
  for (const LogStream stream : {LogStream::kOutput, LogStream::kError, LogStream::kNotice}) {
    if (stream_name(stream) == name) return stream;
  }
  return std::nullopt;
}

/// Reads the output of append_log_record(): these fields in this order, without white space.
/// Everything else fails here. Logs of gigabytes are read this way: a line takes 0.2 us, whereas
/// building a tree of it takes 2.9 us.
std::optional<LogRecord> scan(std::string_view text) {
  LogRecord record;
  JsonScanner scanner(text);
  std::string_view word;
  if (!scanner.take("{\"time\":") || !scanner.take_plain(word)) return std::nullopt;
  const auto time = parse_rfc3339(word);
  if (!time) return std::nullopt;
  record.time = *time;
  if (!scanner.take(",\"task\":") || !scanner.take_text(record.task)) return std::nullopt;
  if (scanner.take(",\"attempt\":") && !scanner.take_int(record.attempt)) return std::nullopt;
  if (!scanner.take(",\"host\":") || !scanner.take_text(record.host)) return std::nullopt;
  if (scanner.take(",\"rank\":") && !scanner.take_int(record.rank.emplace())) return std::nullopt;
  if (!scanner.take(",\"stream\":") || !scanner.take_plain(word)) return std::nullopt;
  const auto stream = stream_of(word);
  if (!stream) return std::nullopt;
  record.stream = *stream;
  if (!scanner.take(",\"text\":") || !scanner.take_text(record.text)) return std::nullopt;
  record.continues = scanner.take(",\"continues\":true");
  if (!scanner.take("}") || !scanner.at_end()) return std::nullopt;
  return record;
}

void read_log_record(Fields& fields, LogRecord& record) {
  fields.read("time", record.time, Need::kRequired);
  fields.read("task", record.task, Need::kRequired);
  fields.read("attempt", record.attempt);
  fields.read("host", record.host);
  fields.read("rank", record.rank);
  fields.choose("stream", record.stream,
                {LogStream::kOutput, LogStream::kError, LogStream::kNotice}, stream_name);
  if (fields.has("base64")) {
    fields.read_base64("base64", record.text);
    fields.ignore("text");
  } else {
    fields.read("text", record.text, Need::kRequired);
  }
  fields.read("continues", record.continues);
}

}  // namespace

void append_log_record(std::string& out, const LogRecord& record) {
  JsonWriter json(out);
  json.open('{');
  json.key("time").time(record.time);
  json.key("task").text(record.task);
  if (record.attempt != 0) json.key("attempt").number(record.attempt);
  json.key("host").text(record.host);
  if (record.rank) json.key("rank").number(*record.rank);
  json.key("stream").text(stream_name(record.stream));
  if (is_utf8(record.text)) {
    json.key("text").text(record.text);
  } else {
    json.key("base64").base64(record.text);
  }
  if (record.continues) json.key("continues").flag(true);
  json.close('}');
}

std::string log_record_to_json(const LogRecord& record) {
  std::string text;
  text.reserve(record.text.size() + 160);
  append_log_record(text, record);
  return text;
}

Result<LogRecord> log_record_from_json(std::string_view text) {
  if (auto record = scan(text)) return *std::move(record);
  LogRecord record;
  MUSTER_CHECK(
      read_document(text, "log record", [&](Fields& fields) { read_log_record(fields, record); }));
  return record;
}

}  // namespace muster::api
