// The parameters of a request's query, and its headers.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace muster::server {

/// Empty where it is not there.
std::string parameter(const http::Request& request, std::string_view name);
/// "true" or "false"; false where it is not there. kInvalid for anything else: who writes
/// ?dry_run=True must not have started a job.
base::Result<bool> says_true(const http::Request& request, std::string_view name);
/// `name` in lower case. Empty where it is not there.
std::string header(const http::Request& request, std::string_view name);

}  // namespace muster::server
