// Whether bytes are text. JSON holds UTF-8 only, while what programs print and what argv carries
// may be anything.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster::base {

/// As RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view bytes);

/// Each byte that is no text becomes U+FFFD: for sentences that people read.
std::string as_utf8(std::string_view bytes);

/// At most `limit` bytes of a text, not cut within a character; "..." says that it was cut.
std::string shortened(std::string_view text, size_t limit = 60);

}  // namespace muster::base
