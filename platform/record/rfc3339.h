// Times on the wire: 2026-01-31T12:34:56.123456789Z, always with nine digits, because the order of
// logs depends on them. Faster than base::to_rfc3339(), because it is called for every line of
// logs.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::record {

void append_rfc3339(std::string& out, base::Time time);

/// Accepts any number of digits (the tenth and later are dropped) and any offset. Nothing if the
/// text is not a time between 1678 and 2261, the range of nanoseconds since 1970.
std::optional<base::Time> parse_rfc3339(std::string_view text);

}  // namespace muster::record
