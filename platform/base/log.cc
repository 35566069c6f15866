#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"

namespace muster::base {

namespace {

using Json = nlohmann::ordered_json;

std::atomic<LogFormat>& chosen_format() {
  static std::atomic<LogFormat> format{LogFormat::kText};
  return format;
}

/// A line is one write, so that lines of several threads do not mix. A failure to write to standard
/// error cannot be reported anywhere.
void log(std::string_view level, std::string_view text, const LogFields& fields) {
  const LogFormat format = chosen_format();
  std::string line = log_line(format, SystemClock().now(), level, text, fields) + "\n";
  if (format == LogFormat::kPlain)
    line.insert(0, std::string(program_invocation_short_name) + ": ");
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  [[maybe_unused]] const Result<void> written = write_all(STDERR_FILENO, line);
}

Json json_of(const LogField& field) {
  return std::visit([](const auto& value) { return Json(value); }, field.value);
}

/// One line of ASCII, whatever the bytes: invalid UTF-8 becomes U+FFFD.
std::string one_line(const Json& json) {
  constexpr int kNoIndent = -1;
  return json.dump(kNoIndent, ' ', true, Json::error_handler_t::replace);
}

bool is_control(char letter) {
  constexpr unsigned char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(letter);
  return byte < ' ' || byte == kDelete;
}

/// Control characters would end the line, or be interpreted by a reader's terminal. The lines of a
/// text become clauses: "has 1 fault; line 4: ...".
std::string without_control(std::string_view text) {
  std::string out;
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (!is_control(letter)) {
      out += letter;
      continue;
    }
    if (letter == '\n') {
      out += "; ";
      while (text[i + 1] == ' ' || text[i + 1] == '\n') ++i;  // the last letter is no newline
      continue;
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(letter);
    out += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
  }
  return out;
}

bool is_plain(std::string_view value) {
  for (const char letter : value) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte <= ' ' || byte > '~' || letter == '"' || letter == '=' || letter == '\\') return false;
  }
  return !value.empty();
}

std::string text_value(const LogField& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) {
    return is_plain(*text) ? *text : one_line(*text);
  }
  if (const auto* number = std::get_if<int64_t>(&field.value)) return std::to_string(*number);
  std::array<char, 32> digits{};
  const int length =
      std::snprintf(digits.data(), digits.size(), "%.3f", std::get<double>(field.value));
  return {digits.data(), std::min(static_cast<size_t>(length), digits.size() - 1)};
}

}  // namespace

void set_log_format(LogFormat format) {
  chosen_format() = format;
}

std::string log_line(LogFormat format, Time time, std::string_view level, std::string_view text,
                     const LogFields& fields) {
  if (format == LogFormat::kJson) {
    Json line{{"time", to_rfc3339(time)}, {"level", level}, {"text", text}};
    for (const LogField& field : fields) line[field.name] = json_of(field);
    return one_line(line);
  }
  if (format == LogFormat::kPlain) {
    return (level == "warning" ? "warning: " : "") + without_control(text);
  }
  std::string line = to_rfc3339(time) + " " + std::string(level) + " " + without_control(text);
  for (const LogField& field : fields) line += " " + field.name + "=" + text_value(field);
  return line;
}

void log_info(std::string_view text, const LogFields& fields) {
  log("info", text, fields);
}
void log_warning(std::string_view text, const LogFields& fields) {
  log("warning", text, fields);
}
void log_error(std::string_view text, const LogFields& fields) {
  log("error", text, fields);
}

}  // namespace muster::base
