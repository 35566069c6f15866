// The header "date" of an answer: what time it is where the server is.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

/// Seconds since the epoch of "Sun, 06 Nov 1994 08:49:37 GMT", the one form in which it is written
/// (RFC 9110, 5.6.7); nothing of any other.
std::optional<int64_t> parse_http_date(std::string_view text);

}  // namespace muster::engine
