// Durations and sizes as people write them: 30s, 500ms, 1h; 512M, 16Gi.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::job {

using base::Result;

/// "500ms", "30s", "5m", "1h", "2d"; a bare number counts seconds. kInvalid names the text.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "1048576", "512M", "16G", "16Gi" (K, M, G, T and Ki, Mi, Gi, Ti are all powers of 1024).
Result<int64_t> parse_bytes(std::string_view text);

/// "1h2m", "12s", "350ms": the two largest units.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace muster::job
