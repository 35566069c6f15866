#include <array>
#include <utility>

#include "access/identity.h"
#include "api/fields.h"
#include "api/wire.h"
#include "http/head.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

/// What each code is answered with; the first status of a code is the one that is sent, the others
/// are understood when a proxy or the HTTP layer itself answers with them.
constexpr std::array<std::pair<ErrorCode, int>, 19> kStatuses{{
    {ErrorCode::kInvalid, 400},     {ErrorCode::kInvalid, 405},   {ErrorCode::kInvalid, 413},
    {ErrorCode::kInvalid, 415},     {ErrorCode::kInvalid, 416},   {ErrorCode::kInvalid, 422},
    {ErrorCode::kInvalid, 431},     {ErrorCode::kNotFound, 404},  {ErrorCode::kNotFound, 410},
    {ErrorCode::kConflict, 409},    {ErrorCode::kConflict, 412},  {ErrorCode::kRefused, 403},
    {ErrorCode::kRefused, 401},     {ErrorCode::kExhausted, 507}, {ErrorCode::kExhausted, 429},
    {ErrorCode::kUnavailable, 503}, {ErrorCode::kTimeout, 504},   {ErrorCode::kTimeout, 408},
    {ErrorCode::kInternal, 500},
}};

/// The word for an access::NotLoggedIn.
constexpr std::string_view kNotLoggedIn = "not_logged_in";

ErrorCode code_of_status(int status) {
  for (const auto& [code, candidate] : kStatuses) {
    if (candidate == status) return code;
  }
  return ErrorCode::kInternal;
}

void write_fault(JsonWriter& json, const Fault& fault) {
  json.open('{');
  json.key("field").prose(fault.field);
  json.key("what").prose(fault.what);
  if (fault.line > 0) json.key("line").number(fault.line);
  json.close('}');
}

Fault read_fault(Fields& fields) {
  Fault fault;
  fields.read("field", fault.field);
  fields.read("what", fault.what);
  fields.read("line", fault.line);
  return fault;
}

}  // namespace

int http_status_of(ErrorCode code) {
  for (const auto& [candidate, status] : kStatuses) {
    if (candidate == code) return status;
  }
  return 500;
}

std::string problem_to_json(const Error& error) {
  return problem_to_json(error, http_status_of(error.code));
}

std::string problem_to_json(const Error& error, int status) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("type").text("about:blank");
  json.key("title").text(http::reason_phrase(status));
  json.key("status").number(status);
  json.key("detail").prose(error.what);
  json.key("code").text(to_string(error.code));
  if (!error.advice.empty()) json.key("advice").prose(error.advice);
  if (base::detail_of<access::NotLoggedIn>(error) != nullptr) json.key("cause").text(kNotLoggedIn);
  if (!error.faults.empty()) {
    json.key("faults").open('[');
    for (const Fault& fault : error.faults) write_fault(json, fault);
    json.close(']');
  }
  json.close('}');
  return text;
}

Error problem_from_json(int status, std::string_view text) {
  Error error{.code = code_of_status(status)};
  std::string code;
  std::string cause;
  const auto read = read_document(
      text, "problem",
      [&](Fields& fields) {
        fields.read("detail", error.what, Need::kRequired);
        fields.read("code", code);
        fields.read("advice", error.advice);
        fields.read("cause", cause);
        fields.each("faults", [&](Fields& inner) { error.faults.push_back(read_fault(inner)); });
      },
      Unknown::kIgnored);
  if (!read) {
    return {.code = code_of_status(status),
            .what = "the server answered " + std::to_string(status) + " " +
                    std::string(http::reason_phrase(status)),
            .advice = "see the server's log"};
  }
  if (!code.empty()) error.code = base::error_code_of(code);
  if (cause == kNotLoggedIn) error.detail = std::make_shared<const access::NotLoggedIn>();
  return error;
}

}  // namespace muster::api
