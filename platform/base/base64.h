// Base64 (RFC 4648, section 4, padded): how bytes travel in text: in JSON, keys, variables.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::base {

void append_base64(std::string& out, std::string_view bytes);
std::string to_base64(std::string_view bytes);
/// With - and _ in the place of + and / (section 5).
std::string to_base64_for_urls(std::string_view bytes);

/// Nothing where `text` is no base64: padding is required, white space is none of it.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace muster::base
