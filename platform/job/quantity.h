// Quantities as Kubernetes writes them: "100m", "1.5", "2Gi", "1e3".
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::job {

/// In thousandths, for CPUs; rounded up. Nothing if `text` is no quantity, is negative, or is too
/// large.
std::optional<int64_t> milli_of_quantity(std::string_view text);

/// In whole units, for bytes and devices; otherwise the same.
std::optional<int64_t> whole_of_quantity(std::string_view text);

}  // namespace muster::job
