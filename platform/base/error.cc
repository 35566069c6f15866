#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::base {

namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 8> kNames{{
    {ErrorCode::kInvalid, "invalid"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kConflict, "conflict"},
    {ErrorCode::kRefused, "refused"},
    {ErrorCode::kExhausted, "exhausted"},
    {ErrorCode::kUnavailable, "unavailable"},
    {ErrorCode::kTimeout, "timeout"},
    {ErrorCode::kInternal, "internal"},
}};

ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kConflict;
    case EACCES:
    case EPERM:
      return ErrorCode::kRefused;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return ErrorCode::kExhausted;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return ErrorCode::kUnavailable;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  for (const auto& [candidate, name] : kNames) {
    if (candidate == code) return name;
  }
  return "internal";
}

ErrorCode error_code_of(std::string_view name) {
  for (const auto& [code, candidate] : kNames) {
    if (candidate == name) return code;
  }
  return ErrorCode::kInternal;
}

std::string Error::to_string() const {
  std::string text = what;
  for (const Fault& fault : faults) {
    text += "\n  ";
    if (fault.line > 0) text += "line " + std::to_string(fault.line) + ": ";
    if (!fault.field.empty()) text += fault.field + ": ";
    text += fault.what;
  }
  if (!advice.empty()) text += "\n  " + advice;
  return text;
}

Error invalid_text(std::string_view text, const std::string& what) {
  return {.code = ErrorCode::kInvalid, .what = "'" + std::string(text) + "' " + what};
}

Error system_error(std::string what, int number) {
  std::array<char, 128> buffer{};
  const char* reason = strerror_r(number, buffer.data(), buffer.size());
  return {.code = code_of_errno(number), .what = std::move(what) + ": " + reason};
}

}  // namespace muster::base
