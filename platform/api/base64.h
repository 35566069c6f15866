// Base64 (RFC 4648, section 4): how bytes that are no text travel in JSON.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

void append_base64(std::string& out, std::string_view bytes);

/// Nothing where `text` is no base64: padding is required, white space is none of it.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace muster::api
