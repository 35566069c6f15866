// The server's own log: one line for each event, on standard error. Not the logs of jobs.
//
// An event is a sentence, with fields for programs:
//
//   2026-01-31T12:34:56.123Z info request status=200 path=/v1/jobs
//   {"time":"2026-01-31T12:34:56.123Z","level":"info","text":"request","status":200,...}
//
// An event is always one line, whatever its text and values contain, so that logged data cannot
// forge lines.
//
// Thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace muster::base {

struct LogField {
  LogField(std::string field, std::string text) : name(std::move(field)), value(std::move(text)) {}
  LogField(std::string field, const char* text) : name(std::move(field)), value(text) {}
  template <std::integral Number>
  LogField(std::string field, Number number)
      : name(std::move(field)), value(static_cast<int64_t>(number)) {}
  LogField(std::string field, double number) : name(std::move(field)), value(number) {}

  std::string name;  ///< consists of a-z and '_'
  std::variant<std::string, int64_t, double> value;
};
using LogFields = std::vector<LogField>;

enum class LogFormat {
  kText,
  kJson,
  /// "program: warning: text", without time and fields: for people who read standard error
  kPlain,
};

/// Applies to all following lines.
void set_log_format(LogFormat format);

void log_info(std::string_view text, const LogFields& fields = {});
void log_warning(std::string_view text, const LogFields& fields = {});
void log_error(std::string_view text, const LogFields& fields = {});

/// The line of an event without its newline, as the functions above print it.
std::string log_line(LogFormat format, Time time, std::string_view level, std::string_view text,
                     const LogFields& fields);

}  // namespace muster::base
