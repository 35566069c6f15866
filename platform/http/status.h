// The words that belong to an HTTP status (RFC 9110, section 15).
//
// Pure; thread-safe.
#pragma once

#include <string_view>

namespace muster::http {

/// "Not Found" for 404; "Unknown" for a status that Muster never sends.
std::string_view reason_phrase(int status);

}  // namespace muster::http
