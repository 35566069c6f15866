// What the parts of a fake server answer alike.
//
// Pure.
#pragma once

#include <string>
#include <utility>

#include "api/wire.h"
#include "base/error.h"
#include "http/message.h"

namespace muster::cli {

inline http::Response problem_answer(const base::Error& error) {
  return {.status = api::http_status_of(error.code), .body = api::problem_to_json(error)};
}

inline http::Response problem_answer(base::ErrorCode code, std::string what) {
  return problem_answer(base::Error{.code = code, .what = std::move(what)});
}

/// "there is no WHAT"
inline http::Response not_found_answer(const std::string& what) {
  return problem_answer(base::ErrorCode::kNotFound, "there is no " + what);
}

}  // namespace muster::cli
