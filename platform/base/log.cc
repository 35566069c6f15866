#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace muster::base {

namespace {

using Json = nlohmann::ordered_json;

std::atomic<LogFormat>& chosen_format() {
  static std::atomic<LogFormat> format{LogFormat::kText};
  return format;
}

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::move(sink));
  logger->set_pattern("%v");  // time and level stand in the line already
  logger->flush_on(spdlog::level::info);
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance =
      make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return *instance;
}

void log(spdlog::level::level_enum level, std::string_view name, std::string_view text,
         const LogFields& fields) {
  logger().log(level, "{}", log_line(chosen_format(), SystemClock().now(), name, text, fields));
}

Json json_of(const LogField& field) {
  return std::visit([](const auto& value) { return Json(value); }, field.value);
}

/// One line of ASCII, whatever the bytes are: what is no UTF-8 becomes U+FFFD.
std::string one_line(const Json& json) {
  constexpr int kNoIndent = -1;
  return json.dump(kNoIndent, ' ', true, Json::error_handler_t::replace);
}

bool is_control(char letter) {
  constexpr unsigned char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(letter);
  return byte < ' ' || byte == kDelete;
}

/// Control characters would end the line, or speak to the terminal of whoever reads it.
std::string without_control(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (!is_control(letter)) {
      out += letter;
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
  std::string line = to_rfc3339(time) + " " + std::string(level) + " " + without_control(text);
  for (const LogField& field : fields) line += " " + field.name + "=" + text_value(field);
  return line;
}

void log_info(std::string_view text, const LogFields& fields) {
  log(spdlog::level::info, "info", text, fields);
}
void log_warning(std::string_view text, const LogFields& fields) {
  log(spdlog::level::warn, "warning", text, fields);
}
void log_error(std::string_view text, const LogFields& fields) {
  log(spdlog::level::err, "error", text, fields);
}

}  // namespace muster::base
