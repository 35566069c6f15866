#include "engine/kubernetes/api_error.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using Json = nlohmann::json;

namespace {

/// A longer text of a proxy is a page of HTML.
constexpr size_t kLongestForeignText = 300;
constexpr size_t kLongestMessage = 2000;

/// The member as text; empty if it is missing or of another type.
std::string status_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::chrono::seconds> seconds_in(std::string_view text) {
  int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

void read_details(const Json& details, ApiRefusal& refusal) {
  refusal.kind = status_text(details, "kind");
  refusal.group = status_text(details, "group");
  refusal.name = status_text(details, "name");
  if (const auto after = details.find("retryAfterSeconds");
      after != details.end() && after->is_number_integer() && after->get<int64_t>() > 0) {
    refusal.retry_after = std::chrono::seconds(after->get<int64_t>());
  }
  const auto causes = details.find("causes");
  if (causes == details.end() || !causes->is_array()) return;
  for (const Json& cause : *causes) {
    if (!cause.is_object()) continue;
    refusal.causes.push_back({.reason_code = status_text(cause, "reason"),
                              .message = status_text(cause, "message"),
                              .field = status_text(cause, "field")});
  }
}

/// A text on one line, for a sentence.
std::string sentence_part(std::string_view text, size_t longest) {
  std::string line = base::as_utf8(text);
  std::replace_if(
      line.begin(), line.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < 0x20; }, ' ');
  return base::shortened(base::trimmed(line), longest);
}

/// The reason that the API server would have given, for answers of proxies.
std::string reason_of(int status) {
  switch (status) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "";
  }
}

ErrorCode code_of(const ApiRefusal& refusal) {
  const bool is_budget =
      std::any_of(refusal.causes.begin(), refusal.causes.end(),
                  [](const StatusCause& cause) { return cause.reason_code == "DisruptionBudget"; });
  switch (refusal.status) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kRefused;
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 429:
      return is_budget ? ErrorCode::kExhausted : ErrorCode::kUnavailable;
    case 502:
    case 503:
    case 504:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

std::string advice_for(const ApiRefusal& refusal) {
  switch (refusal.status) {
    case 401:
      return "check the credentials: an expired certificate or token, or those of another cluster";
    case 403:
      return refusal.reason_code == "Forbidden"
                 ? "ask the cluster's administrator for the right, or for more quota"
                 : "";
    case 429:
    case 503:
      return "try again later";
    default:
      return "";
  }
}

}  // namespace

const ApiRefusal* refusal_of(const Error& error) {
  return base::detail_of<ApiRefusal>(error);
}

bool has_reason(const Error& error, std::string_view reason) {
  const ApiRefusal* refusal = refusal_of(error);
  return refusal != nullptr && refusal->reason_code == reason;
}

ApiRefusal read_refusal(const Json& status, int http_status) {
  ApiRefusal refusal;
  refusal.status = http_status;
  if (!status.is_object()) return refusal;
  if (const auto code = status.find("code");
      http_status == 0 && code != status.end() && code->is_number_integer()) {
    refusal.status = code->get<int>();
  }
  refusal.reason_code = status_text(status, "reason");
  refusal.message = sentence_part(status_text(status, "message"), kLongestMessage);
  if (const auto details = status.find("details");
      details != status.end() && details->is_object()) {
    read_details(*details, refusal);
  }
  return refusal;
}

ApiRefusal read_refusal(const http::Response& answer) {
  const Json body = base::parse_json(answer.body);
  const bool is_status = body.is_object() && status_text(body, "kind") == "Status";
  ApiRefusal refusal = read_refusal(is_status ? body : Json(), answer.status);
  if (!is_status) refusal.message = sentence_part(answer.body, kLongestForeignText);
  if (refusal.reason_code.empty()) refusal.reason_code = reason_of(answer.status);
  if (const auto after = answer.headers.find("retry-after"); after != answer.headers.end()) {
    if (const auto seconds = seconds_in(after->second)) refusal.retry_after = seconds;
  }
  return refusal;
}

Error error_of(const ApiRefusal& refusal, const std::string& doing, const std::string& server) {
  std::string words = refusal.message;
  if (words.empty()) words = refusal.reason_code;
  if (words.empty()) words = "status " + std::to_string(refusal.status);
  Error error{.code = code_of(refusal),
              .what = doing + ": " + server + " answered: " + words,
              .advice = advice_for(refusal),
              .detail = std::make_shared<const ApiRefusal>(refusal)};
  if (error.code != ErrorCode::kInvalid) return error;
  for (const StatusCause& cause : refusal.causes) {
    error.faults.push_back(
        {.field = cause.field, .what = cause.message.empty() ? cause.reason_code : cause.message});
  }
  return error;
}

}  // namespace muster::engine::kubernetes
