// Times on the wire: 2026-01-31T12:34:56.123456789Z, always nine digits, for a log's order hangs on
// them. Stands beside base::to_rfc3339() because it is called for every line of every log.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::record {

void append_rfc3339(std::string& out, base::Time time);

/// Takes any number of digits (those past the ninth are dropped) and any offset. Nothing for what
/// is no time, or one that does not fit into nanoseconds since 1970 (1678 to 2261).
std::optional<base::Time> parse_rfc3339(std::string_view text);

}  // namespace muster::record
